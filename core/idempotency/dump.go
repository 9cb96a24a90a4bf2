package idempotency

import (
	"encoding/binary"
	"errors"
	"fmt"

	"macronode/core/command"
	"macronode/core/types"
)

// Why Load rejects a row.
var (
	ErrRow  = errors.New("idempotency: not a row of a dump")
	ErrRoom = errors.New("idempotency: more rows than there is room for")
)

// The rows of a dump, in this order. Their little-endian layouts are permanent:
//
//	mark     forgot 8 · last 8
//	tenant   tenant 4
//	key      tenant 4 · name 16 · ref 1 · asked 16 · id 16 · at 8
//
// Tenants are in the order of their first key, including those without a key. Their counts are computed.
const (
	rowWatermark uint8 = iota + 1
	rowTenant
	rowKey
)

const (
	watermarkSize = 8 + 8
	tenantSize    = 4
	keySize       = 4 + 16 + 1 + 16 + 16 + 8
)

// Dump passes each row to row; b is valid until row returns. A window that loads the rows has the same hash.
func (w *Window) Dump(row func(kind uint8, b []byte)) {
	var room [keySize]byte
	b := binary.LittleEndian.AppendUint64(room[:0], uint64(w.forgottenTo))
	row(rowWatermark, binary.LittleEndian.AppendUint64(b, uint64(w.newestForgotten)))
	for place := range w.tenants.Len() {
		t, _ := w.tenants.Row(uint32(place))
		row(rowTenant, binary.LittleEndian.AppendUint32(room[:0], uint32(t)))
	}
	for i := range w.keys.Len() {
		k, s := w.keys.Row(i)
		b := binary.LittleEndian.AppendUint32(room[:0], uint32(k.Tenant))
		b = append(append(b, k.Name[:]...), 0)
		if k.Ref {
			b[len(b)-1] = 1
		}
		b = append(append(b, s.Hash[:]...), s.ID[:]...)
		row(rowKey, binary.LittleEndian.AppendUint64(b, uint64(s.At)))
	}
}

// Load adds a row of Dump, in the same order, or returns why it does not.
func (w *Window) Load(kind uint8, b []byte) error {
	var err error
	switch {
	case kind == rowWatermark && len(b) == watermarkSize:
		err = w.loadWatermark(types.LSN(binary.LittleEndian.Uint64(b)), types.Time(binary.LittleEndian.Uint64(b[8:])))
	case kind == rowTenant && len(b) == tenantSize:
		err = w.loadTenant(types.Tenant(binary.LittleEndian.Uint32(b)))
	case kind == rowKey && len(b) == keySize && b[20] < 2:
		k := Key{types.Tenant(binary.LittleEndian.Uint32(b)), types.NameHash(b[4:20]), b[20] == 1}
		err = w.loadKey(k, command.PriorOutcome{Hash: types.RequestHash(b[21:37]), ID: types.TxID(b[37:53]), At: types.Time(binary.LittleEndian.Uint64(b[53:]))})
	default:
		err = ErrRow
	}
	if err != nil {
		return fmt.Errorf("%w: kind %d, %x", err, kind, b)
	}
	return nil
}

func (w *Window) loadWatermark(forgot types.LSN, last types.Time) error {
	if w.forgottenTo > 0 || w.tenants.Len() > 0 || forgot > types.MaxLSN || last < 0 || forgot == 0 && last > 0 {
		return ErrRow
	}
	w.forgottenTo, w.newestForgotten = forgot, last
	return nil
}

func (w *Window) loadTenant(t types.Tenant) error {
	switch _, known := w.tenants.Find(t); {
	case known, w.keys.Len() > 0:
		return ErrRow
	case w.tenants.Room() == 0:
		return ErrRoom
	}
	w.tenants.Put(t, 0)
	return nil
}

func (w *Window) loadKey(k Key, s command.PriorOutcome) error {
	before := w.forgottenTo + 1
	if n := w.keys.Len(); n > 0 {
		_, youngest := w.keys.Row(n - 1)
		before = youngest.ID.Position().LSN
	}
	_, held := w.keys.Get(k)
	_, known := w.tenants.Find(k.Tenant)
	switch {
	case held, !known, s.ID.Position().LSN < before, s.At < w.newestForgotten:
		return ErrRow
	case w.keys.Room() == 0:
		return ErrRoom
	}
	w.Remember(k, s)
	return nil
}
