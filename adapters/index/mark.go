package index

import (
	"encoding/binary"
	"math"

	"macronode/core/types"
)

// A mark is how far something has come: behind a frame of a journal, with the chain's
// value there. The zero mark is before the first.
type mark struct {
	journal types.JournalID
	lsn     types.LSN
	root    types.Root
	at      types.Time
	first   types.Time // of frame 1
	dropped uint64     // of the keys, all buckets below are gone
	lives   lives
}

// lives says which journal the frames from one on are of: a journal that was brought
// back from a backup goes on under another name. They are few and only grow, so who has
// a copy may read it without a lock.
type lives []life

type life struct {
	from    types.LSN
	journal types.JournalID
}

// of is the journal of a frame.
func (l lives) of(lsn types.LSN) types.JournalID {
	for n := len(l) - 1; n >= 0; n-- {
		if l[n].from <= lsn {
			return l[n].journal
		}
	}
	return 0
}

func (l lives) id(p types.Position) types.TxID { return types.NewTxID(l.of(p.LSN), p) }

// put is m as a table has it, with the width of the buckets that its keys are in.
func (m *mark) put(b []byte, width uint64) []byte {
	b = binary.AppendUvarint(append(b, version), width)
	b = binary.BigEndian.AppendUint64(b, uint64(m.journal))
	b = append(binary.AppendUvarint(b, uint64(m.lsn)), m.root[:]...)
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(m.at)), uint64(m.first))
	b = binary.AppendUvarint(b, m.dropped)
	for _, l := range m.lives {
		b = binary.BigEndian.AppendUint64(binary.AppendUvarint(b, uint64(l.from)), uint64(l.journal))
	}
	return b
}

// read is false for what is not a mark of this version and width.
func (m *mark) read(b []byte, width uint64) bool {
	v := values{b: b}
	*m = mark{}
	if v.one() != version || v.uvar(math.MaxUint64) != width {
		return false
	}
	m.journal, m.lsn = types.JournalID(v.u64()), types.LSN(v.uvar(types.MaxLSN))
	copy(m.root[:], v.take(len(m.root)))
	m.at, m.first, m.dropped = v.time(), v.time(), v.uvar(1<<(8*bucketSize)-1)
	for !v.bad && len(v.b) > 0 {
		m.lives = append(m.lives, life{from: types.LSN(v.uvar(types.MaxLSN)), journal: types.JournalID(v.u64())})
	}
	return v.whole() && m.lsn > 0 && m.lives.of(m.lsn) == m.journal
}

func (v *values) u64() uint64 {
	if p := v.take(8); p != nil {
		return binary.BigEndian.Uint64(p)
	}
	return 0
}
