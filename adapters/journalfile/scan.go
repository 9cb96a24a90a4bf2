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
	block     = 1 << 20 // bytes per read and per delivery
	suffix    = ".seg"
	leftover  = ".tmp" // suffix of a segment without its final name
	unlimited = types.MaxLSN + 1
)

// Found is the result of reading a journal.
type Found struct {
	event.Recovery             // the journal ID, the cut, the frames after Known
	Last           types.LSN   // the last whole frame
	Root           types.Root  // of the chain at Last
	Known          types.LSN   // all frames up to this one are proved durable
	Epoch          types.Epoch // of the last writer
	Segments       int         // number of segments
	Bytes          int64       // of those that were read
	Repaired       int         // number of damaged places that cost no frame: headers of batches, and frames that a segment repeats
	Missing        int         // number of segments that are not there although a later one is
	FirstMissing   string      // the first of them; empty: none
}

// Progress is the progress of a scan.
type Progress struct {
	Segment     string
	Done, Total int64 // bytes
	Last        types.LSN
}

// Scan scans the whole journal.
func Scan(fsys fs.FS, each func([]record.Sealed) error, progress func(Progress)) (Found, error) {
	return Reading{Each: each, Progress: progress}.Scan(fsys)
}

// A scan visits the segments in order and accepts only what it can verify.
//
// Invariants of what it accepts:
//
//	J1  frames are numbered 1, 2, 3 … and the root of each follows from the one before
//	J2  a batch begins after the last frame, has the frames and bytes of its header,
//	    and claims only earlier frames durable
//	J3  a segment begins after the last frame, and all frames before it were durable
//	J4  the journal's ID changes only at a segment that begins with a restore record; an
//	    epoch is never followed by a lower one, and is the same in all of a segment
type scan struct {
	Reading
	fsys fs.FS

	found  Found
	number uint32 // of the segment
	table  *table
	open   batch           // the rest of it
	tail   []record.Sealed // frames after Known: at most one segment, by J3
	ready  []record.Sealed // checked, not yet delivered
	size   int             // of their bodies
	done   int64           // bytes of earlier segments
	passed int64           // bytes visited
	last   bool            // the segment is the last one
	gap    string          // the segment that is missing after it; empty: none is
	on     bool            // something was read, or its position found: the next item must follow

	scratch []byte
}

// run reads all segments from that of From on. It returns the leftovers that recovery may remove.
func (s *scan) run() (leftovers []string, err error) {
	row, leftovers, err := list(s.fsys)
	if err != nil {
		return nil, err
	}
	s.found.Segments, s.found.Known = len(row), max(s.Known, s.From.LSN, s.Upto, s.Verdict.Against.LSN)
	s.found.Missing, s.found.FirstMissing = lacking(row)
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
		s.last = at == len(row)-1
		if off, err = s.resume(row[at], ends(row, at)); err != nil {
			return nil, err
		}
	}
	for n := at; n < len(row) && !s.over(); n++ {
		s.last, s.gap = n == len(row)-1, gap(row, n)
		if err := s.segment(row[n], off, ends(row, n)); err != nil {
			if s.found.Damaged = errors.Is(err, ErrDamaged); s.found.Damaged {
				err = errors.Join(err, s.surveyBehindDamage(row[n:]))
			}
			return nil, err
		}
		s.done, off = s.done+row[n].size, 0
	}
	return leftovers, nil
}

// over reports whether all wanted frames were read.
func (s *scan) over() bool { return s.Upto > 0 && s.found.Last >= s.Upto }

// ends returns the first frame of the segment after the n-th. One that begins earlier is in the wrong place.
func ends(row []part, n int) types.LSN {
	for _, next := range row[n+1:] {
		if !next.whole {
			break
		}
		if next.start.first >= row[n].first {
			return next.start.first
		}
	}
	return unlimited
}

// surveyBehindDamage visits the segments behind damage, beginning with the damaged one: for what they prove
// durable, and so that they can be read.
func (s *scan) surveyBehindDamage(rest []part) error {
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
		rest = rest[1:] // it is present, or belongs to another history
	}
	s.table.list(rest)
	return err
}

// segment reads one segment, from its start or from off, up to the first frame of the next one.
func (s *scan) segment(p part, off int64, end types.LSN) error {
	if off > 0 {
		return s.frames(p, off, end)
	}
	why, err := s.begin(p)
	if err != nil {
		return err
	}
	if why != "" {
		upto := s.found.Last + 1
		switch {
		case p.whole && p.start.first > upto:
			upto = p.start.first - 1
		case !p.whole && s.last:
			upto = max(upto, s.found.Known)
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
	pane, err := openRepaired(s.fsys, p.number, block)
	if err != nil {
		return err
	}
	defer pane.file.Close() //nolint:errcheck // it was only read
	for s.found.Last+1 < end && !s.over() {
		it, err := pane.item(off)
		if err != nil {
			return err
		}
		why := s.take(it, off)
		if why != "" && it.size == 0 && s.open.count == 0 {
			switch rebuilt, err := s.rebuild(pane, off, end); {
			case err != nil:
				return err
			case rebuilt:
				off, s.passed = off+batchItem, s.passed+batchItem
				continue
			}
		}
		if why != "" {
			return s.stop(pane, off, end, why)
		}
		if pane.isPatched(off) {
			s.repaired(pane.name, off, s.found.Last, whyRepeated)
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

// rebuild passes over a batch header at off that is invalid, if its frames show what it contained.
func (s *scan) rebuild(pane *pane, off int64, end types.LSN) (ok bool, err error) {
	h, ok, err := pane.rebuild(off, s.found.Last+1, s.bound(end))
	if !ok || err != nil {
		return false, err
	}
	at := chain{off: off, next: s.found.Last + 1, root: s.found.Root, isRooted: true}
	if ok, err = at.goesOn(pane, s.found.Epoch, true); !ok || err != nil { // nothing else shows that the writer of the segment wrote the frames
		return false, err
	}
	h.known, h.epoch = s.found.Known, s.found.Epoch
	s.open = h
	s.repaired(pane.name, off, h.first, "the header of a batch is invalid; its frames are whole")
	return true, nil
}

// repaired reports a damaged place at a frame, or in front of it, that costs no frame.
func (s *scan) repaired(name string, off int64, lsn types.LSN, why string) {
	s.found.Repaired++
	if s.Repaired != nil {
		s.Repaired(&Damage{name, off, lsn, lsn - 1, why})
	}
}

// bound returns what is known from outside about the segment that ends before a frame.
func (s *scan) bound(end types.LSN) bound {
	b := bound{end: end}
	if s.last {
		b.known = max(s.found.Known, s.Evidence)
	}
	return b
}

// begin accepts p as the next segment, or returns why it does not follow.
func (s *scan) begin(p part) (why string, err error) {
	h, f := p.start, &s.found
	whose := f.Journal
	if !s.on { // the first segment names the journal
		whose = h.journal
	}
	ours, err := p.continues(s.fsys, whose)
	if err != nil {
		return "", err
	}
	switch {
	case !p.whole:
		return "its start is invalid", nil
	case h.first > f.Last+1:
		return missing, nil
	case h.first < f.Last+1 || h.prev != f.Root:
		return unfit, nil
	case !ours:
		return "it is of another journal", nil
	case h.known+1 < h.first:
		return "it began before its predecessor was durable", nil
	case h.epoch < f.Epoch:
		return "its writer had been replaced by a later one", nil
	}
	f.Journal, f.Epoch, s.on = h.journal, h.epoch, true
	s.began(h.epoch)
	s.prove(h.known)
	s.number = p.number
	s.table.begin(p)
	if p.remade {
		s.repaired(p.name, 0, h.first, whyRemade)
	}
	return "", nil
}

// began passes the epoch of a segment that is read to the caller.
func (s *scan) began(e types.Epoch) {
	if s.Began != nil {
		s.Began(e)
	}
}

// prove records that all frames ≤ known were durable.
func (s *scan) prove(known types.LSN) {
	s.found.Known = max(s.found.Known, known)
	keep := slices.IndexFunc(s.tail, func(f record.Sealed) bool { return f.LSN > known })
	if keep < 0 {
		keep = len(s.tail)
	}
	s.tail = slices.Delete(s.tail, 0, keep)
	s.found.TailFrames = uint32(len(s.tail))
}

// take accepts the next item, or returns why it cannot be next.
func (s *scan) take(it item, off int64) (why string) {
	switch it.magic {
	case batchMagic:
		return s.takeBatch(it.batch())
	case frameMagic:
		return s.takeFrame(it, off)
	case startMagic:
		return "a segment start inside a segment"
	default:
		return "invalid checksum or structure"
	}
}

func (s *scan) takeBatch(h batch) (why string) {
	if s.open.count > 0 || !h.plausible() || h.first != s.found.Last+1 || h.epoch != s.found.Epoch {
		return "a batch out of order"
	}
	s.open = h
	s.prove(h.known)
	return ""
}

func (s *scan) takeFrame(it item, off int64) (why string) {
	last := s.open.count == 1 // without an open batch there are no bytes left either
	if it.size > int64(s.open.bytes) || last != (it.size == int64(s.open.bytes)) {
		return "a frame outside a batch"
	}
	head, _, err := record.Open(it.payload)
	if err != nil || head.LSN != s.found.Last+1 {
		return "a frame out of order"
	}
	f := record.Sealed{Journal: s.found.Journal, LSN: head.LSN, Body: it.payload, Prev: s.found.Root}
	if f.Root, s.scratch = digest.Chain(s.scratch, f.Prev, f.Body); f.Root != types.Root(it.root) {
		return "a frame that breaks the chain"
	}
	if why := s.Verdict.hides(f.LSN, false); why != "" {
		return why
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

// stop decides what it means that no valid item is at off: damage if it is proved that more was
// durable, otherwise the end.
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
	if spent == 0 && end == unlimited && !s.last && s.gap == "" {
		upto = last // the start of the next segment is damaged
	}
	if upto > last {
		d := &Damage{p.name, off, last + 1, upto, why}
		if spent == 0 {
			d.endsEarly(s.gap, s.last)
		}
		return d
	}
	s.found.CutBytes += spent
	s.tell(p.name, p.size)
	return nil
}

// flush delivers the checked frames.
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
