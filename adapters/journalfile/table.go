package journalfile

import (
	"cmp"
	"errors"
	"os"
	"sort"
	"sync"

	"macronode/core/types"
)

const (
	sparse = 64 << 10 // bytes of a segment that have one spot in the table
	most   = 1 << 16  // spots of all segments together: the newest 4 GiB of a journal
)

// A table says where frames lie: of each segment, which frame it begins with, and one
// spot each sparse bytes. What was never read in this life is looked at when it is asked
// for, and has no spots: there, and in what is too old, a frame is found by halves. It
// takes 16 bytes for 64 KiB of journal, 1 MiB at most, and 48 for a segment.
type table struct {
	mu       sync.RWMutex
	segments []shelved
	spots    int // of all
	bare     int // segments before this one have none
}

// shelved is a segment as readers know it. Of two that begin with the same frame the
// later one has it.
type shelved struct {
	number uint32
	looked bool      // its start was read
	foul   bool      // it is not there, or not ours
	first  types.LSN // 0: nobody knows
	whose  types.JournalID
	spots  []spot
}

// A spot is where a frame lies.
type spot struct {
	lsn types.LSN
	off int64
}

// A place is where a frame may be.
type place struct {
	number uint32
	first  types.LSN // of the segment
	whose  types.JournalID
	spot   spot // the last one before the frame, if there is one
	sound  bool // all up to the frame was durable there: the next segment says so
	last   bool // there is no next segment
}

func (t *table) size() int      { return len(t.segments) }
func (t *table) newest() uint32 { return t.segments[len(t.segments)-1].number }

func (t *table) oldest() uint32 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.segments) == 0 {
		return 1
	}
	return t.segments[0].number
}

// list adds segments that are there and that nobody has read.
func (t *table) list(row []part) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range row {
		t.segments = append(t.segments, shelved{number: p.number})
	}
}

func (t *table) begin(p part) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.segments = append(t.segments, shelved{number: p.number, looked: true, first: p.start.first, whose: p.start.journal})
	for t.spots > most && t.bare < len(t.segments)-1 {
		old := &t.segments[t.bare]
		t.spots, t.bare, old.spots = t.spots-len(old.spots), t.bare+1, nil
	}
}

// note is told of every frame in order, and keeps few. Only the goroutine that
// writes calls it, so it reads without the lock.
func (t *table) note(lsn types.LSN, off int64) {
	s := &t.segments[len(t.segments)-1]
	if n := len(s.spots); n > 0 && off-s.spots[n-1].off < sparse {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.spots, t.spots = append(s.spots, spot{lsn, off}), t.spots+1
}

// places are the segments that may have a frame, the likeliest first: those behind that
// nobody knows where they begin, and the last one that begins before it.
func (j *Journal) places(lsn types.LSN) (all []place, err error) {
	at, next, err := j.around(lsn)
	if err != nil {
		return nil, err
	}
	j.table.mu.RLock()
	defer j.table.mu.RUnlock()
	for n := next - 1; n >= max(at, 0); n-- {
		s := &j.table.segments[n]
		if s.foul {
			continue
		}
		p := place{number: s.number, first: s.first, whose: s.whose}
		for later := n; p.whose == 0 && later < len(j.table.segments); later++ { // its start is lost
			p.whose = j.table.segments[later].whose
		}
		p.whose = cmp.Or(p.whose, j.id)
		p.last = n == len(j.table.segments)-1
		p.sound = n == next-1 && !p.last
		if i := sort.Search(len(s.spots), func(i int) bool { return s.spots[i].lsn > lsn }); i > 0 {
			p.spot = s.spots[i-1]
		}
		all = append(all, p)
	}
	return all, nil
}

// around is the last segment that is known to begin before a frame or with it, -1 for
// none, and the first behind that is known to begin behind it.
func (j *Journal) around(lsn types.LSN) (at, next int, err error) {
	j.table.mu.RLock()
	all := len(j.table.segments)
	j.table.mu.RUnlock()
	first := func(n int) (lsn types.LSN) {
		if err == nil {
			lsn, err = j.first(n)
		}
		return lsn
	}
	lo, hi := 0, all
	for lo < hi && err == nil {
		mid := lo + (hi-lo)/2
		n := mid
		for n < hi-1 && first(n) == 0 {
			n++
		}
		if f := first(n); f > 0 && f <= lsn {
			lo = n + 1
		} else {
			hi = mid
		}
	}
	for next = lo; next < all && first(next) == 0 && err == nil; {
		next++
	}
	return lo - 1, next, err
}

// first is the frame that the n-th segment begins with; 0 where nobody knows.
func (j *Journal) first(n int) (types.LSN, error) {
	t := &j.table
	t.mu.RLock()
	s := t.segments[n]
	t.mu.RUnlock()
	if s.looked {
		return s.first, nil
	}
	p := part{number: s.number, name: segmentName(s.number)}
	err := p.survey(j.fs)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	if s.foul = err != nil; s.foul {
		p.first = 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.segments[n].looked, t.segments[n].foul, t.segments[n].first = true, s.foul, p.first
	t.segments[n].whose = p.start.journal
	return p.first, nil
}
