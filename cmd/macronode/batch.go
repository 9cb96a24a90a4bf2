package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"macronode/adapters/client"
	"macronode/core/types"
)

// A payer does what the lines of a file say, batch after batch. The n-th batch has a
// key of its own, made of the prefix and n, and the same lines each time: a run that
// was cut is run again, and what was done is only shown again.
type payer struct {
	*console
	v       *batchCmd
	node    *client.Client
	results io.Writer // nil: nobody wants them
	total   int       // lines; 0: not known yet
	said    time.Time // when a line of progress was printed last
	tally
}

// A tally is what became of a file.
type tally struct {
	Lines    int `json:"lines"`
	Done     int `json:"done"`
	Refused  int `json:"refused"`
	Unknown  int `json:"unknown"`
	Unsent   int `json:"unsent"`
	Replayed int `json:"replayed"` // of all, those that an earlier run had sent
}

// errStopped says that a file was not gone on with.
var errStopped = errors.New("stopped")

// Run does what a file says.
func (v *batchCmd) Run(c *console) error {
	if v.Size < 1 || v.Size > types.MaxItems {
		return cannot(fmt.Errorf("--size %d must be 1 to %d", v.Size, types.MaxItems))
	}
	if err := types.CheckKey(v.key(9_999_999)); err != nil {
		return cannot(fmt.Errorf("--key %s must be at most %d of A-Z a-z 0-9 _ : . -", v.Key, types.MaxKey-8))
	}
	from, total, err := v.open(c.in)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // it was read
	p := &payer{console: c, v: v, total: total}
	if v.Results != "" {
		f, err := os.OpenFile(v.Results, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return cannot(fmt.Errorf("--results: %w", err))
		}
		defer f.Close() //nolint:errcheck // each line was written, or said not to be
		p.results = f
	}
	return c.asked(v.reach, func(ctx context.Context, k *client.Client) error {
		p.node = k
		return p.end(p.pay(ctx, from))
	})
}

func (v *batchCmd) key(n int) string { return fmt.Sprintf("%s.%d", v.Key, n) }

// open reads a file through once, before anything is sent: then a line that is none is
// found while nothing is done, and it is known how many there are. What comes through a
// pipe is read once.
func (v *batchCmd) open(in io.Reader) (io.ReadCloser, int, error) {
	if v.File == "-" {
		return io.NopCloser(in), 0, nil
	}
	f, err := os.Open(v.File)
	if err != nil {
		return nil, 0, cannot(err)
	}
	is, err := f.Stat()
	if err == nil && !is.Mode().IsRegular() {
		return f, 0, nil
	}
	n := 0
	for _, why := range wishes(f, v.Format) {
		if why != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w; nothing was sent", v.File, why))
			break
		}
		n++
	}
	if _, back := f.Seek(0, io.SeekStart); back != nil {
		err = errors.Join(err, back)
	}
	if err != nil {
		return nil, 0, cannot(errors.Join(err, f.Close()))
	}
	return f, n, nil
}

// pay cuts what is read into batches, always the same ones, and sends them in order.
func (p *payer) pay(ctx context.Context, from io.Reader) error {
	var all []wish
	size, n := 0, 0
	for i, err := range wishes(from, p.v.Format) {
		if err != nil {
			return err
		}
		if len(all) == p.v.Size || size+i.size > mostBatch-64 {
			if err := p.send(ctx, n, all); err != nil {
				return err
			}
			all, size, n = all[:0], 0, n+1
		}
		all, size = append(all, i), size+i.size
	}
	if len(all) == 0 {
		return nil
	}
	return p.send(ctx, n, all)
}

// send sends the n-th batch.
func (p *payer) send(ctx context.Context, n int, all []wish) error {
	o := client.BatchRequest{Atomic: p.v.Atomic, Items: make([]client.BatchItem, len(all))}
	for i := range all {
		o.Items[i] = all[i].BatchItem
	}
	p.Lines += len(all)
	b, err := p.node.Batch(ctx, o, client.Under(p.v.key(n)))
	if err == nil {
		err = p.learn(all, b)
	} else {
		err = p.stop(n, all, err)
	}
	p.progress(err != nil)
	return err
}

// learn tells what became of each line of a batch.
func (p *payer) learn(all []wish, b *client.Batch) error {
	if b.Replayed {
		p.Replayed += len(all)
	}
	for i := range all {
		r := client.Result{}
		if b.Receipts != nil {
			r.Receipt = b.Receipts[i]
		} else {
			r = b.Results[i]
		}
		if err := p.result(all[i].line, r); err != nil {
			return err
		}
	}
	return nil
}

func (p *payer) result(n int, r client.Result) error {
	if r.Receipt != nil {
		p.Done++
	} else {
		p.Refused++
		if err := p.refusal(n, r.Problem); err != nil {
			return err
		}
	}
	if p.results == nil {
		return nil
	}
	text, err := line(struct {
		Line    int             `json:"line"`
		Receipt *client.Receipt `json:"receipt,omitzero"`
		Problem *client.Problem `json:"problem,omitzero"`
	}{n, r.Receipt, r.Problem})
	if err == nil {
		_, err = p.results.Write(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("--results: %w", err)
	}
	return nil
}

// refusal tells of a line that was refused.
func (p *payer) refusal(n int, why *client.Problem) error {
	p.wipe()
	if !p.tree.JSON {
		return p.say("line %d: %v", n, why)
	}
	return p.print(struct {
		Line    int             `json:"line"`
		Problem *client.Problem `json:"problem"`
	}{n, why})
}

// stop is the end of a file whose n-th batch was not done, or nobody knows.
func (p *payer) stop(n int, all []wish, err error) error {
	if errors.Is(err, client.ErrUnknown) {
		p.Unknown += len(all)
		return &ending{unknown, fmt.Errorf("lines %d to %d: outcome unknown (%w): run the same command again",
			all[0].line, all[len(all)-1].line, errors.Unwrap(err))}
	}
	where := fmt.Sprintf("lines %d to %d", all[0].line, all[len(all)-1].line)
	problem := new(client.Problem)
	if errors.As(err, &problem) && problem.Index != nil && *problem.Index < len(all) {
		p.Refused, p.Unsent = p.Refused+1, p.Unsent+len(all)-1
		if err := p.refusal(all[*problem.Index].line, problem); err != nil {
			return err
		}
		return fmt.Errorf("%w: %s were not applied, because line %d was rejected: correct it and send the file from line %d on with another --key",
			errStopped, where, all[*problem.Index].line, all[0].line)
	}
	p.Unsent += len(all)
	if errors.Is(err, client.IdempotencyConflict) {
		return fmt.Errorf("%w: %s differ from what was sent with the key %s: the file or --size has changed", errStopped, where, p.v.key(n))
	}
	return fmt.Errorf("%w: %s were not applied: %w", errStopped, where, err)
}

// end says what became of the file.
func (p *payer) end(err error) error {
	p.wipe()
	if p.total > 0 {
		p.Unsent, p.Lines = p.Unsent+p.total-p.Lines, p.total
	}
	if p.tree.JSON {
		err = errors.Join(err, p.print(p.tally))
	} else {
		err = errors.Join(err, p.say("%s", p.tally.text()))
	}
	if err == nil && p.Refused > 0 {
		err = fmt.Errorf("%d of %d lines were rejected", p.Refused, p.Lines)
	}
	return err
}

func (t *tally) text() string {
	text := fmt.Sprintf("%d lines: %d applied, %d rejected, %d unknown, %d not sent", t.Lines, t.Done, t.Refused, t.Unknown, t.Unsent)
	if t.Replayed > 0 {
		text += fmt.Sprintf("; %d of them were sent by an earlier run", t.Replayed)
	}
	return text
}

const barWidth = 30

// progress is a bar on a terminal; elsewhere a line now and then, and at the end.
func (p *payer) progress(last bool) {
	of := ""
	if p.total > 0 {
		of = fmt.Sprintf(" of %d", p.total)
	}
	text := fmt.Sprintf("%d%s lines, %d rejected", p.Lines, of, p.Refused)
	switch now := p.now(); {
	case p.watched && p.total > 0:
		full := min(barWidth, p.Lines*barWidth/p.total)
		fmt.Fprintf(p.err, "\r[%s%s] %s", strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), text) //nolint:errcheck // it is only a sight
	case p.watched:
		fmt.Fprintf(p.err, "\r%s", text) //nolint:errcheck // the same
	case last || now.Sub(p.said) >= time.Second || p.Lines == p.total:
		p.said = now
		fmt.Fprintln(p.err, text) //nolint:errcheck // the same
	}
}

// wipe takes the bar away, so that something else can stand there.
func (p *payer) wipe() {
	if p.watched {
		fmt.Fprint(p.err, "\r\x1b[K") //nolint:errcheck // the same
	}
}

// line is a value as a line of JSON.
func line(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("print: %w", err)
	}
	return text, nil
}
