package admission_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/ci/hashcoverage"
	"macronode/ci/transcript"
	"macronode/core/event"
	"macronode/core/gateway/admission"
	"macronode/core/gateway/drr"
	"macronode/core/types"
	model "macronode/models/admission"
)

const quantum = 1000

func limits() admission.Limits {
	l := admission.Limits{Places: 8, Quantum: quantum, Weights: [types.NumClasses]uint64{10, 5, 1}, Least: 10,
		Wait: 25 * time.Millisecond, Grace: time.Second, Routes: []event.RouteLimits{{}, {Requests: 3, PerFlow: 3}, {Requests: 4}}}
	for f := range l.Facets {
		l.Facets[f] = admission.Facet{Permits: 2, Queue: 4, PerClass: [types.NumClasses]int{3, 3, 3}, PerFlow: 2}
	}
	return l
}

// looseLimits returns limits with many places in the queue and one permit, so that only turns hold requests back.
func looseLimits(places int, quantum, least uint64) admission.Limits {
	l := admission.Limits{Places: places, Quantum: quantum, Weights: [types.NumClasses]uint64{1, 1, 1}, Least: least, Wait: time.Hour}
	for f := range l.Facets {
		l.Facets[f] = admission.Facet{Permits: 1, Queue: places, PerClass: [types.NumClasses]int{places, places, places}, PerFlow: places}
	}
	return l
}

// name returns the error as the model names it.
func name(err error) string {
	for e, n := range map[error]string{drr.ErrWeight: "weight", drr.ErrFull: "full", drr.ErrClass: "class", drr.ErrFlow: "flow", admission.ErrRoute: "route", admission.ErrRouteFlow: "route flow"} {
		if errors.Is(err, e) {
			return n
		}
	}
	return ""
}

func TestTranscript(t *testing.T) { play(t, "testdata/transcript") }

// TestShares: the permits that classes and callers may have.
func TestShares(t *testing.T) {
	l := limits()
	l.Places = 30
	for f := range l.Facets {
		l.Facets[f] = admission.Facet{Permits: 10, Queue: 12, PerClass: [types.NumClasses]int{4, 4, 4}, PerFlow: 4, ClassPermits: [types.NumClasses]int{10, 9, 5}, FlowPermits: 2}
	}
	playWith(t, "testdata/shares", l)
}

// TestStreamsLeaveRoom: the permits for requests that last that a tenant or peer leaves to others.
func TestStreamsLeaveRoom(t *testing.T) {
	l := limits()
	l.Places = 30
	for f := range l.Facets {
		l.Facets[f] = admission.Facet{Permits: 10, Queue: 12, PerClass: [types.NumClasses]int{4, 4, 4}, PerFlow: 4, ClassPermits: [types.NumClasses]int{10, 9, 5}, FlowPermits: 4}
	}
	playWith(t, "testdata/streams_leave_room", l)
}

// TestRoutesLeaveRoom: the requests of a route that a tenant or peer leaves to others.
func TestRoutesLeaveRoom(t *testing.T) {
	l := limits()
	l.Places, l.Routes = 40, []event.RouteLimits{{}, {Requests: 8}, {Requests: 8, PerFlow: 6}}
	for f := range l.Facets {
		l.Facets[f] = admission.Facet{Permits: 20, Queue: 20, PerClass: [types.NumClasses]int{20, 20, 20}, PerFlow: 20}
	}
	playWith(t, "testdata/routes_leave_room", l)
}

// TestGiveWay: a peer without a permit takes the permit of a request that lasts, of the peer that holds the most.
func TestGiveWay(t *testing.T) {
	l := limits()
	l.Places, l.GiveWay = 30, 100*time.Millisecond
	for f := range l.Facets {
		l.Facets[f] = admission.Facet{Permits: 10, Queue: 12, PerClass: [types.NumClasses]int{4, 4, 4}, PerFlow: 3, ClassPermits: [types.NumClasses]int{10, 9, 5}, FlowPermits: 3}
	}
	playWith(t, "testdata/give_way", l)
}

// TestStream: reservations, and their turns.
func TestStream(t *testing.T) { play(t, "testdata/stream") }

func play(t *testing.T, path string) {
	t.Helper()
	playWith(t, path, limits())
}

func playWith(t *testing.T, path string, l admission.Limits) {
	t.Helper()
	a, now, paced := admission.New(l, 1), types.Instant(0), false
	facets := map[string]types.Facet{"wallet": types.FacetWallet, "query": types.FacetQuery, "streams": types.Streams}
	transcript.Play(t, path, func(w []string) string {
		number := func(i int) uint64 {
			n, err := strconv.ParseUint(w[i], 10, 64)
			if err != nil {
				t.Fatalf("%q: %v", w, err)
			}
			return n
		}
		var out strings.Builder
		switch w[0] {
		case "arrive": // facet tenant slot use [route]; tenant 0 is anonymous, pN is a peer, and iN is internal
			class := types.ClassAuthed
			if name, ok := strings.CutPrefix(w[2], "p"); ok {
				class, w[2] = types.ClassAnon, name
			}
			if name, ok := strings.CutPrefix(w[2], "i"); ok {
				class, w[2] = types.ClassInternal, name
			}
			in := event.Admit{Class: class, Facet: facets[w[1]], Tenant: types.Tenant(number(2)), Key: types.KeyID(number(2)),
				Ticket: types.NewTicket(uint32(number(3)), uint32(number(4))), TimeLeft: time.Second}
			if in.Key == 0 {
				in.Class = types.ClassAnon
			}
			if class == types.ClassAnon {
				in.Peer[7], in.Key, in.Tenant = byte(in.Tenant), 0, 0
			}
			if len(w) > 5 {
				in.Route = uint16(number(5))
			}
			if err := a.Would(&in); err != nil {
				fmt.Fprintln(&out, err)
				break
			}
			a.Arrive(now, &in)
		case "settle":
			a.Settle(types.NewTicket(uint32(number(1)), uint32(number(2))), number(3))
		case "after":
			d, err := time.ParseDuration(w[1])
			if err != nil {
				t.Fatal(err)
			}
			now = now.Add(d)
			for {
				e, ok := a.Overdue(now, paced)
				if !ok {
					break
				}
				switch e.What {
				case admission.Waited:
					fmt.Fprintf(&out, "slot %d is late, after %v\n", e.Ticket.Slot(), e.Waited)
				case admission.Paused:
					fmt.Fprintf(&out, "slot %d may go on with %d\n", e.Ticket.Slot(), e.Bytes)
				case admission.Lined:
					fmt.Fprintf(&out, "slot %d will not go on with %d\n", e.Ticket.Slot(), e.Bytes)
				case admission.TookOver:
					fmt.Fprintf(&out, "slot %d takes the permit of slot %d after %v, and drops %d\n", e.Ticket.Slot(), e.Loser.Slot(), e.Waited, e.Bytes)
				}
			}
		case "pace": // on or off: whether the instance quota holds requests back
			paced = w[1] == "on"
		case "pause", "line": // slot use bytes, for how long
			d, err := time.ParseDuration(w[4])
			ticket := types.NewTicket(uint32(number(1)), uint32(number(2)))
			if err != nil || !a.Works(ticket) {
				t.Fatal(w, err)
			}
			if w[0] == "pause" {
				a.Pause(ticket, number(3), now.Add(d))
				break
			}
			a.Line(ticket, number(3), now.Add(d))
		case "pass": // so many parts
			for range number(1) {
				next, bytes := a.NextPart()
				a.Pass(next, bytes)
				fmt.Fprintf(&out, "slot %d continues with %d\n", next.Slot(), bytes)
			}
		case "charge":
			a.Pass(types.NewTicket(uint32(number(1)), uint32(number(2))), number(3))
		case "evict":
			for {
				gone, ok := a.Evict()
				if !ok {
					break
				}
				fmt.Fprintf(&out, "slot %d has to go\n", gone.Slot())
			}
		default:
			t.Fatalf("no such word: %s", w[0])
		}
		for a.Ripe() {
			next, waited := a.Next(now)
			fmt.Fprintf(&out, "slot %d is admitted after %v\n", next.Slot(), waited)
		}
		if err := a.Check(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "out %d, waiting %d, revoked %d\n", a.Out(types.FacetWallet)+a.Out(types.FacetQuery), a.Waiting(), a.Taken())
		return out.String()
	})
}

// TestMatchesModel makes random calls to admission and to its model.
func TestMatchesModel(t *testing.T) {
	corners := []string{"waited", "paused", "lined", "passed", "took over", "key ended: queued", "key ended: out", "key ended: lost", "key ended: a part", "route flow"}
	saw := map[string]int{}
	agree := func(t *rapid.T) {
		l := limits()
		l.Weights[types.ClassAnon] = rapid.Uint64Range(0, 1).Draw(t, "weight")
		l.GiveWay = time.Duration(rapid.SampledFrom([]int{0, 30}).Draw(t, "give way")) * time.Millisecond
		m := model.Admission{GiveWay: l.GiveWay, Permits: 2, Queue: 4, Flow: 2, Class: [types.NumClasses]int{3, 3, 3}, Routes: modelRoutes(l.Routes), Wait: l.Wait, Grace: l.Grace}
		permitShares(t, &m, &l)
		a, spare, now := admission.New(l, 1), admission.New(limits(), 2), types.Instant(0)
		for c, w := range l.Weights {
			m.Weight[c] = int(w)
		}
		used := map[types.Ticket]bool{}
		in := func(slot uint32) bool {
			for _, g := range m.Requests {
				if g.Ticket.Slot() == slot {
					return true
				}
			}
			return false
		}
		enter := func(t *rapid.T, e event.Admit) {
			slot := rapid.Uint32Range(0, uint32(l.Places)-1).Draw(t, "slot")
			if in(slot) {
				return
			}
			e.Ticket = types.NewTicket(slot, uint32(len(used)+1))
			g := model.Request{Ticket: e.Ticket, Facet: e.Facet, Route: int(e.Route), Flow: types.Flow{Class: e.Class, ID: uint64(e.Tenant)}}
			if e.Class == types.ClassAnon {
				g.Flow.ID = uint64(e.Peer[7])
			}
			g.Key = e.Key
			used[e.Ticket] = true
			if alone := m.Waits(g.Facet, g.Flow) == 0; a.Alone(&e) != alone {
				t.Fatalf("%+v alone: %v, the model has %v", e, !alone, alone)
			}
			err := a.Would(&e)
			if want := m.Would(g); name(err) != want {
				t.Fatalf("%+v: %v, the model has %q", e, err, want)
			}
			if errors.Is(err, admission.ErrRouteFlow) {
				saw["route flow"]++
			}
			if err == nil {
				a.Arrive(now, &e)
				m.Arrive(now, g, e.TimeLeft, e.PermitFor)
			}
		}
		arrive := func(t *rapid.T) {
			e := event.Admit{Facet: rapid.SampledFrom([]types.Facet{types.FacetWallet, types.Streams}).Draw(t, "facet"),
				Class: types.Class(rapid.IntRange(0, 2).Draw(t, "class")), Route: uint16(rapid.IntRange(0, 3).Draw(t, "route")),
				DeclaredBytes: rapid.Int64Range(-1, 2*quantum).Draw(t, "bytes"), TimeLeft: time.Duration(rapid.IntRange(1, 200).Draw(t, "patience")) * time.Millisecond,
				PermitFor: time.Duration(rapid.SampledFrom([]int{0, 0, 5000}).Draw(t, "keeps")) * time.Millisecond}
			if e.Class == types.ClassAnon {
				e.Peer[7] = byte(rapid.IntRange(1, 2).Draw(t, "peer"))
			} else {
				e.Tenant, e.Key = types.Tenant(rapid.IntRange(1, 2).Draw(t, "tenant")), types.KeyID(rapid.IntRange(5, 6).Draw(t, "key"))
			}
			enter(t, e)
		}
		next := func(t *rapid.T) {
			if !a.Ripe() {
				if !m.May(0) {
					t.Fatal("nobody is ripe, and somebody may go")
				}
				return
			}
			ticket, waited := a.Next(now)
			if !m.May(ticket) || !m.Turn(ticket) {
				t.Fatalf("%v goes, who may not", ticket)
			}
			if want := m.Go(now, ticket); waited != want {
				t.Fatalf("%v waited %v, the model says %v", ticket, waited, want)
			}
		}
		part := func(t *rapid.T) { // of a request in progress: it waits for its quota, or for its turn
			for _, g := range m.Requests {
				if !m.Works(g.Ticket) || rapid.Bool().Draw(t, "another") {
					continue
				}
				bytes, until := rapid.Uint64Range(1, quantum).Draw(t, "part"), now.Add(time.Duration(rapid.IntRange(1, 2000).Draw(t, "until"))*time.Millisecond)
				if rapid.Bool().Draw(t, "paused") {
					a.Pause(g.Ticket, bytes, until)
					m.WaitPart(g.Ticket, "paused", bytes, until)
					return
				}
				a.Line(g.Ticket, bytes, until)
				m.WaitPart(g.Ticket, "lined", bytes, until)
				return
			}
		}
		settle := func(t *rapid.T, ticket types.Ticket, bytes uint64) {
			ended, worked := a.Settle(ticket, bytes)
			if e, w := m.Settle(ticket); ended != e || worked != w {
				t.Fatalf("%v ended: %v, worked: %v; the model has %v, %v", ticket, ended, worked, e, w)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"arrive": arrive, "arrive again": arrive, "arrive more": arrive, "next": next,
			"crowd": func(t *rapid.T) { // one peer may get all permits, and others come after it
				for n := range byte(4) {
					e := event.Admit{Facet: types.FacetWallet, Class: types.ClassAnon, TimeLeft: time.Second}
					e.Peer[7] = 1 + n/2
					enter(t, e)
					next(t)
				}
			},
			"settle": func(t *rapid.T) { // also twice, and of an earlier use
				if len(used) > 0 {
					ticket := types.NewTicket(rapid.Uint32Range(0, uint32(l.Places)-1).Draw(t, "slot"), rapid.Uint32Range(1, uint32(len(used))).Draw(t, "use"))
					settle(t, ticket, rapid.Uint64Range(0, 3*quantum).Draw(t, "bytes"))
				}
			},
			"leave": func(t *rapid.T) {
				if len(m.Requests) > 0 {
					settle(t, m.Requests[rapid.IntRange(0, len(m.Requests)-1).Draw(t, "guest")].Ticket, 0)
				}
			},
			"part": func(t *rapid.T) {
				for range 4 {
					part(t)
				}
			},
			"pass": func(t *rapid.T) {
				if a.Lined() == 0 {
					return
				}
				ticket, bytes := a.NextPart()
				if !m.GoPart(ticket, bytes) {
					t.Fatalf("%v goes on with %d, who may not", ticket, bytes)
				}
				a.Pass(ticket, bytes)
				saw["passed"]++
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 800).Draw(t, "ms")) * time.Millisecond)
				for {
					paced := rapid.IntRange(0, 3).Draw(t, "paced") == 3
					e, ok := a.Overdue(now, paced)
					what := ""
					if ok {
						what = [...]string{"waited", "paused", "lined", "took over"}[e.What]
					}
					want, wants, many, loser := m.Overdue(now, paced)
					if e.Ticket != want || what != wants || e.Bytes != many || e.Loser != loser {
						t.Fatalf("overdue: %+v %q, the model says %v %q %d %v", e, what, want, wants, many, loser)
					}
					if !ok {
						break
					}
					saw[what]++
				}
			},
			"key":    func(t *rapid.T) { endKey(t, now, &a, &m, saw) },
			"change": func(t *rapid.T) { change(t, now, &a, &m, &l) },
			"copy": func(t *rapid.T) {
				a.CopyTo(&spare)
				if a.HashInto(0) != spare.HashInto(0) {
					t.Fatalf("a copy has another hash: %s", hashcoverage.Apart(&a, &spare))
				}
				for ok := true; ok; {
					_, ok = a.Evict()
				}
				a, spare = spare, a
			},
			"": func(t *rapid.T) {
				if err := a.Check(); err != nil {
					t.Fatal(err)
				}
				for f := range types.NumFacets {
					if a.Out(f) != m.Out(f) {
						t.Fatalf("%d of %v are out, the model has %d", a.Out(f), f, m.Out(f))
					}
				}
				if a.Working() != m.Working() {
					t.Fatalf("%d are at work, the model has %d", a.Working(), m.Working())
				}
				if a.Lined() != m.Lined() {
					t.Fatalf("%d parts are lined, the model has %d", a.Lined(), m.Lined())
				}
				due, any := a.Due()
				if first, is := m.Due(); due != first || any != is {
					t.Fatalf("due at %d, %v, the model has %d, %v", due, any, first, is)
				}
				if a.First() == m.Passed {
					t.Fatalf("a part is next: %v, not so in the model", a.First())
				}
				for i := range uint32(len(used)) {
					for slot := range uint32(l.Places) {
						ticket := types.NewTicket(slot, i+1)
						if a.Works(ticket) != m.Works(ticket) {
							t.Fatalf("%v works: %v, not so in the model", ticket, a.Works(ticket))
						}
						if is := m.State(ticket); a.Holds(ticket) != (is != "") || a.Admitted(ticket) != (is != "" && is != "queued") || a.Lost(ticket) != (is == "lost") {
							t.Fatalf("%v is in: %v, lost: %v, the model has %q", ticket, a.Holds(ticket), a.Lost(ticket), is)
						}
					}
				}
				if int(a.Taken()) != m.Taken {
					t.Fatalf("%d revoked, the model has %d", a.Taken(), m.Taken)
				}
			},
		})
	}
	// A single check draws 100 histories, which do not always reach the rarest corner.
	for rounds := 0; rounds == 0 || rounds < 20 && len(saw) < len(corners); rounds++ {
		rapid.Check(t, agree)
	}
	for _, corner := range corners {
		if saw[corner] == 0 {
			t.Errorf("never saw: %s", corner)
		}
	}
}

// endKey ends all requests of one key, in the order of their slots.
func endKey(t *rapid.T, now types.Instant, a *admission.Admit, m *model.Admission, saw map[string]int) {
	key := types.KeyID(rapid.IntRange(5, 20).Draw(t, "key"))
	for slot := range a.Slots() {
		at := slices.IndexFunc(m.Requests, func(g model.Request) bool { return g.Ticket.Slot() == slot && !g.Ended })
		want := types.KeyID(0)
		if at >= 0 {
			want = m.Requests[at].Key
		}
		if got := a.KeyAt(slot); got != want {
			t.Fatalf("slot %d has key %d, the model has %d", slot, got, want)
		}
		if want != key {
			continue
		}
		g := m.Requests[at]
		was, bytes := m.EndKey(g.Ticket)
		e := a.EndKey(now, slot)
		waited := time.Duration(0)
		if was == "queued" {
			waited = time.Duration(now - g.Since)
		}
		if e != (admission.Ended{Ticket: g.Ticket, Queued: was == "queued", Waited: waited, Bytes: bytes}) {
			t.Fatalf("%+v, the model has %s and %d", e, was, bytes)
		}
		if a.KeyEnded(g.Ticket) != (was != "queued") {
			t.Fatalf("%+v: its key has ended: %v", e, a.KeyEnded(g.Ticket))
		}
		saw["key ended: "+was]++
		if bytes > 0 {
			saw["key ended: a part"]++
		}
	}
}

// TestFlowsPayActualCost: a flow whose requests cost three times the minimum gets a third of the turns, whether
// the cost is declared, estimated, reserved or reported at the end.
func TestFlowsPayActualCost(t *testing.T) {
	const least = 100
	for name, c := range map[string]struct {
		bytes                   int64
		answer, passed, settled uint64
		quantum                 uint64
		want                    int // turns of the other for one of his
	}{
		"nothing":             {want: 1, quantum: 1000},
		"declared":            {bytes: 3 * least, settled: 3 * least, quantum: 1000, want: 3},
		"an answer":           {bytes: least, answer: 2 * least, settled: 3 * least, quantum: 1000, want: 3},
		"moved meanwhile":     {passed: 2 * least, settled: 3 * least, quantum: 1000, want: 3},
		"said in the end":     {settled: 3 * least, quantum: 1000, want: 3},
		"no more than moved":  {bytes: 3 * least, settled: least, quantum: 1000, want: 1},
		"no length, a turn":   {bytes: -1, settled: 3 * least, quantum: 3 * least, want: 3},
		"more than a quantum": {bytes: 90 * least, answer: 90 * least, settled: 3 * least, quantum: 3 * least, want: 3},
	} {
		l := looseLimits(240, c.quantum, least)
		a := admission.New(l, 1)
		for n := range uint32(l.Places) {
			tenant := types.Tenant(1 + n%2)
			in := event.Admit{Ticket: types.NewTicket(n, 1), Class: types.ClassAuthed, Facet: types.FacetWallet, Tenant: tenant, Key: types.KeyID(tenant), TimeLeft: 8 * time.Hour}
			if tenant == 1 {
				in.DeclaredBytes, in.ResponseEstimate = c.bytes, uint32(c.answer)
			}
			a.Arrive(1, &in)
		}
		went := [2]int{}
		for range l.Places / 2 {
			ticket, _ := a.Next(2)
			his := ticket.Slot()%2 == 0
			if went[ticket.Slot()%2]++; !his {
				a.Settle(ticket, least)
				continue
			}
			if c.passed > 0 {
				a.Pass(ticket, c.passed)
			}
			a.Settle(ticket, c.settled)
		}
		if most := 3 * c.want; went[1]-c.want*went[0] > most || c.want*went[0]-went[1] > most {
			t.Errorf("%s: he went %d times, the other %d times, want %d for one", name, went[0], went[1], c.want)
		}
	}
}

// TestMinimumCost: a flow that forwards nothing gets no more turns than one that forwards the minimum.
func TestMinimumCost(t *testing.T) {
	l := looseLimits(40, 100, 100)
	a := admission.New(l, 1)
	for n := range uint32(l.Places) {
		tenant := types.Tenant(1 + n%2)
		a.Arrive(1, &event.Admit{Ticket: types.NewTicket(n, 1), Class: types.ClassAuthed, Facet: types.FacetWallet, Tenant: tenant, Key: types.KeyID(tenant), TimeLeft: 8 * time.Hour})
	}
	went := map[uint32]int{}
	for range l.Places / 2 {
		ticket, _ := a.Next(2)
		went[ticket.Slot()%2]++
		a.Settle(ticket, uint64(ticket.Slot()%2)*l.Least)
	}
	if went[0] != went[1] {
		t.Errorf("who moved nothing went %d times, the other %d times", went[0], went[1])
	}
}

// BenchmarkArrive: a request is admitted at once and finished.
func BenchmarkArrive(b *testing.B) {
	l := limits()
	l.Places = 2000
	for f := range l.Facets {
		l.Facets[f] = admission.Facet{Permits: 1000, Queue: 512, PerClass: [types.NumClasses]int{512, 512, 512}, PerFlow: 64}
	}
	a := admission.New(l, 1)
	in := event.Admit{Class: types.ClassAuthed, Tenant: 7, Key: 3, DeclaredBytes: 200, TimeLeft: time.Second}
	b.ReportAllocs()
	use := uint32(0)
	for b.Loop() {
		use++
		in.Ticket = types.NewTicket(use%1500, use)
		if a.Would(&in) != nil {
			b.Fatal("refused")
		}
		a.Arrive(types.Instant(use), &in)
		t, _ := a.Next(types.Instant(use))
		a.Settle(t, 200)
	}
}
