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

// lived returns the testimony of a certified run, and its journal.
func lived(t *testing.T, seed uint64) (*testimony, *recall.Memory) {
	t.Helper()
	w := New(Choices(seed, 500))
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	m := recall.New()
	for i := range w.testified.frames {
		if err := m.Frame(&w.testified.frames[i]); err != nil {
			t.Fatal(err)
		}
	}
	return &w.testified, m
}

// A spoiler changes a testimony or a journal, and reports whether it changed anything.
type spoiler struct {
	name, text string
	spoil      func(*testimony, *recall.Memory) bool
}

// some returns the operations of all clients that fit, the last first.
func some(t *testimony, fits func(*history.Op[ask, string]) bool) (all []*history.Op[ask, string]) {
	for _, r := range t.testified {
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

// alone reports whether op was called once.
func alone(t *testimony, op *history.Op[ask, string]) bool {
	return len(some(t, func(other *history.Op[ask, string]) bool {
		return other.Kind == history.Write && string(other.Ask.in.Key.Text) == string(op.Ask.in.Key.Text) && !t.void[other.Key]
	})) == 1
}

// came counts the positions of the answers of a key.
func came(t *testimony, key []byte) int {
	at := map[types.Position]bool{}
	for _, op := range some(t, written) {
		if string(op.Ask.in.Key.Text) == string(key) {
			at[op.Place] = true
		}
	}
	return len(at)
}

// moved reports whether the record at a position is a movement.
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
	{"a read that goes back in time", "returned before the call of one", func(t *testimony, _ *recall.Memory) bool {
		for _, late := range some(t, read) { // repeat the first read at the end
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
	{"an unanswered one is lost", "answered otherwise", func(t *testimony, m *recall.Memory) bool {
		for i, e := range m.Entries { // a movement has a Seq in later answers
			answered := some(t, func(op *history.Op[ask, string]) bool { return written(op) && op.Place == e.Place })
			issues := some(t, func(op *history.Op[ask, string]) bool {
				return op.Kind == history.Write && op.Ask.in.Hash == e.Asked && op.Ask.in.Op == event.Issue
			})
			if len(answered) == 0 && len(issues) > 0 && i < len(m.Entries)/2 && moved(m, e.Place) {
				m.Entries = slices.Delete(m.Entries, i, i+1)
				return true
			}
		}
		return false
	}},
	{"done, and reported as not done", "belongs to no operation", func(t *testimony, _ *recall.Memory) bool {
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
	{"done twice", "belongs to no operation", func(t *testimony, m *recall.Memory) bool {
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
	{"answered before its call", "returned before it was called", func(t *testimony, _ *recall.Memory) bool {
		all := some(t, func(op *history.Op[ask, string]) bool { return written(op) && alone(t, op) })
		if len(all) == 0 {
			return false
		}
		all[0].Return = all[0].Call - 1
		return true
	}},
	{"called after its effect", "returned before the call of one", func(t *testimony, m *recall.Memory) bool {
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

// TestCertificateRejectsSpoiledRuns: a certified run with one change is rejected, with the
// reason.
func TestCertificateRejectsSpoiledRuns(t *testing.T) {
	for _, s := range spoilers {
		spoiled := 0
		for seed := uint64(1); seed < 120 && spoiled < 5; seed++ {
			testified, m := lived(t, seed)
			if !s.spoil(testified, m) {
				continue
			}
			spoiled++
			if why := testified.certified(m); !strings.Contains(why, s.text) {
				t.Errorf("%s: seed %d: %q, want %q", s.name, seed, why, s.text)
			}
		}
		if spoiled < 5 {
			t.Errorf("%s: in %d runs only", s.name, spoiled)
		}
	}
}
