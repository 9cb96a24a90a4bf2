package node_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/event"
	"macronode/core/gateway/quota"
	"macronode/core/node"
	"macronode/core/state"
	"macronode/core/types"
)

// A keyedRequest is a request of the model: its key, and what it was answered.
type keyedRequest struct {
	ticket        types.Ticket
	key           types.KeyID
	admitted      bool
	lost          bool
	awaitsBytes   bool // a decision on reserved bytes is outstanding
	reservedAfter bool // it has reserved bytes since it lost its permit
}

// A keyWorld is a node with requests of keys that end.
type keyWorld struct {
	t        *rapid.T
	node     *node.Node
	now      types.Now
	out      event.Effects
	ticket   types.Ticket
	use      uint32
	requests []keyedRequest
	ends     map[types.KeyID]types.Time // 0: it was revoked
	keys     []types.KeyID
	saw      map[string]int
}

func newKeyWorld(t *rapid.T, saw map[string]int) *keyWorld {
	c := config(limits(8, 16))
	c.State.Keys = 64
	c.Admission.Wait, c.MaxPacingDelay = 500*time.Millisecond, 100*time.Millisecond
	c.Quotas = []quota.Rule{{Scope: types.ScopeKey, Unit: types.UnitBytes, Rate: 5_000, Every: time.Second, Burst: 5_000, Classes: quota.ClassSetOf(types.ClassAuthed)},
		{Scope: types.ScopeInstance, Unit: types.UnitBytes, Rate: 50_000, Every: time.Second, Burst: 10_000, Classes: quota.AllClasses}}
	c.QuotaLimits.Keys = 64
	w := &keyWorld{t: t, node: node.New(c, state.New(c.State, 1), 1, types.NewRand(1)), now: types.Now{Mono: 1, Wall: 1_700_000_000_000, Synced: true},
		ends: map[types.KeyID]types.Time{}, saw: saw}
	w.step(event.Recovered{Recovery: event.Recovery{Journal: 9}})
	w.step(&event.CreateKey{Ticket: w.next(), Key: event.Key{ID: boss, Tenant: 1, Scopes: event.AllScopes, Bootstrap: true}})
	for service := range types.NumServices {
		w.step(event.ServiceUp{Service: service})
	}
	return w
}

func (w *keyWorld) next() types.Ticket { w.ticket++; return w.ticket }

// hasEnded reports whether a key was revoked or has expired.
func (w *keyWorld) hasEnded(key types.KeyID) bool {
	var s event.Status
	w.node.Status(&s)
	end, ends := w.ends[key]
	return ends && end <= s.At
}

// step steps the node, makes its frames durable, and checks each decision.
func (w *keyWorld) step(in event.Event) {
	w.out.Reset()
	w.node.Step(w.now, in, &w.out)
	if revoked, ok := in.(*event.RevokeKey); ok {
		w.ends[revoked.Key] = 0
	}
	for _, v := range w.out.Decisions {
		w.decided(v)
	}
	if err := w.node.Check(); err != nil {
		w.t.Fatal(err)
	}
	_, ticked := in.(event.Tick)
	_, revoked := in.(*event.RevokeKey)
	for i := range w.requests {
		if r := &w.requests[i]; (ticked || revoked) && !r.lost && w.hasEnded(r.key) {
			w.t.Fatalf("%+v goes on after %T, and its key has ended", r, in)
		}
	}
	durable := event.Durable{}
	for _, f := range w.out.Frames {
		durable.Upto, durable.Bytes = f.LSN, durable.Bytes+uint64(f.Len)
	}
	if durable.Upto > 0 {
		w.step(durable)
		w.step(event.Applied{Upto: durable.Upto})
	}
}

func (w *keyWorld) decided(v event.Decision) {
	at := slices.IndexFunc(w.requests, func(r keyedRequest) bool { return r.ticket == v.Ticket })
	if at < 0 {
		w.t.Fatalf("%+v is of no request", v)
	}
	r := &w.requests[at]
	ended := w.hasEnded(r.key)
	isEnd := v.Reason == event.RejectKeyEnded
	switch {
	case isEnd && (!ended || v.Problem != event.Unauthorized):
		w.t.Fatalf("%+v, and its key is valid: %+v", v, r)
	case v.Problem == event.None && ended:
		w.t.Fatalf("%+v, and its key has ended: %+v", v, r)
	case isEnd && r.admitted && !r.lost:
		r.lost = true
		w.saw["lost"]++
	case !r.admitted && v.Problem != event.None:
		if isEnd {
			w.saw["rejected"]++
			if v.Waited > 0 {
				w.saw["rejected in the queue"]++
			}
		}
		w.requests = slices.Delete(w.requests, at, at+1)
	case !r.admitted:
		r.admitted = true
	case !r.awaitsBytes:
		w.t.Fatalf("%+v, and it awaits nothing: %+v", v, r)
	default:
		r.awaitsBytes = false
		if isEnd && !r.reservedAfter {
			w.saw["a part was dropped"]++
		}
		if isEnd && r.reservedAfter {
			w.saw["no further part"]++
		}
		if r.lost && !isEnd {
			w.t.Fatalf("%+v, and its key has ended: %+v", v, r)
		}
	}
}

func (w *keyWorld) create() {
	if len(w.keys) > 40 {
		return
	}
	key := event.Key{ID: types.KeyID(100 + len(w.keys)), Tenant: 1, Scopes: event.ScopeRead}
	if rapid.Bool().Draw(w.t, "expires") {
		key.Expires = w.now.Wall.Add(time.Duration(rapid.IntRange(-1, 900).Draw(w.t, "lasts")) * time.Millisecond)
		w.ends[key.ID] = key.Expires
	}
	w.keys = append(w.keys, key.ID)
	w.step(&event.CreateKey{Ticket: w.next(), Caller: boss, Tenant: 1, Key: key})
}

func (w *keyWorld) arrive() {
	slot := rapid.Uint32Range(0, 15).Draw(w.t, "slot")
	if len(w.keys) == 0 || slices.ContainsFunc(w.requests, func(r keyedRequest) bool { return r.ticket.Slot() == slot }) {
		return
	}
	w.use++
	in := &event.Admit{Ticket: types.NewTicket(slot, w.use), Class: types.ClassAuthed, Facet: types.FacetWallet, Tenant: 1, Key: rapid.SampledFrom(w.keys).Draw(w.t, "key"),
		DeclaredBytes: 100, TimeLeft: 4 * time.Second, PermitFor: time.Duration(rapid.IntRange(0, 1).Draw(w.t, "lasts")) * time.Hour}
	w.requests = append(w.requests, keyedRequest{ticket: in.Ticket, key: in.Key})
	w.step(in)
}

// any returns a request that was admitted; nil: there is none.
func (w *keyWorld) any() *keyedRequest {
	for _, n := range fromAny(w.t, len(w.requests)) {
		if w.requests[n].admitted {
			return &w.requests[n]
		}
	}
	return nil
}

// fromAny returns the numbers below n, from a drawn one on.
func fromAny(t *rapid.T, n int) (all []int) {
	from := rapid.IntRange(0, max(0, n-1)).Draw(t, "which")
	for i := range n {
		all = append(all, (from+i)%n)
	}
	return all
}

// pass lets time pass, with the ticks that are due.
func (w *keyWorld) pass(d time.Duration) {
	for end := w.now.Mono.Add(d); ; {
		due, any := w.node.Due()
		to := min(max(w.now.Mono, due)+1, end)
		if !any {
			to = end
		}
		w.now.Wall += types.Time((int64(to)-1)/1e6 - (int64(w.now.Mono)-1)/1e6)
		w.now.Mono = to
		isEarly, lost := !any || due > to+1e6, w.saw["lost"]+w.saw["rejected"] // a millisecond is what the clock may step
		if w.step(event.Tick{}); isEarly && w.saw["lost"]+w.saw["rejected"] > lost {
			w.t.Fatalf("a key has ended at %d, and nothing was due before %d", to, due)
		}
		if to == end {
			return
		}
	}
}

// TestEndedKeysHaveNoPermit: from the step that revokes a key on, and from the tick at which it expires, no request of the key waits or
// has a permit, and each gets exactly one decision that says so. Requests of other keys get none.
func TestEndedKeysHaveNoPermit(t *testing.T) {
	saw, corners := map[string]int{}, []string{"lost", "rejected", "rejected in the queue", "a part was dropped", "no further part"}
	histories := func(t *rapid.T) {
		w := newKeyWorld(t, saw)
		t.Repeat(map[string]func(*rapid.T){
			"create": func(*rapid.T) { w.create() }, "arrive": func(*rapid.T) { w.arrive() }, "arrive again": func(*rapid.T) { w.arrive() }, "arrive more": func(*rapid.T) { w.arrive() },
			"finish": func(*rapid.T) {
				if r := w.any(); r != nil {
					ticket := r.ticket
					w.requests = slices.DeleteFunc(w.requests, func(r keyedRequest) bool { return r.ticket == ticket })
					w.step(&event.Finish{Ticket: ticket, Bytes: 100})
				}
			},
			"reserve": func(t *rapid.T) {
				for range 4 { // a part waits once the quota is used up
					if r := w.any(); r != nil && !r.awaitsBytes {
						r.awaitsBytes, r.reservedAfter = true, r.lost
						w.step(&event.ReserveBytes{Ticket: r.ticket, Bytes: uint64(rapid.IntRange(1, 60_000).Draw(t, "bytes"))})
					}
				}
			},
			"revoke": func(t *rapid.T) {
				if len(w.keys) == 0 || rapid.IntRange(0, 2).Draw(t, "really") > 0 {
					return
				}
				key := rapid.SampledFrom(w.keys).Draw(t, "key")
				if at := slices.IndexFunc(w.requests, func(r keyedRequest) bool { return r.awaitsBytes && !r.lost }); at >= 0 {
					key = w.requests[at].key
				}
				w.step(&event.RevokeKey{Ticket: w.next(), Caller: boss, Tenant: 1, Key: key})
			},
			"time": func(t *rapid.T) { w.pass(time.Duration(rapid.IntRange(0, 300).Draw(t, "ms")) * time.Millisecond) },
		})
	}
	for rounds := 0; rounds == 0 || rounds < 20 && len(saw) < len(corners); rounds++ { // a single check does not always reach the rarest corner
		rapid.Check(t, histories)
	}
	for _, corner := range corners {
		if saw[corner] == 0 {
			t.Errorf("never saw: %s: %v", corner, saw)
		}
	}
}

// TestReplacedKeyHasNoPermit: a bootstrap key that is replaced ends what it still runs.
func TestReplacedKeyHasNoPermit(t *testing.T) {
	g := newRandomNode(t, state.New(limits(8, 16), 1), config(limits(8, 16)))
	in := &event.Admit{Ticket: types.NewTicket(3, 1), Class: types.ClassInternal, Facet: types.Streams, Tenant: 1, Key: boss, TimeLeft: time.Hour}
	if g.step(in); len(g.out.Decisions) != 1 || g.out.Decisions[0].Reason != event.Admitted {
		t.Fatalf("%+v", g.out.Decisions)
	}
	g.step(&event.CreateKey{Ticket: g.next(), Key: event.Key{ID: boss + 1, Tenant: 1, Scopes: event.AllScopes, Bootstrap: true}, ReplaceBootstrap: true})
	if len(g.out.Decisions) != 1 || g.out.Decisions[0] != (event.Decision{Ticket: in.Ticket, Reason: event.RejectKeyEnded, Problem: event.Unauthorized}) {
		t.Errorf("%+v", g.out.Decisions)
	}
}
