package journalfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"macronode/adapters/fs"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/words"
)

const (
	block     = 1 << 20 // bytes that are read at a time, and handed on at a time
	suffix    = ".seg"
	leftover  = ".tmp" // of a segment that did not get its name
	unlimited = words.MaxLSN + 1
)

// Found is what lies in a journal.
type Found struct {
	event.Recovery             // whose, what was cut, what is beyond Known
	Last           words.LSN   // the last whole frame
	Root           words.Root  // of the chain there
	Known          words.LSN   // something later says that all up to here were durable
	Epoch          words.Epoch // of the last writer
	Segments       int
	Bytes          int64 // of all segments
}

// Progress is how far a scan is.
type Progress struct {
	Segment     string
	Done, Total int64 // bytes
	Last        words.LSN
}

// Scan reads a journal and changes nothing: each gets all frames that check, in
// order, in slices that are its own. Damage ends it, with what was found before it.
func Scan(fsys fs.FS, each func([]record.Sealed) error, progress func(Progress)) (Found, error) {
	s := scan{fsys: fsys, each: each, progress: progress, table: new(table)}
	_, err := s.run()
	return s.found, err
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
//	J4  the journal's id stays, and no epoch is followed by a lower one
type scan struct {
	fsys     fs.FS
	each     func([]record.Sealed) error
	progress func(Progress)

	found  Found
	number uint32 // of the segment
	table  *table
	open   batch           // what is left of it
	tail   []record.Sealed // frames beyond Known: of one segment at most, by J3
	ready  []record.Sealed // checked, not yet handed on
	size   int             // of their bodies
	done   int64           // bytes of the segments before

	scratch []byte
}

// A part is a segment as the directory and its start tell of it.
type part struct {
	number uint32
	name   string
	size   int64
	start  start
	whole  bool // the start checks
}

// run reads all segments. Leftovers are what recovery may remove.
func (s *scan) run() (leftovers []string, err error) {
	parts, leftovers, err := survey(s.fsys)
	if err != nil {
		return nil, err
	}
	s.found.Segments = len(parts)
	for _, p := range parts {
		s.found.Bytes += p.size
	}
	for n, p := range parts {
		end := words.LSN(unlimited)
		if n+1 < len(parts) && parts[n+1].whole {
			end = parts[n+1].start.first
		}
		if err := s.segment(p, end); err != nil {
			s.found.Damaged = errors.Is(err, ErrDamaged)
			return nil, err
		}
		s.done += p.size
	}
	return leftovers, nil
}

// survey lists the segments and reads their starts.
func survey(fsys fs.FS) (parts []part, leftovers []string, err error) {
	names, err := fsys.List()
	if err != nil {
		return nil, nil, fmt.Errorf("journal: list the segments: %w", err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, leftover) {
			leftovers = append(leftovers, name)
		}
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		number, err := strconv.ParseUint(strings.TrimSuffix(name, suffix), 10, 32)
		p := part{name: name, number: uint32(number)}
		if err != nil || name != segmentName(p.number) {
			return nil, nil, fmt.Errorf("%w: %s is no segment's name", ErrFormat, name)
		}
		if err := p.survey(fsys); err != nil {
			return nil, nil, err
		}
		parts = append(parts, p)
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.number, b.number) })
	return parts, leftovers, nil
}

func (p *part) survey(fsys fs.FS) error {
	pane, err := openPane(fsys, p.name, startItem)
	if err != nil {
		return err
	}
	defer pane.file.Close() //nolint:errcheck // it was only read
	it, err := pane.item(0)
	if err != nil {
		return err
	}
	if p.size = pane.size; it.magic != startMagic {
		return nil
	}
	if format := u32(it.payload); format != version {
		return fmt.Errorf("%w: %s is of format %d", ErrFormat, p.name, format)
	}
	if p.whole = len(it.payload) == startSize; p.whole {
		p.start = it.start()
	}
	return nil
}

// segment reads one segment up to the frame that the next one begins with.
func (s *scan) segment(p part, end words.LSN) error {
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
	pane, err := openPane(s.fsys, p.name, block)
	if err != nil {
		return err
	}
	defer pane.file.Close() //nolint:errcheck // it was only read
	s.open = batch{}
	off := int64(startItem)
	for s.found.Last+1 < end {
		it, err := pane.item(off)
		if err != nil {
			return err
		}
		if why := s.take(it, off); why != "" {
			return s.stop(pane, off, end, why)
		}
		off += it.size
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

func openPane(fsys fs.FS, name string, block int64) (*pane, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, fmt.Errorf("journal: open a segment: %w", err)
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("journal: size of %s: %w", name, err), f.Close())
	}
	return &pane{file: f, name: name, size: size, block: block}, nil
}

// begin says why p does not follow what was read, or goes on in it.
func (s *scan) begin(p part) (why string) {
	h, f := p.start, &s.found
	switch {
	case !p.whole:
		return "its start does not check"
	case h.first > f.Last+1:
		return "frames before it are missing"
	case h.first < f.Last+1 || h.prev != f.Root:
		return "it does not follow the segment before it"
	case h.known+1 < h.first:
		return "it began before its predecessor was durable"
	case s.table.size() > 0 && h.journal != f.Journal:
		return "it is of another journal"
	case h.epoch < f.Epoch:
		return "it was written by a writer that had been succeeded"
	}
	f.Journal, f.Epoch = h.journal, h.epoch
	s.vouch(h.known)
	s.number = p.number
	s.table.begin(p.number, h.journal, h.first)
	return ""
}

// vouch notes that all frames ≤ known were durable.
func (s *scan) vouch(known words.LSN) {
	s.found.Known = max(s.found.Known, known)
	keep := slices.IndexFunc(s.tail, func(f record.Sealed) bool { return f.LSN > known })
	if keep < 0 {
		keep = len(s.tail)
	}
	s.tail = slices.Delete(s.tail, 0, keep)
	s.found.Tail = uint32(len(s.tail))
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
	if f.Root, s.scratch = digest.Chain(s.scratch, f.Prev, f.Body); f.Root != words.Root(it.root) {
		return "a frame that breaks the chain"
	}
	s.open.count, s.open.bytes = s.open.count-1, s.open.bytes-uint32(it.size)
	s.table.note(f.LSN, off, f.Prev)
	s.found.Last, s.found.Root = f.LSN, f.Root
	if f.LSN > s.found.Known {
		s.tail = append(s.tail, f)
		s.found.Tail = uint32(len(s.tail))
	}
	s.ready, s.size = append(s.ready, f), s.size+len(f.Body)
	return ""
}

// stop decides what it means that nothing at off goes on: damage, where something
// vouches for what is not there, else the end.
func (s *scan) stop(p *pane, off int64, end words.LSN, why string) error {
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
	s.found.Cut += spent
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
	if s.each == nil {
		return nil
	}
	return s.each(ready)
}

func (s *scan) tell(name string, off int64) {
	if s.progress != nil {
		s.progress(Progress{name, s.done + off, s.found.Bytes, s.found.Last})
	}
}

func segmentName(number uint32) string { return fmt.Sprintf("%08d%s", number, suffix) }
