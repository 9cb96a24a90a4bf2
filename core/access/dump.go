package access

import (
	"encoding/binary"
	"errors"

	"macronode/core/event"
	"macronode/core/types"
)

// ErrRow reports bytes that are not a row of a known version, or that cannot follow the rows before.
var ErrRow = errors.New("access: not a row")

// rowKey is the only kind of row. Its layout is permanent:
//
//	ID 8 · tenant 4 · hash 32 · scopes 2 · bits 1 · expires 8 · label, accounts, assets: length 1 and text
//
// little-endian; bit 0 is the bootstrap key, bit 1 a revoked key. Another layout is another kind.
const (
	rowKey   = 1
	rowFixed = 8 + 4 + 32 + 2 + 1 + 8
	rowMost  = rowFixed + 1 + types.MaxLabel + 2*(1+types.MaxPatterns)

	bitBootstrap = 1
	bitRevoked   = 2
)

// Dump passes each key to row, oldest first; b is valid until row returns.
func (r *Keys) Dump(row func(kind uint8, b []byte)) {
	var room [rowMost]byte
	for place := range r.keys.Len() {
		k := r.At(place)
		row(rowKey, appendKey(room[:0], &k))
	}
}

func appendKey(b []byte, k *event.Key) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(k.ID))
	b = binary.LittleEndian.AppendUint32(b, uint32(k.Tenant))
	b = append(b, k.Hash[:]...)
	b = binary.LittleEndian.AppendUint16(b, uint16(k.Scopes))
	var bits byte
	if k.Bootstrap {
		bits |= bitBootstrap
	}
	if k.Revoked {
		bits |= bitRevoked
	}
	b = binary.LittleEndian.AppendUint64(append(b, bits), uint64(k.Expires))
	for _, text := range [...]string{k.Label.String(), k.Accounts.String(), k.Assets.String()} {
		b = append(append(b, byte(len(text))), text...)
	}
	return b
}

// Load adds a row of Dump, in the same order, or returns why it does not.
func (r *Keys) Load(kind uint8, b []byte) error {
	var k event.Key
	if kind != rowKey || !readKey(b, &k) {
		return ErrRow
	}
	_, known := r.keys.Find(k.ID)
	whole := k.Expires == 0 && restriction{k.Label, k.Accounts, k.Assets} == restriction{}
	switch {
	case known, k.Bootstrap && !whole, k.Bootstrap && !k.Revoked && r.bootstrapAt > 0:
		return ErrRow
	case r.Full():
		return ErrFull
	}
	r.Add(k)
	return nil
}

// readKey parses exactly what appendKey wrote.
func readKey(b []byte, k *event.Key) bool {
	if len(b) < rowFixed {
		return false
	}
	k.ID = types.KeyID(binary.LittleEndian.Uint64(b))
	k.Tenant = types.Tenant(binary.LittleEndian.Uint32(b[8:]))
	copy(k.Hash[:], b[12:])
	k.Scopes = event.Scopes(binary.LittleEndian.Uint16(b[44:]))
	bits := b[46]
	k.Bootstrap, k.Revoked = bits&bitBootstrap != 0, bits&bitRevoked != 0
	k.Expires = types.Time(binary.LittleEndian.Uint64(b[47:]))
	var texts [3][]byte
	b = b[rowFixed:]
	for i := range texts {
		if len(b) == 0 || len(b)-1 < int(b[0]) {
			return false
		}
		n := int(b[0])
		texts[i], b = b[1:1+n], b[1+n:]
	}
	if len(b) > 0 || bits > bitBootstrap|bitRevoked || k.Scopes&^event.AllScopes != 0 ||
		len(texts[0]) > 0 && types.CheckLabel(texts[0]) != nil {
		return false
	}
	k.Label = types.NewLabel(texts[0])
	var errs [2]error
	k.Accounts, errs[0] = types.ParsePatterns(texts[1])
	k.Assets, errs[1] = types.ParsePatterns(texts[2])
	return errs[0] == nil && errs[1] == nil
}
