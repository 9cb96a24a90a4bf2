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

// Journal is an open journal. One goroutine writes: a batch with Write, then Sync. Any goroutine
// may call Read and Durable.
type Journal struct {
	Roll int64 // a segment longer than this is followed by a new one

	fs           fs.FS
	id           types.JournalID
	as           types.JournalID // ID from the next frame on; 0: unchanged
	epoch        types.Epoch
	file         fs.File
	number       uint32 // of the open segment
	size         int64  // bytes written to it
	ready        int64  // its size including preallocated zeros
	last         types.LSN
	root         types.Root
	durable      atomic.Uint64
	open         atomic.Pointer[openSegment]
	verdict      Verdict      // after damage: of its reading
	knownDurable types.LSN    // after damage: all frames up to this one were durable, and whole ones can be read
	grown        atomic.Int64 // bytes that the next start reads
	failed       error        // why writes are rejected
	cut          error        // the open segment was found shorter than ready; Sync reports it
	table        table
	slots        [shelf]slot
	scratch      []byte
}

// Space is preallocated with zeros: a sync of overwritten bytes need not make a new file size
// durable, which takes half the time.
const (
	leastAhead = 4 << 10
	mostAhead  = 256 << 10
)

// ID is the journal's ID; Epoch is this writer's, higher than those before it; Durable is the
// last durable frame.
func (j *Journal) ID() types.JournalID { return j.id }
func (j *Journal) Epoch() types.Epoch  { return j.epoch }
func (j *Journal) Durable() types.LSN  { return types.LSN(j.durable.Load()) }

// Grown returns the bytes of the journal since the start of recovery: the bytes that the next
// start reads from the same position.
func (j *Journal) Grown() int64 { return j.grown.Load() }

// Write chains and writes frames. They are durable after Sync, which must be the next call. The
// result belongs to the caller and does not refer to arena.
func (j *Journal) Write(arena []byte, frames []event.Frame) ([]record.Sealed, error) {
	if j.failed != nil {
		return nil, j.failed
	}
	types.Assert(len(frames) > 0 && j.last == j.Durable(), "journal: an empty batch, or two batches without a sync")
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
	if j.size+int64(len(buf)) >= j.ready {
		j.noteCut() // the write makes the file as long as it was, so Sync would not notice the cut
	}
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

// Restore gives the journal a new ID. The next frames begin a new segment, and the first of them
// records the change. All earlier frames must be durable.
func (j *Journal) Restore(as types.JournalID) {
	types.Assert(as != 0 && as != j.id && j.last == j.Durable(), "journal: restored as itself, or in the middle of a batch")
	j.as = as
}

// room returns the size of a batch.
func room(sealed []record.Sealed) int {
	bytes := batchItem
	for _, s := range sealed {
		bytes += len(s.Body) + frameExtra
	}
	return bytes
}

// seal writes a batch into buf: its header and the chained frames. base is the offset of buf in
// the segment. The bodies are moved to buf.
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

// ahead preallocates space when the last was used up. A full disk is not an error here: the next
// write will report it.
func (j *Journal) ahead() error {
	if j.size <= j.ready {
		return nil
	}
	more := min(max(j.size, leastAhead), mostAhead, j.Roll-j.size)
	if j.ready = j.size; more <= 0 {
		return nil
	}
	j.noteCut() // as in Write
	n, err := j.file.WriteAt(make([]byte, more), j.size)
	j.ready += int64(n)
	if err = failing(event.WriteFailed, "make room", err); err != nil && FaultOf(err) != event.NoSpace {
		return err
	}
	return nil
}

// Sync makes written frames durable. If it fails, the journal rejects all further writes: after a
// failed sync, data can be readable and still not be on disk. It fails with ErrCut if the open segment is
// shorter than what was written to it.
func (j *Journal) Sync() (types.LSN, error) {
	if j.failed != nil {
		return j.Durable(), j.failed
	}
	if err := j.file.Sync(); err != nil {
		return j.Durable(), j.fail(failing(event.SyncFailed, fmt.Sprintf("sync %v", j.last), err))
	}
	if j.noteCut(); j.cut != nil {
		return j.Durable(), j.fail(j.cut)
	}
	j.durable.Store(uint64(j.last))
	if at := j.open.Load(); at != nil {
		at.synced.Store(j.size)
	}
	return j.last, nil
}

// noteCut notes that the open segment is shorter than what was written to it. Frames that were acknowledged may be lost then. The batch
// is written nevertheless: its header proves to the next start that the frames before it were durable. Without it, the next
// start would take the cut for the end of the journal.
func (j *Journal) noteCut() {
	size, err := j.file.Size()
	if err != nil || size >= j.ready || j.cut != nil { // a disk error is no evidence of other programs
		return
	}
	short := fmt.Errorf("%w: has %d bytes, %d were written", ErrCut, size, j.ready)
	j.cut = failing(event.FilesLost, "open segment "+segmentName(j.number), short)
}

func (j *Journal) fail(err error) error {
	j.failed = err
	return err
}

// An openSegment is the open segment as other goroutines see it.
type openSegment struct {
	name   string
	file   fs.File
	synced atomic.Int64 // bytes that are durable
}

// lastBytes is the number of durable bytes that Intact compares.
const lastBytes = 64

// compare returns ErrCut or ErrReplaced if f is shorter than what is durable of the open segment, or ends in
// other bytes. A failed read is no evidence of either.
func (s *openSegment) compare(f fs.File, synced int64) error {
	size, err := f.Size()
	if err != nil {
		return nil //nolint:nilerr // a disk error is no evidence of other programs
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
		_ = f.Close() // opened for reading
	case !errors.Is(err, os.ErrNotExist):
		err = nil // such as no free file descriptor
	}
	if err == nil || j.open.Load() != at { // another segment was begun meanwhile
		return nil
	}
	return fmt.Errorf("open segment %s: %w", at.name, err)
}

// Close closes all files. Frames that were not synced are not durable.
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

// begin opens the next segment, with frames that must be made durable again. The segment gets its
// name when they are, so that its start can prove it.
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
		j.noteCut() // while it is open
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
