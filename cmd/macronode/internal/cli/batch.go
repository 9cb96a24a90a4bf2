package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"macronode/adapters/client"
	"macronode/cmd/macronode/internal/exit"
	"macronode/core/types"
)

// A batchRunner applies the lines of a file, batch after batch. The n-th batch has the idempotency key prefix.n
// and always the same lines. So an interrupted run can be repeated: what was applied is replayed.
type batchRunner struct {
	*Console
	v            *batchCmd
	node         *client.Client
	results      *resultsFile // nil: none
	total        int          // 0: unknown
	lastProgress time.Time    // when a line of progress was printed last
	batchSummary
}

// A batchSummary counts the lines of a file by outcome.
type batchSummary struct {
	Lines    int `json:"lines"`
	Done     int `json:"done"`
	Refused  int `json:"refused"`
	Unknown  int `json:"unknown"`
	Unsent   int `json:"unsent"`
	Replayed int `json:"replayed"` // of all, those that an earlier run had sent
}

// errStopped means that the rest of the file was not sent.
var errStopped = errors.New("stopped")

// Run applies the operations in a file.
func (v *batchCmd) Run(c *Console) error {
	if v.Size < 1 || v.Size > types.MaxItems {
		return exit.Unable(fmt.Errorf("--size %d must be 1 to %d", v.Size, types.MaxItems))
	}
	if err := types.CheckKey(v.key(9_999_999)); err != nil {
		return exit.Unable(fmt.Errorf("--key %s must be at most %d of A-Z a-z 0-9 _ : . -", v.Key, types.MaxKey-8))
	}
	from, total, err := v.open(c.in)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // it was only read
	p := &batchRunner{Console: c, v: v, total: total}
	if v.Results != "" {
		if p.results, err = v.openResults(c, from); err != nil {
			return err
		}
		defer p.results.file.Close() //nolint:errcheck // every write was checked
	}
	c.executions.again = "run the same command again, which applies each line once"
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) error {
		p.node = k
		return p.finish(p.run(ctx, from))
	})
}

func (v *batchCmd) key(n int) string { return fmt.Sprintf("%s.%d", v.Key, n) }

// open reads the file through before anything is sent. So an invalid line is found before anything is applied, and
// the number of lines is known. A pipe is read once, without that check: its malformed lines are rejected one by one.
func (v *batchCmd) open(in io.Reader) (io.ReadCloser, int, error) {
	if v.File == "-" {
		return io.NopCloser(in), 0, nil
	}
	f, err := os.Open(v.File)
	if err != nil {
		return nil, 0, exit.Unable(err)
	}
	is, err := f.Stat()
	if err == nil && !is.Mode().IsRegular() {
		return f, 0, nil
	}
	n := 0
	for _, why := range batchLines(f, v.Format) {
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
		return nil, 0, exit.Unable(errors.Join(err, f.Close()))
	}
	return f, n, nil
}

// run splits the input into batches, always the same ones, and sends them in order. Without --atomic, the malformed lines of a pipe are reported
// with the results of their batch. A file has none: see open.
func (p *batchRunner) run(ctx context.Context, from io.Reader) error {
	var all []batchLine
	var malformed []resultLine
	size, n := 0, 0
	for i, err := range batchLines(from, p.v.Format) {
		if err != nil && (p.v.Atomic || !errors.As(err, new(*malformedLineError))) {
			return err
		}
		if len(all)+len(malformed) == p.v.Size || size+i.size > maxBatch-64 {
			if err := p.send(ctx, n, all, malformed); err != nil {
				return err
			}
			all, malformed, size, n = all[:0], nil, 0, n+1
		}
		if err != nil {
			malformed = append(malformed, resultLine{Line: i.line, Key: p.v.key(n), Problem: unsentProblem(err)})
			continue
		}
		all, size = append(all, i), size+i.size
	}
	if len(all)+len(malformed) == 0 {
		return nil
	}
	return p.send(ctx, n, all, malformed)
}

// unsentProblem returns the problem of a line that is not sent, in the form of those of the node.
func unsentProblem(err error) *client.Problem {
	if of := errors.Unwrap(err); of != nil { // without the number of the line
		err = of
	}
	raw, _ := json.Marshal(struct {
		Code   client.Code `json:"code"`
		Status int         `json:"status"`
		Detail string      `json:"detail"`
	}{client.BadRequest, http.StatusBadRequest, strings.ToValidUTF8(err.Error(), "\ufffd")})
	p, _ := client.ParseProblem(raw)
	return p
}

// send sends the n-th batch. A batch with a malformed line is rejected as a whole: without --atomic it is sent again without that line. A run
// that is repeated does the same, and sends the same batch in the end.
func (p *batchRunner) send(ctx context.Context, n int, valid []batchLine, malformed []resultLine) error {
	p.Lines += len(valid) + len(malformed)
	b, err := new(client.Batch), error(nil)
	for len(valid) > 0 {
		if b, err = p.sendOnce(ctx, n, valid); err == nil {
			break
		}
		at, why := p.malformedLine(err, len(valid))
		if why == nil {
			break
		}
		malformed = append(malformed, resultLine{Line: valid[at].line, Key: p.v.key(n), Problem: why})
		valid, b, err = slices.Delete(slices.Clone(valid), at, at+1), new(client.Batch), nil
	}
	if err == nil {
		err = p.recordResults(n, valid, malformed, b)
	} else {
		err = errors.Join(p.printRejections(malformed), p.stopError(n, valid, err))
		p.Refused += len(malformed)
	}
	p.progress(err != nil)
	return err
}

// sendOnce sends some lines as the n-th batch.
func (p *batchRunner) sendOnce(ctx context.Context, n int, all []batchLine) (*client.Batch, error) {
	o := client.BatchRequest{Atomic: p.v.Atomic, Items: make([]client.BatchItem, len(all))}
	for i := range all {
		o.Items[i] = all[i].BatchItem
	}
	return p.node.Batch(ctx, o, client.WithIdempotencyKey(p.v.key(n)))
}

// malformedLine returns which of some lines the node has rejected for ever, and why, if the others may be sent without it; nil: none.
func (p *batchRunner) malformedLine(err error, lines int) (at int, why *client.Problem) {
	problem := new(client.Problem)
	if p.v.Atomic || !errors.As(err, &problem) || errors.Is(err, client.ErrUnknown) || problem.Index == nil || *problem.Index >= lines ||
		problem.Retryable || problem.Status >= http.StatusInternalServerError {
		return 0, nil
	}
	return *problem.Index, problem
}

// recordResults counts the results of the n-th batch and of its malformed lines, and writes them to the outputs. All are counted, also if one
// cannot be written.
func (p *batchRunner) recordResults(n int, all []batchLine, malformed []resultLine, b *client.Batch) error {
	if b.Replayed {
		p.Replayed += len(all)
	}
	results := b.Results
	for _, r := range b.Receipts {
		results = append(results, client.Result{Receipt: r})
	}
	lines := malformed
	for i, r := range results {
		lines = append(lines, resultLine{all[i].line, p.v.key(n), r.Receipt, r.Problem})
	}
	slices.SortFunc(lines, func(a, b resultLine) int { return cmp.Compare(a.Line, b.Line) })
	for i := range lines {
		if lines[i].Receipt != nil {
			p.Done++
		} else {
			p.Refused++
		}
	}
	err := p.printRejections(lines)
	if p.results != nil {
		if failed := p.results.add(lines); failed != nil {
			err = errors.Join(err, fmt.Errorf("--results: %w", failed))
		}
	}
	return err
}

// printRejections prints those of some lines that were rejected.
func (p *batchRunner) printRejections(lines []resultLine) (err error) {
	for i := range lines {
		if lines[i].Receipt == nil && err == nil {
			err = p.printRejection(lines[i].Line, lines[i].Problem)
		}
	}
	return err
}

// printRejection prints a rejected line.
func (p *batchRunner) printRejection(n int, why *client.Problem) error {
	p.clearProgress()
	if !p.tree.JSON {
		return p.printLine("line %d: %v", n, why)
	}
	return p.printJSON(struct {
		Line    int             `json:"line"`
		Problem *client.Problem `json:"problem"`
	}{n, why})
}

// stopError returns the error of the n-th batch, which was not applied or has an unknown outcome.
func (p *batchRunner) stopError(n int, all []batchLine, err error) error {
	if errors.Is(err, client.ErrUnknown) {
		p.Unknown += len(all)
		return fmt.Errorf("lines %d to %d: %w", all[0].line, all[len(all)-1].line, askAgain(err, "run the same command again"))
	}
	where := fmt.Sprintf("lines %d to %d", all[0].line, all[len(all)-1].line)
	problem := new(client.Problem)
	if errors.As(err, &problem) && problem.Index != nil && *problem.Index < len(all) {
		p.Refused, p.Unsent = p.Refused+1, p.Unsent+len(all)-1
		line := all[*problem.Index].line
		err := fmt.Errorf("%w: %s were not applied, because line %d was rejected: correct it and send the file from line %d on with another --key",
			errStopped, where, line, all[0].line)
		if isUsedUp(problem) {
			err = fmt.Errorf("%w: %s were not applied now, because line %d was rejected: it may have taken effect in an earlier run, with all of these lines. "+
				"Look at the statements of its accounts, and send only lines that are not in them, with another --key", errStopped, where, line)
		}
		return errors.Join(p.printRejection(line, problem), err)
	}
	p.Unsent += len(all)
	if errors.Is(err, client.IdempotencyConflict) {
		return fmt.Errorf("%w: %s differ from what was sent with the key %s: the file or --size has changed", errStopped, where, p.v.key(n))
	}
	return fmt.Errorf("%w: %s were not applied: %w", errStopped, where, err)
}

// isUsedUp reports whether an operation may have been rejected because it has taken effect before: its ref, nonce or hold is used up.
func isUsedUp(why *client.Problem) bool {
	return why.Code == client.RefUsed || why.Code == client.NonceConflict || why.Code == client.HoldNotActive
}

// finish prints the summary.
func (p *batchRunner) finish(err error) error {
	p.clearProgress()
	if p.total > 0 {
		p.Unsent, p.Lines = p.Unsent+p.total-p.Lines, p.total
	}
	failed := error(nil)
	if p.tree.JSON {
		failed = p.printJSON(p.batchSummary)
	} else {
		failed = p.printLine("%s", p.batchSummary.text())
	}
	if failed != nil {
		err = errors.Join(err, fmt.Errorf("%w; %s", failed, p.batchSummary.text()))
	}
	if err == nil && p.Refused > 0 {
		err = fmt.Errorf("%d of %d lines were rejected", p.Refused, p.Lines)
	}
	return err
}

func (t *batchSummary) text() string {
	text := fmt.Sprintf("%d lines: %d applied, %d rejected, %d unknown, %d not sent", t.Lines, t.Done, t.Refused, t.Unknown, t.Unsent)
	if t.Replayed > 0 {
		text += fmt.Sprintf("; %d of them were sent by an earlier run", t.Replayed)
	}
	return text
}

const barWidth = 30

// progress shows a bar on a terminal. Elsewhere it prints at most one line a second, and one at the end.
func (p *batchRunner) progress(last bool) {
	of := ""
	if p.total > 0 {
		of = fmt.Sprintf(" of %d", p.total)
	}
	text := fmt.Sprintf("%d%s lines, %d rejected", p.Lines, of, p.Refused)
	switch now := p.now(); {
	case p.isErrTerminal && p.total > 0:
		full := min(barWidth, p.Lines*barWidth/p.total)
		fmt.Fprintf(p.err, "\r[%s%s] %s", strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), text) //nolint:errcheck // progress is optional
	case p.isErrTerminal:
		fmt.Fprintf(p.err, "\r%s", text) //nolint:errcheck // progress is optional
	case last || now.Sub(p.lastProgress) >= time.Second || p.Lines == p.total:
		p.lastProgress = now
		fmt.Fprintln(p.err, text) //nolint:errcheck // progress is optional
	}
}

// clearProgress removes the bar, so that other output can be printed.
func (p *batchRunner) clearProgress() {
	if p.isErrTerminal {
		fmt.Fprint(p.err, "\r\x1b[K") //nolint:errcheck // progress is optional
	}
}

// line returns a value as JSON without a newline.
func line(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("print: %w", err)
	}
	return text, nil
}
