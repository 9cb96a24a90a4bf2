package journalfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sort"
	"sync"

	"macronode/adapters/fs"
	"macronode/core/digest"
	"macronode/core/record"
	"macronode/core/words"
)

const (
	sparse = 64 << 10 // bytes of a segment that have one entry in the table
	shelf  = 8        // segments that are open for reading at most
)

// A table says where frames lie: of each segment, the first one and one each sparse
// bytes. It takes 48 bytes for 64 KiB of journal.
type table struct {
	mu       sync.RWMutex
	segments []shelved
}

// shelved is a segment as readers know it. Of two that begin with the same frame the
// later one has it.
type shelved struct {
	number  uint32
	journal words.JournalID
	first   words.LSN
	spots   []spot
}

// A spot is where a frame lies, and the root before it.
type spot struct {
	lsn  words.LSN
	off  int64
	prev words.Root
}

func (t *table) size() int { return len(t.segments) }

func (t *table) begin(number uint32, journal words.JournalID, first words.LSN) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.segments = append(t.segments, shelved{number: number, journal: journal, first: first})
}

// note is told of every frame in order, and keeps few. Only the goroutine that
// writes calls it, so it reads without the lock.
func (t *table) note(lsn words.LSN, off int64, prev words.Root) {
	s := &t.segments[len(t.segments)-1]
	if n := len(s.spots); n > 0 && off-s.spots[n-1].off < sparse {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.spots = append(s.spots, spot{lsn, off, prev})
}

// find is where to begin reading for a frame.
func (t *table) find(lsn words.LSN) (number uint32, journal words.JournalID, at spot, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := sort.Search(len(t.segments), func(n int) bool { return t.segments[n].first > lsn })
	if n == 0 {
		return 0, 0, spot{}, false
	}
	s := &t.segments[n-1]
	n = sort.Search(len(s.spots), func(n int) bool { return s.spots[n].lsn > lsn })
	if n == 0 {
		return 0, 0, spot{}, false
	}
	return s.number, s.journal, s.spots[n-1], true
}

// A slot holds one segment open. A segment has one slot it can be in, so that no
// more than shelf files are open, and two readers wait for each other only where
// they want the same slot.
type slot struct {
	mu     sync.Mutex
	number uint32
	file   fs.File
	closed bool
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
	f, err := fsys.Open(segmentName(number))
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("journal: open a segment: %w", err)
	}
	s.number, s.file = number, f
	return f, nil
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

// Read is a durable frame, read from its segment and checked. Any goroutine may ask,
// while another writes.
func (j *Journal) Read(lsn words.LSN) (record.Sealed, error) {
	if lsn == 0 || lsn > j.Durable() {
		return record.Sealed{}, ErrGone
	}
	number, journal, at, ok := j.table.find(lsn)
	if !ok {
		return record.Sealed{}, ErrGone
	}
	slot := &j.slots[number%shelf]
	slot.mu.Lock()
	defer slot.mu.Unlock()
	file, err := slot.open(j.fs, number)
	if err != nil {
		return record.Sealed{}, err
	}
	size, err := file.Size()
	if err != nil {
		return record.Sealed{}, fmt.Errorf("journal: read %v: %w", lsn, err)
	}
	p := &pane{file: file, name: segmentName(number), size: size, block: sparse}
	return p.frame(at, lsn, journal)
}

// frame walks from a spot to a frame.
func (p *pane) frame(at spot, lsn words.LSN, journal words.JournalID) (record.Sealed, error) {
	for {
		it, err := p.item(at.off)
		if err != nil {
			return record.Sealed{}, err
		}
		if it.magic == batchMagic {
			at.off += it.size
			continue
		}
		head, _, err := record.Open(it.payload)
		if it.magic != frameMagic || err != nil || head.LSN != at.lsn {
			return record.Sealed{}, &Damage{p.name, at.off, at.lsn, lsn, "what is there does not check"}
		}
		if at.lsn < lsn {
			at = spot{at.lsn + 1, at.off + it.size, words.Root(it.root)}
			continue
		}
		root, _ := digest.Chain(nil, at.prev, it.payload)
		if root != words.Root(it.root) {
			return record.Sealed{}, &Damage{p.name, at.off, lsn, lsn, "a frame that breaks the chain"}
		}
		return record.Sealed{Journal: journal, LSN: lsn, Body: bytes.Clone(it.payload), Prev: at.prev, Root: root}, nil
	}
}
