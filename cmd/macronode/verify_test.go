package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/adapters/snapshot"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

// payments is a life over a directory in which an account was paid so many times, in segments
// of a few frames, with snapshots as of some of them.
func payments(t *testing.T, frames types.LSN, snapshots ...types.LSN) *life {
	t.Helper()
	l := &life{config: configured(t, small()...), log: slog.New(slog.DiscardHandler), dir: fs.Dir(t.TempDir())}
	l.config.Data = string(l.dir)
	dir, err := fs.Make(l.segments())
	must(t, err)
	kept, err := fs.Make(l.snapshots())
	must(t, err)
	j, _, err := journalfile.Recover(dir, 7, nil)
	must(t, err)
	j.Roll = 1000
	for lsn := types.LSN(1); lsn <= frames; lsn++ {
		pay(t, j, lsn)
	}
	must(t, j.Close())
	for _, upto := range snapshots {
		must(t, snapshot.New(snapshot.Config{Limits: stateLimits(l.config)}, kept, snapshot.Source{Grown: func() int64 { return 0 },
			Durable: func() types.LSN { return upto }, Read: behind(dir)}).Make(t.Context()))
	}
	return l
}

// pay writes the frame of a payment.
func pay(t *testing.T, j *journalfile.Journal, lsn types.LSN) {
	t.Helper()
	body := record.Begin(nil, lsn, types.Time(lsn))
	body, _ = record.Add(body, 0, &record.Record{Kind: record.Posted, Op: event.Issue, Tenant: 1, Key: types.Name{Text: fmt.Appendf(nil, "k%d", lsn)},
		To: types.Name{Text: []byte("ann")}, Asset: types.Name{Text: []byte("EUR/2")}, Amount: types.MinorUnits(1), Seq: types.Seq(lsn),
		FromBalance: types.MinorUnits(uint64(lsn)), ToBalance: types.MinorUnits(uint64(lsn)), DebitedToday: types.MinorUnits(uint64(lsn))})
	_, err := j.Write(body, []event.Frame{{LSN: lsn, Len: uint32(len(body))}})
	must(t, err)
	_, err = j.Sync()
	must(t, err)
}

// small is a configuration whose state is made in no time.
func small() []string {
	return []string{"wallet.limits.accounts=100", "wallet.limits.holdings=100", "wallet.limits.holds=100", "wallet.idempotency.keys=1000"}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// verifies runs the verb twice, for a script and for a person.
func (l *life) verifies(t *testing.T, v verifyCmd) (said verified, text string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	c := &console{out: &out, err: &errs, now: time.Now, tree: &tree{JSON: true}}
	code = c.tell(c.verify(t.Context(), l.config, &v))
	if code != unable {
		must(t, json.Unmarshal(out.Bytes(), &said))
	}
	out.Reset()
	c.tree.JSON = false
	if again := c.tell(c.verify(t.Context(), l.config, &v)); again != code {
		t.Fatalf("exit codes %d and %d", code, again)
	}
	return said, out.String() + errs.String(), code
}

func flipped(t *testing.T, dir, name string, at int) {
	t.Helper()
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	must(t, err)
	text[at] ^= 1
	must(t, os.WriteFile(path, text, 0o600))
}

func tells(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not said:\n%s", w, text)
		}
	}
}

// TestVerifiesWhatIsWhole.
func TestVerifiesWhatIsWhole(t *testing.T) {
	l := payments(t, 40, 10, 30)
	for _, v := range []verifyCmd{{}, {Deep: true}} {
		said, text, code := l.verifies(t, v)
		if code != done || !said.OK || said.Frames != 40 || said.Moved != 40 || said.Accounts != 1 || said.Segments != 7 || len(said.Damage) != 0 || said.Lost != 0 {
			t.Fatalf("%d, %+v", code, said)
		}
		for n, s := range said.Snapshots {
			if !s.OK || !s.Held || s.LSN != []uint64{30, 10}[n] {
				t.Fatalf("%+v", s)
			}
		}
		tells(t, text, "is intact: 40 frames in ", "snapshot 0000000000000030.snap is intact and matches the journal")
	}
}

// TestVerifyGoesOn: all damage is named, with the frames that are lost for it and no
// others, and what the next start will do.
func TestVerifyGoesOn(t *testing.T) {
	l := payments(t, 40, 10, 30)
	all, err := fs.Dir(l.segments()).List()
	must(t, err)
	flipped(t, l.segments(), all[1], 200) // of its first frame
	flipped(t, l.segments(), all[3], 20)  // of its start
	flipped(t, l.segments(), all[4], 340)
	said, text, code := l.verifies(t, verifyCmd{})
	if code != refused || said.OK || len(said.Damage) != 3 || said.Lost != 2 || said.Known != 39 {
		t.Fatalf("%d, %+v", code, said)
	}
	for n, name := range []string{all[1], all[3], all[4]} {
		if said.Damage[n].Segment != name {
			t.Fatalf("%+v", said.Damage)
		}
	}
	if d := said.Damage[1]; d.To != d.From-1 || d.Offset != 0 {
		t.Fatalf("the start of a segment: %+v", d)
	}
	if want := (start{Snapshot: 30, Upto: 40, Writes: true}); said.Start == nil || *said.Start != want {
		t.Fatalf("the next start: %+v", said.Start)
	}
	tells(t, text, "is damaged in 3 places: 2 frames of 39 are unreadable; all others are intact", all[1]+", byte ", "no frame is affected",
		"it starts from the snapshot @30 and continues after @40", "restore the named files from an archive", "macronode: verify: problems found")
	if st, found, err := l.lives(t); err != nil || found.Damaged || st.LSN != 40 {
		t.Fatalf("it was said to begin: %v, %+v, %v", st.LSN, found, err)
	}
}

// TestVerifyBehindTheSnapshots: damage that no snapshot lies behind.
func TestVerifyBehindTheSnapshots(t *testing.T) {
	l := payments(t, 40, 10, 20)
	all, err := fs.Dir(l.segments()).List()
	must(t, err)
	flipped(t, l.segments(), all[len(all)-2], 300)
	said, text, code := l.verifies(t, verifyCmd{})
	if code != refused || len(said.Damage) != 1 || said.Start == nil || said.Start.Writes || said.Start.Snapshot != 20 {
		t.Fatalf("%d, %+v, %+v", code, said, said.Start)
	}
	tells(t, text, fmt.Sprintf("until then the node starts read-only, with the state at @%d", said.Damage[0].From-1))
	if st, found, err := l.lives(t); err != nil || !found.Damaged || uint64(st.LSN) != said.Start.Upto {
		t.Fatalf("it was said to begin: %v, %+v, %v; said %+v", st.LSN, found, err, said.Start)
	}
}

// TestVerifySeesWhatIsGone: segments that were deleted whole, at the end, all of them, and
// in the midst.
func TestVerifySeesWhatIsGone(t *testing.T) {
	for what, c := range map[string]struct {
		from, less int // segments that go, from the front and before the end
		want       string
	}{
		"the last ones":  {5, 0, "according to snapshots, frames up to @33 were durable, but the journal ends at @"},
		"all":            {0, 0, "according to snapshots, frames up to @33 were durable, but the journal ends at @0"},
		"in the midst":   {3, 2, "unreadable"},
		"the first ones": {0, 5, "segments before it are missing, here and in the archive, where one is named (journal.archive)"},
	} {
		l := payments(t, 40, 10, 33)
		all, err := fs.Dir(l.segments()).List()
		must(t, err)
		for _, name := range all[c.from : len(all)-c.less] {
			removed(t, l.segments(), name)
		}
		said, text, code := l.verifies(t, verifyCmd{})
		if code != refused || len(said.Damage) != 1 || said.Lost == 0 {
			t.Errorf("%s: %d, %+v", what, code, said)
		}
		tells(t, text, c.want)
	}
	l := payments(t, 40)
	all, err := fs.Dir(l.segments()).List()
	must(t, err)
	removed(t, l.segments(), all[len(all)-1])
	if said, _, code := l.verifies(t, verifyCmd{}); code != done || said.Frames >= 40 {
		t.Fatalf("nothing tells of more: %d, %+v", code, said)
	}
}

// TestVerifyDoubtsSnapshots: damaged, of another journal, of another past, or of another
// state.
func TestVerifyDoubtsSnapshots(t *testing.T) {
	for what, c := range map[string]struct {
		spoil func(*life)
		deep  bool
		want  string
	}{
		"damaged":         {func(l *life) { flipped(t, l.snapshots(), snapshot.Name(30), 100) }, false, "is invalid: snapshot: "},
		"another journal": {func(l *life) { l.forged(t, func(h *snapshot.Head) { h.Journal++ }, 30) }, false, "it is of journal 0000000000000008"},
		"another past":    {func(l *life) { l.forged(t, func(h *snapshot.Head) { h.Root[0]++ }, 30) }, false, "it is of another past"},
		"another state":   {func(l *life) { l.forged(t, func(*snapshot.Head) {}, 29) }, true, "it is not what the journal makes of it"},
	} {
		l := payments(t, 40, 10, 30)
		c.spoil(l)
		said, text, code := l.verifies(t, verifyCmd{Deep: c.deep})
		if code != refused || said.OK || said.Frames != 40 || said.Error != "" || said.believed() != 1 {
			t.Errorf("%s: %d, %+v", what, code, said)
		}
		tells(t, text, "is intact: 40 frames", c.want, "an invalid snapshot is harmless")
	}
	l := payments(t, 40, 10, 30)
	l.forged(t, func(*snapshot.Head) {}, 29)
	if said, _, code := l.verifies(t, verifyCmd{}); code != done || !said.OK {
		t.Fatalf("without --deep: %d, %+v", code, said)
	}
}

// forged is a snapshot as of @30 that checks, with the state of another frame in it.
func (l *life) forged(t *testing.T, edit func(*snapshot.Head), of types.LSN) {
	t.Helper()
	st, h := state.New(stateLimits(l.config), 1), snapshot.Head{}
	_, err := journalfile.Reading{Upto: 30, Each: func(all []record.Sealed) error {
		for _, s := range all {
			if s.LSN <= of {
				must(t, st.Fold(s.Body, nil))
			}
			h = snapshot.Head{LSN: s.LSN, At: types.Time(s.LSN), Journal: s.Journal, Root: s.Root}
		}
		return nil
	}}.Scan(fs.Dir(l.segments()))
	must(t, err)
	edit(&h)
	st.LSN, st.At = 30, 30
	_, err = snapshot.Write(fs.Dir(l.snapshots()), h, &st, nil)
	must(t, err)
}

// TestVerifyHoldsMovements: frames that check and say what cannot be.
func TestVerifyHoldsMovements(t *testing.T) {
	l := alive(t)
	l.config.Data = string(l.dir)
	j, _, err := journalfile.Recover(fs.Dir(l.segments()), 7, nil)
	must(t, err)
	body := record.Begin(nil, 3, 1)
	body, _ = record.Add(body, 0, &record.Record{Kind: record.Posted, Op: event.Issue, Tenant: 1, Key: types.Name{Text: []byte("k3")},
		To: types.Name{Text: []byte("account:1")}, Asset: types.Name{Text: []byte("EUR/2")}, Amount: types.MinorUnits(1), Seq: 3,
		FromBalance: types.MinorUnits(3), ToBalance: types.MinorUnits(200)})
	_, err = j.Write(body, []event.Frame{{LSN: 3, Len: uint32(len(body))}})
	must(t, err)
	_, err = j.Sync()
	must(t, err)
	must(t, j.Close())
	said, text, code := l.verifies(t, verifyCmd{})
	if code != refused || said.OK || !strings.Contains(said.Error, "@3.0") || !strings.Contains(said.Error, "M1") {
		t.Fatalf("%d, %+v", code, said)
	}
	tells(t, text, "is invalid: @3.0: ")
}

// TestVerifyEnds when it is told to.
func TestVerifyEnds(t *testing.T) {
	l := payments(t, 40, 10, 30)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	c := &console{out: &out, err: &errs, now: time.Now, tree: new(tree)}
	if code := c.tell(c.verify(ctx, l.config, new(verifyCmd))); code != refused || out.Len() > 0 {
		t.Fatalf("%d, %s", code, &out)
	}
}

// TestReports once a second, and at the end.
func TestReports(t *testing.T) {
	for _, live := range []bool{false, true} {
		var out bytes.Buffer
		at := time.Unix(0, 0)
		tell := reporter(&out, live, func() time.Time { return at })
		for n := range int64(41) {
			tell(journalfile.Progress{Segment: "s", Done: n << 20, Total: 40 << 20, Last: types.LSN(n)})
			at = at.Add(100 * time.Millisecond)
		}
		want := []string{"verify:  25.0 % of 40.0 MiB, s, @10", "verify:  50.0 % of 40.0 MiB, s, @20", "verify:  75.0 % of 40.0 MiB, s, @30", "verify: 100.0 % of 40.0 MiB, s, @40"}
		sep := "\n"
		if live {
			sep = "\r"
		}
		if got := strings.Split(strings.Trim(out.String(), "\r\n"), sep); !slices.Equal(got, want) {
			t.Errorf("live %v: %q", live, got)
		}
	}
}
