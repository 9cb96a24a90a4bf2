package share_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/share"
	"macronode/core/types"
)

var few = share.PlaceLimits{Places: 8, Keyed: 7, Anon: 4, Flow: 3, Waiting: 2}

// request is one request of the model.
type request struct {
	id      uint64
	flow    types.Flow
	holds   bool
	order   int           // of the grant, or of the arrival of one that waits
	since   types.Instant // of the same
	least   time.Duration
	isToEnd bool
	endsOne bool // one that waits: another one is to end for it
}

// placesModel says what Places does, by counting requests each time.
type placesModel struct {
	all  []*request
	step int
}

func (m *placesModel) count(is func(*request) bool) (n int) {
	for _, r := range m.all {
		if is(r) {
			n++
		}
	}
	return n
}

func (m *placesModel) holding(f types.Flow) int {
	return m.count(func(r *request) bool { return r.holds && r.flow == f })
}

// room is the lowest number of places left by a limit that counts a class.
func (m *placesModel) room(c types.Class) int {
	of := func(from types.Class) int {
		return m.count(func(r *request) bool { return r.holds && r.flow.Class >= from })
	}
	room := few.Places - of(types.ClassInternal)
	if c >= types.ClassAuthed {
		room = min(room, few.Keyed-of(types.ClassAuthed))
	}
	if c >= types.ClassAnon {
		room = min(room, few.Anon-of(types.ClassAnon))
	}
	return room
}

func (m *placesModel) ask(now types.Instant, id uint64, f types.Flow, least time.Duration) share.Answer {
	m.step++
	r := &request{id: id, flow: f, since: now, order: m.step, least: least}
	has, room := m.holding(f), m.room(f.Class)
	r.holds = room > 0 && (f.Class == types.ClassInternal || has == 0 || has < few.Flow && has < room)
	waiting := func(q *request) bool { return !q.holds && q.flow.Class == f.Class }
	same := func(q *request) bool { return q.flow == f }
	switch {
	case r.holds:
		m.all = append(m.all, r)
		return share.Holds
	case room > 0, least == 0, slices.ContainsFunc(m.all, same), m.count(waiting) == few.Waiting:
		return share.Refused
	}
	m.all = append(m.all, r)
	return share.Waits
}

func (m *placesModel) inOrder() []*request {
	return slices.SortedFunc(slices.Values(m.all), func(a, b *request) int { return cmp.Compare(a.order, b.order) })
}

func (m *placesModel) next(now types.Instant) (uint64, bool) {
	for _, r := range m.inOrder() {
		if !r.holds && m.room(r.flow.Class) > 0 {
			m.step++
			r.holds, r.since, r.order = true, now, m.step
			return r.id, true
		}
	}
	return 0, false
}

func (m *placesModel) over(now types.Instant, id uint64) (uint64, bool) {
	at := slices.IndexFunc(m.all, func(r *request) bool { return r.id == id && !r.holds })
	if at < 0 {
		return 0, false
	}
	w := m.all[at]
	keeps := func(f types.Flow) int {
		return m.count(func(r *request) bool { return r.holds && !r.isToEnd && r.flow == f })
	}
	most := 2
	for _, r := range m.all {
		if r.flow.Class >= w.flow.Class {
			most = max(most, keeps(r.flow))
		}
	}
	for _, r := range m.inOrder() {
		if w.endsOne || !r.holds || r.isToEnd || r.flow.Class < w.flow.Class || keeps(r.flow) < most {
			continue
		}
		if now-r.since < types.Instant(w.least) {
			break
		}
		w.endsOne, r.isToEnd = true, true
		return r.id, true
	}
	m.end(id)
	return 0, false
}

func (m *placesModel) end(id uint64) {
	m.all = slices.DeleteFunc(m.all, func(r *request) bool { return r.id == id })
}

// TestPlacesAgreeWithModel: requests come, wait, end and are to end in any order. Places answers as the model does, and its limits hold.
func TestPlacesAgreeWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, m := share.NewPlaces(few), &placesModel{}
		now, last := types.Instant(0), uint64(0)
		for range rapid.IntRange(0, 120).Draw(t, "steps") {
			now += types.Instant(rapid.IntRange(0, 6).Draw(t, "passes"))
			id := rapid.Uint64Range(0, last).Draw(t, "id")
			switch rapid.IntRange(0, 5).Draw(t, "do") {
			case 0:
				p.End(id)
				m.end(id)
			case 1:
				if at := slices.IndexFunc(m.all, func(r *request) bool { return !r.holds }); at >= 0 && rapid.Bool().Draw(t, "is the first one") {
					id = m.all[at].id
				}
				loser, waitsOn := p.Over(now, id)
				if wantLoser, want := m.over(now, id); loser != wantLoser || waitsOn != want {
					t.Fatalf("the wait of %d is over: %d, %v, want %d, %v", id, loser, waitsOn, wantLoser, want)
				}
			default:
				last++
				flow := types.Flow{Class: types.Class(rapid.IntRange(0, 2).Draw(t, "class")), ID: rapid.Uint64Range(0, 3).Draw(t, "flow")}
				least := time.Duration(rapid.IntRange(0, 12).Draw(t, "least"))
				if got, want := p.Ask(now, last, flow, least), m.ask(now, last, flow, least); got != want {
					t.Fatalf("%v asks: %v, want %v", flow, got, want)
				}
			}
			for more := true; more; {
				var got, want uint64
				var any bool
				got, more = p.Next(now)
				if want, any = m.next(now); got != want || more != any {
					t.Fatalf("%d gets the next place, %v, want %d, %v", got, more, want, any)
				}
			}
			if n := m.count(func(r *request) bool { return r.holds }); p.Held() != n || n > few.Places {
				t.Fatalf("%d places are held, want %d", p.Held(), n)
			}
		}
	})
}

// TestFlowWithoutPlaceGetsOne: a few flows take all places that they get, and keep them. While one keeps two, a further flow of the
// same class gets a place once it has waited: the oldest request of a flow that keeps the most ends, and no other one.
func TestFlowWithoutPlaceGetsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		class := types.Class(rapid.IntRange(1, 2).Draw(t, "class"))
		p, id, wait := share.NewPlaces(few), uint64(0), time.Second
		has := map[uint64][]uint64{} // by flow, the requests with a place, the oldest first
		for range 100 {
			id++
			flow := rapid.Uint64Range(0, 2).Draw(t, "flow")
			if p.Ask(0, id, types.Flow{Class: class, ID: flow}, 0) == share.Holds {
				has[flow] = append(has[flow], id)
			}
		}
		late := types.Instant(wait)
		for n := uint64(10); ; n++ {
			id++
			further := types.Flow{Class: class, ID: n}
			switch p.Ask(late, id, further, wait) {
			case share.Holds:
				continue
			case share.Refused:
				t.Fatalf("flow %d may not even wait", n)
			}
			most := 0
			for _, all := range has {
				most = max(most, len(all))
			}
			loser, waitsOn := p.Over(late.Add(wait), id)
			if most < 2 {
				if waitsOn {
					t.Fatalf("request %d of a flow with one place is to end", loser)
				}
				return
			}
			at := slices.IndexFunc([]uint64{0, 1, 2}, func(f uint64) bool { return len(has[f]) == most && has[f][0] == loser })
			if !waitsOn || at < 0 {
				t.Fatalf("of %v, %d is to end, %v", has, loser, waitsOn)
			}
			has[uint64(at)] = has[uint64(at)][1:]
			p.End(loser)
			if got, ok := p.Next(late.Add(wait)); !ok || got != id {
				t.Fatalf("request %d gets the place of %d, want %d", got, loser, id)
			}
		}
	})
}

// TestYoungRequestStays: a request that has not lasted as long as another one has waited does not end for it.
func TestYoungRequestStays(t *testing.T) {
	p, peer := share.NewPlaces(few), func(id uint64) types.Flow { return types.Flow{Class: types.ClassAnon, ID: id} }
	for id, of := range []uint64{0, 0, 1, 2} {
		if p.Ask(1, uint64(id), peer(of), 0) != share.Holds {
			t.Fatalf("request %d has no place", id)
		}
	}
	for id, least := range map[uint64]time.Duration{10: 9, 11: 10} {
		if p.Ask(1, id, peer(id), least) != share.Waits {
			t.Fatalf("request %d does not wait", id)
		}
	}
	if loser, waitsOn := p.Over(10, 11); waitsOn {
		t.Errorf("after 9, request %d ends for one that waited for 10", loser)
	}
	if _, waitsOn := p.Over(10, 10); !waitsOn {
		t.Error("after 9, no request ends for one that waited for 9")
	}
}
