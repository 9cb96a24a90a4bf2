package journalfile

import (
	"errors"
	"os"
	"sort"
	"sync"

	"macronode/core/types"
)

const (
	sparse = 64 << 10 // bytes of a segment per spot
	most   = 1 << 16  // spots of all segments: the newest 4 GiB of a journal
)

// A table maps frames to positions: for each segment its first frame, and a spot every sparse
// bytes. Segments that were not read in this run are visited on demand and have no spots; there,
// and in old segments, a frame is found by bisection. The table takes 16 bytes per 64 KiB of
// journal, at most 1 MiB, and 48 bytes per segment.
type table struct {
	mu       sync.RWMutex
	segments []shelved
	spots    int // of all segments
	bare     int // segments before this one have no spots
}

// shelved is a segment as readers know it. If two begin with the same frame, the later one has
// it.
type shelved struct {
	number uint32
	looked bool            // its start was read
	foul   bool            // missing or of another journal
	writer types.Epoch     // 0: unknown
	first  types.LSN       // 0: unknown
	whose  types.JournalID // 0: its start is damaged, and its first frame does not name it
	inside bool            // whose is 0, and the first frame is whole: the journal is that of the segment before
	spots  []spot
}

// A spot is the position of a frame.
type spot struct {
	lsn types.LSN
	off int64
}

// A place is a segment in which a frame may be.
type place struct {
	number  uint32
	first   types.LSN       // of the segment
	whose   types.JournalID // 0: as shelved
	at      int             // in the table
	spot    spot            // the last one before the frame, if there is one
	sound   bool            // the next segment proves that all frames up to this one were durable
	last    bool            // the last segment
	writer  types.Epoch     // of the segment; 0: unknown
	visited bool            // the frame was read or written since the start of the program
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

// list adds segments that exist and were not read.
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
	t.segments = append(t.segments, shelved{number: p.number, looked: true, first: p.start.first, whose: p.start.journal, writer: p.start.epoch})
	for t.spots > most && t.bare < len(t.segments)-1 {
		old := &t.segments[t.bare]
		t.spots, t.bare, old.spots = t.spots-len(old.spots), t.bare+1, nil
	}
}

// note gets every frame in order, and stores few. Only the writing goroutine calls it, so it
// reads without the lock.
func (t *table) note(lsn types.LSN, off int64) {
	s := &t.segments[len(t.segments)-1]
	if n := len(s.spots); n > 0 && off-s.spots[n-1].off < sparse {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.spots, t.spots = append(s.spots, spot{lsn, off}), t.spots+1
}

// places returns the segments that may have a frame, the likeliest first: segments with an
// unknown first frame, and the last one that begins before the frame.
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
		p := place{number: s.number, first: s.first, whose: s.whose, writer: s.writer, at: n}
		p.last = n == len(j.table.segments)-1
		p.sound = n == next-1 && !p.last
		if i := sort.Search(len(s.spots), func(i int) bool { return s.spots[i].lsn > lsn }); i > 0 {
			p.spot = s.spots[i-1]
		}
		all = append(all, p)
	}
	return all, nil
}

// around returns the last segment that is known to begin at or before a frame, -1 for none, and
// the first later one that is known to begin after it.
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

// first returns the first frame of the n-th segment; 0 if it is unknown.
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
	whose, inside := p.start.journal, false
	if s.foul = err != nil; s.foul {
		p.first = 0
	} else if !p.whole {
		if whose, inside, err = p.named(j.fs); err == nil {
			_, err = p.writer(j.fs)
		}
		if err != nil {
			return 0, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.segments[n].looked, t.segments[n].foul, t.segments[n].first = true, s.foul, p.first
	t.segments[n].whose, t.segments[n].inside, t.segments[n].writer = whose, inside, p.start.epoch
	return p.first, nil
}

// owner returns the journal of a segment whose start is damaged, and whose first frame does not name it: that of the segments
// around it, if they agree or a whole first frame shows that none begins there; 0: unknown.
func (j *Journal) owner(n int) (types.JournalID, error) {
	before, _, err := j.nearest(n, -1)
	if err != nil {
		return 0, err
	}
	after, next, err := j.nearest(n, 1)
	if err != nil {
		return 0, err
	}
	j.table.mu.RLock()
	inside := j.table.segments[n].inside
	j.table.mu.RUnlock()
	switch {
	case before == after, before != 0 && inside:
		return before, nil
	case before != 0:
		return 0, nil
	}
	if next.whole {
		if restored, err := next.reborn(j.fs); restored || err != nil {
			return 0, err
		}
	}
	return after, nil
}

// nearest returns the journal of the nearest segment before (step -1) or after (1) the n-th that has one, and that segment. Behind
// the last one, it is the journal that is open; before the first one, none.
func (j *Journal) nearest(n, step int) (whose types.JournalID, p part, err error) {
	for n += step; n >= 0; n += step {
		j.table.mu.RLock()
		end := n == len(j.table.segments)
		j.table.mu.RUnlock()
		if end {
			return j.id, part{}, nil
		}
		if _, err := j.first(n); err != nil {
			return 0, p, err
		}
		j.table.mu.RLock()
		s := j.table.segments[n]
		j.table.mu.RUnlock()
		if s.whose != 0 {
			p.name = segmentName(s.number)
			return s.whose, p, p.survey(j.fs)
		}
	}
	return 0, p, nil
}
