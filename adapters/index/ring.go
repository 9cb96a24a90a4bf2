package index

import (
	"sync"

	"macronode/core/record"
	"macronode/core/types"
)

const sealedSize = 104 // bytes of a place in the ring

// A ring has the offered frames that are not folded yet. When it is full it ignores further
// frames: the folding sees the gap, and reads them from the journal.
type ring struct {
	wake chan struct{} // has a value after new frames

	mu     sync.Mutex
	frames []record.Sealed // by LSN; n of them from first on, without a gap
	first  types.LSN
	n      int
	bytes  int
	most   int       // bytes
	seen   types.LSN // the last offered frame
}

func newRing(frames, bytes int) *ring {
	return &ring{frames: make([]record.Sealed, frames), most: bytes, wake: make(chan struct{}, 1)}
}

// offer adds the frames that fit. It does not wait.
func (r *ring) offer(batch []record.Sealed) {
	r.mu.Lock()
	for _, s := range batch {
		r.seen = max(r.seen, s.LSN)
		if r.n == 0 {
			r.first = s.LSN
		}
		if r.n == len(r.frames) || r.bytes+len(s.Body) > r.most || s.LSN != r.first+types.LSN(r.n) {
			continue
		}
		*r.at(s.LSN) = s
		r.n++
		r.bytes += len(s.Body)
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *ring) at(lsn types.LSN) *record.Sealed { return &r.frames[uint64(lsn)%uint64(len(r.frames))] }

// take returns a frame if it is in the ring, and drops earlier ones. behind reports that it was
// offered and is not in the ring.
func (r *ring) take(lsn types.LSN) (s record.Sealed, ok, behind bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.n > 0 && r.first < lsn {
		r.drop()
	}
	if r.n == 0 || r.first > lsn {
		return record.Sealed{}, false, r.seen >= lsn
	}
	s = *r.at(lsn)
	r.drop()
	return s, true, false
}

func (r *ring) drop() {
	p := r.at(r.first)
	r.bytes -= len(p.Body)
	*p = record.Sealed{}
	r.first++
	r.n--
}

// has reports whether a frame is in the ring, last which was offered last.
func (r *ring) has(lsn types.LSN) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n > 0 && r.first <= lsn && lsn < r.first+types.LSN(r.n)
}

func (r *ring) last() types.LSN {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}
