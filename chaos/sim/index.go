package sim

import (
	"errors"

	"macronode/chaos/world"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/idempotency"
	"macronode/core/record"
	"macronode/core/types"
)

// index is what an indexer promises, and no more: it folds durable frames, some time;
// of what it has folded, a table and its mark become durable together, some time; a
// crash takes the rest, and sometimes all of it.
type index struct {
	seen map[idempotency.Key]command.PriorOutcome // of the frames ≤ mark
	mark types.LSN
	kept []kept // what is durable, oldest first: a crash finds the last
}

type kept struct {
	seen map[idempotency.Key]command.PriorOutcome
	mark types.LSN
}

func newIndex() index { return index{seen: map[idempotency.Key]command.PriorOutcome{}} }

// fold takes in the next durable frame.
func (x *index) fold(w *World, s record.Sealed) {
	if s.LSN != x.mark+1 {
		w.fail("index-order", "the index folds %v after %v", s.LSN, x.mark)
	}
	h, rest, err := record.Open(s.Body)
	if err != nil {
		w.fail("index-unreadable", "the index folds %v: %v", s.LSN, err)
		return
	}
	var r record.Record
	batch := false
	for i := range h.Count {
		rest, _ = record.Next(rest, &r)
		r.Identify()
		seen := command.PriorOutcome{Hash: r.Hash, ID: types.NewTxID(s.Journal, types.Position{LSN: h.LSN, Index: i}), At: h.At}
		if r.IsOutcome() && !batch {
			x.seen[idempotency.Key{Tenant: r.Tenant, Name: r.Key.ID}] = seen
			batch = r.Kind == record.Batched
		}
		if len(r.Ref.Text) > 0 {
			x.seen[idempotency.Key{Tenant: r.Tenant, Name: r.Ref.ID, Ref: true}] = seen
		}
	}
	x.mark = s.LSN
}

// table makes all that was folded durable.
func (x *index) table() {
	copied := make(map[idempotency.Key]command.PriorOutcome, len(x.seen))
	for k, s := range x.seen { //nolint:maporder // a copy
		copied[k] = s
	}
	x.kept = []kept{{copied, x.mark}}
}

// crash is the index as the next start finds it: its last table, if the journal still
// has what that holds. Else, and when it is lost, it is made again from the beginning.
func (x *index) crash(w *World, last types.LSN) {
	lost := w.c.Choose("index/lost", 4) == 1
	if lost || len(x.kept) == 0 || x.kept[0].mark > last {
		w.Saw["index lost"]++
		if x.mark > 0 {
			w.tell(indexes, nobody, trouble, "begins anew, was at %v", x.mark)
		}
		*x = newIndex()
		return
	}
	x.seen, x.mark = x.kept[0].seen, x.kept[0].mark
	x.table() // what is durable is not written to
}

// look is what the index says of a request now. How far it had come was read before.
func (x *index) look(in *event.Request) {
	in.Prior = x.seen[idempotency.Key{Tenant: in.Tenant, Name: in.Key.ID}]
	for _, item := range in.Each {
		item.PriorRef = types.TxID{}
		if len(item.Ref.Text) > 0 {
			item.PriorRef = x.seen[idempotency.Key{Tenant: in.Tenant, Name: item.Ref.ID, Ref: true}].ID
		}
	}
}

// table makes durable what the index has, and says so.
func (w *World) table() {
	w.index.table()
	w.promise.indexed = max(w.promise.indexed, w.index.mark)
	w.late = append(w.late, event.Indexed{Upto: w.index.mark})
	w.tell(indexes, nobody, plain, "a table, to %v", w.index.mark)
}

// indexing is a move of the indexer: it folds a frame, or makes a table.
func (w *World) indexing() {
	if w.c.Choose("index/table", 4) == 1 {
		w.table()
		return
	}
	w.folds(1 + w.c.Choose("index/frames", 6))
}

// folds makes the index fold so many frames, or all.
func (w *World) folds(most int) {
	for range most {
		if w.index.mark == w.fol.Mark() {
			return
		}
		s, err := w.later(w.index.mark + 1)
		if err != nil {
			if !w.disk.Dead() && !errors.Is(err, world.ErrRead) {
				w.fail("index-reads", "the index reads %v: %v", w.index.mark+1, err)
			}
			return
		}
		w.index.fold(w, s)
		w.tell(indexes, journal, plain, "folds %v", s.LSN)
	}
}

// later is a frame as the index gets it: one of the last from memory, an older one from the
// journal.
func (w *World) later(lsn types.LSN) (record.Sealed, error) {
	if n := types.LSN(len(w.said.frames)); lsn+8 > n && lsn <= n && !w.unlawful {
		return w.said.frames[lsn-1], nil
	}
	return w.jour.Read(lsn)
}
