package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"macronode/adapters/backup"
	"macronode/adapters/config"
	"macronode/adapters/durable"
	"macronode/adapters/fs"
	"macronode/adapters/nodedir"
	"macronode/adapters/objectstore"
	"macronode/adapters/recovery"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/settings"
	"macronode/core/state"
	"macronode/core/types"
	rendered "macronode/core/wallet/receipt"
)

// BackupReport is the result of a backup.
type BackupReport struct {
	Journal string `json:"journal"`
	LSN     uint64 `json:"lsn"`
	At      string `json:"at"`
	Root    string `json:"root"`
	From    uint64 `json:"from_lsn"` // new frames are those after it
	Frames  uint64 `json:"frames"`
	Bytes   int64  `json:"bytes"`

	Objects *ObjectReport `json:"objects,omitempty"` // nil: the node never had objects
}

func newCopied(d backup.Done) BackupReport {
	return BackupReport{Journal: fmt.Sprintf("%016x", uint64(d.Journal)), LSN: uint64(d.LSN), At: string(rendered.Stamp(nil, d.At)),
		Root: fmt.Sprintf("%x", d.Root), From: uint64(d.From), Frames: d.Frames, Bytes: d.Bytes}
}

// BackupOptions are the options of a backup.
type BackupOptions struct {
	To       string // directory of the backup
	Heir     bool   // continue the backup of the journal from which this one was restored
	Contents bool   // also check the contents of objects that the backup has
}

// incomplete returns why a backup may lack durable frames; nil: it lacks none.
func incomplete(known *datadir.Evidence, lacks bool) error {
	switch {
	case errors.Is(known.Unsure, datadir.ErrNoEnd):
		return fmt.Errorf("the backup lacks durable frames: %w; see macronode verify", known.Unsure)
	case errors.Is(known.Unsure, datadir.ErrOtherEnd):
		return fmt.Errorf("the backup may lack frames: %w; see macronode verify", known.Unsure)
	case known.Unsure != nil:
		return errUnsure
	case lacks:
		return errHole
	}
	return nil
}

// Backup copies the journal of a data directory, of a running or a stopped node, into the directory of a backup, up to
// the last durable frame, or to the first damage behind the end of the backup. If there is a report and an error, the backup is made and is
// incomplete: errHole, a damagedError, errUnsure, errObjects or datadir.ErrNoEnd.
func (e Env) Backup(ctx context.Context, cfg *config.Config, o BackupOptions) (is *BackupReport, err error) {
	to := o.To
	if err := checkTarget(to, cfg); err != nil {
		return nil, err
	}
	if _, err := fs.Make(filepath.Join(to, datadir.Journal)); err != nil {
		return nil, notBegun(err)
	}
	held, err := fs.Lock(fs.Dir(to), e.Version)
	if err != nil {
		return nil, notBegun(err)
	}
	defer held.Close() //nolint:errcheck // the lock ends with the process at the latest
	objects, copied := settings.NewObjectStore(cfg), objectsIn(to)
	if hasObjects(objects) { // before the frame is known: until the end, no file that it needs is removed
		pin, err := objects.Pin()
		if err != nil {
			return nil, exit.Unable(err)
		}
		defer pin.Close() //nolint:errcheck // nothing was written
	}
	_, before, err := evidence(cfg)
	if err != nil {
		return nil, err
	}
	upto, lock, damaged, err := e.durable(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer lock.Close() //nolint:errcheck // nothing was written
	from, known, err := evidence(cfg)
	if err != nil {
		return nil, err
	}
	if upto > 0 { // a running node goes on: by now it may have recorded frames behind those that are copied
		known = before
	}
	b := backup.Bounds{Upto: upto, Evidence: known.LSN, Proofs: known.Proofs, Doubt: known.Doubt, Heir: o.Heir}
	k, err := e.copyOf(source{ctx, cfg, from}, upto, objects, copied, o.Contents)
	if err != nil {
		return nil, notBegun(err)
	}
	if k != nil {
		k.next = e.nextDurable(ctx, cfg, upto)
	}
	d, damage, err := e.copyFrames(ctx, from, to, b, k)
	switch {
	case damaged && errors.Is(err, backup.ErrFork):
		return nil, errNodeReadsLess
	case err != nil:
		return nil, explainCopy(err, to)
	case damage != nil:
		known.Note(damage.To, damage.Segment) // what is behind it shows that its frames were durable
	}
	if err := noteLoss(fs.Dir(to), d.Cut, known); err != nil {
		return nil, err
	}
	made, err := newCopied(d), incomplete(&known, damaged || d.LSN < known.LSN)
	if damage != nil {
		err = &damagedError{d.LSN, damage}
	}
	if k != nil {
		made.Objects = &k.ObjectReport
		switch elsewhere := len(cfg.Storage.Providers) == 0 && !hasObjects(objects); {
		case k.Bad > 0 && elsewhere:
			err = errors.Join(err, errElsewhere)
		case k.Bad > 0:
			err = errors.Join(err, errObjects)
		}
	}
	return &made, err
}

// evidence returns the segments of a data directory, and which frames are known to be durable. Its proofs are in ascending order, with those of
// snapshots: one that cannot be read proves nothing.
func evidence(cfg *config.Config) (from datadir.Segments, known datadir.Evidence, err error) {
	if from, err = datadir.OpenSegments(fs.Dir(cfg.Data), cfg.Journal.Archive); err != nil {
		return from, known, exit.Unable(err)
	}
	if from.Foreign != nil {
		return from, known, exit.Unable(from.Foreign)
	}
	if known, err = datadir.ReadEvidence(cfg.Data, from, func(error) {}); err != nil {
		return from, known, exit.Unable(err)
	}
	heads, err := recovery.Heads(from, fs.Dir(filepath.Join(cfg.Data, datadir.Snapshots)), func(error) {})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return from, known, exit.Unable(err)
	}
	known.Proofs = recovery.Proofs(known.Proofs, heads)
	return from, known, nil
}

// copyOf returns the copy of the objects; nil: the node never had any. That no file of an object is found proves nothing: the directories may
// be away, or be named in a configuration that was not given.
func (e Env) copyOf(of source, upto types.LSN, objects, copied *objectstore.Store, contents bool) (*objectCopy, error) {
	if has := hasObjects(objects) || hasObjects(copied); !has {
		is, err := of.at(upto)
		if err != nil {
			return nil, err
		}
		if total(is).Objects == 0 {
			return nil, nil
		}
	}
	k, err := e.newObjectCopy(of.ctx, objects, copied, contents)
	if err == nil {
		k.source = of
	}
	return k, err
}

// explainCopy adds to an error of backup.Copy what to do.
func explainCopy(err error, to string) error {
	if errors.Is(err, backup.ErrHeir) {
		err = fmt.Errorf("%w; back up into another directory, or give --follow-restore: then %s is no longer a backup of the earlier journal", err, to)
	}
	if errors.Is(err, backup.ErrCopy) {
		err = fmt.Errorf("%w; back up into another directory, and keep %s until that is complete: macronode restore %s --validate shows what is damaged", err, to, to)
	}
	for _, refused := range [...]error{backup.ErrNone, backup.ErrHeir, backup.ErrCopy, backup.ErrFork} {
		if errors.Is(err, refused) {
			return exit.Unable(err)
		}
	}
	return fmt.Errorf("the backup in %s is not completed: %w", to, err) // a write has failed, for example because the disk is full
}

// readFrom has finish read from the journal of the backup which objects there are.
func (k *objectCopy) readFrom(to string, journal fs.FS) {
	of := *k.source.config
	of.Data = to
	k.source, k.state = source{k.ctx, &of, journal}, &state.State{}
}

// WriteText describes the backup.
func (is *BackupReport) WriteText(to io.Writer, dir string) error {
	w := lines{w: to}
	w.printf("%s has journal %s to frame @%d (%s): %d frames, %d bytes are new", dir, is.Journal, is.LSN, is.At, is.Frames, is.Bytes)
	if o := is.Objects; o != nil {
		w.printf("and %d objects of %d bytes: %d objects, %d bytes are new", o.Objects-o.Bad, o.Bytes, o.New, o.NewBytes)
		if o.Mended > 0 {
			w.printf("%d objects were damaged in the backup, and are copied again", o.Mended)
		}
		o.writeText(&w)
	}
	return w.err
}

// noteLoss writes into the directory of a copy which durable frames it lacks, so that it is not taken for
// complete.
func noteLoss(to fs.Dir, cut backup.Cut, known datadir.Evidence) error {
	if known.Unsure != nil && cut.LSN >= known.LSN {
		return notBegun(durable.WriteUnknown(to, durable.Name))
	}
	if cut.LSN < known.LSN {
		return notBegun(durable.Mark{Journal: cut.Journal, LSN: known.LSN}.Write(to, durable.Name))
	}
	if err := to.Remove(durable.Name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return notBegun(err)
	}
	return nil
}

// notBegun returns the error of a command that stopped before it copied anything. A disk without space is a failure, not a wrong usage: it
// has the same exit code as one that fills up later.
func notBegun(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return err
	}
	return exit.Unable(err)
}

// errHole means that a copy lacks frames that were durable.
var errHole = errors.New("the journal is damaged: the backup ends before the damage; see macronode verify")

// errUnsure means that a copy may lack frames that were durable.
var errUnsure = errors.New("the mark of durable frames is damaged: the backup may lack frames; see macronode verify")

// checkTarget returns an error unless a directory can hold a copy: it must be empty or contain a copy, and must not be inside a
// directory of the node.
func checkTarget(to string, cfg *config.Config) error {
	if err := stat(filepath.Join(cfg.Data, datadir.Journal), func() error { return noJournal(cfg) }); err != nil {
		return err
	}
	if in, err := isInside(to, cfg.Data); err != nil {
		return exit.Unable(err)
	} else if in {
		return exit.Unable(fmt.Errorf("%s is inside the data directory: choose another directory, best on another disk", to))
	}
	for path, what := range otherDirs(cfg) {
		if in, err := isInside(to, path); err == nil && in { // an error: its disk has failed, and it has no room for a backup
			return exit.Unable(fmt.Errorf("%s is inside %s, %s: choose another directory, best on another disk", to, path, what))
		}
	}
	names, err := os.ReadDir(to)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return exit.Unable(err)
	}
	for _, n := range names {
		if n.Name() != datadir.Journal && n.Name() != datadir.Objects && n.Name() != "LOCK" && n.Name() != durable.Name {
			return exit.Unable(fmt.Errorf("%s is not empty and is not a backup: %s", to, n.Name()))
		}
	}
	return nil
}

// otherDirs returns the directories of a node outside of its data directory, by their paths.
func otherDirs(cfg *config.Config) map[string]string {
	all := map[string]string{}
	for _, p := range cfg.ObjectProviders() {
		if p.Path != "" { // else it is a bucket
			all[p.Path] = "the directory of provider " + p.Name
		}
	}
	if cfg.Journal.Archive != "" {
		all[cfg.Journal.Archive] = "the archive of the journal"
	}
	return all
}

// isInside reports whether a directory is, or will be, inside another one, or the same. Links are followed.
func isInside(dir, of string) (bool, error) {
	inner, err1 := resolved(dir)
	outer, err2 := resolved(of)
	if err := errors.Join(err1, err2); err != nil {
		return false, err
	}
	rel, err := filepath.Rel(outer, inner)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)), nil
}

// resolved returns the absolute path without links. The last parts of the path need not exist.
func resolved(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if !errors.Is(err, os.ErrNotExist) || abs == filepath.Dir(abs) {
		return real, err
	}
	parent, err := resolved(filepath.Dir(abs))
	return filepath.Join(parent, filepath.Base(abs)), err
}

// durable returns the last durable frame. A running node reports its own. Of a stopped node it is 0, the end of the journal, and
// the lock keeps a node from starting.
func (e Env) durable(ctx context.Context, cfg *config.Config) (upto types.LSN, lock io.Closer, damaged bool, err error) {
	is, err := nodedir.Read(cfg.Data)
	if err != nil {
		lock, err := fs.Hold(fs.Dir(cfg.Data), e.Version)
		if err != nil {
			return 0, nil, false, exit.Unable(err)
		}
		return 0, lock, false, nil
	}
	upto, damaged, err = e.Running(ctx, is)
	return upto, io.NopCloser(nil), damaged, err
}

// nextDurable returns a function that returns first the frame that is known to be durable, then newer ones. For a
// stopped node that is 0: the last frame.
func (e Env) nextDurable(ctx context.Context, cfg *config.Config, first types.LSN) func() (types.LSN, error) {
	asked := false
	return func() (types.LSN, error) {
		if !asked || first == 0 {
			asked = true
			return first, nil
		}
		upto, _, _, err := e.durable(ctx, cfg) // a lock, if the node has stopped, ends with the process
		return upto, err
	}
}
