package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"macronode/core/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logBuffer is a logger that keeps its messages.
type logBuffer struct {
	mu  sync.Mutex
	log bytes.Buffer
	*slog.Logger
}

func newLogBuffer() *logBuffer {
	t := new(logBuffer)
	t.Logger = slog.New(slog.NewTextHandler(t, nil))
	return t
}

func (t *logBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.log.Write(p)
}

func (t *logBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.log.String()
}

// times returns the number of messages of a level.
func (t *logBuffer) times(level string) int { return strings.Count(t.String(), "level="+level) }

// runs starts l. The returned function ends it.
func runs(t *testing.T, l *Log) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- l.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func text(t testing.TB, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// entry is a decoded line.
type entry struct {
	TS       time.Time    `json:"ts"`
	Decision string       `json:"decision_id"`
	Key      string       `json:"key"`
	Tenant   types.Tenant `json:"tenant"`
	Route    string       `json:"route"`
	Peer     string       `json:"peer"`
	Status   int          `json:"status"`
	Code     string       `json:"code"`
	TxID     string       `json:"txid"`
	Lost     int          `json:"lost"`
	Omitted  int          `json:"omitted"`
}

// entries returns the complete lines of the given files, in order, and the number of torn ones.
func entries(t testing.TB, paths ...string) (all []entry, torn int) {
	t.Helper()
	for _, path := range paths {
		lines := bufio.NewScanner(strings.NewReader(text(t, path)))
		for lines.Scan() {
			var e entry
			if json.Unmarshal(lines.Bytes(), &e) != nil {
				torn++
				continue
			}
			all = append(all, e)
		}
	}
	return all, torn
}

// TestLineIsWrittenWithinASecond checks that a line is written whole within a second, to a file that
// only its owner can read.
func TestLineIsWrittenWithinASecond(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		log := newLogBuffer()
		l := New(dir, DefaultLimits(), log.Logger)
		end := runs(t, l)
		defer end()
		synctest.Wait()
		if was := text(t, dir, "audit.log"); was != "" {
			t.Fatal(was)
		}
		l.Note(Line{Decision: "d-1", Key: 0xbeef, Tenant: 1, Route: "POST /v1/transfer", Peer: "127.0.0.1:9", Status: 200, TxID: "tx_1"})
		time.Sleep(400 * time.Millisecond)
		l.Note(Line{Decision: "d-2", Route: "GET /v1/keys", Peer: "@", Status: 401, Code: "unauthorized"})
		time.Sleep(599 * time.Millisecond)
		synctest.Wait()
		if got := l.Counts(); got != (Counts{}) {
			t.Fatal("the line was written at once, want a delay of up to a second: ", got)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		const want = `{"ts":"2000-01-01T00:00:00.000Z","decision_id":"d-1","key":"mk_000000000000beef","tenant":1,"route":"POST /v1/transfer","peer":"127.0.0.1:9","status":200,"txid":"tx_1"}
{"ts":"2000-01-01T00:00:00.400Z","decision_id":"d-2","route":"GET /v1/keys","peer":"@","status":401,"code":"unauthorized"}
`
		if got := text(t, dir, "audit.log"); got != want {
			t.Fatalf("%s", got)
		}
		if got := l.Counts(); got != (Counts{Written: 2}) || log.String() != "" {
			t.Fatal(got, log)
		}
	})
	if is, err := os.Lstat(filepath.Join(dir, "audit.log")); err != nil || is.Mode() != 0o600 {
		t.Fatal(is.Mode(), err)
	}
}

// TestHalfFullQueueIsWrittenAtOnce checks that a half full queue is written before the second is over.
func TestHalfFullQueueIsWrittenAtOnce(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := New(dir, Limits{Queue: 10, Size: 1 << 20, Keep: 1, Every: time.Hour}, newLogBuffer().Logger)
		defer runs(t, l)()
		for range 100 {
			l.Note(Line{Status: 1})
			synctest.Wait()
		}
		if got := l.Counts(); got.Written < 95 || got.Lost != 0 {
			t.Fatal(got)
		}
	})
}

// TestShutdownWritesQueue checks that shutdown writes all lines noted before it, and that lines noted
// later are counted as lost.
func TestShutdownWritesQueue(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := New(dir, DefaultLimits(), newLogBuffer().Logger)
		end := runs(t, l)
		synctest.Wait()
		for range 1000 {
			l.Note(Line{Status: 1})
		}
		end()
		l.Note(Line{Status: 2})
		if all, torn := entries(t, filepath.Join(dir, "audit.log")); len(all) != 1000 || torn > 0 {
			t.Fatal(len(all), torn)
		}
		if got := l.Counts(); got != (Counts{Written: 1000, Lost: 1}) {
			t.Fatal(got)
		}
	})
}

// TestLossIsRecorded checks that the file records lost lines at their position.
func TestLossIsRecorded(t *testing.T) {
	dir := t.TempDir()
	l := New(dir, Limits{Queue: 4, Size: 1 << 20, Keep: 1, Every: time.Hour}, newLogBuffer().Logger)
	note := func(from, to int) {
		for i := from; i <= to; i++ {
			l.Note(Line{Status: i})
		}
	}
	note(1, 10)
	l.flush()
	note(11, 12)
	l.flush()
	l.flush()
	all, torn := entries(t, filepath.Join(dir, "audit.log"))
	got := ""
	for _, e := range all {
		got += fmt.Sprint(e.Status, "/", e.Lost, " ")
		if time.Since(e.TS) > time.Hour || time.Since(e.TS) < 0 {
			t.Error(e.TS)
		}
	}
	if got != "1/0 2/0 3/0 4/0 0/6 11/0 12/0 " || torn > 0 || l.Counts() != (Counts{Written: 6, Lost: 6}) {
		t.Fatal(got, torn, l.Counts())
	}
	if err := l.pen.lay(); err != nil {
		t.Fatal(err)
	}
}

// TestDiskErrorIsLoggedOnce checks that a disk error is logged once, and its end once.
func TestDiskErrorIsLoggedOnce(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		log, f := newLogBuffer(), &limitedDisk{room: 1 << 30}
		l := New(dir, Limits{Queue: 8, Size: 1 << 20, Keep: 1, Every: time.Second}, log.Logger)
		l.pen.open = f.open
		end := runs(t, l)
		synctest.Wait()
		for round := range 2 {
			f.has(0)
			for i := range 60 {
				l.Note(Line{Status: 1 + i})
				time.Sleep(time.Second)
			}
			if log.times("ERROR") != round+1 || log.times("WARN") != round || l.Counts().Failed < 10 {
				t.Fatal(log, l.Counts())
			}
			f.has(1 << 30)
			time.Sleep(time.Second)
			synctest.Wait()
			if log.times("ERROR") != round+1 || log.times("WARN") != round+1 {
				t.Fatal(log)
			}
		}
		end()
		if got := l.Counts(); got.Written+got.Lost != 120 || got.Written < 2*8 || got.Lost < 2*40 {
			t.Fatal(got)
		}
		all, _ := entries(t, filepath.Join(dir, "audit.log"))
		lost := 0
		for _, e := range all {
			lost += e.Lost
		}
		if uint64(lost) != l.Counts().Lost {
			t.Fatal(lost, l.Counts())
		}
	})
}

// TestShutdownWithDiskErrorCountsLines checks that lines not written at shutdown are counted and logged.
func TestShutdownWithDiskErrorCountsLines(t *testing.T) {
	log, f := newLogBuffer(), &limitedDisk{}
	l := New(t.TempDir(), Limits{Queue: 8, Size: 1 << 20, Keep: 1, Every: time.Hour}, log.Logger)
	l.pen.open = f.open
	for range 10 {
		l.Note(Line{Status: 1})
	}
	runs(t, l)()
	if got := l.Counts(); got.Written != 0 || got.Lost != 10 || got.Failed == 0 {
		t.Fatal(got)
	}
	if !strings.Contains(log.String(), "lines=8") || log.times("ERROR") != 2 {
		t.Fatal(log)
	}
}

// limitedDisk is a disk with limited space.
type limitedDisk struct {
	mu   sync.Mutex
	room int
	torn int // lines that it stored in part
}

func (f *limitedDisk) has(room int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.room = room
}

func (f *limitedDisk) open(path string) (opened, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.room == 0 {
		return opened{}, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOSPC}
	}
	at, err := open(path)
	if err == nil {
		at.file = fussyFile{at.file, f}
	}
	return at, err
}

type fussyFile struct {
	file
	*limitedDisk
}

func (f fussyFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fits := p[:min(len(p), f.room)]
	f.room -= len(fits)
	n, err := f.file.Write(fits)
	if err == nil && n < len(p) {
		err = syscall.ENOSPC
		if n > 0 && p[n-1] != '\n' {
			f.torn++
		}
	}
	return n, err
}

// TestConcurrentNotes checks that with concurrent calls of Note each line is in the file once, in the order
// of its caller, or is recorded as lost.
func TestConcurrentNotes(t *testing.T) {
	const writers, each = 8, 3000
	dir := t.TempDir()
	l := New(dir, Limits{Queue: 64, Size: 1 << 30, Keep: 1, Every: time.Millisecond}, newLogBuffer().Logger)
	end := runs(t, l)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for n := range each {
				l.Note(Line{Key: types.KeyID(1 + i), Status: 1 + n})
			}
		})
	}
	all.Wait()
	end()
	lines, torn := entries(t, filepath.Join(dir, "audit.log"))
	last, written, lost := map[string]int{}, 0, 0
	for _, e := range lines {
		lost += e.Lost
		if e.Lost > 0 {
			continue
		}
		written++
		if e.Status <= last[e.Key] {
			t.Fatalf("%s noted %d after %d", e.Key, e.Status, last[e.Key])
		}
		last[e.Key] = e.Status
	}
	got := l.Counts()
	if torn > 0 || written+lost != writers*each || got.Written != uint64(written) || got.Lost != uint64(lost) {
		t.Fatalf("%d written, %d lost, %d torn: %+v", written, lost, torn, got)
	}
}

func TestNoteAllocatesNothing(t *testing.T) {
	l := New(t.TempDir(), Limits{Queue: 50, Size: 1 << 20, Keep: 1, Every: time.Hour}, newLogBuffer().Logger)
	line := Line{Decision: "d", Route: "r", Peer: strings.Repeat("p", maxPeer)}
	if n := testing.AllocsPerRun(100, func() { l.Note(line) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got := l.Counts(); got.Lost == 0 {
		t.Error(got)
	}
}

// TestIrregularFilesAreNotWritten checks that a link, pipe or directory at the path is not followed or written.
func TestIrregularFilesAreNotWritten(t *testing.T) {
	for name, lay := range map[string]func(path string) error{
		"a link": func(p string) error {
			return errors.Join(os.WriteFile(p+".else", nil, 0o600), os.Symlink(p+".else", p))
		},
		"a directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"a pipe":      func(p string) error { return syscall.Mkfifo(p, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "audit.log")
			if err := lay(path); err != nil {
				t.Fatal(err)
			}
			log := newLogBuffer()
			l := New(dir, DefaultLimits(), log.Logger)
			l.Note(Line{Status: 1})
			runs(t, l)()
			if got := l.Counts(); got.Written != 0 || got.Lost != 1 || log.times("ERROR") != 2 {
				t.Fatal(got, log)
			}
			if name == "a link" && text(t, path+".else") != "" {
				t.Fatal("the link was followed")
			}
		})
	}
}
