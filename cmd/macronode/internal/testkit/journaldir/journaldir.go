// Package journaldir makes data directories with journals for tests.
package journaldir

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"macronode/adapters/config"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/adapters/recovery"
	"macronode/adapters/snapshot"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/settings"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// A Directory is a data directory with a journal. No node runs on it.
type Directory struct{ Config *config.Config }

// Journal returns the directory of the segments.
func (d Directory) Journal() string { return filepath.Join(d.Config.Data, datadir.Journal) }

// Snapshots returns the directory of the snapshots.
func (d Directory) Snapshots() string { return filepath.Join(d.Config.Data, datadir.Snapshots) }

// New returns a data directory with an empty directory for the segments.
func New(t testing.TB, sets ...string) Directory {
	t.Helper()
	d := Directory{testkit.Config(t, sets...)}
	d.Config.Data = t.TempDir()
	_, err := fs.Make(d.Journal())
	testkit.Must(t, err)
	return d
}

// Open opens the journal for writing.
func (d Directory) Open() (*journalfile.Journal, journalfile.Found, error) {
	s, err := datadir.OpenSegments(fs.Dir(d.Config.Data), "")
	if err != nil {
		return nil, journalfile.Found{}, err
	}
	return journalfile.Reading{Epoch: s.Writers.Next}.Recover(s, 7)
}

// TwoAccounts returns a data directory in which two accounts were paid.
func TwoAccounts(t testing.TB, sets ...string) Directory {
	t.Helper()
	d := New(t, sets...)
	j, _, err := d.Open()
	testkit.Must(t, err)
	for lsn := types.LSN(1); lsn <= 2; lsn++ {
		Write(t, j, lsn, 1, &record.Record{Kind: record.Posted, Op: event.Issue, Tenant: 1, Key: types.Name{Text: fmt.Appendf(nil, "k%d", lsn)},
			To: types.Name{Text: fmt.Appendf(nil, "account:%d", lsn)}, Asset: types.Name{Text: []byte("EUR/2")}, Amount: types.MinorUnits(1), Seq: types.Seq(lsn),
			FromBalance: types.MinorUnits(uint64(lsn)), ToBalance: types.MinorUnits(1)})
	}
	testkit.Must(t, j.Close())
	return d
}

// Payments returns a data directory in which an account was paid once in each of so many frames. The segments hold a few
// frames each, and there are snapshots as of some frames.
func Payments(t testing.TB, frames types.LSN, snapshots ...types.LSN) Directory {
	t.Helper()
	d := New(t, testkit.SmallState()...)
	j, _, err := d.Open()
	testkit.Must(t, err)
	j.Roll = 1000
	for lsn := types.LSN(1); lsn <= frames; lsn++ {
		Pay(t, j, lsn)
	}
	testkit.Must(t, j.Close())
	d.Snapshot(t, snapshots...)
	return d
}

// Snapshot writes snapshots as of some frames.
func (d Directory) Snapshot(t testing.TB, frames ...types.LSN) {
	t.Helper()
	kept, err := fs.Make(d.Snapshots())
	testkit.Must(t, err)
	for _, upto := range frames {
		m := snapshot.New(snapshot.Config{Limits: settings.StateLimits(d.Config)}, kept, snapshot.Source{Grown: func() int64 { return 0 },
			Durable: func() types.LSN { return upto }, Read: recovery.FramesAfter(fs.Dir(d.Journal()))})
		testkit.Must(t, m.Make(t.Context()))
	}
}

// Pay writes the frame of a payment.
func Pay(t testing.TB, j *journalfile.Journal, lsn types.LSN) {
	t.Helper()
	Write(t, j, lsn, types.Time(lsn), &record.Record{Kind: record.Posted, Op: event.Issue, Tenant: 1, Key: types.Name{Text: fmt.Appendf(nil, "k%d", lsn)},
		To: types.Name{Text: []byte("ann")}, Asset: types.Name{Text: []byte("EUR/2")}, Amount: types.MinorUnits(1), Seq: types.Seq(lsn),
		FromBalance: types.MinorUnits(uint64(lsn)), ToBalance: types.MinorUnits(uint64(lsn)), DebitedToday: types.MinorUnits(uint64(lsn))})
}

// Write writes a frame with one record, and syncs it.
func Write(t testing.TB, j *journalfile.Journal, lsn types.LSN, at types.Time, r *record.Record) {
	t.Helper()
	body := record.Begin(nil, lsn, at)
	body, _ = record.Add(body, 0, r)
	_, err := j.Write(body, []event.Frame{{LSN: lsn, Len: uint32(len(body))}})
	testkit.Must(t, err)
	_, err = j.Sync()
	testkit.Must(t, err)
}

// FlipBit damages one byte of a file.
func FlipBit(t testing.TB, dir, name string, at int) {
	t.Helper()
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	testkit.Must(t, err)
	text[at] ^= 1
	testkit.Must(t, os.WriteFile(path, text, 0o600))
}
