package journalfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"

	"macronode/adapters/fs"
	"macronode/core/digest"
	"macronode/core/record"
	"macronode/core/types"
)

const (
	shelf = 8  // largest number of segments open for reading
	steps = 16 // frames to step back to find one with a known root
)

// A slot holds one open segment. Each segment has one slot that it may use, so at most shelf
// files are open, and readers wait for each other only for the same slot.
type slot struct {
	mu     sync.Mutex
	number uint32
	file   fs.File
	closed bool

	patches []patch // of the segment
}

func (s *slot) open(fsys fs.FS, number uint32) (fs.File, error) {
	if s.closed {
		return nil, errClosed
	}
	if s.file != nil && s.number == number {
		return s.file, nil
	}
	if err := s.clear(); err != nil {
		return nil, err
	}
	p, err := openRepaired(fsys, number, sparse)
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, err
	}
	s.number, s.file, s.patches = number, p.file, p.patches
	return s.file, nil
}

func (s *slot) clear() error {
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return f.Close()
}

func (s *slot) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.clear()
}

// Read reads a durable frame from its segment and checks its sums and its place in the chain.
// Whole frames can be read behind damage. Any goroutine may call Read during writes.
func (j *Journal) Read(lsn types.LSN) (record.Sealed, error) { return j.find(lsn, steps) }

func (j *Journal) find(lsn types.LSN, back int) (record.Sealed, error) {
	durable := j.Durable()
	if lsn == 0 || lsn > max(durable, j.knownDurable) {
		return record.Sealed{}, ErrGone
	}
	if why := j.verdict.hides(lsn, lsn > durable); why != "" {
		return record.Sealed{}, &Damage{segmentName(j.table.oldest()), 0, lsn, lsn, why}
	}
	places, err := j.places(lsn)
	if err != nil {
		return record.Sealed{}, err
	}
	var lost error = &Damage{segmentName(j.table.oldest()), 0, 1, lsn, missing}
	for _, p := range places {
		p.visited = p.spot.lsn > 0 && lsn <= durable
		p.sound = p.sound || p.visited || p.last && lsn <= j.knownDurable
		if p.whose == 0 {
			if p.whose, err = j.owner(p.at); err != nil {
				return record.Sealed{}, err
			}
		}
		if p.whose == 0 {
			lost = &Damage{segmentName(p.number), 0, lsn, lsn, "its start is damaged: its journal is unknown"}
			continue
		}
		s, err := j.read(p, lsn)
		if len(s.Body) > 0 && err != nil && j.follows(&s, back) {
			return s, nil
		}
		if err == nil || !errors.Is(err, ErrDamaged) {
			return s, err
		}
		lost = err
	}
	return record.Sealed{}, lost
}

// follows finds the root before a frame in the previous segment if its own start is damaged: the
// frame is whole if it continues from there.
func (j *Journal) follows(s *record.Sealed, back int) bool {
	if back == 0 {
		return false
	}
	before, err := j.find(s.LSN-1, back-1)
	if err != nil {
		return false
	}
	s.Prev = before.Root
	root, _ := digest.Chain(nil, s.Prev, s.Body)
	return root == s.Root
}

// read finds a frame in one segment. With Damage, it returns a frame that is whole except for the
// root before it.
func (j *Journal) read(at place, lsn types.LSN) (s record.Sealed, err error) {
	slot := &j.slots[at.number%shelf]
	slot.mu.Lock()
	defer slot.mu.Unlock()
	file, err := slot.open(j.fs, at.number)
	if err != nil {
		return s, err
	}
	size, err := file.Size()
	if err != nil {
		return s, fmt.Errorf("journal: read %v: %w", lsn, err)
	}
	p := &pane{file: file, name: segmentName(at.number), size: size, block: sparse, patches: slot.patches, fsys: j.fs, number: at.number}
	l, err := p.frame(at, lsn)
	if err == nil && !at.sound {
		err = p.proved(at, l)
	}
	if err == nil && !at.visited {
		l, err = p.ofWriter(at, l)
	}
	if err != nil {
		return s, err
	}
	prev, ok, err := p.before(l.off, l.it)
	if err != nil {
		return s, err
	}
	s = record.Sealed{Journal: at.whose, LSN: lsn, Body: bytes.Clone(l.it.payload), Prev: prev, Root: types.Root(l.it.root)}
	if ok {
		return s, nil
	}
	return s, &Damage{p.name, l.off, lsn, lsn, "the root before the frame is lost, or it breaks the chain"}
}

// ofWriter returns a frame that was found if it is of the writer of its segment, or the first one with its number that is; else Damage.
func (p *pane) ofWriter(at place, l landing) (landing, error) {
	is, err := p.isOf(at.writer, max(at.first, 1), l)
	if err != nil || is {
		return l, err
	}
	w := walk{off: startItem, last: max(at.first, 1) - 1}
	first, err := w.to(p, l.lsn, p.size)
	if err == nil && first.it.size > 0 {
		if is, err = p.isOf(at.writer, max(at.first, 1), first); is {
			return first, nil
		}
	}
	if err == nil {
		err = &Damage{p.name, l.off, l.lsn, l.lsn, unwritten}
	}
	return l, err
}

// frame finds a frame: from the last spot before it if that is near, otherwise by bisection.
func (p *pane) frame(at place, lsn types.LSN) (l landing, err error) {
	w := walk{off: startItem, last: max(at.first, 1) - 1}
	if at.spot.lsn > 0 {
		w = walk{off: at.spot.off, last: at.spot.lsn - 1}
		if l, err = w.to(p, lsn, w.off+2*sparse); l.it.size > 0 || err != nil {
			return l, err
		}
	}
	near, err := p.seek(seeking{lo: w.off, first: w.last + 1, lsn: lsn})
	if err != nil {
		return l, err
	}
	if w.off = near.off; near.lsn > 0 {
		w.last = near.lsn - 1
	}
	if l, err = w.to(p, lsn, p.size); l.it.size == 0 && err == nil {
		err = &Damage{p.name, w.off, w.last + 1, lsn, "the data ends here"}
	}
	return l, err
}

// A walk visits the items of a segment from off on, after the frame last.
type walk struct {
	off  int64
	last types.LSN
}

// step visits the next valid item; it returns a zero landing if there is none before limit.
func (w *walk) step(p *pane, limit int64) (landing, error) {
	l, ok, err := p.next(w.off, min(limit, p.size), 0, w.last+1, unlimited)
	if err != nil || !ok {
		return landing{}, err
	}
	if w.off = l.end(); l.it.magic == frameMagic {
		w.last = l.lsn
	}
	return l, nil
}

// to visits up to a frame; it returns a zero landing if limit comes first.
func (w *walk) to(p *pane, lsn types.LSN, limit int64) (landing, error) {
	for {
		off, last := w.off, w.last
		switch l, err := w.step(p, limit); {
		case err != nil || l.it.size == 0:
			return l, err
		case l.lsn > lsn:
			return landing{}, &Damage{p.name, off, last + 1, l.lsn - 1, "invalid checksum or structure"}
		case w.last == lsn:
			return l, nil
		}
	}
}

// proved returns why a frame of the last segment may be stale: behind damage there may be a
// frame that recovery discarded.
func (p *pane) proved(at place, l landing) error {
	known, err := part{name: p.name}.marks(p)
	if err != nil || known >= l.lsn {
		return err
	}
	for w := (walk{off: startItem, last: at.first - 1}); at.first > 0; {
		from, last := w.off, w.last
		next, err := w.step(p, p.size)
		whole := next.off <= from && next.lsn == last+1
		if err == nil && !whole {
			whole, err = p.rebuilds(from, next, last+1, bound{end: unlimited})
		}
		switch {
		case err != nil:
			return err
		case !whole:
			return &Damage{p.name, l.off, l.lsn, l.lsn, "nothing proves that this frame is the right one"}
		case next.off == l.off: // no damage before it
			return nil
		}
	}
	return &Damage{p.name, l.off, l.lsn, l.lsn, "nothing proves that this frame is the right one"}
}
