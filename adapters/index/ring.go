package index

import (
	"sync"

	"macronode/core/record"
	"macronode/core/types"
)

const sealedSize = 104 // of a place in the ring

// A ring holds the frames that were handed over and not folded yet. When it is full the
// next ones are not taken: whoever folds sees the gap, and reads them from the journal.
type ring struct {
	wake chan struct{} // has something when the ring got something

	mu     sync.Mutex
	frames []record.Sealed // by LSN; from first, n of them, without a gap
	first  types.LSN
	n      int
	bytes  int
	most   int       // bytes
	seen   types.LSN // the last frame that was handed over
}

func newRing(frames, bytes int) *ring {
	return &ring{frames: make([]record.Sealed, frames), most: bytes, wake: make(chan struct{}, 1)}
}

// offer takes what there is room for. It does not wait.
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

// take is the frame with an LSN, if it is here; what comes before it is dropped. Behind
// says that it was handed over and is not here.
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

// has reports that a frame is here, last which was handed over last.
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
