package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"macronode/adapters/client"
	"macronode/cmd/internal/jsonerror"
	"macronode/cmd/macronode/internal/exit"
)

// A usageRecorder sends events and counts what became of them.
type usageRecorder struct {
	*Console
	node  *client.Client
	again string // how to repeat the command
	sent  int    // events of requests that were recorded
	sum   usageTally
}

// A usageTally is printed at the end. If a request failed, it counts those before it.
type usageTally struct {
	Recorded  int             `json:"recorded"`
	Duplicate int             `json:"duplicate"`
	Late      int             `json:"late"`
	Event     int             `json:"event,omitzero"` // the one with the problem, from 1
	Problem   *client.Problem `json:"problem,omitzero"`
}

// Run records the events of a file, or one event.
func (v *recordUsageCmd) Run(c *Console) error {
	if (v.File == "") == (v.Dimension == "") || (v.Dimension == "") != (v.Value == nil) {
		return exit.Unable(errors.New("usage record needs a file, or --dimension and --value"))
	}
	r := &usageRecorder{Console: c, again: "run the same command again"}
	var events iter.Seq2[client.UsageEvent, error]
	if v.File == "" {
		e, err := v.event(c)
		if err != nil {
			return err
		}
		r.again = fmt.Sprintf("retry with --source %s --id %s", quote(e.Source), quote(e.ID))
		events = func(yield func(client.UsageEvent, error) bool) { yield(e, nil) }
	} else {
		from, bar, err := c.openFile("record", v.File)
		if err != nil {
			return err
		}
		defer from.Close() //nolint:errcheck // it was read
		defer bar.End()
		events = usageEvents(bar.reader(from))
	}
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) error {
		r.node, c.executions.again = k, r.again+", each event counts once"
		return r.end(r.record(ctx, events))
	})
}

// openFile opens a file, or standard input, and begins to show how far it is read.
func (c *Console) openFile(what, name string) (io.ReadCloser, *bar, error) {
	if name == "-" {
		return io.NopCloser(c.in), c.bar(what, 0), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, exit.Unable(err)
	}
	is, err := f.Stat()
	if err != nil {
		return nil, nil, exit.Unable(errors.Join(err, f.Close()))
	}
	return f, c.bar(what, is.Size()), nil
}

// event returns the event of the flags.
func (v *recordUsageCmd) event(c *Console) (e client.UsageEvent, err error) {
	if v.ID == "" {
		v.ID = c.newKey()
	}
	var l client.Labels
	for name, value := range v.Label {
		to := map[string]*string{"service": &l.Service, "region": &l.Region, "method": &l.Method, "route": &l.Route, "subject": &l.Subject}[name]
		if to == nil || value == "" {
			return e, exit.Unable(fmt.Errorf("--label %s=%s must be service, region, method, route or subject with a value", name, value))
		}
		*to = value
	}
	e = client.NewUsageEvent(v.Source, v.ID, v.Dimension, *v.Value, l)
	if v.Time != "" {
		e.Time, err = parseTime("--time", v.Time)
	}
	return e, err
}

// parseTime reads a time as in RFC 3339, or the begin of a day in UTC.
func parseTime(flag, text string) (time.Time, error) {
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		at, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		return at, exit.Unable(fmt.Errorf("%s %s must be a time such as 2026-01-31T12:00:00Z, or a date such as 2026-01-31", flag, text))
	}
	return at.UTC(), nil
}

// usageEvents reads events: a JSON array of them, or one after the other. An error is the last item.
func usageEvents(from io.Reader) iter.Seq2[client.UsageEvent, error] {
	return func(yield func(client.UsageEvent, error) bool) {
		d := jsontext.NewDecoder(from)
		isArray := d.PeekKind() == '['
		if isArray {
			_, _ = d.ReadToken() // it was seen
		}
		for n := 1; ; n++ {
			if isArray && d.PeekKind() == ']' {
				_, _ = d.ReadToken() // it was seen
				if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
					yield(client.UsageEvent{}, fmt.Errorf("there is more after the array of %d events", n-1))
				}
				return
			}
			raw, err := d.ReadValue()
			if errors.Is(err, io.EOF) { // not within an array
				return
			}
			var e client.UsageEvent
			if err == nil {
				err = json.Unmarshal(raw, &e, json.RejectUnknownMembers(true))
			}
			if err = jsonerror.Describe(err); err == nil && (len(e.Data.Value) == 0 || e.Data.Value.Kind() == 'n') {
				err = errors.New("data.value: is missing")
			}
			if err != nil {
				err = fmt.Errorf("event %d: %w", n, err)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// record sends events in requests.
func (r *usageRecorder) record(ctx context.Context, events iter.Seq2[client.UsageEvent, error]) error {
	batch := make([]client.UsageEvent, 0, client.MaxUsageEvents)
	for e, err := range events {
		if err != nil {
			return errors.Join(r.send(ctx, batch), exit.Unable(err))
		}
		if batch = append(batch, e); len(batch) == cap(batch) {
			if err := r.send(ctx, batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return r.send(ctx, batch)
}

func (r *usageRecorder) send(ctx context.Context, batch []client.UsageEvent) error {
	n, err := r.node.RecordUsage(ctx, batch)
	r.sum.Recorded, r.sum.Duplicate, r.sum.Late = r.sum.Recorded+n.Recorded, r.sum.Duplicate+n.Duplicate, r.sum.Late+n.Late
	switch p := new(client.Problem); {
	case errors.Is(err, client.ErrUnknown):
		return askAgain(err, r.again+"; each event counts once")
	case errors.As(err, &p):
		r.sum.Problem = p
		if p.Index != nil && *p.Index < len(batch) {
			e := &batch[*p.Index]
			r.sum.Event = r.sent + *p.Index + 1
			return fmt.Errorf("event %d (source %s, id %s): %w", r.sum.Event, e.Source, e.ID, err)
		}
	case err == nil:
		r.sent += len(batch)
	}
	return err
}

// end prints the tally, unless nothing was recorded and there is an error.
func (r *usageRecorder) end(err error) error {
	t := &r.sum
	switch {
	case err != nil && t.Recorded+t.Duplicate == 0:
		return err
	case r.tree.JSON:
		return errors.Join(err, r.printJSON(t))
	}
	return errors.Join(err, r.printLine("recorded %d, duplicate %d, late %d", t.Recorded, t.Duplicate, t.Late))
}
