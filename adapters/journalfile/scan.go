package journalfile

import (
	"errors"
	"slices"

	"macronode/adapters/fs"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

const (
	block     = 1 << 20 // bytes that are read at a time, and handed on at a time
	suffix    = ".seg"
	leftover  = ".tmp" // of a segment that did not get its name
	unlimited = types.MaxLSN + 1
)

// Found is what lies in a journal.
type Found struct {
	event.Recovery             // whose, what was cut, what is beyond Known
	Last           types.LSN   // the last whole frame
	Root           types.Root  // of the chain there
	Known          types.LSN   // something later says that all up to here were durable
	Epoch          types.Epoch // of the last writer
	Segments       int         // all of them
	Bytes          int64       // of those that were read
}

// Progress is how far a scan is.
type Progress struct {
	Segment     string
	Done, Total int64 // bytes
	Last        types.LSN
}

// Scan is that of a Reading of all there is.
func Scan(fsys fs.FS, each func([]record.Sealed) error, progress func(Progress)) (Found, error) {
	return Reading{Each: each, Progress: progress}.Scan(fsys)
}

// A scan goes through the segments in order and believes nothing that is not vouched
// for.
//
// Invariants of what it accepts:
//
//	J1  frames run 1, 2, 3 … and each one's root follows from the one before
//	J2  a batch begins after the last frame, has as many frames and bytes as it says,
//	    and was written when all that it knows durable was written
//	J3  a segment begins after the last frame, and all before it was durable
//	J4  the journal's id stays, but where a segment begins with a frame that says that it
//	    was restored as another; and no epoch is followed by a lower one
type scan struct {
	Reading
	fsys fs.FS

	found  Found
	number uint32 // of the segment
	table  *table
	open   batch           // what is left of it
	tail   []record.Sealed // frames beyond Known: of one segment at most, by J3
	ready  []record.Sealed // checked, not yet handed on
	size   int             // of their bodies
	done   int64           // bytes of the segments before
	passed int64           // bytes that were gone over
	on     bool            // something was read, or its place found: what comes must follow

	scratch []byte
}

// run reads all segments from the one that From lies in. Leftovers are what recovery
// may remove.
func (s *scan) run() (leftovers []string, err error) {
	row, leftovers, err := list(s.fsys)
	if err != nil {
		return nil, err
	}
	s.found.Segments, s.found.Known = len(row), max(s.Known, s.From.LSN, s.Upto)
	if len(row) == 0 && s.From.LSN == 0 && s.found.Known > 0 {
		s.found.Damaged = true
		return nil, &Damage{segmentName(1), 0, 1, s.found.Known, "no segment is there"}
	}
	at, err := s.survey(row)
	if err != nil {
		return nil, err
	}
	s.table.list(row[:at])
	off := int64(0)
	if s.From.LSN > 0 {
		if off, err = s.resume(row[at]); err != nil {
			return nil, err
		}
	}
	for n := at; n < len(row) && !s.over(); n++ {
		if err := s.segment(row[n], off, ends(row, n)); err != nil {
			if s.found.Damaged = errors.Is(err, ErrDamaged); s.found.Damaged {
				err = errors.Join(err, s.beyond(row[n:]))
			}
			return nil, err
		}
		s.done, off = s.done+row[n].size, 0
	}
	return leftovers, nil
}

// over reports that all was read that was wanted.
func (s *scan) over() bool { return s.Upto > 0 && s.found.Last >= s.Upto }

// ends is the frame that the segment after the n-th begins with.
func ends(row []part, n int) types.LSN {
	if n+1 < len(row) && row[n+1].whole {
		return row[n+1].start.first
	}
	return unlimited
}

// beyond looks at what lies behind damage, the segment that it is in first: for what
// is vouched for there, and so that it can be read.
func (s *scan) beyond(rest []part) error {
	for _, p := range rest {
		if p.whole {
			s.found.Known = max(s.found.Known, p.start.known)
		}
		if p.whole && !s.on {
			s.found.Journal, s.on = p.start.journal, true
		}
	}
	last := rest[len(rest)-1]
	pane, err := openPane(s.fsys, last.name, block)
	if err != nil {
		return err
	}
	defer pane.file.Close() //nolint:errcheck // it was only read
	known, err := last.marks(pane)
	s.found.Known = max(s.found.Known, known)
	if p := rest[0]; s.table.size() > 0 && s.table.newest() == p.number || p.whole && p.start.first <= s.found.Last+1 {
		rest = rest[1:] // it is there; or it follows from another past
	}
	s.table.list(rest)
	return err
}

// segment reads one segment, from its start or from off, up to the frame that the
// next one begins with.
func (s *scan) segment(p part, off int64, end types.LSN) error {
	if off > 0 {
		return s.frames(p, off, end)
	}
	if why := s.begin(p); why != "" {
		upto := s.found.Last + 1
		if p.whole && p.start.first > upto {
			upto = p.start.first - 1
		}
		if err := s.flush(); err != nil {
			return err
		}
		return &Damage{p.name, 0, s.found.Last + 1, upto, why}
	}
	s.open = batch{}
	return s.frames(p, startItem, end)
}

// frames reads from off on.
func (s *scan) frames(p part, off int64, end types.LSN) error {
	pane, err := openPane(s.fsys, p.name, block)
	if err != nil {
		return err
	}
	defer pane.file.Close() //nolint:errcheck // it was only read
	for s.found.Last+1 < end && !s.over() {
		it, err := pane.item(off)
		if err != nil {
			return err
		}
		if why := s.take(it, off); why != "" {
			return s.stop(pane, off, end, why)
		}
		off, s.passed = off+it.size, s.passed+it.size
		if s.size >= block {
			if err := s.flush(); err != nil {
				return err
			}
			s.tell(p.name, off)
		}
	}
	s.tell(p.name, p.size)
	return s.flush()
}

// begin says why p does not follow what was read, or goes on in it.
func (s *scan) begin(p part) (why string) {
	h, f := p.start, &s.found
	switch {
	case !p.whole:
		return "its start does not check"
	case h.first > f.Last+1:
		return missing
	case h.first < f.Last+1 || h.prev != f.Root:
		return "it does not follow the segment before it"
	case h.known+1 < h.first:
		return "it began before its predecessor was durable"
	case s.on && h.journal != f.Journal && !reborn(s.fsys, p):
		return "it is of another journal"
	case h.epoch < f.Epoch:
		return "it was written by a writer that had been succeeded"
	}
	f.Journal, f.Epoch, s.on = h.journal, h.epoch, true
	s.vouch(h.known)
	s.number = p.number
	s.table.begin(p)
	return ""
}

// reborn reports that a segment begins where its journal was restored as another.
func reborn(fsys fs.FS, p part) bool {
	pane, err := openPane(fsys, p.name, sparse)
	if err != nil {
		return false
	}
	defer pane.file.Close() //nolint:errcheck // it was only read
	is, err := p.reborn(pane)
	return err == nil && is
}

// vouch notes that all frames ≤ known were durable.
func (s *scan) vouch(known types.LSN) {
	s.found.Known = max(s.found.Known, known)
	keep := slices.IndexFunc(s.tail, func(f record.Sealed) bool { return f.LSN > known })
	if keep < 0 {
		keep = len(s.tail)
	}
	s.tail = slices.Delete(s.tail, 0, keep)
	s.found.TailFrames = uint32(len(s.tail))
}

// take goes on over one item, or says why it cannot be the next one.
func (s *scan) take(it item, off int64) (why string) {
	switch it.magic {
	case batchMagic:
		return s.takeBatch(it.batch())
	case frameMagic:
		return s.takeFrame(it, off)
	case startMagic:
		return "a segment's start in the middle of one"
	default:
		return "what is there does not check"
	}
}

func (s *scan) takeBatch(h batch) (why string) {
	if s.open.count > 0 || !h.plausible() || h.first != s.found.Last+1 || h.epoch < s.found.Epoch {
		return "a batch out of order"
	}
	s.open, s.found.Epoch = h, h.epoch
	s.vouch(h.known)
	return ""
}

func (s *scan) takeFrame(it item, off int64) (why string) {
	last := s.open.count == 1 // where no batch is open there are no bytes left either
	if it.size > int64(s.open.bytes) || last != (it.size == int64(s.open.bytes)) {
		return "a frame that no batch has room for"
	}
	head, _, err := record.Open(it.payload)
	if err != nil || head.LSN != s.found.Last+1 {
		return "a frame out of order"
	}
	f := record.Sealed{Journal: s.found.Journal, LSN: head.LSN, Body: it.payload, Prev: s.found.Root}
	if f.Root, s.scratch = digest.Chain(s.scratch, f.Prev, f.Body); f.Root != types.Root(it.root) {
		return "a frame that breaks the chain"
	}
	s.open.count, s.open.bytes = s.open.count-1, s.open.bytes-uint32(it.size)
	s.table.note(f.LSN, off)
	s.found.Last, s.found.Root = f.LSN, f.Root
	if f.LSN > s.found.Known {
		s.tail = append(s.tail, f)
		s.found.TailFrames = uint32(len(s.tail))
	}
	s.ready, s.size = append(s.ready, f), s.size+len(f.Body)
	return ""
}

// stop decides what it means that nothing at off goes on: damage, where something
// vouches for what is not there, else the end.
func (s *scan) stop(p *pane, off int64, end types.LSN, why string) error {
	last, upto := s.found.Last, s.found.Known
	later, ok, err := p.search(off, func(h batch) bool { return h.plausible() && h.known > last })
	switch {
	case err != nil:
		return err
	case ok:
		upto = min(later.first, end) - 1
	case end != unlimited:
		upto = end - 1
	}
	if err := s.flush(); err != nil {
		return err
	}
	spent, err := p.spent(off)
	if err != nil {
		return err
	}
	if spent == 0 {
		why = "nothing is there any more"
	}
	if upto > last {
		return &Damage{p.name, off, last + 1, upto, why}
	}
	s.found.CutBytes += spent
	s.tell(p.name, p.size)
	return nil
}

// flush hands on what was checked.
func (s *scan) flush() error {
	if len(s.ready) == 0 {
		return nil
	}
	ready := s.ready
	s.ready, s.size = make([]record.Sealed, 0, len(ready)), 0
	if s.Each == nil {
		return nil
	}
	return s.Each(ready)
}

func (s *scan) tell(name string, off int64) {
	if s.Progress != nil {
		s.Progress(Progress{name, s.done + off, s.found.Bytes, s.found.Last})
	}
}
