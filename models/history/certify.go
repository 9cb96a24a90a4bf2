package history

import (
	"cmp"
	"fmt"
	"slices"

	"macronode/core/types"
)

// Certify replays ops in the order of the journal and returns nil, or the first operation that is
// wrong. The history is right if and only if
//
//   - positions ascend in the journal; each entry belongs to one operation; the key of an operation
//     is there at most once, and for an answered Write at the position of its answer;
//   - every answer equals that of m, on which each entry, and no other Write, is done in order,
//     and each Read after the last position that it saw; an operation without an answer happened
//     if and only if it has an entry;
//   - no operation returned before an operation was called that precedes it in the order. A Read is
//     anywhere between the position that it saw and the next entry that changes something: it cannot
//     have seen a rejection.
//
// Time O(n); memory 32 bytes per operation and about 50 per Write without an answer, in addition
// to ops and m. There are fewer than 2^31 operations.
func Certify[Q any, A comparable](m Model[Q, A], ops []Op[Q, A], journal Journal) *Fault {
	w := walk[Q, A]{model: m, ops: ops, doubts: map[Key]int32{}, latest: Always, whose: -1}
	if f := w.sort(); f != nil {
		return f
	}
	for e := range journal {
		if f := w.entry(e); f != nil {
			return f
		}
	}
	for len(w.slots) > 0 {
		if f := w.pass(); f != nil {
			return f
		}
	}
	return w.settle(Never, true)
}

// walk is the progress of the replay.
type walk[Q any, A comparable] struct {
	model  Model[Q, A]
	ops    []Op[Q, A]
	slots  []slot         // answered operations that are still to come, in order
	doubts map[Key]int32  // Writes without an answer and without an entry so far
	open   []int32        // Reads that may still move later, with their answers compared
	last   types.Position // last position of the journal so far
	latest types.Instant  // latest call so far
	whose  int            // operation of that call; -1: none
}

// sort orders the answered operations, a Read after the Write of its position.
func (w *walk[Q, A]) sort() *Fault {
	w.slots = make([]slot, 0, len(w.ops))
	for _, kind := range [...]Kind{Write, Read} {
		for i := range w.ops {
			op := &w.ops[i]
			switch {
			case op.Kind != kind:
				types.Assert(op.Kind == Write || op.Kind == Read, "history: an op of no kind")
			case op.Return < op.Call:
				return w.fault(Backward, i)
			case op.Return < Never:
				w.slots = append(w.slots, slot{pack(op.Place), int32(i)})
			case kind == Write:
				w.doubts[op.Key] = int32(i)
			}
		}
	}
	w.slots = ascending(w.slots)
	return nil
}

// entry replays the next entry of the journal.
func (w *walk[Q, A]) entry(e Entry) *Fault {
	at := pack(e.Place)
	if at <= pack(w.last) {
		return &Fault{Why: Unsorted, Op: w.find(e.Key), Key: e.Key, Place: e.Place, Other: -1}
	}
	for len(w.slots) > 0 && w.slots[0].at < at {
		if f := w.pass(); f != nil {
			return f
		}
	}
	w.last = e.Place
	i, f := w.owner(e)
	if f != nil {
		return f
	}
	op := &w.ops[i]
	answer, changed := w.model.Step(e.Place, &op.Ask)
	if f := w.settle(op.Call, changed); f != nil {
		return f
	}
	if f := w.time(i); f != nil {
		return f
	}
	return w.compare(i, answer)
}

// pass takes the next answered operation after the last entry. A Read saw that entry; a Write
// without an entry is lost.
func (w *walk[Q, A]) pass() *Fault {
	i := w.slots[0].op
	w.slots = w.slots[1:]
	if w.ops[i].Kind == Write {
		return w.fault(Lost, int(i))
	}
	w.open = append(w.open, i)
	answer, _ := w.model.Step(w.last, &w.ops[i].Ask)
	return w.compare(int(i), answer)
}

// owner returns the operation of an entry.
func (w *walk[Q, A]) owner(e Entry) (op int, f *Fault) {
	if len(w.slots) > 0 && w.slots[0].at == pack(e.Place) && w.ops[w.slots[0].op].Kind == Write {
		op = int(w.slots[0].op)
		w.slots = w.slots[1:]
		if w.ops[op].Key != e.Key {
			f = w.fault(Taken, op)
			f.Other = w.find(e.Key)
		}
		return op, f
	}
	if i, ok := w.doubts[e.Key]; ok {
		delete(w.doubts, e.Key)
		return int(i), nil
	}
	f = &Fault{Why: Unasked, Op: w.find(e.Key), Key: e.Key, Place: e.Place, Other: -1}
	if f.Op >= 0 {
		f.Why = Elsewhere
	}
	return -1, f
}

// settle places the open Reads that returned before a call, or all of them.
func (w *walk[Q, A]) settle(call types.Instant, all bool) *Fault {
	if len(w.open) == 0 {
		return nil
	}
	slices.SortFunc(w.open, func(a, b int32) int { return cmp.Compare(w.ops[a].Call, w.ops[b].Call) })
	kept := w.open[:0]
	for _, i := range w.open {
		if !all && w.ops[i].Return >= call {
			kept = append(kept, i)
			continue
		}
		if f := w.time(int(i)); f != nil {
			return f
		}
	}
	w.open = kept
	return nil
}

// time checks that an operation did not return before the call of one that precedes it.
func (w *walk[Q, A]) time(i int) *Fault {
	op := &w.ops[i]
	if op.Return < w.latest {
		f := w.fault(Late, i)
		f.Other = w.whose
		return f
	}
	if op.Call > w.latest {
		w.latest, w.whose = op.Call, i
	}
	return nil
}

// compare compares an answer, if there is one, with that of the model.
func (w *walk[Q, A]) compare(i int, want A) *Fault {
	op := &w.ops[i]
	if op.Return == Never || op.Answer == want {
		return nil
	}
	f := w.fault(Untrue, i)
	f.Want = fmt.Sprintf("%+v, not %+v", want, op.Answer)
	return f
}

func (w *walk[Q, A]) fault(why Why, i int) *Fault {
	op := &w.ops[i]
	return &Fault{Why: why, Op: i, Key: op.Key, Place: op.Place, Other: -1}
}

// find searches all operations; it is called at most once per history.
func (w *walk[Q, A]) find(k Key) int {
	return slices.IndexFunc(w.ops, func(op Op[Q, A]) bool { return op.Kind == Write && op.Key == k })
}
