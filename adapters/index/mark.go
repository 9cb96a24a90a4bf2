package index

import (
	"encoding/binary"
	"math"

	"macronode/core/types"
)

// A mark is a position in the journal: after a frame, with its root. The zero mark is before the
// first frame.
type mark struct {
	journal types.JournalID
	lsn     types.LSN
	root    types.Root
	at      types.Time
	first   types.Time // of frame 1
	dropped uint64     // all keys in lower buckets are removed
	lives   lives
}

// lives has the journal IDs of the frames: after a restore the journal has another ID. The list
// is short and only grows, so a copy can be read without a lock.
type lives []life

type life struct {
	from    types.LSN
	journal types.JournalID
}

// of returns the journal of a frame.
func (l lives) of(lsn types.LSN) types.JournalID {
	for n := len(l) - 1; n >= 0; n-- {
		if l[n].from <= lsn {
			return l[n].journal
		}
	}
	return 0
}

func (l lives) id(p types.Position) types.TxID { return types.NewTxID(l.of(p.LSN), p) }

// put encodes m for a table, with the bucket width of the keys.
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

// read returns false for a mark of another version or width.
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
