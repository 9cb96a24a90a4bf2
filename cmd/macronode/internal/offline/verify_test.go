package offline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/adapters/durable"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/adapters/snapshot"
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/settings"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/cmd/macronode/internal/testkit/journaldir"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

// runVerify checks a journal, and returns the report, its text and the exit code.
func runVerify(t *testing.T, d journaldir.Directory, deep bool) (report JournalReport, text string, code int) {
	t.Helper()
	v, err := Env{Unreadable: func(err error) { t.Logf("index: %v", err) }}.Verify(t.Context(), d.Config, deep, true)
	if ended := new(exit.Error); errors.As(err, &ended) {
		return report, err.Error(), ended.Code
	}
	testkit.Must(t, err)
	var out bytes.Buffer
	testkit.Must(t, v.WriteText(&out))
	if !v.OK {
		code = exit.CodeFailed
	}
	return *v, out.String(), code
}

func wantText(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not said:\n%s", w, text)
		}
	}
}

// TestVerifyIntactJournal: an intact journal has no findings.
func TestVerifyIntactJournal(t *testing.T) {
	l := journaldir.Payments(t, 40, 10, 30)
	for _, deep := range []bool{false, true} {
		report, text, code := runVerify(t, l, deep)
		if code != exit.CodeDone || !report.OK || report.Frames != 40 || report.Moved != 40 || report.Accounts != 1 || report.Segments != 7 || len(report.Damage) != 0 || report.Lost != 0 {
			t.Fatalf("%d, %+v", code, report)
		}
		for n, s := range report.Snapshots {
			if !s.OK || !s.Held || s.LSN != []uint64{30, 10}[n] {
				t.Fatalf("%+v", s)
			}
		}
		wantText(t, text, "is intact: 40 frames in ", "snapshot 0000000000000030.snap is intact and matches the journal")
	}
}

// TestVerifyContinuesAfterDamage: all damage is reported with the lost frames and no others, and with what the
// next start will do.
func TestVerifyContinuesAfterDamage(t *testing.T) {
	l := journaldir.Payments(t, 40, 10, 30)
	all, err := fs.Dir(l.Journal()).List()
	testkit.Must(t, err)
	journaldir.FlipBit(t, l.Journal(), all[1], 200) // of its first frame
	journaldir.FlipBit(t, l.Journal(), all[3], 20)  // of its start
	journaldir.FlipBit(t, l.Journal(), all[4], 340)
	report, text, code := runVerify(t, l, false)
	if code != exit.CodeFailed || report.OK || len(report.Damage) != 3 || report.Lost != 2 || report.Known != 39 {
		t.Fatalf("%d, %+v", code, report)
	}
	for n, name := range []string{all[1], all[3], all[4]} {
		if report.Damage[n].Segment != name {
			t.Fatalf("%+v", report.Damage)
		}
	}
	if d := report.Damage[1]; d.To != d.From-1 || d.Offset != 0 {
		t.Fatalf("the start of a segment: %+v", d)
	}
	if want := (NextStart{Snapshot: 30, Upto: 40, Writes: true}); report.Start == nil || *report.Start != want {
		t.Fatalf("the next start: %+v", report.Start)
	}
	wantText(t, text, "is damaged in 3 places: 2 frames of 39 are unreadable; all others are intact", all[1]+", byte ", "no frame is affected",
		"it starts from the snapshot @30 and continues after @40", "until then keep the directories snapshots and index: without that snapshot the node is read-only", "restore the named files from an archive")
}

// TestVerifyDamageAfterSnapshots: damage after the last snapshot.
func TestVerifyDamageAfterSnapshots(t *testing.T) {
	l := journaldir.Payments(t, 40, 10, 20)
	all, err := fs.Dir(l.Journal()).List()
	testkit.Must(t, err)
	journaldir.FlipBit(t, l.Journal(), all[len(all)-2], 300)
	report, text, code := runVerify(t, l, false)
	if code != exit.CodeFailed || len(report.Damage) != 1 || report.Start == nil || report.Start.Writes || report.Start.Snapshot != 20 {
		t.Fatalf("%d, %+v, %+v", code, report, report.Start)
	}
	wantText(t, text, fmt.Sprintf("until then the node starts read-only, with the state at @%d", report.Damage[0].From-1),
		"until then keep the directories snapshots and index: a damaged journal may not be able to rebuild them")
}

// TestVerifyReportsMissingSegments: deleted segments at the end, in the middle, and all.
func TestVerifyReportsMissingSegments(t *testing.T) {
	for what, c := range map[string]struct {
		from, less int // deleted segments, from the front and before the end
		want       string
	}{
		"the last ones":  {5, 0, "according to snapshots, frames up to @33 were durable, but the journal ends at @"},
		"all":            {0, 0, "according to snapshots, frames up to @33 were durable, but the journal ends at @0"},
		"in the midst":   {3, 2, "unreadable"},
		"the first ones": {0, 5, "segments before it are missing, here and in the archive, where one is named (journal.archive)"},
	} {
		l := journaldir.Payments(t, 40, 10, 33)
		all, err := fs.Dir(l.Journal()).List()
		testkit.Must(t, err)
		for _, name := range all[c.from : len(all)-c.less] {
			testkit.Must(t, os.Remove(filepath.Join(l.Journal(), name)))
		}
		report, text, code := runVerify(t, l, false)
		if code != exit.CodeFailed || len(report.Damage) != 1 || report.Lost == 0 {
			t.Errorf("%s: %d, %+v", what, code, report)
		}
		wantText(t, text, c.want)
	}
	l := journaldir.Payments(t, 40)
	all, err := fs.Dir(l.Journal()).List()
	testkit.Must(t, err)
	testkit.Must(t, os.Remove(filepath.Join(l.Journal(), all[len(all)-1])))
	if report, _, code := runVerify(t, l, false); code != exit.CodeDone || report.Frames >= 40 {
		t.Fatalf("nothing tells of more: %d, %+v", code, report)
	}
}

// TestVerifyReportsBadSnapshots: damaged, of another journal, and of another state.
func TestVerifyReportsBadSnapshots(t *testing.T) {
	for what, c := range map[string]struct {
		spoil func(journaldir.Directory)
		deep  bool
		want  string
	}{
		"damaged":         {func(l journaldir.Directory) { journaldir.FlipBit(t, l.Snapshots(), snapshot.Name(30), 100) }, false, "is invalid: snapshot: "},
		"another journal": {func(l journaldir.Directory) { forgeSnapshot(t, l, func(h *snapshot.Head) { h.Journal++ }, 30) }, false, "it is of journal 0000000000000008"},
		"another state":   {func(l journaldir.Directory) { forgeSnapshot(t, l, func(*snapshot.Head) {}, 29) }, true, "it is not what the journal makes of it"},
	} {
		l := journaldir.Payments(t, 40, 10, 30)
		mark(t, l, func(*durable.Mark) {})
		c.spoil(l)
		report, text, code := runVerify(t, l, c.deep)
		if code != exit.CodeFailed || report.OK || report.Frames != 40 || report.Error != "" || report.IntactSnapshots() != 1 {
			t.Errorf("%s: %d, %+v", what, code, report)
		}
		wantText(t, text, "is intact: 40 frames", c.want, "an invalid snapshot is harmless")
	}
	l := journaldir.Payments(t, 40, 10, 30)
	forgeSnapshot(t, l, func(*snapshot.Head) {}, 29)
	if report, _, code := runVerify(t, l, false); code != exit.CodeDone || !report.OK {
		t.Fatalf("without --deep: %d, %+v", code, report)
	}
}

// forgeSnapshot writes a valid snapshot as of @30 with the state of another frame.
func forgeSnapshot(t *testing.T, l journaldir.Directory, edit func(*snapshot.Head), of types.LSN) {
	t.Helper()
	st, h := state.New(settings.StateLimits(l.Config), 1), snapshot.Head{}
	_, err := journalfile.Reading{Upto: 30, Each: func(all []record.Sealed) error {
		for _, s := range all {
			if s.LSN <= of {
				testkit.Must(t, st.Fold(s.Body, nil))
			}
			h = snapshot.Head{LSN: s.LSN, At: types.Time(s.LSN), Journal: s.Journal, Root: s.Root}
		}
		return nil
	}}.Scan(fs.Dir(l.Journal()))
	testkit.Must(t, err)
	edit(&h)
	st.LSN, st.At = 30, 30
	_, err = snapshot.Write(fs.Dir(l.Snapshots()), h, &st, nil)
	testkit.Must(t, err)
}

// TestVerifyReportsInvalidMovements: intact frames with impossible movements.
func TestVerifyReportsInvalidMovements(t *testing.T) {
	l := journaldir.TwoAccounts(t)
	j, _, err := l.Open()
	testkit.Must(t, err)
	journaldir.Write(t, j, 3, 1, &record.Record{Kind: record.Posted, Op: event.Issue, Tenant: 1, Key: types.Name{Text: []byte("k3")},
		To: types.Name{Text: []byte("account:1")}, Asset: types.Name{Text: []byte("EUR/2")}, Amount: types.MinorUnits(1), Seq: 3,
		FromBalance: types.MinorUnits(3), ToBalance: types.MinorUnits(200)})
	testkit.Must(t, j.Close())
	report, text, code := runVerify(t, l, false)
	if code != exit.CodeFailed || report.OK || !strings.Contains(report.Error, "@3.0") || !strings.Contains(report.Error, "M1") {
		t.Fatalf("%d, %+v", code, report)
	}
	wantText(t, text, "is invalid: @3.0: ")
}

// TestVerifyCanBeCancelled: a cancelled verification ends with an error.
func TestVerifyCanBeCancelled(t *testing.T) {
	l := journaldir.Payments(t, 40, 10, 30)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if v, err := (Env{}).Verify(ctx, l.Config, false, true); v != nil || !errors.Is(err, context.Canceled) || errors.As(err, new(*exit.Error)) {
		t.Fatalf("%v, %+v", err, v)
	}
}
