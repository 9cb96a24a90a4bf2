package kill_test

import (
	"errors"
	"fmt"
	"path/filepath"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/core/record"
	"macronode/core/storage"
	"macronode/core/types"
)

// A keyETag is an object that a key had.
type keyETag struct{ key, etag string }

// A paidJournal is what a journal says about objects with names and their price.
type paidJournal struct {
	price   uint64 // for each started MiB
	objects map[string]storage.Change
	stored  map[keyETag]int // records
	holds   map[types.TxID]uint64
	revenue uint64
	free    int // writes that stored nothing new
	opened  int // holds
}

// readPaidJournal reads the journal in the data directory of a stopped node. Each record of an object must be followed by
// the capture of its price, or by the release of its hold if the key had the content already.
func readPaidJournal(data string, price uint64) (*paidJournal, error) {
	j := &paidJournal{price: price, objects: map[string]storage.Change{}, stored: map[keyETag]int{}, holds: map[types.TxID]uint64{}}
	each := func(frames []record.Sealed) error {
		for i := range frames {
			if err := j.frame(&frames[i]); err != nil {
				return fmt.Errorf("frame %d: %w", frames[i].LSN, err)
			}
		}
		return nil
	}
	_, err := journalfile.Reading{Each: each}.Scan(fs.Dir(filepath.Join(data, "journal")))
	return j, err
}

func (j *paidJournal) frame(s *record.Sealed) error {
	h, rest, err := record.Open(s.Body)
	if err != nil {
		return err
	}
	var r record.Record
	var due payment // of the object whose record was the last one
	for index := range h.Count {
		if rest, err = record.Next(rest, &r); err != nil {
			return err
		}
		at := types.Position{LSN: s.LSN, Index: index}
		if err := j.pay(due, types.NewTxID(s.Journal, at), &r); err != nil {
			return fmt.Errorf("record %d: %w", index, err)
		}
		due = j.change(storage.ReadChange(at, &r))
	}
	if due.kind != 0 {
		return errors.New("the price of the last object is missing")
	}
	return nil
}

// A payment is the record that must follow that of an object.
type payment struct {
	kind   record.Kind // 0: none
	amount uint64
}

// pay compares a record with the payment that is due, and applies it to the holds.
func (j *paidJournal) pay(due payment, id types.TxID, r *record.Record) error {
	if due.kind != 0 && (r.Kind != due.kind || r.Kind == record.HoldCaptured && r.Amount != types.MinorUnits(due.amount)) {
		return fmt.Errorf("has the kind %d and the amount %v, want %+v", r.Kind, r.Amount, due)
	}
	switch r.Kind {
	case record.HoldOpened:
		j.opened++
		j.holds[id] = r.Amount.Lo
	case record.HoldCaptured, record.HoldReleased:
		if due.kind == 0 && r.Kind == record.HoldCaptured {
			return errors.New("captures a price without an object")
		}
		if _, ok := j.holds[r.Hold]; !ok {
			return errors.New("is about a hold that is not active")
		}
		delete(j.holds, r.Hold)
		j.revenue += due.amount
	}
	return nil
}

// change applies the change of a name. It returns the payment that must follow.
func (j *paidJournal) change(c storage.Change) payment {
	key := string(c.Name)
	switch c.Kind {
	case storage.EntryRemoved:
		delete(j.objects, key)
	case storage.EntryPut:
		old, held := j.objects[key]
		c.Name, c.Bucket = nil, nil // views of the record
		j.objects[key] = c
		j.stored[keyETag{key, etagOf(&c)}]++
		if held && old.Address == c.Address {
			j.free++
			return payment{kind: record.HoldReleased}
		}
		return payment{record.HoldCaptured, j.price * max(1, (c.Size+mib-1)/mib)}
	}
	return payment{}
}

func etagOf(c *storage.Change) string {
	if c.ETag.Parts > 0 {
		return fmt.Sprintf("%x-%d", c.ETag.MD5, c.ETag.Parts)
	}
	return fmt.Sprintf("%x", c.ETag.MD5)
}

// checkWrites returns an error if an acknowledged write is not in the journal, or the journal has a write that was not
// sent, or was refused.
func (j *paidJournal) checkWrites(h *keyHistory) error {
	acked, unknown, copies := map[keyETag]int{}, map[keyETag]int{}, map[string]int{}
	for _, w := range h.all {
		switch k := (keyETag{w.key, w.etag}); {
		case w.state == unanswered && w.copies:
			copies[w.key]++
		case w.etag == deleted:
		case w.state == acknowledged:
			acked[k]++
		case w.state == unanswered:
			unknown[k]++
		}
	}
	for k, n := range acked {
		if j.stored[k] < n {
			return fmt.Errorf("%s: %d writes of %s were acknowledged, %d are in the journal", k.key, n, k.etag, j.stored[k])
		}
	}
	for k, n := range j.stored {
		if more := n - acked[k] - unknown[k]; more > 0 {
			if copies[k.key] -= more; copies[k.key] < 0 {
				return fmt.Errorf("%s: %d writes of %s are in the journal, %d were acknowledged and %d have no answer", k.key, n, k.etag, acked[k], unknown[k])
			}
		}
	}
	return nil
}
