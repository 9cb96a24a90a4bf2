package index

import (
	"errors"
	"fmt"
	"math"

	"macronode/core/types"
)

// A view is the index as it was at a moment: the tails' rows so far, and the tables. It is closed
// before the answer is sent, so a slow client does not hold it.
type view struct {
	index  *Indexer
	store  *store
	tables cursor
	tails  [2]glimpse // the older first
	mark   mark
	err    error
}

// view returns the current index. Its tables have all rows that are not in the tails, and may
// have rows of a tail too.
func (x *Indexer) view() (*view, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.store == nil {
		return nil, ErrShut
	}
	tables, err := x.store.lend()
	if err != nil {
		x.store.damaged(err)
		return nil, err
	}
	v := &view{index: x, store: x.store, tables: tables, mark: x.tail.last}
	v.store.life.RLock()
	for i, t := range [...]*tail{x.frozen, x.tail} {
		if t != nil {
			v.tails[i] = t.glimpse()
			t.readers.Add(1)
		}
	}
	return v, nil
}

// close ends the reading, and returns its error.
func (v *view) close() error {
	err := errors.Join(v.err, v.store.back(v.tables))
	v.store.damaged(err)
	for i := range v.tails {
		if t := v.tails[i].tail; t != nil {
			t.readers.Add(-1)
		}
	}
	v.store.life.RUnlock()
	return err
}

// bad records that a row is invalid.
func (v *view) bad(key []byte) {
	if v.err == nil {
		v.err = fmt.Errorf("%w: row %x", ErrDamaged, key)
	}
}

// heads returns the last rows of a group in the tails.
func (v *view) heads(key []byte) (heads [2]uint32) {
	v.index.mu.RLock()
	defer v.index.mu.RUnlock()
	for i := range v.tails {
		if v.tails[i].tail != nil {
			heads[i] = v.tails[i].head(key)
		}
	}
	return heads
}

// get returns the value of a key: from the tails, otherwise from the tables.
func (v *view) get(key []byte) (value []byte, ok bool) {
	if value, ok = v.recent(key); !ok {
		value, ok = v.kept(key)
	}
	return value, ok
}

func (v *view) recent(key []byte) (value []byte, ok bool) {
	heads := v.heads(key)
	for i := len(heads) - 1; i >= 0; i-- {
		if heads[i] > 0 {
			_, value = v.tails[i].at(heads[i])
			return value, true
		}
	}
	return nil, false
}

func (v *view) kept(key []byte) (value []byte, ok bool) {
	if v.err == nil {
		value, ok, v.err = v.tables.get(nil, key)
	}
	return value, ok
}

// seek moves to the first row of the tables that is not before key, seekLT to the last that is.
func (v *view) seek(key []byte) bool   { return v.err == nil && v.there(v.tables.SeekGE(key)) }
func (v *view) seekLT(key []byte) bool { return v.err == nil && v.there(v.tables.SeekLT(key)) }

// there records the error if there is no row.
func (v *view) there(ok bool) bool {
	if !ok {
		v.err = broken(v.tables.Error())
	}
	return ok
}

// value returns the value of the current row of the tables, valid until the next seek.
func (v *view) value() (value []byte, ok bool) {
	value, err := v.tables.ValueAndErr()
	v.err = broken(err)
	return value, err == nil
}

// under yields the rows of the tables from one key on whose keys have a prefix, until each
// returns false.
func (v *view) under(prefix, from []byte, each func(key, value []byte) bool) {
	for ok := v.seek(from); ok; ok = v.there(v.tables.Next()) {
		key := v.tables.Key()
		if len(key) < len(prefix) || string(key[:len(prefix)]) != string(prefix) {
			return
		}
		value, fine := v.value()
		if !fine || !each(key, value) {
			return
		}
	}
}

// last returns the tenant's last movement.
func (v *view) last(t types.Tenant) types.Seq {
	key := changeKey(nil, t, 0)
	heads := v.heads(key)
	for i := len(heads) - 1; i >= 0; i-- {
		if heads[i] > 0 {
			return types.Seq(v.tails[i].row(heads[i]).pos)
		}
	}
	if v.seekLT(append(changeKey(nil, t, math.MaxUint64), 0)) {
		if key := v.tables.Key(); family(key[0]) == ofChange && string(group(key)) == string(group(changeKey(nil, t, 0))) {
			return seqOf(key)
		}
	}
	return 0
}
