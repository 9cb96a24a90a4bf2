package sim

import (
	"slices"
	"strings"
	"testing"

	"macronode/chaos/recall"
	"macronode/core/event"
	"macronode/core/types"
	"macronode/models/history"
)

// lived is the testimony of a life that was certified, and its journal.
func lived(t *testing.T, seed uint64) (*testimony, *recall.Memory) {
	t.Helper()
	w := New(Life(seed, 500))
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	m := recall.New()
	for i := range w.said.frames {
		if err := m.Frame(&w.said.frames[i]); err != nil {
			t.Fatal(err)
		}
	}
	return &w.said, m
}

// A spoiler changes what a life says, or its journal, and reports whether it found
// something to change.
type spoiler struct {
	name, says string
	spoil      func(*testimony, *recall.Memory) bool
}

// some are the ops of all clients that fit, those that were asked last first.
func some(t *testimony, fits func(*history.Op[ask, string]) bool) (all []*history.Op[ask, string]) {
	for _, r := range t.said {
		for i := range r.Ops() {
			if op := &r.Ops()[i]; fits(op) {
				all = append(all, op)
			}
		}
	}
	slices.Reverse(all)
	return all
}

func written(op *history.Op[ask, string]) bool {
	return op.Kind == history.Write && op.Return < history.Never
}

func read(op *history.Op[ask, string]) bool { return op.Kind == history.Read }

// alone reports that op was asked once, whatever came of it.
func alone(t *testimony, op *history.Op[ask, string]) bool {
	return len(some(t, func(other *history.Op[ask, string]) bool {
		return other.Kind == history.Write && string(other.Ask.in.Key.Text) == string(op.Ask.in.Key.Text) && !t.void[other.Key]
	})) == 1
}

// came is how many places the answers of a key stand at.
func came(t *testimony, key []byte) int {
	at := map[types.Position]bool{}
	for _, op := range some(t, written) {
		if string(op.Ask.in.Key.Text) == string(key) {
			at[op.Place] = true
		}
	}
	return len(at)
}

// moved reports that the record at a place has a number among the movements.
func moved(m *recall.Memory, at types.Position) bool {
	for seq := types.Seq(1); m.Seen(types.DefaultTenant, seq).LSN < types.MaxLSN; seq++ {
		if m.Seen(types.DefaultTenant, seq) == at {
			return true
		}
	}
	return false
}

var spoilers = []spoiler{
	{"a receipt of another frame", "the answer at", func(t *testimony, _ *recall.Memory) bool {
		all := some(t, written)
		i := slices.IndexFunc(all, func(op *history.Op[ask, string]) bool { return op.Place != all[0].Place })
		if i < 0 {
			return false
		}
		all[0].Answer = all[i].Answer
		return true
	}},
	{"a read that goes back in time", "returned before another was called", func(t *testimony, _ *recall.Memory) bool {
		for _, late := range some(t, read) { // what was read first of all is read again, last of all
			for _, op := range slices.Backward(some(t, read)) {
				if op.Ask.seq > 0 && op.Ask.seq < late.Ask.seq && op.Return < late.Call {
					op.Call, op.Return = late.Call, late.Return
					return true
				}
			}
		}
		return false
	}},
	{"a balance that is another", "answered otherwise", func(t *testimony, _ *recall.Memory) bool {
		all := some(t, read)
		if len(all) == 0 {
			return false
		}
		all[0].Answer = strings.Replace(all[0].Answer, "has ", "has 1", 1)
		return true
	}},
	{"an acknowledged write that is lost", "has no record there", func(t *testimony, m *recall.Memory) bool {
		all := some(t, written)
		if len(all) == 0 {
			return false
		}
		m.Entries = slices.DeleteFunc(m.Entries, func(e recall.Entry) bool { return e.Place == all[0].Place })
		return true
	}},
	{"one that nobody was told of, lost", "answered otherwise", func(t *testimony, m *recall.Memory) bool {
		for i, e := range m.Entries { // whatever moves has a number among the movements that are told
			told := some(t, func(op *history.Op[ask, string]) bool { return written(op) && op.Place == e.Place })
			issues := some(t, func(op *history.Op[ask, string]) bool {
				return op.Kind == history.Write && op.Ask.in.Hash == e.Asked && op.Ask.in.Op == event.Issue
			})
			if len(told) == 0 && len(issues) > 0 && i < len(m.Entries)/2 && moved(m, e.Place) {
				m.Entries = slices.Delete(m.Entries, i, i+1)
				return true
			}
		}
		return false
	}},
	{"done, and told that it was not", "asked by nobody", func(t *testimony, _ *recall.Memory) bool {
		for _, op := range some(t, written) {
			if key := op.Ask.in.Key.Text; came(t, key) == 1 {
				for _, each := range some(t, func(op *history.Op[ask, string]) bool {
					return op.Kind == history.Write && string(op.Ask.in.Key.Text) == string(key)
				}) {
					t.void[each.Key] = true
				}
				op.Return = history.Never
				return true
			}
		}
		return false
	}},
	{"done twice", "asked by nobody", func(t *testimony, m *recall.Memory) bool {
		all := some(t, func(op *history.Op[ask, string]) bool { return written(op) && alone(t, op) })
		if len(all) == 0 {
			return false
		}
		i := slices.IndexFunc(m.Entries, func(e recall.Entry) bool { return e.Place == all[0].Place })
		if i < 0 {
			return false
		}
		again := m.Entries[i]
		again.Place.LSN = m.Entries[len(m.Entries)-1].Place.LSN + 1
		m.Entries = append(m.Entries, again)
		return true
	}},
	{"answered before it was asked for", "returned before it was called", func(t *testimony, _ *recall.Memory) bool {
		all := some(t, func(op *history.Op[ask, string]) bool { return written(op) && alone(t, op) })
		if len(all) == 0 {
			return false
		}
		all[0].Return = all[0].Call - 1
		return true
	}},
	{"asked for after its effect", "returned before another was called", func(t *testimony, m *recall.Memory) bool {
		all := some(t, written)
		if len(all) < 2 {
			return false
		}
		first := slices.MinFunc(all, func(a, b *history.Op[ask, string]) int { return int(a.Place.LSN) - int(b.Place.LSN) })
		for _, op := range some(t, func(op *history.Op[ask, string]) bool {
			return op.Kind == history.Write && string(op.Ask.in.Key.Text) == string(first.Ask.in.Key.Text)
		}) {
			op.Call, op.Return = op.Call+t.moment, max(op.Return, op.Return+t.moment)
		}
		return true
	}},
}

// TestCertificateRefuses: of lives that were certified, each is refused as soon as something
// in it is not as it was, and says what.
func TestCertificateRefuses(t *testing.T) {
	for _, s := range spoilers {
		spoiled := 0
		for seed := uint64(1); seed < 120 && spoiled < 5; seed++ {
			said, m := lived(t, seed)
			if !s.spoil(said, m) {
				continue
			}
			spoiled++
			if why := said.certified(m); !strings.Contains(why, s.says) {
				t.Errorf("%s: seed %d: %q, want %q", s.name, seed, why, s.says)
			}
		}
		if spoiled < 5 {
			t.Errorf("%s: in %d lives only", s.name, spoiled)
		}
	}
}
