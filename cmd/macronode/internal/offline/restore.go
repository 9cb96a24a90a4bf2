package offline

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"macronode/adapters/backup"
	"macronode/adapters/config"
	"macronode/adapters/durable"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/adapters/objectstore"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/settings"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
	rendered "macronode/core/wallet/receipt"
)

// RestoreOptions are the options of a restore.
type RestoreOptions struct {
	From       string // directory of the backup
	SourceData string // data directory of the node that was backed up; empty: the one that is restored into
	Contents   bool   // also check the contents of objects
	AcceptLoss bool   // accept lost frames and unreadable objects
	KeepKeys   bool   // keep the API keys of the backup valid
	Take       bool   // take over the providers of another journal
}

// RestoreReport is the result of a restore, or of its preview.
type RestoreReport struct {
	BackupReport
	Checked  *JournalReport `json:"checked"`
	Accounts int            `json:"accounts"`
	NoEnd    bool           `json:"no_end,omitzero"` // no completed backup has recorded its last frame
	Lost     *Loss          `json:"lost,omitempty"`  // of the old journal; nil: unknown
	Claimed  []ClaimReport  `json:"providers_of_other_journals,omitempty"`
	As       string         `json:"restored_as,omitzero"`
	KeepKeys bool           `json:"keeps_keys"`
	Done     bool           `json:"done"`
	state    *state.State
	journal  fs.FS // of the backup
	proofs   []journalfile.Proof
	doubt    journalfile.Doubt
}

// ClaimReport is a provider that belongs to another journal.
type ClaimReport struct {
	Provider string `json:"provider"`
	Owner    string `json:"owner"`
}

// claimsError returns why a restore is refused, or nil.
func (r *RestoreReport) claimsError() error {
	var all []string
	for _, c := range r.Claimed {
		all = append(all, fmt.Sprintf("provider %s belongs to %s", c.Provider, c.Owner))
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("restore: %s: the restored node would remove the objects there that the backup lacks. For a drill, give other providers (--set storage.providers=…). If the other node is gone and never runs again, give --take-providers",
		strings.Join(all, ", "))
}

// Loss is what a journal acknowledged after a cut.
type Loss struct {
	Frames    uint64   `json:"frames"`
	Movements uint64   `json:"movements"`
	Upto      uint64   `json:"upto_lsn"`
	At        string   `json:"at"`
	TxIDs     []string `json:"txids"` // the first ones
}

const shownLost = 1000 // most txids that are listed

// PlanRestore checks the backup, and finds out what was acknowledged after it.
func (e Env) PlanRestore(ctx context.Context, cfg *config.Config, asked RestoreOptions) (*RestoreReport, error) {
	of := *cfg
	of.Data = asked.From
	dir := fs.Dir(filepath.Join(asked.From, datadir.Journal))
	if err := stat(string(dir), func() error { return exit.Unable(fmt.Errorf("there is no backup in %s", asked.From)) }); err != nil {
		return nil, err
	}
	journal, err := datadir.OpenSegments(fs.Dir(asked.From), "")
	if err != nil {
		return nil, exit.Unable(unreadable(err))
	}
	known, err := datadir.ReadEvidence(asked.From, journal, e.Unreadable)
	if err != nil {
		return nil, exit.Unable(err)
	}
	v := &verification{ctx: ctx, JournalReport: newReport(&journal), evidence: known, config: &of, progress: e.Progress, journal: journal, kept: fs.Dir(filepath.Join(asked.From, datadir.Snapshots)),
		state: state.New(settings.StateLimits(cfg), 1)}
	if err := v.run(); err != nil {
		return nil, unreadable(fmt.Errorf("restore: %w", err))
	}
	if v.Segments == 0 && len(v.Damage) == 0 {
		return nil, exit.Unable(fmt.Errorf("there is no backup in %s", asked.From))
	}
	if v.Frames == 0 && v.sound() { // no backup that was completed has no frame
		return nil, fmt.Errorf("restore: the backup in %s was not completed, and has no frame: back up again", asked.From)
	}
	s := &v.state
	end, err := backup.CutOf(dir)
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	if err := v.checkObjects(objectsIn(asked.From), asked.Contents); err != nil {
		return nil, unreadable(fmt.Errorf("restore: %w", err))
	}
	v.OK = v.isIntact()
	r := &RestoreReport{Checked: &v.JournalReport, state: s, journal: journal, proofs: v.evidence.Proofs, doubt: v.evidence.Doubt, Accounts: s.Wallet.Accounts(), NoEnd: end.LSN == 0, KeepKeys: asked.KeepKeys}
	r.BackupReport = BackupReport{Journal: v.Journal, LSN: uint64(s.LSN), At: string(rendered.Stamp(nil, s.At)), Root: v.Root, Frames: v.Frames, Bytes: v.Bytes}
	for _, c := range settings.NewObjectStore(cfg).Claims(s.Journal) {
		r.Claimed = append(r.Claimed, ClaimReport(c))
	}
	old := asked.SourceData
	if old == "" {
		old = cfg.Data
	}
	gone := filepath.Join(old, datadir.Journal)
	if _, err := os.Stat(gone); err != nil && asked.SourceData != "" {
		return nil, exit.Unable(fmt.Errorf("there is no journal in %s", old))
	}
	if _, err := os.Stat(gone); err != nil || !v.IsComplete() && !v.CanAccept() {
		return r, nil //nolint:nilerr // the old journal is optional
	}
	var root types.Root
	if _, err := hex.Decode(root[:], []byte(v.Root)); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	was, err := datadir.OpenSegments(fs.Dir(old), cfg.Journal.Archive)
	if err != nil {
		return nil, exit.Unable(err)
	}
	if isEmpty, err := journalfile.IsEmpty(was); err == nil && isEmpty {
		if asked.SourceData != "" {
			return nil, exit.Unable(fmt.Errorf("there is no journal in %s", old))
		}
		return r, nil
	}
	l, err := losses(ctx, was, journalfile.From{LSN: s.LSN, Root: root, Journal: s.Journal})
	if errors.Is(err, journalfile.ErrApart) {
		return nil, exit.Unable(fmt.Errorf("the journal in %s does not continue the backup: it is another journal, or it is older, or the rest is in journal.archive: %w", old, err))
	}
	r.Lost = l
	return r, err
}

// losses returns the movements after a cut, as far as they can be read.
func losses(ctx context.Context, dir fs.FS, cut journalfile.From) (*Loss, error) {
	l := &Loss{}
	_, err := journalfile.Reading{From: cut, Each: func(all []record.Sealed) error {
		for _, s := range all {
			h, rest, err := record.Open(s.Body)
			var r record.Record
			for i := uint16(0); i < h.Count && err == nil; i++ {
				if rest, err = record.Next(rest, &r); err == nil && r.IsMovement() {
					l.note(s.Journal, types.Position{LSN: s.LSN, Index: i})
				}
			}
			l.Frames, l.Upto, l.At = l.Frames+1, uint64(s.LSN), string(rendered.Stamp(nil, h.At))
		}
		return context.Cause(ctx)
	}}.Scan(dir)
	if errors.Is(err, journalfile.ErrDamaged) {
		err = nil // losses after the damage are unknown
	}
	return l, err
}

func (l *Loss) note(of types.JournalID, p types.Position) {
	l.Movements++
	if len(l.TxIDs) < shownLost {
		id := rendered.TxID(types.NewTxID(of, p))
		l.TxIDs = append(l.TxIDs, string(id[:]))
	}
}

// Restore writes the journal beside its place, and moves it there when it is complete.
func (e Env) Restore(ctx context.Context, cfg *config.Config, o RestoreOptions, r *RestoreReport) error {
	if in, err := isInside(cfg.Data, o.From); err != nil {
		return exit.Unable(err)
	} else if in {
		return exit.Unable(fmt.Errorf("%s is inside the backup: restore into another directory (--data DIR)", cfg.Data))
	}
	if err := r.claimsError(); err != nil && !o.Take {
		return exit.Unable(err)
	}
	dir, err := fs.Make(cfg.Data)
	if err != nil {
		return notBegun(err)
	}
	lock, err := fs.Lock(dir, e.Version)
	if err != nil {
		return notBegun(err)
	}
	defer lock.Close() //nolint:errcheck // the lock ends with the process at the latest
	place := filepath.Join(cfg.Data, datadir.Journal)
	if _, err := os.Stat(place); err == nil {
		return exit.Unable(fmt.Errorf("%s already has a journal: restore into a directory without one (--data DIR)", cfg.Data))
	}
	if err := checkArchive(cfg); err != nil {
		return err
	}
	beside := filepath.Join(cfg.Data, datadir.Restoring)
	if err := os.RemoveAll(beside); err != nil {
		return notBegun(err)
	}
	into, err := fs.Make(beside)
	if err != nil {
		return notBegun(err)
	}
	upto := types.LSN(0)
	if len(r.Checked.Damage) > 0 {
		upto = types.LSN(r.Checked.Frames)
	}
	as := backup.As{Upto: upto, Journal: datadir.NewJournalID(), At: types.Time(time.Now().UnixMilli()), KeepKeys: o.KeepKeys, Evidence: types.LSN(r.Checked.Known), Proofs: r.proofs, Doubt: r.doubt, Epoch: datadir.Writers(dir).Next}
	made, err := backup.Restore(ctx, r.journal, into, as, e.Copied)
	if err != nil {
		return notRestored(cfg, err)
	}
	if r.Checked.Objects != nil || o.Take {
		if err := e.restoreObjects(ctx, cfg, o, r, as.Journal); err != nil {
			return err
		}
	}
	if err := dir.Remove(durable.Name); err != nil && !errors.Is(err, os.ErrNotExist) { // of the previous journal
		return notRestored(cfg, err)
	}
	if err := errors.Join(os.Rename(beside, place), dir.SyncDir()); err != nil {
		return notRestored(cfg, err)
	}
	if err := made.Restored.Write(dir, durable.Name); err != nil {
		return notRestored(cfg, err)
	}
	r.As, r.Done = fmt.Sprintf("%016x", uint64(as.Journal)), true
	return nil
}

// restoreObjects copies the objects of the backup into the providers. They then belong to the journal that replaces that of the backup.
func (e Env) restoreObjects(ctx context.Context, cfg *config.Config, o RestoreOptions, r *RestoreReport, as types.JournalID) error {
	to := settings.NewObjectStore(cfg)
	defer to.Release()
	holder := fmt.Sprintf("a restore into %s, %s", cfg.Data, e.Version)
	before, err := strconv.ParseUint(r.Journal, 16, 64)
	if err == nil {
		err = remake(to)
	}
	if err == nil {
		err = to.Claim(objectstore.Owner{Journal: types.JournalID(before), Restoring: true, Take: o.Take, Holder: holder}) // so that an interrupted restore can be repeated
	}
	if err != nil {
		return notBegun(err)
	}
	k, err := e.newObjectCopy(ctx, objectsIn(o.From), to, true)
	if err != nil {
		return notRestored(cfg, err)
	}
	if _, err := k.round(r.state); err != nil {
		return notRestored(cfg, err)
	}
	r.Objects = &k.ObjectReport
	if k.Bad > 0 && !o.AcceptLoss {
		w := lines{w: e.Out}
		k.writeText(&w)
		return errors.Join(w.err, fmt.Errorf("restore: %w", errObjects))
	}
	if err := to.Claim(objectstore.Owner{Journal: as, Before: types.JournalID(before), Holder: holder}); err != nil {
		return notRestored(cfg, err)
	}
	return nil
}

// notRestored returns the error of a restore that ended while it wrote, for example because the disk is full.
func notRestored(cfg *config.Config, err error) error {
	return fmt.Errorf("the restore into %s is not completed: %w", cfg.Data, err)
}

// checkArchive returns an error if the archive contains segments. A new journal numbers its segments from the
// beginning, so an archive of another journal cannot be used.
func checkArchive(cfg *config.Config) error {
	if cfg.Journal.Archive == "" {
		return nil
	}
	names, err := fs.Dir(cfg.Journal.Archive).List()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return exit.Unable(err)
	}
	if len(names) > 0 {
		return exit.Unable(fmt.Errorf("journal.archive has segments of another journal: configure an empty directory for the new one, and keep %s", cfg.Journal.Archive))
	}
	return nil
}

func (r *RestoreReport) WriteText(to io.Writer, cfg *config.Config, o RestoreOptions) error {
	w := lines{w: to}
	if c := r.Checked; len(c.Damage) == 0 {
		intact := map[bool]string{true: "intact", false: "damaged"}[c.OK]
		w.printf("the backup is %s: journal %s to frame @%d (%s), %d accounts", intact, r.Journal, r.LSN, r.At, r.Accounts)
		for _, d := range c.Repaired {
			w.printf("%s, byte %d: %s: %s", d.Segment, d.Offset, d.lost(), d.Why)
		}
		c.writeSnapshots(&w)
	} else {
		lost := fmt.Sprintf("durable frames up to @%d are lost", r.Checked.Known)
		if r.Checked.Known <= r.LSN {
			lost = "no frame is lost that is known to be durable"
		}
		w.printf("the backup has journal %s to frame @%d (%s), %d accounts; %s", r.Journal, r.LSN, r.At, r.Accounts, lost)
		if !r.Checked.ends() && r.Checked.Known > r.LSN {
			w.printf("some of the lost frames are intact, behind the damage: to keep them, bring back the files that macronode verify names")
		}
	}
	r.Checked.writeOthers(&w)
	if r.NoEnd {
		w.printf("nothing records the end of the backup (%s): it may not have been completed, and frames may be missing at its end", backup.CutName)
	}
	r.Checked.writeObjects(&w)
	switch {
	case r.Lost == nil:
		w.printf("unknown what was acknowledged after it: give the data directory of the original node with --source-data")
	case r.Lost.Frames == 0:
		w.printf("nothing was acknowledged after it")
	default:
		w.printf("acknowledged after it, and lost: %d movements in %d frames, to @%d (%s)", r.Lost.Movements, r.Lost.Frames, r.Lost.Upto, r.Lost.At)
		for _, id := range r.Lost.TxIDs {
			w.printf("  %s", id)
		}
		if more := r.Lost.Movements - uint64(len(r.Lost.TxIDs)); more > 0 {
			w.printf("  and %d more", more)
		}
	}
	if err := r.claimsError(); err != nil && !r.Done && !o.Take {
		w.printf("it would be refused: %s", strings.TrimPrefix(err.Error(), "restore: "))
	}
	switch {
	case !r.Done:
		w.printf("nothing was changed")
	case o.KeepKeys:
		w.printf("restored into %s as journal %s; the API keys of the backup are valid again", cfg.Data, r.As)
	default:
		w.printf("restored into %s as journal %s; the API keys of the backup are not valid: the next start creates a bootstrap key", cfg.Data, r.As)
	}
	return w.err
}
