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

// index has the guarantees of the real index and no more: it folds durable frames with a delay;
// tables and their mark become durable together; a crash takes the rest, and sometimes
// everything.
type index struct {
	seen map[idempotency.Key]command.PriorOutcome // of the frames ≤ mark
	mark types.LSN
	kept []kept // durable tables, oldest first: a crash keeps the last
}

type kept struct {
	seen map[idempotency.Key]command.PriorOutcome
	mark types.LSN
}

func newIndex() index { return index{seen: map[idempotency.Key]command.PriorOutcome{}} }

// fold folds the next durable frame.
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
		x.indexUsage(&s, &h, i, &r)
		if len(r.Ref.Text) > 0 {
			x.seen[idempotency.Key{Tenant: r.Tenant, Name: r.Ref.ID, Ref: true}] = seen
		}
	}
	x.mark = s.LSN
}

// table makes the folded frames durable.
func (x *index) table() {
	copied := make(map[idempotency.Key]command.PriorOutcome, len(x.seen))
	for k, s := range x.seen { //nolint:maporder // a copy
		copied[k] = s
	}
	x.kept = []kept{{copied, x.mark}}
}

// crash restores the last table, if it belongs to the journal. Otherwise, or if it is lost, the
// index is rebuilt.
func (x *index) crash(w *World, last types.LSN) {
	lost := w.c.Choose("index/lost", 4) == 1
	if lost || len(x.kept) == 0 || x.kept[0].mark > last {
		w.Saw["index lost"]++
		if x.mark > 0 {
			w.tell(indexes, noLane, trouble, "begins anew, was at %v", x.mark)
		}
		*x = newIndex()
		return
	}
	x.seen, x.mark = x.kept[0].seen, x.kept[0].mark
	x.table() // durable data is not changed
}

// prior returns the outcome of a key, as of the mark that was read before.
func (x *index) prior(t types.Tenant, key types.NameHash) command.PriorOutcome {
	return x.seen[idempotency.Key{Tenant: t, Name: key}]
}

// look answers a look-up. The mark was read before.
func (x *index) look(in *event.Request) {
	in.Prior = x.seen[idempotency.Key{Tenant: in.Tenant, Name: in.Key.ID}]
	for _, item := range in.Each {
		item.PriorRef = types.TxID{}
		if len(item.Ref.Text) > 0 {
			item.PriorRef = x.seen[idempotency.Key{Tenant: in.Tenant, Name: item.Ref.ID, Ref: true}].ID
		}
	}
}

// table makes the index durable, and reports it.
func (w *World) table() {
	w.index.table()
	w.promise.indexed = max(w.promise.indexed, w.index.mark)
	w.late = append(w.late, event.Indexed{Upto: w.index.mark})
	w.tell(indexes, noLane, plain, "a table, to %v", w.index.mark)
}

// indexing is a move of the index: it folds a frame, or writes a table.
func (w *World) indexing() {
	if w.c.Choose("index/table", 4) == 1 {
		w.table()
		return
	}
	w.folds(1 + w.c.Choose("index/frames", 6))
}

// folds folds a number of frames, or all.
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

// later returns a frame from memory, or an older one from the journal.
func (w *World) later(lsn types.LSN) (record.Sealed, error) {
	if n := types.LSN(len(w.testified.frames)); lsn+8 > n && lsn <= n && !w.unlawful {
		return w.testified.frames[lsn-1], nil
	}
	return w.jour.Read(lsn)
}
