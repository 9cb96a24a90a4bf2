package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"github.com/go-json-experiment/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"macronode/adapters/backup"
	"macronode/adapters/config"
	"macronode/adapters/durable"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/adapters/nodedir"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
	rendered "macronode/core/wallet/receipt"
)

type (
	backupCmd struct {
		To   string `arg:"" name:"dir" help:"Directory of the backup. An existing backup of this journal is extended."`
		Heir bool   `name:"follow-restore" help:"Continue the backup of the journal from which this one was restored. It is then no longer a backup of that journal."`
	}
	restoreCmd struct {
		From     string `arg:"" name:"dir" help:"Directory of the backup."`
		Validate bool   `help:"Only check the backup, to its last frame and every movement."`
		Preview  bool   `help:"Only show what would be restored and what would be lost."`
		Old      string `name:"source-data" placeholder:"DIR" help:"Data directory of the source node: what it acknowledged after the backup is listed as lost."`
		Accept   bool   `name:"accept-loss" help:"Restore even if frames known to be durable are missing: they are lost."`
		KeepKeys bool   `help:"Keep the API keys of the backup valid. Keys revoked after the backup become valid again."`
	}
)

// copied is what a backup says.
type copied struct {
	Journal string `json:"journal"`
	LSN     uint64 `json:"lsn"`
	At      string `json:"at"`
	Root    string `json:"root"`
	From    uint64 `json:"from_lsn"` // new are the frames behind it
	Frames  uint64 `json:"frames"`
	Bytes   int64  `json:"bytes"`

	Objects *objectReport `json:"objects,omitempty"` // nil: the node never had objects
}

func newCopied(d backup.Done) copied {
	return copied{Journal: fmt.Sprintf("%016x", uint64(d.Journal)), LSN: uint64(d.LSN), At: string(rendered.Stamp(nil, d.At)),
		Root: fmt.Sprintf("%x", d.Root), From: uint64(d.From), Frames: d.Frames, Bytes: d.Bytes}
}

// Run copies the journal to where it is durable now: of the node that runs on the
// directory, or of one that does not.
func (v *backupCmd) Run(c *console) (err error) {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	if err := placeFor(v.To, cfg.Data); err != nil {
		return err
	}
	into, err := fs.Make(filepath.Join(v.To, segmentsName))
	if err != nil {
		return cannot(err)
	}
	held, err := fs.Lock(fs.Dir(v.To), thisBuild().Version)
	if err != nil {
		return cannot(err)
	}
	defer held.Close() //nolint:errcheck // the lock ends with the process at the latest
	upto, lock, damaged, err := c.durable(ctx, cfg)
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // nothing was written
	from, err := openDisk(cfg.Journal.Archive, fs.Dir(filepath.Join(cfg.Data, segmentsName)))
	if err != nil {
		return cannot(err)
	}
	known, err := evidenceIn(cfg.Data, from, func(error) {})
	if err != nil {
		return cannot(err)
	}
	b := backup.Bounds{Upto: upto, Heir: v.Heir}
	var k *objectCopy
	if hasObjects(cfg.Data) || hasObjects(v.To) {
		if k, err = c.newObjectCopy(ctx, "backup", cfg.Data, v.To); err != nil {
			return cannot(err)
		}
		k.source, k.next = source{ctx, cfg, from}, c.nextDurable(ctx, cfg, upto)
		b.Before = k.settle
	}
	d, err := backup.Copy(ctx, from, into, b, c.copying("backup"))
	if errors.Is(err, backup.ErrHeir) {
		err = fmt.Errorf("%w; back up into another directory, or give --follow-restore: then %s is no longer a backup of the earlier journal", err, v.To)
	}
	if err == nil && k != nil {
		err = k.finish(d.LSN)
	}
	if err != nil {
		return cannot(err)
	}
	if err := noteLoss(fs.Dir(v.To), d.Cut, known.LSN); err != nil {
		return err
	}
	is := newCopied(d)
	if k != nil {
		is.Objects = &k.objectReport
		if k.Bad > 0 {
			defer func() { err = errors.Join(err, errObjects) }()
		}
	}
	if damaged || d.LSN < known.LSN {
		defer func() { err = errors.Join(err, errHole) }()
	}
	if c.tree.JSON {
		return c.print(is)
	}
	return is.tell(c, v.To)
}

// tell says what a backup has.
func (is *copied) tell(c *console, dir string) error {
	w := lines{c: c}
	w.say("%s has journal %s to frame @%d (%s): %d frames, %d bytes are new", dir, is.Journal, is.LSN, is.At, is.Frames, is.Bytes)
	if o := is.Objects; o != nil {
		w.say("and %d objects of %d bytes: %d objects, %d bytes are new", o.Objects-o.Bad, o.Bytes, o.New, o.NewBytes)
		o.tell(&w)
	}
	return w.err
}

// nextDurable returns a function that returns first the frame that is known to be durable, then newer ones. For a
// stopped node that is 0: the last frame.
func (c *console) nextDurable(ctx context.Context, cfg *config.Config, first types.LSN) func() (types.LSN, error) {
	asked := false
	return func() (types.LSN, error) {
		if !asked || first == 0 {
			asked = true
			return first, nil
		}
		upto, _, _, err := c.durable(ctx, cfg) // a lock, if the node has stopped, ends with the process
		return upto, err
	}
}

// noteLoss writes into the directory of a copy which frames were durable and are not in it, so that
// nobody takes it for whole.
func noteLoss(to fs.Dir, cut backup.Cut, known types.LSN) error {
	if cut.LSN < known {
		return cannot(durable.Mark{Journal: cut.Journal, LSN: known}.Write(to, durable.Name))
	}
	if err := to.Remove(durable.Name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return cannot(err)
	}
	return nil
}

// errHole says that a copy is not all that was ever durable.
var errHole = errors.New("the journal is damaged: the backup ends before the damage; see macronode verify")

// placeFor says why a directory is no place for a copy: only one that is empty, or has a
// copy, is; and none in what is copied.
func placeFor(to, data string) error {
	from, err1 := filepath.Abs(data)
	into, err2 := filepath.Abs(to)
	if err := errors.Join(err1, err2); err != nil {
		return cannot(err)
	}
	if _, err := os.Stat(filepath.Join(from, segmentsName)); err != nil {
		return cannot(fmt.Errorf("there is no journal in %s", data))
	}
	if rel, err := filepath.Rel(from, into); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return cannot(fmt.Errorf("%s is inside the data directory: choose another directory, best on another disk", to))
	}
	names, err := os.ReadDir(to)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return cannot(err)
	}
	for _, n := range names {
		if n.Name() != segmentsName && n.Name() != objectsName && n.Name() != "LOCK" && n.Name() != durable.Name {
			return cannot(fmt.Errorf("%s is not empty and is not a backup: %s", to, n.Name()))
		}
	}
	return nil
}

// durable is the last frame that no crash takes: of the node that runs, by its own word;
// where none runs, the journal's end, with a lock that keeps one from beginning.
func (c *console) durable(ctx context.Context, cfg *config.Config) (upto types.LSN, lock io.Closer, damaged bool, err error) {
	is, err := nodedir.Read(cfg.Data)
	if err != nil {
		lock, err := fs.Hold(fs.Dir(cfg.Data), thisBuild().Version)
		if err != nil {
			return 0, nil, false, cannot(err)
		}
		return 0, lock, false, nil
	}
	got, err := c.admin(ctx, is, http.MethodGet, "/readyz?verbose", oneAttempt)
	if err != nil {
		return 0, nil, false, err
	}
	var s readyz
	if err := json.Unmarshal(got.body, &s); err != nil || s.Durable == 0 {
		return 0, nil, false, errors.New("the node reports no durable frame: it is starting, or its journal is empty")
	}
	return types.LSN(s.Durable), io.NopCloser(nil), s.Fault == event.Damaged.String(), nil
}

// copying tells a person who waits how far a copy is.
func (c *console) copying(what string) func(backup.Done) {
	f, ok := c.err.(*os.File)
	if !ok || !isTerminal(f) {
		return nil
	}
	return func(d backup.Done) {
		fmt.Fprintf(c.err, "\r%s: %v, %s", what, d.LSN, megabytes(d.Bytes)) //nolint:errcheck // nobody needs it
	}
}

// restored is what a restore says, or would do.
type restored struct {
	copied
	Checked  *verified `json:"checked"`
	Accounts int       `json:"accounts"`
	Lost     *lost     `json:"lost,omitempty"` // of the old journal; nothing where nobody can tell
	As       string    `json:"restored_as,omitzero"`
	KeepKeys bool      `json:"keeps_keys"`
	Done     bool      `json:"done"`
	state    *state.State
}

// lost is what a journal acknowledged behind a cut.
type lost struct {
	Frames    uint64   `json:"frames"`
	Movements uint64   `json:"movements"`
	Upto      uint64   `json:"upto_lsn"`
	At        string   `json:"at"`
	TxIDs     []string `json:"txids"` // the first ones
}

const shownLost = 1000 // txids that are listed

// Run brings a copy back as another journal, in a directory that has none; or says what
// that would do.
func (v *restoreCmd) Run(c *console) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	r, err := c.foretell(ctx, cfg, v)
	if err != nil {
		return err
	}
	if !r.Checked.OK && (!v.Accept || !r.Checked.canAccept()) {
		return errors.Join(r.Checked.tell(c), fmt.Errorf("restore: %w", errBroken))
	}
	if !v.Validate && !v.Preview {
		if err := c.restore(ctx, cfg, v, r); err != nil {
			return err
		}
	}
	if c.tree.JSON {
		return c.print(r)
	}
	return r.tell(c, cfg, v)
}

// foretell checks the copy, and finds out what came after it.
func (c *console) foretell(ctx context.Context, cfg *config.Config, asked *restoreCmd) (*restored, error) {
	of := *cfg
	of.Data = asked.From
	dir := fs.Dir(filepath.Join(asked.From, segmentsName))
	if _, err := os.Stat(string(dir)); err != nil {
		return nil, cannot(fmt.Errorf("there is no backup in %s", asked.From))
	}
	known, err := evidenceIn(asked.From, dir, c.doubt)
	if err != nil {
		return nil, cannot(err)
	}
	v := &verification{ctx: ctx, evidence: known, config: &of, progress: c.progress(false), journal: dir, kept: fs.Dir(filepath.Join(asked.From, snapshotsName)),
		state: state.New(stateLimits(cfg), 1)}
	if err := v.run(); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	if v.Segments == 0 && len(v.Damage) == 0 {
		return nil, cannot(fmt.Errorf("there is no backup in %s", asked.From))
	}
	s := &v.state
	if err := v.checkObjects(asked.From, asked.Validate); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	v.OK = v.Error == "" && len(v.Damage) == 0 && v.objectsOK()
	r := &restored{Checked: &v.verified, state: s, Accounts: s.Wallet.Accounts(), KeepKeys: asked.KeepKeys}
	r.copied = copied{Journal: v.Journal, LSN: uint64(s.LSN), At: string(rendered.Stamp(nil, s.At)), Root: v.Root, Frames: v.Frames, Bytes: v.Bytes}
	old := asked.Old
	if old == "" {
		old = cfg.Data
	}
	gone := filepath.Join(old, segmentsName)
	if _, err := os.Stat(gone); err != nil && asked.Old != "" {
		return nil, cannot(fmt.Errorf("there is no journal in %s", old))
	}
	if _, err := os.Stat(gone); err != nil || !v.OK && !v.canAccept() {
		return r, nil //nolint:nilerr // there need not be one
	}
	var root types.Root
	if _, err := hex.Decode(root[:], []byte(v.Root)); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	was, err := openDisk(cfg.Journal.Archive, fs.Dir(gone))
	if err != nil {
		return nil, cannot(err)
	}
	l, err := losses(ctx, was, journalfile.From{LSN: s.LSN, Root: root, Journal: s.Journal})
	if errors.Is(err, journalfile.ErrApart) {
		return nil, cannot(fmt.Errorf("the journal in %s does not continue the backup: it is another journal, or it is older, or the rest is in journal.archive: %w", old, err))
	}
	r.Lost = l
	return r, err
}

// losses are the movements behind a cut, as far as they can be read.
func losses(ctx context.Context, dir fs.FS, cut journalfile.From) (*lost, error) {
	l := &lost{}
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
		err = nil // what is lost behind the damage nobody can tell
	}
	return l, err
}

func (l *lost) note(of types.JournalID, p types.Position) {
	l.Movements++
	if len(l.TxIDs) < shownLost {
		id := rendered.TxID(types.NewTxID(of, p))
		l.TxIDs = append(l.TxIDs, string(id[:]))
	}
}

// restore makes the journal beside where it shall be, and moves it there when it is
// whole.
func (c *console) restore(ctx context.Context, cfg *config.Config, v *restoreCmd, r *restored) error {
	dir, err := fs.Make(cfg.Data)
	if err != nil {
		return cannot(err)
	}
	lock, err := fs.Lock(dir, thisBuild().Version)
	if err != nil {
		return cannot(err)
	}
	defer lock.Close() //nolint:errcheck // the lock ends with the process at the latest
	place := filepath.Join(cfg.Data, segmentsName)
	if _, err := os.Stat(place); err == nil {
		return cannot(fmt.Errorf("%s already has a journal: restore into a directory without one (--data DIR)", cfg.Data))
	}
	if err := unarchived(cfg); err != nil {
		return err
	}
	beside := place + ".restoring"
	if err := os.RemoveAll(beside); err != nil {
		return cannot(err)
	}
	into, err := fs.Make(beside)
	if err != nil {
		return cannot(err)
	}
	as := backup.As{Journal: types.JournalID(random64()), At: types.Time(time.Now().UnixMilli()), KeepKeys: v.KeepKeys}
	if _, err := backup.Restore(ctx, fs.Dir(filepath.Join(v.From, segmentsName)), into, as, c.copying("restore")); err != nil {
		return cannot(err)
	}
	if r.Checked.Objects != nil {
		if err := c.restoreObjects(ctx, cfg, v, r); err != nil {
			return err
		}
	}
	if err := dir.Remove(durable.Name); err != nil && !errors.Is(err, os.ErrNotExist) { // of the journal before
		return cannot(err)
	}
	if err := errors.Join(os.Rename(beside, place), dir.SyncDir()); err != nil {
		return cannot(err)
	}
	r.As, r.Done = fmt.Sprintf("%016x", uint64(as.Journal)), true
	return nil
}

// restoreObjects copies the objects of the backup into the data directory.
func (c *console) restoreObjects(ctx context.Context, cfg *config.Config, v *restoreCmd, r *restored) error {
	k, err := c.newObjectCopy(ctx, "restore", v.From, cfg.Data)
	if err != nil {
		return cannot(err)
	}
	if _, err := k.round(r.state); err != nil {
		return cannot(err)
	}
	r.Objects = &k.objectReport
	if k.Bad > 0 && !v.Accept {
		w := lines{c: c}
		k.tell(&w)
		return errors.Join(w.err, fmt.Errorf("restore: %w", errObjects))
	}
	return nil
}

// unarchived says why the archive cannot be that of a journal which begins now: a journal
// tells its own segments by their numbers.
func unarchived(cfg *config.Config) error {
	if cfg.Journal.Archive == "" {
		return nil
	}
	names, err := fs.Dir(cfg.Journal.Archive).List()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return cannot(err)
	}
	if len(names) > 0 {
		return cannot(fmt.Errorf("journal.archive has segments of another journal: configure an empty directory for the new one, and keep %s", cfg.Journal.Archive))
	}
	return nil
}

func (r *restored) tell(c *console, cfg *config.Config, v *restoreCmd) error {
	w := lines{c: c}
	if !r.Checked.ends() {
		intact := map[bool]string{true: "intact", false: "damaged"}[r.Checked.OK]
		w.say("the backup is %s: journal %s to frame @%d (%s), %d accounts", intact, r.Journal, r.LSN, r.At, r.Accounts)
	} else {
		w.say("the backup has journal %s to frame @%d (%s), %d accounts; durable frames up to @%d are lost", r.Journal, r.LSN, r.At, r.Accounts, r.Checked.Known)
	}
	r.Checked.tellObjects(&w)
	switch {
	case r.Lost == nil:
		w.say("unknown what was acknowledged after it: give the data directory of the original node with --source-data")
	case r.Lost.Frames == 0:
		w.say("nothing was acknowledged after it")
	default:
		w.say("acknowledged after it, and lost: %d movements in %d frames, to @%d (%s)", r.Lost.Movements, r.Lost.Frames, r.Lost.Upto, r.Lost.At)
		for _, id := range r.Lost.TxIDs {
			w.say("  %s", id)
		}
		if more := r.Lost.Movements - uint64(len(r.Lost.TxIDs)); more > 0 {
			w.say("  and %d more", more)
		}
	}
	switch {
	case !r.Done:
		w.say("nothing was changed")
	case v.KeepKeys:
		w.say("restored into %s as journal %s; the API keys of the backup are valid again", cfg.Data, r.As)
	default:
		w.say("restored into %s as journal %s; the API keys of the backup are not valid: the next start creates a bootstrap key", cfg.Data, r.As)
	}
	return w.err
}
