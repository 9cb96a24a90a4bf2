// Package backup copies a journal while it grows, and restores a copy.
//
//	journal ──Copy, up to a durable frame──► journal of the same ID, longer each time
//	copy ──Restore──► journal with a new ID: frames of the old one · Restored · frames of the new one
//
// A copy is a normal journal: its chain is recomputed as it is written, so every frame is
// verified against its root, and the copy can be verified like the original.
package backup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"macronode/adapters/durable"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// Why a copy fails.
var (
	ErrNone  = errors.New("backup: no journal is there")
	ErrFork  = errors.New("backup: the backup is of another journal, or this journal has lost frames that the backup has")
	ErrHeir  = errors.New("backup: the backup is of the journal from which this one was restored")
	ErrCopy  = errors.New("backup: the backup is damaged")
	ErrPast  = errors.New("backup: the frames that the backup lacks may be of another past, and are not added")
	ErrTaken = errors.New("backup: the target directory already has a journal")
)

// A Cut is the end of a copy: it has all frames up to LSN and no later ones.
type Cut = durable.Mark

// CutName is the file with the end of a copy. Anything invalid before that end is damage.
const CutName = "copy.cut"

// CutOf returns the end of a copy; zero if the directory is not a copy.
func CutOf(from fs.FS) (Cut, error) {
	cut, err := durable.Read(from, CutName)
	if errors.Is(err, durable.ErrFormat) {
		path := CutName
		switch dir := from.(type) {
		case fs.Dir:
			path = filepath.Join(string(dir), CutName)
		case fmt.Stringer:
			path = filepath.Join(dir.String(), CutName)
		}
		err = fmt.Errorf("%s: %w: it records the last frame of the backup; remove it, then all commands work again, but frames that are missing at the end of the backup "+
			"are not detected until macronode backup has written it again", path, err)
	}
	return cut, err
}

// Done is the result of a copy.
type Done struct {
	Cut
	From   types.LSN // frames after this one are new in the copy
	Frames uint64
	Bytes  int64 // of their bodies

	Restored durable.Mark // by Restore: the first frame of the new journal
}

const slice = 4 << 20 // bytes per write and sync

// Bounds are the limits of a copy.
type Bounds struct {
	Upto     types.LSN           // the last durable frame; 0: the end of a journal that is not being written
	Evidence types.LSN           // frames up to this one were durable, as recorded outside of the segments
	Proofs   []journalfile.Proof // in ascending order; frames of segments that contradict them are not copied
	Doubt    journalfile.Doubt   // see journalfile.Judge
	Heir     bool                // the copy may be of the journal that this one was restored from; then it becomes a copy of this one
	// Before, if not nil, is called when the copy is known to belong to this journal, before it
	// is extended. It returns the frame to copy up to, instead of Upto, after everything that the
	// frames refer to was copied.
	Before func() (types.LSN, error)
	Epoch  func(last types.Epoch) (types.Epoch, error) // of the writer of the copy: see journalfile.Reading
}

// Copy brings the copy in to up to date with the journal in from. Frames that the copy has are
// not read again, except the last one. ErrFork reports that the journal does not have that frame,
// ErrHeir that the copy belongs to another journal, ErrPast that a proof has another root for a later
// frame. If the error is another journalfile.Damage, the copy is valid, and ends before the first
// damage behind its old end. Copy may run beside the journal's writer; only one process may write the
// copy. Tell is called with the progress.
func Copy(ctx context.Context, from, to fs.FS, b Bounds, tell func(Done)) (d Done, err error) {
	first := types.LSN(1)
	if b.Upto == 0 && b.Before == nil {
		first = 0 // the journal is not being written, and may have no frame
	}
	id, err := firstID(from, first)
	if cut, _ := CutOf(to); errors.Is(err, journalfile.ErrDamaged) && cut.LSN > 0 {
		id, err = cut.Journal, nil // the frames behind the copy may be intact
	}
	if err != nil {
		return d, err
	}
	c := copying{ctx: ctx, tell: tell, evidence: b.Evidence, proofs: b.Proofs, doubt: b.Doubt}
	if err := c.open(to, id, b.Epoch); err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, c.to.Close()) }()
	c.heir = c.heir || b.Heir
	if b.Before != nil {
		if c.done.LSN > 0 {
			if err := c.run(from, c.done.LSN); err != nil {
				return c.done, err
			}
		}
		if b.Upto, err = b.Before(); err != nil {
			return c.done, err
		}
	}
	if b.Upto > 0 && c.done.LSN > b.Upto {
		return c.done, fmt.Errorf("%w: the copy has frames to %v, the journal to %v", ErrFork, c.done.LSN, b.Upto)
	}
	damage := c.run(from, b.Upto)
	if damage != nil && (!errors.Is(damage, journalfile.ErrDamaged) || errors.Is(damage, ErrPast)) {
		return c.done, damage
	}
	if c.done.LSN > 0 {
		if err := c.done.Write(to, CutName); err != nil {
			return c.done, err
		}
	}
	if damage != nil {
		return c.done, damage
	}
	if c.done.LSN < b.Upto {
		return c.done, fmt.Errorf("%w: it has frames to %v, the copy ends at %v", ErrFork, b.Upto, c.done.LSN)
	}
	return c.done, nil
}

// firstID returns the first ID of a journal: later segments may have another. Upto is 1 if the first frame is durable, and 0 if
// the journal is not being written.
func firstID(from fs.FS, upto types.LSN) (id types.JournalID, err error) {
	if names, err := from.List(); err != nil || len(names) == 0 {
		return 0, errors.Join(ErrNone, err)
	}
	stop := errors.New("enough")
	_, err = journalfile.Reading{Upto: upto, Each: func(all []record.Sealed) error {
		if len(all) > 0 {
			id = all[0].Journal
		}
		return stop
	}}.Scan(from)
	switch {
	case errors.Is(err, stop) && id != 0:
		return id, nil
	case err != nil && !errors.Is(err, stop):
		return 0, err
	}
	return 0, ErrNone
}

type copying struct {
	ctx   context.Context
	tell  func(Done)
	to    *journalfile.Journal
	as    types.JournalID // ID of the journal to copy
	heir  bool            // frames of the journal that was restored from it may follow
	done  Done
	batch []record.Sealed
	size  int

	evidence types.LSN // as in Bounds
	proofs   []journalfile.Proof
	doubt    journalfile.Doubt
}

// open reads the end of the copy.
func (c *copying) open(to fs.FS, id types.JournalID, epoch func(types.Epoch) (types.Epoch, error)) (err error) {
	cut, err := CutOf(to)
	if err != nil {
		return err
	}
	j, found, err := journalfile.Reading{Known: cut.LSN, Epoch: epoch, Each: func(all []record.Sealed) error {
		if n := len(all); n > 0 {
			c.at(&all[n-1])
		}
		return c.ctx.Err()
	}}.Recover(to, id)
	if errors.Is(err, journalfile.ErrDamaged) {
		return errors.Join(fmt.Errorf("%w: %w", ErrCopy, err), j.Close())
	}
	if err != nil {
		return fmt.Errorf("the copy: %w", err)
	}
	c.heir = cut.LSN == 0 // it was never a completed copy
	c.to, c.as, c.done.From, c.done.Journal, c.done.Root = j, j.ID(), found.Last, found.Journal, found.Root
	return nil
}

// at sets the end of the copy.
func (c *copying) at(s *record.Sealed) {
	h, _, err := record.Open(s.Body)
	types.Assert(err == nil, "backup: an invalid frame")
	c.done.Cut = Cut{Journal: s.Journal, LSN: s.LSN, Root: s.Root, At: h.At}
}

// run copies the missing frames. If it returns damage, those before it are copied.
func (c *copying) run(from fs.FS, upto types.LSN) error {
	behind := journalfile.From{LSN: c.done.LSN, Root: c.done.Root, Journal: c.done.Journal}
	if c.done.LSN == 0 {
		behind = journalfile.From{}
	}
	cut, err := CutOf(from) // a copy can be copied too
	if err != nil {
		return err
	}
	verdict, err := journalfile.Judge(from, c.proofs, c.doubt)
	if err != nil {
		return err
	}
	r := journalfile.Reading{From: behind, Known: cut.LSN, Evidence: c.evidence, Verdict: verdict, Upto: upto, Each: c.takeAll}
	err = c.scan(r, from)
	if verdict.IsReason(err) {
		return fmt.Errorf("%w: %w", ErrPast, err)
	}
	if err == nil || errors.Is(err, journalfile.ErrDamaged) {
		if failed := c.flush(); failed != nil {
			return failed
		}
	}
	return err
}

func (c *copying) takeAll(all []record.Sealed) error {
	for _, s := range all {
		if err := c.take(s); err != nil {
			return err
		}
	}
	return c.ctx.Err()
}

func (c *copying) take(s record.Sealed) error {
	if s.Journal != c.as {
		if !c.heir {
			return fmt.Errorf("%w: %016x at %v", ErrHeir, uint64(c.as), s.LSN-1)
		}
		if err := c.flush(); err != nil {
			return err
		}
		c.to.Restore(s.Journal)
		c.as = s.Journal
	}
	c.batch, c.size = append(c.batch, s), c.size+len(s.Body)
	if c.size < slice {
		return nil
	}
	return c.flush()
}

// flush writes frames and compares their roots with those that were read.
func (c *copying) flush() error {
	if len(c.batch) == 0 {
		return nil
	}
	var arena []byte
	var frames []event.Frame
	for _, s := range c.batch {
		frames = append(frames, event.Frame{LSN: s.LSN, Off: uint32(len(arena)), Len: uint32(len(s.Body))})
		arena = append(arena, s.Body...)
	}
	written, err := c.to.Write(arena, frames)
	if err == nil {
		_, err = c.to.Sync()
	}
	if err != nil {
		return fmt.Errorf("the copy: %w", err)
	}
	last := len(c.batch) - 1
	if written[last].Root != c.batch[last].Root {
		return fmt.Errorf("%w: frame %v has another root there", ErrFork, written[last].LSN)
	}
	c.at(&c.batch[last])
	c.done.Frames, c.done.Bytes = c.done.Frames+uint64(len(c.batch)), c.done.Bytes+int64(len(arena))
	c.batch, c.size = c.batch[:0], 0
	if c.tell != nil {
		c.tell(c.done)
	}
	return nil
}

// As is the identity of a restored journal.
type As struct {
	Journal  types.JournalID     // random and unique
	At       types.Time          // now; the node's time continues from there, or from the copy's end if that is later
	KeepKeys bool                // the API keys of the copy stay valid
	Evidence types.LSN           // frames up to this one were durable, as recorded outside of the segments
	Upto     types.LSN           // the last frame of the copy to take, which is before its first damage; 0: all
	Proofs   []journalfile.Proof // as in Bounds
	Doubt    journalfile.Doubt   // as in Bounds

	Epoch func(last types.Epoch) (types.Epoch, error) // of the writer of the journal: see journalfile.Reading
}

// Restore makes a journal from a copy in to, which must be empty. The journal has the frames of
// the copy, followed by a restore record.
func Restore(ctx context.Context, from, to fs.FS, as As, tell func(Done)) (d Done, err error) {
	names, err := to.List()
	if err != nil {
		return d, err
	}
	if len(names) > 0 {
		return d, ErrTaken
	}
	id, err := firstID(from, 0)
	if err != nil {
		return d, err
	}
	c := copying{ctx: ctx, tell: tell, evidence: as.Evidence, proofs: as.Proofs, doubt: as.Doubt}
	if err := c.open(to, id, as.Epoch); err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, c.to.Close()) }()
	if err := c.run(from, as.Upto); err != nil {
		return c.done, err
	}
	cut := c.done.Cut
	c.to.Restore(as.Journal)
	at := max(as.At, cut.At) // the clock of this machine may be behind that of the node
	body := record.Begin(nil, cut.LSN+1, at)
	body, _ = record.Add(body, 0, &record.Record{Kind: record.Restored, Journal: as.Journal, Upto: cut.LSN, Root: cut.Root})
	if !as.KeepKeys {
		body, _ = record.Add(body, 0, &record.Record{Kind: record.AllKeysRevoked})
	}
	written, err := c.to.Write(body, []event.Frame{{LSN: cut.LSN + 1, Len: uint32(len(body))}})
	if err == nil {
		_, err = c.to.Sync()
	}
	if c.done.Cut = cut; err == nil {
		c.done.Restored = durable.Mark{Journal: as.Journal, LSN: written[0].LSN, Root: written[0].Root, At: at}
	}
	return c.done, err
}
