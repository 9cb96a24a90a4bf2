package backup_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"testing"

	"macronode/adapters/backup"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/types"
)

// overwrite replaces a file, or makes it.
func overwrite(t *testing.T, d *world.Disk, name string, text []byte) {
	t.Helper()
	f, err := d.Create(name + ".new")
	if err == nil {
		_, err = f.WriteAt(text, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, d.Rename(name+".new", name), d.SyncDir()); err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, d *world.Disk, name string) []byte {
	t.Helper()
	text, err := fs.ReadAll(d, name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// spoil changes bytes from the beginning of a frame on: only in it, or up to the end of its segment.
func spoil(t *testing.T, d *world.Disk, body []byte, toEnd bool) (segment string) {
	t.Helper()
	for _, name := range d.Names() {
		text := contents(t, d, name)
		at := bytes.Index(text, body)
		if at < 0 {
			continue
		}
		end := at + 1
		if toEnd {
			end = len(text)
		}
		for i := at; i < end; i++ {
			text[i] ^= 0x55
		}
		overwrite(t, d, name, text)
		return name
	}
	t.Fatal("no segment has the frame")
	return ""
}

// TestCopyEndsBeforeDamage: a copy is extended up to the first damage behind its end, and the error names that damage. If the damage hides
// the last frame of the copy, or what follows it, nothing is added. The error is not that of another journal.
func TestCopyEndsBeforeDamage(t *testing.T) {
	const had, all = types.LSN(20), types.LSN(40)
	for name, c := range map[string]struct {
		damaged []types.LSN // frames
		toEnd   bool        // of the segments
		stray   bool        // the third segment is there once more, as the last one
		had     types.LSN   // the end of the copy before
		want    types.LSN   // and after
		from    types.LSN   // the first frame that cannot be read; 0: of the stray segment
	}{
		"no copy":                    {damaged: []types.LSN{33}, want: 32, from: 33},
		"behind the end":             {damaged: []types.LSN{33}, had: had, want: 32, from: 33},
		"before and behind the end":  {damaged: []types.LSN{3, 33}, had: had, want: 32, from: 33},
		"twice behind the end":       {damaged: []types.LSN{25, 33}, had: had, want: 24, from: 25},
		"first frame behind":         {damaged: []types.LSN{3, 21}, had: had, want: had, from: 21},
		"last frame of the copy":     {damaged: []types.LSN{had, 33}, had: had, want: had, from: had},
		"and an earlier frame":       {damaged: []types.LSN{3, had}, had: had, want: had, from: had},
		"end of the journal":         {damaged: []types.LSN{all - 1}, toEnd: true, had: all, want: all, from: all - 1},
		"stray segment":              {stray: true, had: had, want: all},
		"stray segment, no copy":     {stray: true, want: all},
		"stray segment and damage":   {damaged: []types.LSN{33}, stray: true, had: had, want: 32, from: 33},
		"stray segment with the end": {stray: true, had: 14, want: all},
		"stray and earlier damage":   {damaged: []types.LSN{3}, stray: true, had: had, want: had, from: 3},
	} {
		w, to := newWriter(t, 7), room()
		w.grow(int(all))
		frames, segments := read(t, w.disk), w.disk.Names()
		if c.had > 0 {
			if _, err := backup.Copy(t.Context(), w.disk, to, backup.Bounds{Upto: c.had}, nil); err != nil {
				t.Fatal(err)
			}
		}
		bad := ""
		for _, lsn := range c.damaged {
			if segment := spoil(t, w.disk, frames[lsn-1].Body, c.toEnd); lsn == c.from {
				bad = segment
			}
		}
		if next := fmt.Sprintf("%08d.seg", len(segments)+1); c.stray {
			overwrite(t, w.disk, next, contents(t, w.disk, segments[2]))
			bad = cmp.Or(bad, next)
		}
		for _, before := range []func() (types.LSN, error){nil, func() (types.LSN, error) { return 0, nil }} {
			d, err := backup.Copy(t.Context(), w.disk, to, backup.Bounds{Before: before}, nil)
			damage, ok := errors.AsType[*journalfile.Damage](err)
			if !ok || errors.Is(err, backup.ErrFork) || errors.Is(err, backup.ErrPast) || damage.Segment != bad || c.from > 0 && damage.From != c.from || d.LSN != c.want {
				t.Errorf("%s: to %v, %v; want %s", name, d.LSN, err, bad)
			}
			same(t, read(t, to), frames, c.want)
			if cut, err := backup.CutOf(to); err != nil || cut.LSN != c.want || len(read(t, to)) != int(c.want) {
				t.Errorf("%s: the copy records its end as %v, %v", name, cut.LSN, err)
			}
		}
	}
}

// TestDamagedForkIsNoJournalOfCopy: a damaged journal that has another frame at the end of the copy is another one.
func TestDamagedForkIsNoJournalOfCopy(t *testing.T) {
	w, to, other := newWriter(t, 7), room(), newWriter(t, 8)
	w.grow(20)
	if _, err := backup.Copy(t.Context(), w.disk, to, backup.Bounds{}, nil); err != nil {
		t.Fatal(err)
	}
	other.grow(40)
	frames := read(t, other.disk)
	for _, lsn := range []types.LSN{33, 3} {
		spoil(t, other.disk, frames[lsn-1].Body, false)
		if d, err := backup.Copy(t.Context(), other.disk, to, backup.Bounds{}, nil); !errors.Is(err, backup.ErrFork) || len(read(t, to)) != 20 {
			t.Errorf("damage at %v: %+v, %v", lsn, d, err)
		}
	}
}

// TestCopyTakesNothingBeforeContradiction: if a proof has another root for a frame, the frames behind the end of the copy may be of another past.
func TestCopyTakesNothingBeforeContradiction(t *testing.T) {
	w, to := newWriter(t, 7), room()
	w.grow(40)
	for _, upto := range []types.LSN{0, 20} {
		if upto > 0 {
			if _, err := backup.Copy(t.Context(), w.disk, to, backup.Bounds{Upto: upto}, nil); err != nil {
				t.Fatal(err)
			}
		}
		proof := journalfile.Proof{LSN: 38, Root: types.Root{1}, Source: "durable"}
		d, err := backup.Copy(t.Context(), w.disk, to, backup.Bounds{Proofs: []journalfile.Proof{proof}}, nil)
		if !errors.Is(err, journalfile.ErrDamaged) || !errors.Is(err, backup.ErrPast) || d.LSN != upto || len(read(t, to)) != int(upto) {
			t.Errorf("from %v: %+v, %v", upto, d, err)
		}
	}
}
