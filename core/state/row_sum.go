package state

import (
	"encoding/binary"

	"macronode/core/digest"
	"macronode/core/types"
)

// RowSum is a hash of the rows of Dump. Rows of planes are dumped in the order of their places in a table.Pool. A state
// that was loaded has other free places than one that was folded, so later rows get other places. RowSum does not depend
// on the order of successive rows of one kind of a plane, except for the wallet: its tables keep their order.
type RowSum struct {
	chain   types.Root // of the rows before the open run
	kind    [2]byte    // part and kind of the rows of the open run
	run     [4]uint64  // sum of the hashes of its rows
	rows    uint64     // number of them
	scratch []byte
}

// Add adds a row.
func (s *RowSum) Add(row []byte) {
	if len(row) < 2 || row[0] < partPlane { // the order follows from the journal alone
		s.end()
		s.chain, s.scratch = digest.Chain(s.scratch, s.chain, row)
		return
	}
	if kind := [2]byte(row); kind != s.kind {
		s.end()
		s.kind = kind
	}
	var one types.Root
	one, s.scratch = digest.Chain(s.scratch, types.Root{}, row)
	for i := range s.run {
		s.run[i] += binary.LittleEndian.Uint64(one[8*i:])
	}
	s.rows++
}

// Root returns the hash of all rows. No row is added after it.
func (s *RowSum) Root() types.Root {
	s.end()
	return s.chain
}

// end ends the open run.
func (s *RowSum) end() {
	if s.rows == 0 {
		return
	}
	b := binary.LittleEndian.AppendUint64(append([]byte(nil), s.kind[:]...), s.rows)
	for _, n := range s.run {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	s.chain, s.scratch = digest.Chain(s.scratch, s.chain, b)
	s.run, s.rows = [4]uint64{}, 0
}
