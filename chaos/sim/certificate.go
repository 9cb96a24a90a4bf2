package sim

import (
	"fmt"
	"slices"

	"macronode/chaos/recall"
	"macronode/chaos/refmodel"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
	"macronode/models/history"
)

// testimony has the calls and answers of the clients of a run. Each has its own instant, so that
// their order is known.
type testimony struct {
	moment    types.Instant
	testified []*history.Recorder[ask, string] // of each client
	open      map[types.Ticket]history.Key     // called, not answered
	void      map[history.Key]bool             // answered that nothing was decided
	frames    []record.Sealed                  // durable, from the last recovery and since
	untold    int                              // outcomes without an answer
}

// An ask is a request, or a read of a balance.
type ask struct {
	in   *event.Request
	look refmodel.Ask
	seq  types.Seq  // of a read: the last movement that it saw
	over types.TxID // the expiry of a hold, without a request
}

func newTestimony(clients int) testimony {
	t := testimony{open: map[types.Ticket]history.Key{}, void: map[history.Key]bool{}}
	for i := range clients {
		t.testified = append(t.testified, history.NewRecorder[ask, string](uint32(i+1)))
	}
	return t
}

// now returns the next instant.
func (t *testimony) now() types.Instant {
	t.moment++
	return t.moment
}

// calls records a request.
func (t *testimony) calls(of int, in *event.Request) {
	t.open[in.Ticket] = t.testified[of].Call(t.now(), history.Write, ask{in: in})
}

// returns records an answer: an outcome with its position, or that nothing was decided. Unknown
// outcomes are not recorded.
func (t *testimony) returns(r event.Reply, answer []byte) {
	k, ok := t.open[r.Ticket]
	delete(t.open, r.Ticket)
	switch {
	case !ok || r.Problem == event.OutcomeUnknown:
	case r.Problem != event.None:
		t.void[k] = true
	case answer != nil:
		t.testified[k.Client-1].Return(k, t.now(), r.Position, string(answer))
	}
}

// otherwise reports whether r's key may have the outcome of another request: one that was called,
// and not rejected without a decision.
func (t *testimony) otherwise(of int, r *event.Request) bool {
	return slices.ContainsFunc(t.testified[of].Ops(), func(op history.Op[ask, string]) bool {
		return op.Kind == history.Write && op.Ask.in.Hash != r.Hash && string(op.Ask.in.Key.Text) == string(r.Key.Text) && !t.void[op.Key]
	})
}

// looks records a balance that was read.
func (t *testimony) looks(of int, account, asset string, b event.Balance) {
	q := refmodel.Ask{Kind: refmodel.Look, Tenant: types.DefaultTenant, Items: []refmodel.Item{{From: account, Asset: asset}}, At: b.At}
	k := t.testified[of].Call(t.now(), history.Read, ask{look: q, seq: b.AsOf})
	answered := refmodel.Balance{Seq: b.AsOf, Amount: b.Amount.String(), Held: b.Held.String(), Available: b.Available.String(), Next: uint64(b.NextNonce)}
	t.testified[of].Return(k, t.now(), types.Position{}, answered.String())
}

// looks reads what clients may read at any time: their own account, and the common payee.
func (w *World) looks() {
	of := w.moved % len(w.clients)
	for _, account := range []string{w.clients[of].account, "shop"} {
		w.testified.looks(of, account, "EUR/2", w.fol.Balance(types.DefaultTenant, []byte(account), []byte("EUR/2")))
	}
}

// certify compares everything that clients saw in a finished run with the model, in the order of
// the journal. The journal decides about calls without an answer.
func (w *World) certify() {
	m := recall.New()
	for i := range w.testified.frames {
		if err := m.Frame(&w.testified.frames[i]); err != nil {
			w.fail("certificate", "frame %v: %v", w.testified.frames[i].LSN, err)
			return
		}
	}
	if why := w.testified.certified(m); why != "" {
		w.fail("certificate", "%s", why)
	}
	w.Saw["done without an answer"] += w.testified.untold
}

// certified returns what is wrong, or "".
func (t *testimony) certified(m *recall.Memory) string {
	h, err := t.history(m)
	if err != nil {
		return err.Error()
	}
	f := history.Certify(teller{refmodel.New(meant(limits().Ledger), m)}, h.ops, h.journal)
	if f == nil {
		return ""
	}
	why := f.String()
	for _, i := range []int{f.Op, f.Other} {
		if i >= 0 {
			op := &h.ops[i]
			why += fmt.Sprintf("\n  %v called at %d, answered at %d with %v: %s", &op.Ask, op.Call, op.Return, op.Place, op.Answer)
		}
	}
	return why
}

// teller adapts the model to requests.
type teller struct{ *refmodel.Model }

// Step makes a call on the model.
func (w teller) Step(at types.Position, q *ask) (string, bool) {
	a := q.look
	switch {
	case q.in != nil:
		a = requested(q.in)
	case q.over != types.TxID{}:
		a = refmodel.Ask{Kind: refmodel.Lapse, Tenant: types.DefaultTenant, Items: []refmodel.Item{{Hold: q.over}}}
	}
	return w.Model.Step(at, &a)
}

func (q *ask) String() string {
	if q.in == nil {
		return fmt.Sprintf("a look at %v, of #%d", q.look.Items, q.seq)
	}
	return fmt.Sprintf("%s: %s", q.in.Key.Text, asks(q.in))
}

// requested converts a request to the form of the model.
func requested(in *event.Request) refmodel.Ask {
	a := refmodel.Ask{Kind: refmodel.Single, Tenant: in.Tenant, Atomic: in.Atomic}
	if in.Op == event.Batch {
		a.Kind = refmodel.Batch
	}
	for _, i := range in.Each {
		item := refmodel.Item{Op: i.Op.String(), From: string(i.From.Text), To: string(i.To.Text), Asset: string(i.Asset.Text),
			Ref: string(i.Ref.Text), Nonce: i.Nonce, Until: i.ExpiresAt, Hold: i.Hold}
		if !i.Amount.IsZero() {
			item.Amount = i.Amount.String()
		}
		a.Items = append(a.Items, item)
	}
	return a
}
