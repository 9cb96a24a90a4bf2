package offline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"macronode/adapters/backup"
	"macronode/adapters/config"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/adapters/objectstore"
	"macronode/adapters/recovery"
	"macronode/adapters/snapshot"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/settings"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/storage"
	"macronode/core/types"
)

// ObjectReport is what a backup, a restore or a verification found of the objects of a state.
type ObjectReport struct {
	Objects  uint64      `json:"objects"`
	Bytes    uint64      `json:"bytes"`
	New      uint64      `json:"new_objects,omitzero"` // that were copied now
	NewBytes uint64      `json:"new_bytes,omitzero"`
	Mended   uint64      `json:"mended_objects,omitzero"`    // whose copy was damaged, and that were copied again
	Contents bool        `json:"contents_verified,omitzero"` // else only names and sizes
	Bad      uint64      `json:"unreadable"`
	Named    []badObject `json:"unreadable_objects,omitempty"` // the first ones

	Providers []CopyReport `json:"providers,omitempty"` // of a verification with several providers
}

// CopyReport is what a verification found of the copies in a provider.
type CopyReport struct {
	Provider string `json:"provider"`
	Intact   uint64 `json:"intact"`
	Missing  uint64 `json:"missing"`
	Damaged  uint64 `json:"damaged"`
}

// badCopies returns how many copies are missing or damaged.
func (r *ObjectReport) badCopies() (n uint64) {
	for _, p := range r.Providers {
		n += p.Missing + p.Damaged
	}
	return n
}

// badObject is an object whose files do not contain it.
type badObject struct {
	Address string `json:"address"`
	Size    uint64 `json:"size"`
	Why     string `json:"reason"`
}

const shownBad = 100 // most unreadable objects that are listed

func (r *ObjectReport) bad(o storage.Stored, why error) {
	if r.Bad++; len(r.Named) < shownBad {
		r.Named = append(r.Named, badObject{o.Address.String(), o.Size, why.Error()})
	}
}

// writeText lists the unreadable objects.
func (r *ObjectReport) writeText(w *lines) {
	for _, b := range r.Named {
		w.printf("object %s of %d bytes is unreadable: %s", b.Address, b.Size, b.Why)
	}
	if more := r.Bad - uint64(len(r.Named)); more > 0 {
		w.printf("and %d more objects are unreadable", more)
	}
}

// errObjects reports unreadable objects.
var errObjects = errors.New("objects are unreadable; put the files back, or upload the same content again")

// errElsewhere is errObjects of a data directory that has no file of an object.
var errElsewhere = fmt.Errorf("%w; if they are in storage.providers, give the configuration of the node (--config)", errObjects)

// objectsIn returns the files of the objects in a backup. They are not read.
func objectsIn(data string) *objectstore.Store {
	return objectstore.New(fs.Dir(filepath.Join(data, datadir.Objects)), objectstore.Limits{Object: storage.MaxObject})
}

// hasObjects reports whether there are files of objects in a store.
func hasObjects(s *objectstore.Store) bool {
	files, err := s.Files()
	return err == nil && files.HasObjects()
}

// allObjects calls each with every object of a state.
func allObjects(s *state.State, each func(storage.Stored) error) error {
	p, ok := s.Plane(types.PlaneStorage).(*storage.Plane)
	for from, done := uint32(0), !ok; !done; {
		var list []storage.Stored
		list, from, done = p.Objects(from, datadir.ObjectBatch)
		for _, o := range list {
			if err := each(o); err != nil {
				return err
			}
		}
	}
	return nil
}

// total returns how many objects a state has and how many bytes.
func total(s *state.State) (r ObjectReport) {
	if p, ok := s.Plane(types.PlaneStorage).(*storage.Plane); ok {
		_, all := p.Totals()
		r.Objects, r.Bytes = all.Objects, all.Bytes
	}
	return r
}

// checkObjects checks the files of all objects of a state; with contents, every byte of each copy.
func checkObjects(ctx context.Context, store *objectstore.Store, s *state.State, contents bool, progress func(journalfile.Progress)) (*ObjectReport, error) {
	r, read := total(s), uint64(0)
	check := store.CheckPart
	if contents {
		check = func(o storage.Stored, p objectstore.Part) error { return store.VerifyPart(o, p, nil) }
		r.Contents = true
	}
	store.NoteSchemes()
	copies := newCopyCheck(store, check)
	err := allObjects(s, func(o storage.Stored) error {
		why := copies.check(o)
		if errors.Is(why, os.ErrPermission) {
			return why
		}
		if why != nil {
			r.bad(o, why)
		}
		if read += o.Size; progress != nil {
			progress(journalfile.Progress{Segment: datadir.Objects, Done: int64(read), Total: int64(r.Bytes), Last: s.LSN})
		}
		return context.Cause(ctx)
	})
	if store.Table().Len() > 1 {
		r.Providers = copies.found
	}
	return &r, err
}

// objectCopy copies the files of objects between a data directory and a backup.
type objectCopy struct {
	ctx      context.Context
	from, to *objectstore.Store
	bar      Meter
	check    func(storage.Stored) error // what is asked of a copy that the target has already
	sound    map[storage.File]bool      // copies that were checked, or written, by this process
	source   source                     // of a backup
	next     func() (types.LSN, error)  // the newest durable frame of the source
	state    *state.State               // whose objects were copied last
	ObjectReport
	unread map[storage.File]bool // that the last round could not read
}

// remake makes the directories of a store.
func remake(s *objectstore.Store) error {
	for i := range s.Table().Len() {
		if err := s.Remake(i); err != nil {
			return err
		}
	}
	return nil
}

// newObjectCopy makes the target directory. Parts that an interrupted copy left there are removed. Of objects that the target has,
// names and sizes are checked, or all contents.
func (e Env) newObjectCopy(ctx context.Context, from, to *objectstore.Store, contents bool) (*objectCopy, error) {
	if err := remake(to); err != nil {
		return nil, err
	}
	from.NoteSchemes()
	k := &objectCopy{ctx: ctx, from: from, to: to, bar: e.Objects, check: to.Check, sound: map[storage.File]bool{}}
	if k.Contents = contents; contents {
		k.check = to.Verify
	}
	if err := k.to.Recover(); err != nil {
		return nil, err
	}
	_, err := k.to.Collect(func(storage.Address, storage.File) bool { return true })
	return k, err
}

// round copies the objects of a state that the target does not have, or has damaged. It reports whether an object could not be read that
// the round before could: the source may have deleted it after the state.
func (k *objectCopy) round(s *state.State) (deleted bool, err error) {
	defer k.bar.End()
	have, err := k.to.Files()
	if err != nil {
		return false, err
	}
	before, r := k.unread, total(s)
	k.unread = map[storage.File]bool{}
	r.New, r.NewBytes, r.Mended, r.Contents = k.New, k.NewBytes, k.Mended, k.Contents
	k.bar.Begin(int64(r.Bytes))
	err = allObjects(s, func(o storage.Stored) error {
		if err := context.Cause(k.ctx); err != nil {
			return err
		}
		k.bar.Add(int64(o.Size))
		damaged, err := k.isDamaged(have, o)
		if err != nil || have.Has(o) && !damaged {
			return err
		}
		err = k.to.Copy(k.from, o)
		if bad := (*objectstore.SourceError)(nil); errors.As(err, &bad) {
			r.bad(o, bad)
			k.unread[o.File] = true
			deleted = deleted || !before[o.File]
			return nil
		}
		if err != nil {
			return err
		}
		if had := have.Parts(o); had.Count() > 0 {
			if err := k.to.RemoveReplaced(o, have); err != nil {
				return err
			}
		}
		k.sound[o.File] = true
		if damaged {
			r.Mended++
		} else {
			r.New, r.NewBytes = r.New+1, r.NewBytes+o.Size
		}
		return nil
	})
	k.ObjectReport = r
	return deleted, errors.Join(err, k.to.Flush())
}

// isDamaged reports whether the target has a file of an object that does not contain it. Each copy is checked once.
func (k *objectCopy) isDamaged(have objectstore.Files, o storage.Stored) (bool, error) {
	if !have.Has(o) || k.sound[o.File] {
		return false, nil
	}
	err := k.check(o)
	if errors.Is(err, objectstore.ErrDamaged) || errors.Is(err, objectstore.ErrGone) {
		return true, nil
	}
	k.sound[o.File] = err == nil
	return false, err
}

// maxRounds is how often a backup tries to copy the objects of a running node: each round takes the objects of a
// newer frame, which are few. One round is enough for a node that keeps the files of a pinned directory.
const maxRounds = 20

// settle copies the objects of a journal that grows. It returns a frame all objects of which are copied, except for those
// that are unreadable.
func (k *objectCopy) settle() (types.LSN, error) {
	for range maxRounds {
		upto, err := k.next()
		if err != nil {
			return 0, err
		}
		if k.state, err = k.source.at(upto); err != nil {
			return 0, err
		}
		deleted, err := k.round(k.state)
		if err != nil || !deleted {
			return k.state.LSN, err
		}
	}
	return 0, errors.New("the node deletes objects faster than they can be copied: increase storage.collect_interval")
}

// finish removes from the backup the files of objects that its last frame does not have. A backup that ends before the frame of
// settle, because the journal is damaged there, gets the objects of its own last frame instead.
func (k *objectCopy) finish(last types.LSN) (err error) {
	if last != k.state.LSN {
		if k.state, err = k.source.at(last); err == nil {
			_, err = k.round(k.state)
		}
		return err
	}
	p, _ := k.state.Plane(types.PlaneStorage).(*storage.Plane)
	_, err = k.to.Collect(func(a storage.Address, file storage.File) bool {
		o, ok := p.Find(a)
		return ok && o.File == file
	})
	return err
}

// source is the journal of a data directory, with its snapshots.
type source struct {
	ctx     context.Context
	config  *config.Config
	journal fs.FS
}

func (s source) err() error { return context.Cause(s.ctx) }

// at returns the state at a frame, from the newest snapshot that can be read. 0 is the last frame. A damaged
// journal is read up to the damage.
func (s source) at(upto types.LSN) (*state.State, error) {
	snapshots, err := snapshot.List(fs.Dir(filepath.Join(s.config.Data, datadir.Snapshots)))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, lsn := range append(snapshots, 0) {
		if upto > 0 && lsn > upto {
			continue
		}
		is, err := s.from(lsn, upto)
		if err == nil || !errors.Is(err, snapshot.ErrDoubt) && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, journalfile.ErrApart) {
			return is, err
		}
	}
	return nil, backup.ErrNone
}

// from returns the state at a frame, from one snapshot; 0: from the beginning of the journal.
func (s source) from(lsn, upto types.LSN) (*state.State, error) {
	is, begin := state.New(settings.StateLimits(s.config), 1), journalfile.From{}
	if lsn > 0 {
		head, err := snapshot.Load(fs.Dir(filepath.Join(s.config.Data, datadir.Snapshots)), lsn, &is, s.err)
		if err != nil {
			return nil, settings.ExplainRoom(err)
		}
		begin = recovery.From(head)
	}
	_, err := journalfile.Reading{From: begin, Upto: upto, Each: func(all []record.Sealed) error {
		for i := range all {
			if err := is.Fold(all[i].Body, nil); err != nil {
				return err
			}
		}
		return s.err()
	}}.Scan(s.journal)
	if err != nil && !errors.Is(err, journalfile.ErrDamaged) {
		return nil, fmt.Errorf("read the journal: %w", settings.ExplainRoom(err))
	}
	return &is, nil
}
