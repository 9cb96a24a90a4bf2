package sim

import (
	"fmt"
	"slices"

	"macronode/chaos/recall"
	"macronode/chaos/twin"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
	"macronode/models/history"
)

// testimony is what the clients of a life asked and were told, in their own words. Each
// word has a moment of its own, so that what was said first is known.
type testimony struct {
	moment types.Instant
	said   []*history.Recorder[ask, string] // of each client
	open   map[types.Ticket]history.Key     // asked, not answered
	void   map[history.Key]bool             // told that nothing was decided
	frames []record.Sealed                  // durable, as the last recovery found them and since
	untold int                              // outcomes that nobody was told of
}

// An ask is a request, or a look at a balance.
type ask struct {
	in   *event.Request
	look twin.Ask
	seq  types.Seq  // of a look: the last movement that it saw
	over types.TxID // the end of a hold: nobody's request
}

func newTestimony(clients int) testimony {
	t := testimony{open: map[types.Ticket]history.Key{}, void: map[history.Key]bool{}}
	for i := range clients {
		t.said = append(t.said, history.NewRecorder[ask, string](uint32(i+1)))
	}
	return t
}

// now is the next moment.
func (t *testimony) now() types.Instant {
	t.moment++
	return t.moment
}

// calls notes a request that is on its way.
func (t *testimony) calls(of int, in *event.Request) {
	t.open[in.Ticket] = t.said[of].Call(t.now(), history.Write, ask{in: in})
}

// returns notes an answer: an outcome and where it stands, or that nothing was decided. Of
// what is not known, nothing.
func (t *testimony) returns(r event.Reply, answer []byte) {
	k, ok := t.open[r.Ticket]
	delete(t.open, r.Ticket)
	switch {
	case !ok || r.Problem == event.OutcomeUnknown:
	case r.Problem != event.None:
		t.void[k] = true
	case answer != nil:
		t.said[k.Client-1].Return(k, t.now(), r.Position, string(answer))
	}
}

// otherwise reports that r's key may have come to an outcome of something else: it was asked,
// and nobody said that nothing was decided.
func (t *testimony) otherwise(of int, r *event.Request) bool {
	return slices.ContainsFunc(t.said[of].Ops(), func(op history.Op[ask, string]) bool {
		return op.Kind == history.Write && op.Ask.in.Hash != r.Hash && string(op.Ask.in.Key.Text) == string(r.Key.Text) && !t.void[op.Key]
	})
}

// looks notes a balance that was read.
func (t *testimony) looks(of int, account, asset string, b event.Balance) {
	q := twin.Ask{Kind: twin.Look, Tenant: types.DefaultTenant, Items: []twin.Item{{From: account, Asset: asset}}, At: b.At}
	k := t.said[of].Call(t.now(), history.Read, ask{look: q, seq: b.AsOf})
	told := twin.Balance{Seq: b.AsOf, Amount: b.Amount.String(), Held: b.Held.String(), Available: b.Available.String(), Next: uint64(b.NextNonce)}
	t.said[of].Return(k, t.now(), types.Position{}, told.String())
}

// looks is what clients read at any time: their own account, and the one that all pay to.
func (w *World) looks() {
	of := w.moved % len(w.clients)
	for _, account := range []string{w.clients[of].account, "shop"} {
		w.said.looks(of, account, "EUR/2", w.fol.Balance(types.DefaultTenant, []byte(account), []byte("EUR/2")))
	}
}

// certify holds all that clients were told, of a life that has come to rest, against the
// twin, in the order of the journal. The journal says what became of that which nobody was
// told.
func (w *World) certify() {
	m := recall.New()
	for i := range w.said.frames {
		if err := m.Frame(&w.said.frames[i]); err != nil {
			w.fail("certificate", "frame %v: %v", w.said.frames[i].LSN, err)
			return
		}
	}
	if why := w.said.certified(m); why != "" {
		w.fail("certificate", "%s", why)
	}
	w.Saw["done, and nobody was told"] += w.said.untold
}

// certified says what is wrong, if anything is.
func (t *testimony) certified(m *recall.Memory) string {
	h, err := t.history(m)
	if err != nil {
		return err.Error()
	}
	f := history.Certify(teller{twin.New(meant(), m.Journal, m.Time)}, h.ops, h.journal)
	if f == nil {
		return ""
	}
	why := f.String()
	for _, i := range []int{f.Op, f.Other} {
		if i >= 0 {
			op := &h.ops[i]
			why += fmt.Sprintf("\n  %v asked at %d, told at %d of %v: %s", &op.Ask, op.Call, op.Return, op.Place, op.Answer)
		}
	}
	return why
}

// teller is the twin, for those who ask in requests.
type teller struct{ *twin.Twin }

// Step asks the twin.
func (w teller) Step(at types.Position, q *ask) (string, bool) {
	a := q.look
	switch {
	case q.in != nil:
		a = requested(q.in)
	case q.over != types.TxID{}:
		a = twin.Ask{Kind: twin.Lapse, Tenant: types.DefaultTenant, Items: []twin.Item{{Hold: q.over}}}
	}
	return w.Twin.Step(at, &a)
}

func (q *ask) String() string {
	if q.in == nil {
		return fmt.Sprintf("a look at %v, of #%d", q.look.Items, q.seq)
	}
	return fmt.Sprintf("%s: %s", q.in.Key.Text, asks(q.in))
}

// requested is what in asks, in the twin's words.
func requested(in *event.Request) twin.Ask {
	a := twin.Ask{Kind: twin.Single, Tenant: in.Tenant, Atomic: in.Atomic}
	if in.Op == event.Batch {
		a.Kind = twin.Batch
	}
	for _, i := range in.Each {
		item := twin.Item{Op: i.Op.String(), From: string(i.From.Text), To: string(i.To.Text), Asset: string(i.Asset.Text),
			Ref: string(i.Ref.Text), Nonce: i.Nonce, Until: i.ExpiresAt, Hold: i.Hold}
		if !i.Amount.IsZero() {
			item.Amount = i.Amount.String()
		}
		a.Items = append(a.Items, item)
	}
	return a
}
