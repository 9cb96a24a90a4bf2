package state

import (
	"encoding/binary"
	"errors"
	"fmt"

	"macronode/core/access"
	"macronode/core/idempotency"
	"macronode/core/plane"
	"macronode/core/types"
)

// ErrRow reports bytes that are not a row of Dump, or not one that can follow those before it.
var ErrRow = errors.New("state: invalid snapshot row")

// The rows of a dump: part 1 · kind 1 · the row of that part. The first row is of the state
// itself, little-endian, in this permanent format:
//
//	LSN 8 · At 8 · journal 8 · starts 8
const (
	partState uint8 = iota + 1
	partWallet
	partIdem
	partKeys
	partPlane = 16 // plus the ID of the plane
)

// partOf returns the part of a plane's rows.
func partOf(id types.Plane) uint8 {
	if id == types.PlaneWallet {
		return partWallet
	}
	return partPlane + uint8(id)
}

// planeOf returns the plane of a part, or nil.
func (s *State) planeOf(part uint8) plane.Plane {
	switch {
	case part == partWallet:
		return s.Wallet
	case part > partPlane+uint8(types.PlaneWallet) && part < partPlane+uint8(types.NumPlanes):
		return s.planes[part-partPlane]
	default:
		return nil
	}
}

const rowSize = 4 * 8 // of the state's own

// Dump passes the state to row, row by row; b is valid until row returns. Equal rows mean equal
// states. Equal states have the same RowSum. Dump is called between two frames.
func (s *State) Dump(row func(b []byte)) {
	var room []byte
	of := func(part uint8) func(uint8, []byte) {
		return func(kind uint8, b []byte) {
			room = append(append(room[:0], part, kind), b...)
			row(room)
		}
	}
	own := make([]byte, 0, rowSize)
	for _, n := range [...]uint64{uint64(s.LSN), uint64(s.At), uint64(s.Journal), s.Starts} {
		own = binary.LittleEndian.AppendUint64(own, n)
	}
	of(partState)(0, own)
	s.Wallet.Dump(of(partWallet))
	s.Idempotency.Dump(of(partIdem))
	s.Keys.Dump(of(partKeys))
	for p := range s.Planes {
		if p.ID() != types.PlaneWallet {
			p.Dump(of(partOf(p.ID())))
		}
	}
}

// Load adds a row of Dump, in its order, to a new state. The state is usable when all rows are loaded
// and Check finds nothing. ErrRoom reports that the limits are too small.
func (s *State) Load(b []byte) error {
	if len(b) < 2 || (b[0] == partState) != (s.LSN == 0) {
		return ErrRow
	}
	part, kind, row := b[0], b[1], b[2:]
	of, err := types.PlaneNode, ErrRow
	switch part {
	case partState:
		if len(row) == rowSize && kind == 0 {
			return s.loadOwn(row)
		}
	case partIdem:
		err = s.Idempotency.Load(kind, row)
	case partKeys:
		err = s.Keys.Load(kind, row)
	default:
		if p := s.planeOf(part); p != nil {
			of, err = p.ID(), p.Load(kind, row)
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, plane.ErrRoom), errors.Is(err, idempotency.ErrRoom), errors.Is(err, access.ErrFull):
		return &RoomError{of, err.Error()}
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
