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
	sound    bool
}

// shelved is a segment as readers know it. If two begin with the same frame, the later one has
// it.
type shelved struct {
	number uint32
	looked bool            // its start was read
	foul   bool            // missing or of another journal
	first  types.LSN       // 0: unknown
	parted types.LSN       // its first frame, if it is not of the journal
	whose  types.JournalID // 0: its start is damaged, and its first frame does not name it
	owned  bool            // ours is known
	ours   bool            // see owns
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
	number uint32
	first  types.LSN       // of the segment
	whose  types.JournalID // 0: as shelved
	at     int             // in the table
	spot   spot            // the last one before the frame, if there is one
	sound  bool            // the next segment proves that all frames up to this one were durable
	last   bool            // the last segment
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
	t.segments = append(t.segments, shelved{number: p.number, looked: true, first: p.start.first, whose: p.start.journal, owned: t.sound, ours: t.sound})
	for t.spots > most && t.bare < len(t.segments)-1 {
		old := &t.segments[t.bare]
		t.spots, t.bare, old.spots = t.spots-len(old.spots), t.bare+1, nil
	}
}

// own notes that the segments which were read continue one another up to the end, and that what begins from now on continues them.
func (t *table) own() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := range t.segments {
		if s := &t.segments[n]; s.looked {
			s.owned, s.ours = true, true
		}
	}
	t.sound = true
}

// owns reports whether the segments that have the frames from one on are known to be of the journal: those that the start has read, and the newer ones.
func (t *table) owns(from types.LSN) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for n := len(t.segments) - 1; n >= 0; n-- {
		s := &t.segments[n]
		if !s.owned || !s.ours {
			return false
		}
		if s.first > 0 && s.first <= from {
			return true
		}
	}
	return false
}

// disown hides a segment that is not of the journal.
func (t *table) disown(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.segments[n]
	s.foul, s.parted, s.first = true, s.first, 0
}

// hidden returns the hidden segment that seemed to have a frame; 0: there is none.
func (t *table) hidden(lsn types.LSN) (number uint32) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, s := range t.segments {
		if s.parted > 0 && s.parted <= lsn {
			number = s.number
		}
	}
	return number
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
// unknown first frame, and the last one that begins before the frame. Next is the first one behind them.
func (j *Journal) places(lsn types.LSN) (all []place, next int, err error) {
	at, next, err := j.around(lsn)
	if err != nil {
		return nil, 0, err
	}
	j.table.mu.RLock()
	defer j.table.mu.RUnlock()
	for n := next - 1; n >= max(at, 0); n-- {
		s := &j.table.segments[n]
		if s.foul {
			continue
		}
		p := place{number: s.number, first: s.first, whose: s.whose, at: n}
		p.last = n == len(j.table.segments)-1
		p.sound = n == next-1 && !p.last
		if i := sort.Search(len(s.spots), func(i int) bool { return s.spots[i].lsn > lsn }); i > 0 {
			p.spot = s.spots[i-1]
		}
		all = append(all, p)
	}
	return all, next, nil
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
		if whose, inside, err = p.named(j.fs); err != nil {
			return 0, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.segments[n].looked, t.segments[n].foul, t.segments[n].first = true, s.foul, p.first
	t.segments[n].whose, t.segments[n].inside = whose, inside
	return p.first, nil
}
