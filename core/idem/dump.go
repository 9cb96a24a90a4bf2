package idem

import (
	"encoding/binary"
	"errors"
	"fmt"

	"macronode/core/event"
	"macronode/core/words"
)

// Why dumped rows are not loaded.
var (
	ErrRow  = errors.New("idem: not a row of a dump")
	ErrRoom = errors.New("idem: more rows than there is room for")
)

// A dump's rows, in this order. Their layouts, little-endian, are for ever:
//
//	mark     forgot 8 · last 8
//	tenant   tenant 4
//	key      tenant 4 · name 16 · ref 1 · asked 16 · id 16 · at 8
//
// Tenants stand as they came, also those that hold nothing any more. How many each
// holds is counted.
const (
	rowMark uint8 = iota + 1
	rowTenant
	rowKey
)

const (
	markSize   = 8 + 8
	tenantSize = 4
	keySize    = 4 + 16 + 1 + 16 + 16 + 8
)

// Dump says all that the window holds, of which b is a row until row returns. Loaded into
// an empty window with room for it, it has the same hash.
func (w *Window) Dump(row func(kind uint8, b []byte)) {
	var room [keySize]byte
	b := binary.LittleEndian.AppendUint64(room[:0], uint64(w.forgot))
	row(rowMark, binary.LittleEndian.AppendUint64(b, uint64(w.last)))
	for place := range w.shares.Len() {
		t, _ := w.shares.Row(uint32(place))
		row(rowTenant, binary.LittleEndian.AppendUint32(room[:0], uint32(t)))
	}
	for i := range w.keys.Len() {
		k, s := w.keys.Row(i)
		b := binary.LittleEndian.AppendUint32(room[:0], uint32(k.Tenant))
		b = append(append(b, k.Name[:]...), 0)
		if k.Ref {
			b[len(b)-1] = 1
		}
		b = append(append(b, s.Asked[:]...), s.ID[:]...)
		row(rowKey, binary.LittleEndian.AppendUint64(b, uint64(s.At)))
	}
}

// Load adds a row that Dump said, in its order: or it adds nothing, and says why.
func (w *Window) Load(kind uint8, b []byte) error {
	var err error
	switch {
	case kind == rowMark && len(b) == markSize:
		err = w.loadMark(words.LSN(binary.LittleEndian.Uint64(b)), words.Time(binary.LittleEndian.Uint64(b[8:])))
	case kind == rowTenant && len(b) == tenantSize:
		err = w.loadTenant(words.Tenant(binary.LittleEndian.Uint32(b)))
	case kind == rowKey && len(b) == keySize && b[20] < 2:
		k := Key{words.Tenant(binary.LittleEndian.Uint32(b)), words.ID(b[4:20]), b[20] == 1}
		err = w.loadKey(k, event.Seen{Asked: words.Asked(b[21:37]), ID: words.TxID(b[37:53]), At: words.Time(binary.LittleEndian.Uint64(b[53:]))})
	default:
		err = ErrRow
	}
	if err != nil {
		return fmt.Errorf("%w: kind %d, %x", err, kind, b)
	}
	return nil
}

func (w *Window) loadMark(forgot words.LSN, last words.Time) error {
	if w.forgot > 0 || w.shares.Len() > 0 || forgot > words.MaxLSN || last < 0 || forgot == 0 && last > 0 {
		return ErrRow
	}
	w.forgot, w.last = forgot, last
	return nil
}

func (w *Window) loadTenant(t words.Tenant) error {
	switch _, known := w.shares.Find(t); {
	case known, w.keys.Len() > 0:
		return ErrRow
	case w.shares.Room() == 0:
		return ErrRoom
	}
	w.shares.Put(t, 0)
	return nil
}

func (w *Window) loadKey(k Key, s event.Seen) error {
	before := w.forgot + 1
	if n := w.keys.Len(); n > 0 {
		_, youngest := w.keys.Row(n - 1)
		before = youngest.ID.Place().LSN
	}
	_, held := w.keys.Get(k)
	_, known := w.shares.Find(k.Tenant)
	switch {
	case held, !known, s.ID.Place().LSN < before, s.At < w.last:
		return ErrRow
	case w.keys.Room() == 0:
		return ErrRoom
	}
	w.Remember(k, s)
	return nil
}
