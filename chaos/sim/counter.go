package sim

import (
	"encoding/binary"
	"fmt"
	"math"

	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/idempotency"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
	"macronode/examples/counter"
)

// A run with counters has clients of the plane of examples/counter. Two have a key of another tenant, and one the
// administrator's.
const (
	counterTenant types.Tenant = 2
	counterKey    types.KeyID  = 302
)

// counterLimits are small, so that each of them is reached: of all tenants and of one.
var counterLimits = counter.Limits{Counters: 5, TenantCounters: 3, Tenants: 2}

// A counterName is a counter of a tenant. A counterAdd is what one outcome did.
type (
	counterName struct {
		tenant types.Tenant
		name   string
	}
	counterAdd struct {
		counterName
		key     string
		delta   uint64
		sum     uint64 // afterwards
		refused bool   // the sum would exceed 64 bits
	}
)

// counterWorld is the part of a run that concerns counters.
type counterWorld struct {
	clients []*counterClient
	enter   []event.Event
	sent    map[types.Ticket]*counterAttempt // without a reply, of this process
	serial  int                              // of keys
	past    []counterAdd                     // requests of clients
	acked   map[types.Position]counterAdd
	hasKey  bool // the creation of the API key was acknowledged
	asksKey bool // it was requested from this process

	// The model: all frames of the node, or those of the disk after a crash.
	sums     map[counterName]uint64
	outcomes map[types.Position]counterAdd
}

type counterClient struct {
	number int
	tenant types.Tenant
	caller types.KeyID
	want   *counterAdd
	out    types.Ticket // called, not answered; 0: none
}

// isOf reports whether an outcome is that of a request. The record of a refused add has only its key.
func (a *counterAdd) isOf(asked *counterAdd) bool {
	return a.key == asked.key && a.tenant == asked.tenant && (a.refused || a.name == asked.name && a.delta == asked.delta)
}

// A counterAttempt is a submitted request.
type counterAttempt struct {
	client   *counterClient
	add      counterAdd
	left     bool          // its client did not wait for the reply
	problem  event.Problem // that the model expects if nothing is recorded
	recorded types.Position
}

func beginCounter(w *World) planeWorkload {
	u := &counterWorld{sent: map[types.Ticket]*counterAttempt{}, acked: map[types.Position]counterAdd{}}
	for i := range 3 {
		c := &counterClient{number: i, tenant: counterTenant, caller: counterKey}
		if i == 2 {
			c.tenant, c.caller = boss.Tenant, boss.ID
		}
		u.clients = append(u.clients, c)
	}
	w.limits.Planes = append(w.limits.Planes, counter.Spec(counterLimits))
	w.limits.Idempotency.Keys += 8
	w.limits.Idempotency.PerTenant += 4
	u.model(w, nil)
	return u
}

func (*counterWorld) name() string               { return "counter" }
func (u *counterWorld) arrivals() *[]event.Event { return &u.enter }

func (u *counterWorld) unanswered() (n int) {
	for _, a := range u.sent { //nolint:maporder // a sum
		if !a.left {
			n++
		}
	}
	return n
}

func (u *counterWorld) busy() bool {
	for _, c := range u.clients {
		if c.want != nil {
			return true
		}
	}
	return false
}

func (u *counterWorld) insist(w *World) {
	for _, c := range u.clients {
		if c.want != nil && c.out == 0 {
			u.ask(w, c)
		}
	}
}

func (u *counterWorld) move(w *World) {
	if !u.hasKey {
		u.createKey(w)
		return
	}
	switch c := u.clients[w.c.Choose("counter/client", len(u.clients))]; {
	case c.out != 0 && w.odd("counter/leave", 24, w.odds.leave):
		w.late = append(w.late, event.Cancel{Ticket: c.out})
		w.promise.left[c.out] = true
		u.sent[c.out].left, c.out = true, 0
	case c.out != 0:
	case c.want == nil:
		add := u.wish(w, c)
		c.want, u.past = &add, append(u.past, add)
		u.ask(w, c)
	default:
		u.ask(w, c)
	}
}

// createKey makes the administrator create the API key of the clients.
func (u *counterWorld) createKey(w *World) {
	if u.asksKey || len(w.clerk.admin) > 0 {
		return
	}
	u.asksKey = true
	in := &event.CreateKey{Ticket: w.own(), Caller: boss.ID, Tenant: boss.Tenant,
		Key: event.Key{ID: counterKey, Tenant: counterTenant, Scopes: event.ScopeIssue, Label: types.NewLabel("counter")}}
	w.boss(in.Ticket, in, func(r event.Reply) { u.asksKey, u.hasKey = false, r.Problem == event.None })
}

// wish draws a request: a new one, an earlier one again, or another one with an earlier key.
func (u *counterWorld) wish(w *World, c *counterClient) (a counterAdd) {
	a = counterAdd{counterName: counterName{c.tenant, fmt.Sprint("n", w.c.Choose("counter/name", 5))}, delta: [...]uint64{1, 2, 40, math.MaxUint64 - 50}[w.c.Choose("counter/delta", 4)]}
	if what := w.c.Choose("counter/what", 8); what > 4 && len(u.past) > 0 {
		old := u.past[len(u.past)-1-w.c.Choose("counter/past", min(len(u.past), 12))]
		if a.key = old.key; what < 7 {
			a.name, a.delta = old.name, old.delta
		}
		return a
	}
	u.serial++
	a.key = fmt.Sprint("counter-", u.serial)
	return a
}

// ask submits what a client wants.
func (u *counterWorld) ask(w *World, c *counterClient) {
	w.ticket++
	c.out = types.NewTicket(w.ticket%8, w.ticket)
	in := &counter.Add{Header: command.Header{Ticket: c.out, Caller: c.caller, Tenant: c.tenant, Key: types.Name{Text: []byte(c.want.key)}},
		Name: types.Name{Text: []byte(c.want.name)}, Delta: c.want.delta}
	in.Seal()
	in.IndexedTo, in.Prior = w.index.mark, w.index.prior(c.tenant, in.Key.ID)
	u.sent[c.out], u.enter = &counterAttempt{client: c, add: *c.want}, append(u.enter, &event.Execute{Command: in})
	w.tell(clients, noLane, plain, "counter client %d: %s adds %d to %s", c.number, c.want.key, c.want.delta, c.want.name)
}

// model sets the model to frames.
func (u *counterWorld) model(w *World, frames []record.Sealed) {
	u.sums, u.outcomes = map[counterName]uint64{}, map[types.Position]counterAdd{}
	for i := range frames {
		u.frame(w, frames[i].Body)
	}
}

// frame makes the records of a frame on the model. It reads them without the code of the plane.
func (u *counterWorld) frame(w *World, body []byte) (at types.Position, add counterAdd) {
	h, rest, err := record.Open(body)
	var r record.Record
	for i := uint16(0); i < h.Count && err == nil; i++ {
		if rest, err = record.Next(rest, &r); err != nil || r.Kind != record.PlaneKind(types.PlaneExample, 0) {
			continue
		}
		at = types.Position{LSN: h.LSN, Index: i}
		add = counterAdd{counterName: counterName{tenant: r.Tenant}, key: string(r.Key.Text), refused: r.Problem == event.AmountLimitExceeded}
		if b := r.Payload; len(b) > 16 {
			add.delta, add.sum, add.name = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), string(b[16:])
			if was := u.sums[add.counterName]; was > math.MaxUint64-add.delta || was+add.delta != add.sum {
				w.fail("counter-sum", "%v: %+v, the model has %d", at, add, was)
			}
			u.sums[add.counterName] = add.sum
		} else if !add.refused {
			w.fail("counter-unreadable", "%v: %v", at, r)
		}
		u.outcomes[at] = add
	}
	if err != nil {
		w.fail("counter-unreadable", "%v: %v", h.LSN, err)
	}
	return at, add
}

// number returns how many counters a tenant has; of 0, all tenants.
func (u *counterWorld) number(of types.Tenant) (n int) {
	for name := range u.sums { //nolint:maporder // a sum
		if of == 0 || name.tenant == of {
			n++
		}
	}
	return n
}

// stepped predicts the outcome of a request, and compares.
func (u *counterWorld) stepped(w *World, in event.Event, body []byte) {
	var a *counterAttempt
	if in, ok := in.(*event.Execute); ok {
		a = u.sent[in.Command.Head().Ticket]
	}
	overflows := false
	if a != nil {
		sum, known := u.sums[a.add.counterName]
		overflows = sum > math.MaxUint64-a.add.delta
		switch {
		case !known && u.number(a.add.tenant) == counterLimits.TenantCounters:
			a.problem = event.QuotaExceeded
		case !known && u.number(0) == counterLimits.Counters:
			a.problem = event.CapacityExceeded
		}
	}
	if len(body) == 0 {
		return
	}
	at, add := u.frame(w, body)
	switch {
	case at.LSN == 0:
	case a == nil:
		w.fail("counter-without-request", "%v: %T records %+v", at, in, add)
	case a.problem != event.None, add.refused != overflows:
		w.fail("counter-accepts", "%v: %+v is recorded as %+v; expected was %v, overflow %v", at, a.add, add, a.problem.Code(), overflows)
	case !add.isOf(&a.add):
		w.fail("counter-records-another", "%v: %+v is recorded as %+v", at, a.add, add)
	default:
		a.recorded = at
	}
}

func (u *counterWorld) replied(w *World, r event.Reply) bool {
	a := u.sent[r.Ticket]
	if a == nil {
		return false
	}
	if delete(u.sent, r.Ticket); a.left {
		return true
	}
	c := a.client
	c.out = 0
	w.tell(clients, decider, answeredTone, "counter client %d: %s", c.number, answers(r))
	switch {
	case r.Problem == event.None:
		u.acknowledged(w, a, r)
	case blank(r.Problem): // it is repeated
	case r.Problem == event.IdempotencyConflict && u.usedOtherwise(w, &a.add):
		w.Saw["a counter's key is used for another add"]++
		c.want = nil
	case r.Problem == a.problem:
		w.Saw["an add is refused: "+r.Problem.Code()]++
		c.want = nil
	default:
		w.fail("counter-refusal", "%+v is refused with %v, expected was %v", a.add, r.Problem.Code(), a.problem.Code())
	}
	return true
}

// usedOtherwise reports whether the key of an add has an outcome of another one.
func (u *counterWorld) usedOtherwise(w *World, a *counterAdd) bool {
	for _, was := range u.outcomes { //nolint:maporder // the rule is the same for each
		if was.tenant == a.tenant && was.key == a.key && (was.refused || !was.isOf(a)) {
			return true
		}
	}
	prior := w.index.seen[idempotency.Key{Tenant: a.tenant, Name: digest.Name([]byte(a.key))}]
	return prior.ID.Position().LSN > 0
}

// acknowledged handles an outcome: that of the record, whose answer is never another one.
func (u *counterWorld) acknowledged(w *World, a *counterAttempt, r event.Reply) {
	did, known := u.outcomes[r.Position]
	if !known || !r.Replayed && r.Position != a.recorded || !did.isOf(&a.add) {
		w.fail("counter-acknowledged-nothing", "%+v: %v is acknowledged, replayed %v: %+v", a.add, r.Position, r.Replayed, did)
		return
	}
	answer, status, owner, err := w.fol.Render(nil, r.Position)
	if err != nil && w.unread(err) {
		return // the answer was not sent
	}
	if want := fmt.Sprintf(`{"name":%q,"value":"%d"}`, did.name, did.sum); err != nil || owner != a.add.tenant || (status == 200) == did.refused || !did.refused && string(answer) != want {
		w.fail("counter-answer", "%v is answered %d %s of tenant %d, %v; the model has %s", r.Position, status, answer, owner, err, want)
	}
	w.note(r.Replayed, "an add is answered again")
	w.note(did.refused, "an add is refused: a sum above 64 bits")
	u.acked[r.Position] = did
	a.client.want = nil
}

func (u *counterWorld) crashed(*World) {
	for _, c := range u.clients {
		c.out = 0
	}
	u.enter, u.asksKey, u.sent = nil, false, map[types.Ticket]*counterAttempt{}
}

// recovers compares a recovered state with the sums of its frames, and these with all that was acknowledged.
func (u *counterWorld) recovers(w *World, st *state.State, frames []record.Sealed) {
	lost := len(u.outcomes)
	u.model(w, frames)
	w.note(lost > len(u.outcomes), "adds are lost with their frames")
	if !w.unlawful {
		for at, did := range u.acked { //nolint:maporder // the rule is the same for each
			if u.outcomes[at] != did {
				w.fail("counter-acknowledged-lost", "%v was acknowledged: %+v, now %+v", at, did, u.outcomes[at])
			}
		}
	}
	p, _ := st.Plane(types.PlaneExample).(*counter.Plane)
	for name, sum := range u.sums { //nolint:maporder // the rule is the same for each
		if got := p.Value(name.tenant, digest.Name([]byte(name.name))); got != sum {
			w.fail("counter-state", "%s of tenant %d is %d, the sum is %d", name.name, name.tenant, got, sum)
		}
	}
	if p.Len() != len(u.sums) {
		w.fail("counter-state", "the state has %d counters, the frames have %d", p.Len(), len(u.sums))
	}
}

// certify folds all durable frames, and compares.
func (u *counterWorld) certify(w *World) {
	st := state.New(w.limits, 1)
	for i := range w.testified.frames {
		if err := st.Fold(w.testified.frames[i].Body, nil); err != nil {
			w.fail("counter-fold", "%v: %v", w.testified.frames[i].LSN, err)
			return
		}
	}
	if st.Hash() != w.fol.Hash() {
		w.fail("counter-fold", "the fold of all frames differs from the follower")
	}
	u.recovers(w, &st, w.testified.frames)
}
