package main

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
	"macronode/adapters/snapshot"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

// errBroken says that something was found; what, stands on standard output.
var errBroken = errors.New("problems found")

// Run checks a journal.
func (v *verifyCmd) Run(c *console) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	return c.verify(ctx, cfg, v)
}

// verify reads a journal on which no node runs, in memory that does not grow with it: the
// chain and every checksum, the order of frames and of time, each movement against the
// state before it, that all money adds up at the end, and each snapshot. It goes on
// behind damage, and changes nothing.
func (c *console) verify(ctx context.Context, cfg *config.Config, asked *verifyCmd) error {
	dir := filepath.Join(cfg.Data, segmentsName)
	if _, err := os.Stat(dir); err != nil {
		return cannot(fmt.Errorf("there is no journal in %s", cfg.Data))
	}
	lock, err := fs.Hold(fs.Dir(cfg.Data), thisBuild().Version)
	if err != nil {
		return cannot(err)
	}
	defer lock.Close() //nolint:errcheck // nothing was written
	journal, err := openDisk(cfg.Journal.Archive, fs.Dir(dir))
	if err != nil {
		return cannot(err)
	}
	known, err := evidenceIn(cfg.Data, journal, c.doubt)
	if err != nil {
		return cannot(err)
	}
	v := &verification{ctx: ctx, evidence: known, config: cfg, deep: asked.Deep, progress: c.progress(asked.Progress),
		journal: journal, kept: fs.Dir(filepath.Join(cfg.Data, snapshotsName)), state: state.New(stateLimits(cfg), 1)}
	if err := v.run(); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	if v.Segments == 0 && len(v.Damage) == 0 {
		return cannot(fmt.Errorf("there is no journal in %s", cfg.Data))
	}
	if v.Error == "" && len(v.Damage) == 0 {
		if err := v.checkObjects(cfg.Data, !asked.Fast); err != nil {
			return fmt.Errorf("verify: %w", err)
		}
	}
	v.OK = v.Error == "" && len(v.Damage) == 0 && v.believed() == len(v.Snapshots) && v.objectsOK()
	if c.tree.JSON {
		err = c.print(&v.verified)
	} else {
		err = v.tell(c)
	}
	if err == nil && !v.OK {
		err = fmt.Errorf("verify: %w", errBroken)
	}
	return err
}

// doubt tells what could not be read of what a directory knows beside its segments.
func (c *console) doubt(err error) {
	fmt.Fprintf(c.err, "macronode: durable mark not readable: %v\n", err) //nolint:errcheck // it is no part of the answer
}

// verified is what a journal says of itself, and what of it does not check.
type verified struct {
	OK        bool      `json:"ok"`
	Error     string    `json:"error,omitzero"` // why it was not gone on with
	Journal   string    `json:"journal"`
	Frames    uint64    `json:"frames"` // before the first damage
	Known     uint64    `json:"known_durable"`
	KnownFrom string    `json:"known_from,omitzero"` // what knows it beside the segments
	Root      string    `json:"root"`
	Segments  int       `json:"segments"`
	Bytes     int64     `json:"bytes"`
	Cut       uint64    `json:"torn_tail_bytes"`
	Moved     uint64    `json:"movements"`
	Refused   uint64    `json:"kept_refusals"`
	Keys      uint64    `json:"api_keys"`
	Accounts  int       `json:"accounts"`
	Damage    []damage  `json:"damage,omitempty"`
	Lost      uint64    `json:"lost_frames,omitzero"`
	Snapshots []summary `json:"snapshots,omitempty"`
	Start     *start    `json:"next_start,omitzero"` // of a damaged journal

	Objects *objectReport `json:"objects,omitempty"` // nil: there are none, or they were not checked
}

// damage is a place where a journal does not check, and the frames that cannot be read
// for it; none, where to_lsn is less than from_lsn.
type damage struct {
	Segment string `json:"segment"`
	Offset  int64  `json:"offset"`
	From    uint64 `json:"from_lsn"`
	To      uint64 `json:"to_lsn"`
	Why     string `json:"reason"`
}

// summary is a snapshot. One is held against the chain where the chain can be read to it.
type summary struct {
	File string `json:"file"`
	LSN  uint64 `json:"lsn"`
	OK   bool   `json:"ok"`
	Held bool   `json:"held_against_the_journal"`
	Why  string `json:"why,omitzero"`
	head snapshot.Head
}

// start is what the next start of the node will do.
type start struct {
	Snapshot uint64 `json:"snapshot_lsn"`
	Upto     uint64 `json:"upto_lsn"` // the last frame of the state that it has then
	Writes   bool   `json:"takes_writes"`
}

// verification is one under way.
type verification struct {
	verified
	ctx      context.Context
	evidence evidence // of what was durable, outside of the segments
	config   *config.Config
	deep     bool
	progress func(journalfile.Progress)
	journal  fs.FS
	kept     fs.FS
	state    state.State
	wrong    error // the first movement that does not follow
}

func (v *verification) goesOn() error { return context.Cause(v.ctx) }

// checkObjects checks the files of the objects; with contents, every byte of them.
func (v *verification) checkObjects(data string, contents bool) (err error) {
	if all := total(&v.state); all.Objects > 0 {
		v.Objects, err = checkObjects(v.ctx, data, &v.state, contents, v.progress)
	}
	return err
}

func (v *verified) objectsOK() bool { return v.Objects == nil || v.Objects.Bad == 0 }

// run fills in what there is to say. Its error is that it could not be found out.
func (v *verification) run() error {
	known, err := v.sums()
	if err != nil {
		return err
	}
	cut, err := backup.CutOf(v.journal)
	if err != nil {
		return err
	}
	v.evidence.note(known, snapshotsName)
	v.evidence.note(cut.LSN, "copy.cut")
	if known = v.evidence.LSN; known > 0 {
		v.KnownFrom = v.evidence.Source
	}
	r := journalfile.Reading{Known: known, Each: v.frames, Progress: v.progress}
	found, err := r.Scan(v.journal)
	v.Frames, v.Known, v.Root = uint64(found.Last), uint64(found.Known), fmt.Sprintf("%x", found.Root)
	v.Journal, v.Segments, v.Bytes = fmt.Sprintf("%016x", uint64(found.Recovery.Journal)), found.Segments, found.Bytes
	v.Cut, v.Accounts = found.Recovery.CutBytes, v.state.Wallet.Accounts()
	if stopped := v.goesOn(); stopped != nil {
		return stopped
	}
	if errors.Is(err, journalfile.ErrDamaged) {
		return v.inspect(r)
	}
	if err == nil {
		err = errors.Join(v.wrong, v.state.Check())
	}
	if err != nil {
		v.Error = roomy(err).Error()
	}
	return nil
}

func roomy(err error) error {
	if errors.Is(err, state.ErrRoom) {
		err = fmt.Errorf("%w: wallet.limits, wallet.idempotency.keys and api_keys must be at least what they were", err)
	}
	return err
}

// frames folds what was read, and holds each movement to what was there before it, and
// each snapshot to the chain.
func (v *verification) frames(all []record.Sealed) error {
	for i := range all {
		err := v.state.Fold(all[i].Body, func(p types.Position, r *record.Record) {
			switch {
			case r.IsMovement():
				v.Moved++
				if why := v.state.Wallet.CheckReplay(r); why != nil && v.wrong == nil {
					v.wrong = fmt.Errorf("%v: %w", p, why)
				}
			case r.Kind == record.Rejected:
				v.Refused++
			case r.Kind == record.BootstrapKeyCreated, r.Kind == record.KeyCreated:
				v.Keys++
			}
		})
		if err != nil {
			return err
		}
		if err := v.hold(&all[i]); err != nil {
			return err
		}
	}
	return v.goesOn()
}

// sums reads the snapshots. Known is the last frame that one of this journal is of: it
// was durable.
func (v *verification) sums() (known types.LSN, err error) {
	if _, err := os.Stat(filepath.Join(v.config.Data, snapshotsName)); err != nil {
		return 0, nil //nolint:nilerr // there need not be any
	}
	id, err := journalfile.ID(v.journal)
	if err != nil {
		return 0, err
	}
	all, err := snapshot.List(v.kept)
	if err != nil {
		return 0, err
	}
	for _, lsn := range all {
		s := summary{File: snapshot.Name(lsn), LSN: uint64(lsn)}
		switch s.head, err = snapshot.Check(v.kept, lsn, v.goesOn); {
		case errors.Is(err, snapshot.ErrDoubt):
			s.Why = err.Error()
		case err != nil:
			return 0, err
		case id != 0 && s.head.Journal != id:
			s.Why = fmt.Sprintf("it is of journal %016x", uint64(s.head.Journal))
		default:
			s.OK, known = true, max(known, lsn)
		}
		v.Snapshots = append(v.Snapshots, s)
	}
	return known, nil
}

// hold compares the snapshot as of a frame, if there is one, with what the journal says.
func (v *verification) hold(f *record.Sealed) error {
	for i := range v.Snapshots {
		s := &v.Snapshots[i]
		if s.LSN != uint64(f.LSN) || !s.OK {
			continue
		}
		if s.Held = true; s.head.Root != f.Root || s.head.At != v.state.At {
			s.OK, s.Why = false, "the chain has another root there: it is of another past"
			continue
		}
		if !v.deep {
			continue
		}
		err := snapshot.Same(v.kept, s.head, &v.state)
		if err != nil && !errors.Is(err, snapshot.ErrDoubt) {
			return err
		}
		if err != nil {
			s.OK, s.Why = false, err.Error()
		}
	}
	return nil
}

func (v *verified) believed() (n int) {
	for _, s := range v.Snapshots {
		if s.OK {
			n++
		}
	}
	return n
}

// inspect reads a damaged journal to its end.
func (v *verification) inspect(r journalfile.Reading) error {
	found, err := r.Inspect(v.journal, func(d *journalfile.Damage) error {
		v.Damage = append(v.Damage, damage{d.Segment, d.Offset, uint64(d.From), uint64(d.To), d.Why})
		v.Lost += uint64(d.To + 1 - d.From)
		return v.goesOn()
	})
	if err != nil {
		return err
	}
	if v.Known = max(v.Known, uint64(found.Known)); v.Known != uint64(v.evidence.LSN) {
		v.KnownFrom = ""
	}
	return v.foresee(r.Known)
}

// foresee says what the next start will do: as recover, it begins behind the newest
// snapshot from which the journal can be read on.
func (v *verification) foresee(known types.LSN) error {
	for _, s := range append(v.Snapshots, summary{OK: true}) {
		if !s.OK {
			continue
		}
		v.state = state.New(stateLimits(v.config), 1)
		if s.LSN > 0 {
			if _, err := snapshot.Load(v.kept, s.head.LSN, &v.state, v.goesOn); err != nil {
				return roomy(err)
			}
		}
		from := journalfile.From{LSN: s.head.LSN, Root: s.head.Root, Journal: s.head.Journal}
		found, err := journalfile.Reading{From: from, Known: known, Progress: v.progress, Each: func(all []record.Sealed) error {
			for i := range all {
				if err := v.state.Fold(all[i].Body, nil); err != nil {
					return err
				}
			}
			return v.goesOn()
		}}.Scan(v.journal)
		switch {
		case err == nil, errors.Is(err, journalfile.ErrDamaged):
			v.Start = &start{Snapshot: s.LSN, Upto: uint64(found.Last), Writes: err == nil}
			return nil
		case !errors.Is(err, journalfile.ErrApart):
			return roomy(err)
		}
	}
	return nil
}
