package journalfile

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"

	"macronode/adapters/fs"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// Journal is open for writing. One goroutine writes: one batch, then its Sync. Any
// may Read, and ask for Durable.
type Journal struct {
	Roll int64 // a segment that is longer than this is followed by another

	fs      fs.FS
	id      types.JournalID
	as      types.JournalID // from the next frame on; 0: as it is
	epoch   types.Epoch
	file    fs.File
	number  uint32 // of its segment
	size    int64  // of what was written to it
	ready   int64  // its size with the zeros after that
	last    types.LSN
	root    types.Root
	durable atomic.Uint64
	open    atomic.Pointer[openSegment]
	beyond  types.LSN    // behind damage: all up to here was durable, and what is whole can be read
	grown   atomic.Int64 // bytes that a start reads
	failed  error        // why it takes nothing any more
	table   table
	slots   [shelf]slot
	scratch []byte
}

// Room that is made ready ahead of what is written, in zeros: a sync of bytes that
// replace others need not make a new size durable, which takes the disk half as long.
const (
	leastAhead = 4 << 10
	mostAhead  = 256 << 10
)

// ID names the journal; Epoch is this writer's, higher than those before it; Durable
// is the last frame that no crash takes.
func (j *Journal) ID() types.JournalID { return j.id }
func (j *Journal) Epoch() types.Epoch  { return j.epoch }
func (j *Journal) Durable() types.LSN  { return types.LSN(j.durable.Load()) }

// Grown is the bytes of the journal since where recovery began: those that the next
// start reads, if it begins there as well.
func (j *Journal) Grown() int64 { return j.grown.Load() }

// Write chains the frames and writes them. They are not durable before Sync, which
// must come next. What it returns is the caller's, and none of arena.
func (j *Journal) Write(arena []byte, frames []event.Frame) ([]record.Sealed, error) {
	if j.failed != nil {
		return nil, j.failed
	}
	types.Assert(len(frames) > 0 && j.last == j.Durable(), "journal: one batch at a time, and none without frames")
	reborn := j.as != 0
	if reborn {
		j.id, j.as = j.as, 0
	}
	sealed := make([]record.Sealed, len(frames))
	for i, f := range frames {
		types.Assert(f.LSN == j.last+types.LSN(i)+1, "journal: a frame out of order")
		sealed[i] = record.Sealed{Journal: j.id, LSN: f.LSN, Body: arena[f.Off : f.Off+f.Len]}
	}
	switch {
	case reborn:
		sealed[0].Prev = j.root
		if err := j.begin(sealed); err != nil {
			return nil, j.fail(err)
		}
		return sealed, nil
	case j.size > j.Roll:
		if err := j.begin(nil); err != nil {
			return nil, j.fail(err)
		}
	}
	buf := j.seal(make([]byte, 0, room(sealed)), sealed, j.size)
	if _, err := j.file.WriteAt(buf, j.size); err != nil {
		return nil, j.fail(failing(event.WriteFailed, fmt.Sprintf("write %v", sealed[0].LSN), err))
	}
	j.size += int64(len(buf))
	j.grown.Add(int64(len(buf)))
	if err := j.ahead(); err != nil {
		return nil, j.fail(err)
	}
	return sealed, nil
}

// Restore makes of the journal another, which goes on from this one: the frames that are
// written next begin a segment of that, durable with it, and the first of them says so.
// All before it is durable.
func (j *Journal) Restore(as types.JournalID) {
	types.Assert(as != 0 && as != j.id && j.last == j.Durable(), "journal: restored as itself, or in the middle of a batch")
	j.as = as
}

// room is the bytes that a batch takes.
func room(sealed []record.Sealed) int {
	bytes := batchItem
	for _, s := range sealed {
		bytes += len(s.Body) + frameExtra
	}
	return bytes
}

// seal puts a batch into buf: its header, and the frames behind it, chained. base is
// the offset in the segment that buf begins at. The bodies are moved to buf.
func (j *Journal) seal(buf []byte, sealed []record.Sealed, base int64) []byte {
	bytes := room(sealed) - batchItem
	types.Assert(bytes <= math.MaxUint32, "journal: a batch of more than 4 GiB")
	first := sealed[0].LSN
	h := batch{first - 1, j.epoch, first, uint32(bytes), uint32(len(sealed))}
	buf = h.put(buf)
	for i := range sealed {
		s := &sealed[i]
		s.Prev = j.root
		j.root, j.scratch = digest.Chain(j.scratch, s.Prev, s.Body)
		j.table.note(s.LSN, base+int64(len(buf)))
		at := len(buf) + prefixSize
		buf = put(buf, frameMagic, s.Body, j.root[:])
		s.Root, s.Body = j.root, buf[at:at+len(s.Body):at+len(s.Body)]
		j.last = s.LSN
	}
	return buf
}

// ahead makes room ready, when what was is spent. That a disk is full is no failure
// here: the next write will say so, if it is one.
func (j *Journal) ahead() error {
	if j.size <= j.ready {
		return nil
	}
	more := min(max(j.size, leastAhead), mostAhead, j.Roll-j.size)
	if j.ready = j.size; more <= 0 {
		return nil
	}
	n, err := j.file.WriteAt(make([]byte, more), j.size)
	j.ready += int64(n)
	if err = failing(event.WriteFailed, "make room", err); err != nil && FaultOf(err) != event.NoSpace {
		return err
	}
	return nil
}

// Sync makes what was written durable, or the journal takes nothing any more: what a
// failed sync left behind can be read and may not be on the disk.
func (j *Journal) Sync() (types.LSN, error) {
	if j.failed != nil {
		return j.Durable(), j.failed
	}
	if err := j.file.Sync(); err != nil {
		return j.Durable(), j.fail(failing(event.SyncFailed, fmt.Sprintf("sync %v", j.last), err))
	}
	j.durable.Store(uint64(j.last))
	if at := j.open.Load(); at != nil {
		at.synced.Store(j.size)
	}
	return j.last, nil
}

func (j *Journal) fail(err error) error {
	j.failed = err
	return err
}

// An openSegment is the segment that is written, for those who look at it from outside.
type openSegment struct {
	name   string
	file   fs.File
	synced atomic.Int64 // bytes that are durable
}

// lastBytes is how many durable bytes Intact compares.
const lastBytes = 64

// compare returns ErrCut or ErrReplaced if f is shorter than what is durable of the open segment, or ends in
// other bytes. A failed read is no evidence of either.
func (s *openSegment) compare(f fs.File, synced int64) error {
	size, err := f.Size()
	if err != nil {
		return nil //nolint:nilerr // the disk failed, which says nothing about other programs
	}
	if size < synced {
		return fmt.Errorf("%w: has %d bytes, %d are durable", ErrCut, size, synced)
	}
	var ours, theirs [lastBytes]byte
	from := max(0, synced-lastBytes)
	n := synced - from
	_, err = s.file.ReadAt(ours[:n], from)
	_, other := f.ReadAt(theirs[:n], from)
	if err == nil && other == nil && ours != theirs {
		return ErrReplaced
	}
	return nil
}

// Intact returns why the open segment in the directory is not what was made durable: its name is gone
// (os.ErrNotExist), the file is shorter (ErrCut) or another one (ErrReplaced). What is written to a removed
// file is lost at the next start. An identical copy is noticed after the next flush. A disk that fails to open
// or read the file returns nil: flushes and readers report that. Any goroutine may call Intact.
func (j *Journal) Intact() error {
	at := j.open.Load()
	if at == nil {
		return nil
	}
	synced := at.synced.Load() // before its size
	f, err := j.fs.Open(at.name)
	switch {
	case err == nil:
		err = at.compare(f, synced)
		_ = f.Close() // nothing was written
	case !errors.Is(err, os.ErrNotExist):
		err = nil // such as no free file descriptor
	}
	if err == nil || j.open.Load() != at { // another segment was begun meanwhile
		return nil
	}
	return fmt.Errorf("open segment %s: %w", at.name, err)
}

// Close lets go of all files. What was not synced is not.
func (j *Journal) Close() error {
	var err error
	if j.file != nil {
		err = j.file.Close()
		j.file = nil
	}
	for n := range j.slots {
		err = errors.Join(err, j.slots[n].close())
	}
	j.failed = errClosed
	j.open.Store(nil)
	return err
}

// begin opens the next segment, with frames that are to be made durable again. It
// gets its name when they are, so that its start can vouch for them.
func (j *Journal) begin(again []record.Sealed) error {
	number, name := j.number+1, segmentName(j.number+1)
	head := start{version: version, journal: j.id, first: j.last + 1, known: j.last, epoch: j.epoch, prev: j.root}
	if len(again) > 0 {
		head.first, head.prev = again[0].LSN, again[0].Prev
		j.root = head.prev
	}
	j.table.begin(part{number: number, start: head})
	buf := head.put(nil)
	if len(again) > 0 {
		buf = j.seal(buf, again, 0)
	}
	f, err := j.fs.Create(name + leftover)
	if err != nil {
		return failing(event.WriteFailed, "create "+name, err)
	}
	if _, err := f.WriteAt(buf, 0); err != nil {
		return errors.Join(failing(event.WriteFailed, "write "+name, err), f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(failing(event.SyncFailed, "sync "+name, err), f.Close())
	}
	if err := j.fs.Rename(name+leftover, name); err != nil {
		return errors.Join(failing(event.WriteFailed, "name "+name, err), f.Close())
	}
	if err := j.fs.SyncDir(); err != nil {
		return errors.Join(failing(event.SyncFailed, "sync the directory for "+name, err), f.Close())
	}
	if j.file != nil {
		if err := j.file.Close(); err != nil {
			return errors.Join(failing(event.WriteFailed, "close the segment before "+name, err), f.Close())
		}
	}
	j.file, j.number, j.size, j.ready = f, number, int64(len(buf)), int64(len(buf))
	at := &openSegment{name: name, file: f}
	at.synced.Store(j.size)
	j.open.Store(at)
	j.durable.Store(uint64(j.last))
	return nil
}
