package state

import (
	"encoding/binary"
	"errors"
	"fmt"

	"macronode/core/access"
	"macronode/core/idempotency"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

// ErrRow says that bytes are not a row that Dump says, or not one that can follow those
// before it.
var ErrRow = errors.New("state: not a row of a dump")

// A dump's rows: part 1 · kind 1 · the row of that part. The first one is of the state
// itself, little-endian, for ever:
//
//	LSN 8 · At 8 · journal 8 · boots 8
const (
	partState uint8 = iota + 1
	partLedger
	partIdem
	partKeys
)

const rowSize = 4 * 8 // of the state's own

// Dump says all of the state, row by row: b holds until row returns. The same rows are
// the same state. It is dumped between two frames.
func (s *State) Dump(row func(b []byte)) {
	var room []byte
	part := func(part uint8) func(uint8, []byte) {
		return func(kind uint8, b []byte) {
			room = append(append(room[:0], part, kind), b...)
			row(room)
		}
	}
	own := make([]byte, 0, rowSize)
	for _, n := range [...]uint64{uint64(s.LSN), uint64(s.At), uint64(s.Journal), s.Starts} {
		own = binary.LittleEndian.AppendUint64(own, n)
	}
	part(partState)(0, own)
	s.Ledger.Dump(part(partLedger))
	s.Idempotency.Dump(part(partIdem))
	s.Keys.Dump(part(partKeys))
}

// Load adds a row that Dump said, in its order, to a state that was new. A state whose
// rows were not all loaded is of no use, nor is one that Check finds fault with. ErrRoom
// says that the limits are too small for it.
func (s *State) Load(b []byte) error {
	if len(b) < 2 || (b[0] == partState) != (s.LSN == 0) {
		return ErrRow
	}
	part, kind, row := b[0], b[1], b[2:]
	err := ErrRow
	switch part {
	case partState:
		if len(row) == rowSize && kind == 0 {
			return s.loadOwn(row)
		}
	case partLedger:
		err = s.Ledger.Load(kind, row)
	case partIdem:
		err = s.Idempotency.Load(kind, row)
	case partKeys:
		err = s.Keys.Load(kind, row)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ledger.ErrRoom), errors.Is(err, idempotency.ErrRoom), errors.Is(err, access.ErrFull):
		return fmt.Errorf("%w: %w", ErrRoom, err)
	default:
		return fmt.Errorf("%w: part %d: %w", ErrRow, part, err)
	}
}

func (s *State) loadOwn(row []byte) error {
	var n [4]uint64
	for i := range n {
		n[i] = binary.LittleEndian.Uint64(row[8*i:])
	}
	if n[0] == 0 || n[0] > types.MaxLSN || int64(n[1]) < 0 {
		return ErrRow
	}
	s.LSN, s.At, s.Journal, s.Starts = types.LSN(n[0]), types.Time(n[1]), types.JournalID(n[2]), n[3]
	return nil
}
