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
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/settings"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

// ErrProblems means that problems were found. They are on standard output.
var ErrProblems = errors.New("problems found")

// Verify reads the journal of a stopped node, in memory that does not grow with the journal. It checks the chain
// and every checksum, the order of frames and times, each movement against the state before it, the sums of all
// assets at the end, and each snapshot. It continues after damage and changes nothing.
func (e Env) Verify(ctx context.Context, cfg *config.Config, deep, contents bool) (*JournalReport, error) {
	dir := filepath.Join(cfg.Data, datadir.Journal)
	if err := stat(dir, func() error { return noJournal(cfg) }); err != nil {
		return nil, err
	}
	lock, err := fs.Hold(fs.Dir(cfg.Data), e.Version)
	if err != nil {
		return nil, exit.Unable(err)
	}
	defer lock.Close() //nolint:errcheck // nothing was written
	journal, err := datadir.OpenSegments(fs.Dir(cfg.Data), cfg.Journal.Archive)
	if err == nil {
		err = journal.Foreign
	}
	if err != nil {
		return nil, exit.Unable(unreadable(err))
	}
	known, err := datadir.ReadEvidence(cfg.Data, journal, e.Unreadable)
	if err != nil {
		return nil, exit.Unable(err)
	}
	v := &verification{ctx: ctx, JournalReport: newReport(&journal), evidence: known, config: cfg, deep: deep, progress: e.Progress,
		journal: journal, kept: fs.Dir(filepath.Join(cfg.Data, datadir.Snapshots)), state: state.New(settings.StateLimits(cfg), 1)}
	if err := v.run(); err != nil {
		return nil, unreadable(fmt.Errorf("verify: %w", err))
	}
	if v.Segments == 0 && len(v.Damage) == 0 {
		return nil, noJournal(cfg)
	}
	if v.Error == "" && len(v.Damage) == 0 {
		if err := v.checkObjects(settings.NewObjectStore(cfg), contents); err != nil {
			return nil, unreadable(fmt.Errorf("verify: %w", err))
		}
	}
	v.OK = v.isIntact()
	return &v.JournalReport, nil
}

// noJournal returns the error for a data directory without a journal.
func noJournal(cfg *config.Config) error {
	if s, err := datadir.OpenFiles(fs.Dir(filepath.Join(cfg.Data, datadir.Journal)), cfg.Journal.Archive); err == nil {
		if lost, err := s.IsLost(); err == nil && lost {
			return exit.Unable(fmt.Errorf("there is no journal in %s, but journal.archive (%s) has older segments of one: mount the disk of the data directory, or restore a backup", cfg.Data, s.Path))
		}
	}
	return exit.Unable(fmt.Errorf("there is no journal in %s", cfg.Data))
}

// stat returns an error if a directory is missing: that of missing, unless this process may not see whether it is there.
func stat(dir string, missing func() error) error {
	switch _, err := os.Stat(dir); {
	case errors.Is(err, os.ErrPermission):
		return unreadable(err)
	case err != nil:
		return missing()
	default:
		return nil
	}
}

// unreadable returns an error for a file that this process may not read: that is no damage.
func unreadable(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return exit.Unable(fmt.Errorf("%w: nothing is known of its content; run the command as the user of the node", err))
	}
	return err
}

// JournalReport is the result of a verification.
type JournalReport struct {
	OK        bool             `json:"ok"`
	Error     string           `json:"error,omitzero"` // why the verification stopped
	Journal   string           `json:"journal"`
	Frames    uint64           `json:"frames"` // before the first damage
	Known     uint64           `json:"known_durable"`
	KnownFrom string           `json:"known_from,omitzero"` // the file that records it, beside the segments
	Root      string           `json:"root"`
	Segments  int              `json:"segments"`
	Bytes     int64            `json:"bytes"`
	Cut       uint64           `json:"torn_tail_bytes"`
	Moved     uint64           `json:"movements"`
	Refused   uint64           `json:"kept_refusals"`
	Keys      uint64           `json:"api_keys"`
	Accounts  int              `json:"accounts"`
	NoMark    bool             `json:"no_mark,omitzero"`     // the mark of durable frames is missing: a loss at the end cannot be detected
	MarkError string           `json:"mark_error,omitzero"`  // the mark of durable frames is damaged: frames may be missing at the end
	NoEnd     string           `json:"end_missing,omitzero"` // why the newest segments are missing, as the archive shows
	Damage    []Damage         `json:"damage,omitempty"`
	Repaired  []Damage         `json:"repaired,omitempty"` // places that each start repairs from others: no frame is lost
	Lost      uint64           `json:"lost_frames,omitzero"`
	Others    []Segment        `json:"foreign_segments,omitempty"` // that are not of the journal, and are not read
	NoList    string           `json:"no_writers,omitzero"`        // why the writers of the journal are not known: what follows a gap is not read
	Snapshots []SnapshotReport `json:"snapshots,omitempty"`
	Start     *NextStart       `json:"next_start,omitzero"` // of a damaged journal
	against   string           // the file that contradicts the segments; empty: none does
	list      string           // the file that may lack the process that wrote one of Others; empty: none does

	Objects *ObjectReport `json:"objects,omitempty"`             // nil: there are none, or they were not checked
	Foreign []string      `json:"foreign_directories,omitempty"` // why the node would refuse directories of objects
}

// Damage is a place where a journal does not check, and the frames that cannot be read
// for it; none, where to_lsn is less than from_lsn.
type Damage struct {
	Segment string `json:"segment"`
	Offset  int64  `json:"offset"`
	From    uint64 `json:"from_lsn"`
	To      uint64 `json:"to_lsn"`
	Why     string `json:"reason"`
}

func newDamage(d *journalfile.Damage) Damage {
	return Damage{d.Segment, d.Offset, uint64(d.From), uint64(d.To), d.Why}
}

// Segment is a segment that is not read.
type Segment struct {
	Name string `json:"segment"`
	Why  string `json:"reason"`
}

// newReport begins the report with the segments that are not read.
func newReport(journal *datadir.Segments) (r JournalReport) {
	for _, o := range journal.Others {
		r.Others = append(r.Others, Segment{o.Name, o.Why})
		if o.IsOther && journal.NoList == nil {
			r.list = journal.ListPath
		}
	}
	if journal.NoList != nil {
		r.NoList = journal.NoList.Error()
	}
	return r
}

// SnapshotReport is a snapshot. One is held against the chain where the chain can be read to it.
type SnapshotReport struct {
	File string `json:"file"`
	LSN  uint64 `json:"lsn"`
	OK   bool   `json:"ok"`
	Held bool   `json:"held_against_the_journal"`
	Why  string `json:"why,omitzero"`
	head snapshot.Head
}

// NextStart is what the next start of the node will do.
type NextStart struct {
	Snapshot uint64 `json:"snapshot_lsn"`
	Upto     uint64 `json:"upto_lsn"` // the last frame of its state
	Writes   bool   `json:"takes_writes"`
}

// verification is a verification in progress.
type verification struct {
	JournalReport
	ctx      context.Context
	evidence datadir.Evidence // of durable frames, outside the segments
	config   *config.Config
	deep     bool
	progress func(journalfile.Progress)
	journal  fs.FS
	kept     fs.FS
	state    state.State
	id       types.JournalID
	wrong    error // the first invalid movement
}

func (v *verification) err() error { return context.Cause(v.ctx) }

// checkObjects checks the files of the objects; with contents, every byte of them.
func (v *verification) checkObjects(files *objectstore.Store, contents bool) (err error) {
	if all := total(&v.state); all.Objects > 0 {
		v.Objects, err = checkObjects(v.ctx, files, &v.state, contents, v.progress)
	}
	for _, why := range files.Foreign(v.id) {
		v.Foreign = append(v.Foreign, why.Error())
	}
	return err
}

// sound reports whether the journal is intact and none of its durable frames is missing.
func (v *JournalReport) sound() bool {
	return v.Error == "" && len(v.Damage) == 0 && v.MarkError == "" && v.NoEnd == "" && len(v.Others) == 0
}

// isIntact reports whether nothing is damaged, also nothing that loses no frame.
func (v *JournalReport) isIntact() bool {
	return v.IsComplete() && len(v.Repaired) == 0 && v.IntactSnapshots() == len(v.Snapshots)
}

// IsComplete reports whether all frames and objects are there: a restore loses nothing.
func (v *JournalReport) IsComplete() bool { return v.sound() && v.objectsOK() }

func (v *JournalReport) objectsOK() bool {
	return len(v.Foreign) == 0 && (v.Objects == nil || v.Objects.Bad == 0 && v.Objects.badCopies() == 0)
}

// run fills in the report. It returns an error if it cannot be found out.
func (v *verification) run() error {
	known, err := v.readSnapshots()
	if err != nil {
		return err
	}
	cut, err := backup.CutOf(v.journal)
	if err != nil {
		return err
	}
	v.evidence.Note(known, datadir.Snapshots)
	v.NoMark = v.evidence.NoMark && cut.LSN == 0 // a copy records its end itself
	switch unsure := v.evidence.Unsure; {
	case errors.Is(unsure, datadir.ErrNoEnd):
		v.NoEnd = unsure.Error()
	case errors.Is(unsure, datadir.ErrOtherEnd): // they are in Others
	case unsure != nil:
		v.MarkError = unsure.Error()
	}
	if known = v.evidence.LSN; known > 0 {
		v.KnownFrom = v.evidence.Source
	}
	v.evidence.Proofs = recovery.Proofs(v.evidence.Proofs, v.heads())
	verdict, err := journalfile.Judge(v.journal, v.evidence.Proofs, v.evidence.Doubt)
	if err != nil {
		return err
	}
	v.noteContradiction(verdict.Against)
	r := journalfile.Reading{Known: known, Verdict: verdict, Each: v.foldFrames, Progress: v.progress, Repaired: func(d *journalfile.Damage) {
		v.Repaired = append(v.Repaired, newDamage(d))
	}}
	found, err := r.Scan(v.journal)
	v.Frames, v.Known, v.Root = uint64(found.Last), uint64(found.Known), fmt.Sprintf("%x", found.Root)
	v.id = found.Recovery.Journal
	v.Journal, v.Segments, v.Bytes = fmt.Sprintf("%016x", uint64(found.Recovery.Journal)), found.Segments, found.Bytes
	v.Cut, v.Accounts = found.Recovery.CutBytes, v.state.Wallet.Accounts()
	if stopped := v.err(); stopped != nil {
		return stopped
	}
	if errors.Is(err, journalfile.ErrDamaged) {
		if v.wrong != nil {
			v.Error = v.wrong.Error()
		}
		return v.inspect(r)
	}
	if errors.Is(err, os.ErrPermission) {
		return err
	}
	if err == nil {
		err = errors.Join(v.wrong, v.state.Check())
	}
	if err == nil && len(v.Others) > 0 {
		return v.predictStart(r)
	}
	if err != nil {
		v.Error = settings.ExplainRoom(err).Error()
	}
	return nil
}

// noteContradiction notes that the segments have another root for the frame of a proof.
func (v *verification) noteContradiction(p journalfile.Proof) {
	v.against = p.Source
	for i := range v.Snapshots {
		if s := &v.Snapshots[i]; s.OK && p.LSN > 0 && s.File == p.Source {
			v.against = filepath.Join(datadir.Snapshots, p.Source)
			s.OK, s.Why = false, "the segments have another root for its frame: they are of another past, or the snapshot is"
		}
	}
}

// foldFrames folds frames, and checks each movement against the state before it and each snapshot against the
// chain.
func (v *verification) foldFrames(all []record.Sealed) error {
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
		if err := v.compareSnapshot(&all[i]); err != nil {
			return err
		}
	}
	return v.err()
}

// readSnapshots reads the snapshots. Known is the last frame of a snapshot of this journal, which was durable.
func (v *verification) readSnapshots() (known types.LSN, err error) {
	if _, err := os.Stat(filepath.Join(v.config.Data, datadir.Snapshots)); err != nil {
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
		s := SnapshotReport{File: snapshot.Name(lsn), LSN: uint64(lsn)}
		switch s.head, err = snapshot.Check(v.kept, lsn, v.err); {
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

// heads returns the heads of the snapshots that can be read, the newest first, and the zero head.
func (v *verification) heads() (all []snapshot.Head) {
	for i := range v.Snapshots {
		if v.Snapshots[i].OK {
			all = append(all, v.Snapshots[i].head)
		}
	}
	return append(all, snapshot.Head{})
}

// compareSnapshot compares the snapshot as of a frame, if there is one, with the journal.
func (v *verification) compareSnapshot(f *record.Sealed) error {
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

func (v *JournalReport) IntactSnapshots() (n int) {
	for _, s := range v.Snapshots {
		if s.OK {
			n++
		}
	}
	return n
}

// inspect reads a damaged journal to its end.
func (v *verification) inspect(r journalfile.Reading) error {
	v.Repaired = nil // the inspection visits them again
	found, err := r.Inspect(v.journal, func(d *journalfile.Damage) error {
		v.Damage = append(v.Damage, newDamage(d))
		v.Lost += uint64(d.To + 1 - d.From)
		return v.err()
	})
	if err != nil {
		return err
	}
	if v.Known = max(v.Known, uint64(found.Known)); v.Known != uint64(v.evidence.LSN) {
		v.KnownFrom = ""
	}
	return v.predictStart(r)
}

// predictStart sets what the next start will do. Like the recovery, it begins after the newest snapshot from which
// the journal can be read.
func (v *verification) predictStart(known journalfile.Reading) error {
	for _, s := range append(v.Snapshots, SnapshotReport{OK: true}) {
		if !s.OK {
			continue
		}
		next := state.New(settings.StateLimits(v.config), 1)
		if s.LSN > 0 {
			if _, err := snapshot.Load(v.kept, s.head.LSN, &next, v.err); err != nil {
				return settings.ExplainRoom(err)
			}
		}
		found, err := journalfile.Reading{From: recovery.From(s.head), Known: known.Known, Verdict: known.Verdict, Progress: v.progress, Each: func(all []record.Sealed) error {
			for i := range all {
				if err := next.Fold(all[i].Body, nil); err != nil {
					return err
				}
			}
			return v.err()
		}}.Scan(v.journal)
		switch {
		case err == nil, errors.Is(err, journalfile.ErrDamaged):
			v.Start = &NextStart{Snapshot: s.LSN, Upto: uint64(found.Last), Writes: err == nil && v.evidence.Unsure == nil}
			return nil
		case !errors.Is(err, journalfile.ErrApart):
			return settings.ExplainRoom(err)
		}
	}
	return nil
}
