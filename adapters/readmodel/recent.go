package readmodel

import (
	"sync/atomic"
	"unsafe"

	"macronode/core/record"
	"macronode/core/types"
)

// recent has the last frames by LSN: at most a number of frames, and at most the bytes of as many
// of the longest records. The last frame is always kept.
type recent struct {
	ring         []record.Sealed
	first, last  types.LSN // of the kept frames; none: first is 0
	bytes, limit int64
}

func newRecent(keep int) recent {
	return recent{ring: make([]record.Sealed, keep), limit: int64(keep) * types.MaxRecord}
}

// Bytes is the largest memory of a number of frames, including one of the largest size and the
// cache of older frames.
func Bytes(keep int) int64 {
	return int64(keep)*(types.MaxRecord+int64(unsafe.Sizeof(record.Sealed{}))) + (1+asides)*types.MaxFrame
}

func (r *recent) at(lsn types.LSN) *record.Sealed { return &r.ring[uint64(lsn)%uint64(len(r.ring))] }

// keep adds the next frame. A frame that is not the next one clears the others: a recovery may
// read twice.
func (r *recent) keep(s record.Sealed) {
	if s.LSN != r.last+1 {
		clear(r.ring)
		r.first, r.bytes = 0, 0
	}
	if r.first == 0 {
		r.first = s.LSN
	}
	if s.LSN-r.first == types.LSN(len(r.ring)) {
		r.drop()
	}
	*r.at(s.LSN), r.last = s, s.LSN
	r.bytes += int64(len(s.Body))
	for r.bytes > r.limit && r.first < r.last {
		r.drop()
	}
}

func (r *recent) drop() {
	p := r.at(r.first)
	r.bytes -= int64(len(p.Body))
	*p = record.Sealed{}
	r.first++
}

// len returns the number of kept frames.
func (r *recent) len() int {
	if r.first == 0 {
		return 0
	}
	return int(r.last - r.first + 1)
}

// asides is the number of older frames that are cached: a page of changes reads the frame of a
// batch once for each of its records.
const asides = 16

type aside [asides]atomic.Pointer[record.Sealed]

func (a *aside) get(lsn types.LSN, older Older) (record.Sealed, error) {
	at := &a[lsn%asides]
	if s := at.Load(); s != nil && s.LSN == lsn {
		return *s, nil
	}
	s, err := older(lsn)
	if err == nil {
		at.Store(&s)
	}
	return s, err
}
