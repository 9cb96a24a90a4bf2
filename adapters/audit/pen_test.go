package audit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/types"
)

// files returns the paths of all files, the oldest first.
func files(t testing.TB, dir string) (paths []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(list); i > 0; i-- {
		if path := filepath.Join(dir, fmt.Sprintf("audit.log.%d", i)); there(path) {
			paths = append(paths, path)
		}
	}
	if path := filepath.Join(dir, "audit.log"); there(path) {
		paths = append(paths, path)
	}
	if len(paths) != len(list) {
		t.Fatalf("%v of %v", paths, list)
	}
	return paths
}

func there(path string) bool { _, err := os.Lstat(path); return err == nil }

// TestFullFilesAreKept checks the number of rotated files, and the maximum size of each.
func TestFullFilesAreKept(t *testing.T) {
	dir := t.TempDir()
	l := New(dir, Limits{Queue: 100, Size: 1000, Keep: 3, Every: time.Hour}, newLogBuffer().Logger)
	for i := range 200 {
		l.Note(Line{Status: 1 + i, Route: strings.Repeat("r", i%50)})
		if i%7 == 0 {
			l.flush()
		}
	}
	runs(t, l)()
	paths := files(t, dir)
	if len(paths) != 4 || l.Counts() != (Counts{Written: 200}) {
		t.Fatal(paths, l.Counts())
	}
	all, torn := entries(t, paths...)
	for i, e := range all {
		if want := 200 - len(all) + 1 + i; e.Status != want || torn > 0 {
			t.Fatalf("line %d, want %d; %d torn", e.Status, want, torn)
		}
	}
	for i, path := range paths {
		is, err := os.Lstat(path)
		if err != nil || is.Size() > 1000 || i < 3 && is.Size() < 300 || is.Mode() != 0o600 {
			t.Error(path, is.Size(), is.Mode(), err)
		}
	}
}

// TestRotationResumes checks that a rotation continues after a failure, and moves no file twice.
func TestRotationResumes(t *testing.T) {
	dir := t.TempDir()
	for name, what := range map[string]string{"audit.log": "now\n", "audit.log.2": "two\n", "audit.log.3": "three\n", "audit.log.4": "beyond\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(what), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := New(dir, Limits{Queue: 4, Size: 10, Keep: 3, Every: time.Hour}, newLogBuffer().Logger)
	l.Note(Line{Status: 1})
	runs(t, l)()
	for name, want := range map[string]string{"audit.log.1": "now\n", "audit.log.2": "two\n", "audit.log.3": "three\n", "audit.log.4": "beyond\n"} {
		if got := text(t, dir, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := text(t, dir, "audit.log"); !strings.Contains(got, `"status":1}`) {
		t.Error(got)
	}
}

// TestTornLineIsTerminated checks that a torn line is terminated before the next one, and is kept.
func TestTornLineIsTerminated(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.log")
	if err := os.WriteFile(path, []byte("{\"status\":1}\n{\"stat"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := New(dir, DefaultLimits(), newLogBuffer().Logger)
	l.Note(Line{Status: 2})
	runs(t, l)()
	lines := strings.Split(text(t, path), "\n")
	if len(lines) != 4 || lines[1] != `{"stat` || !strings.HasSuffix(lines[2], `"status":2}`) || lines[3] != "" {
		t.Fatalf("%q", lines)
	}
}

// TestMovedFileIsRecreated checks that a new file is created if the file is moved or removed.
func TestMovedFileIsRecreated(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	path := filepath.Join(dir, "audit.log")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	log := newLogBuffer()
	l := New(dir, DefaultLimits(), log.Logger)
	for i, change := range []func() error{
		func() error { return nil },
		func() error { return os.Rename(path, path+"-moved") },
		func() error { return os.Remove(path) },
		func() error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		l.Note(Line{Status: i + 1})
		l.flush()
		if all, torn := entries(t, path); len(all) != 1 || all[0].Status != i+1 || torn > 0 {
			t.Fatal(i, all, torn)
		}
	}
	if all, _ := entries(t, path+"-moved"); len(all) != 1 || all[0].Status != 1 || log.String() != "" {
		t.Fatal(all, log)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	l.Note(Line{Status: 9})
	l.flush()
	if got := l.Counts(); got != (Counts{Written: 4, Failed: 1}) || log.times("ERROR") != 1 {
		t.Fatal(got, log)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	runs(t, l)()
	if all, _ := entries(t, path); len(all) != 1 || all[0].Status != 9 || log.times("WARN") != 1 {
		t.Fatal(all, log)
	}
}

// randomRun runs logs through full disks, full files and shutdowns. The files must contain each line once, in
// order, or the number of lost lines at its position.
type randomRun struct {
	t    testing.TB
	pick func(n int) int
	dir  string
	disk limitedDisk
	log  *Log

	name   int   // of the current log
	noted  []int // lines noted by each log
	untold []int // lost lines at the end of each log that no file records
	saw    map[string]int
}

func (w *randomRun) begin() {
	w.log = New(w.dir, Limits{Queue: 1 + w.pick(6), Size: int64(100 + w.pick(600)), Keep: 1000, Every: time.Hour}, newLogBuffer().Logger)
	w.log.pen.open = w.disk.open
	w.name++
	w.noted = append(w.noted, 0)
}

func (w *randomRun) end() {
	l := w.log
	l.ended = true
	l.flush()
	reported := l.batch.over
	l.mu.Lock()
	w.untold = append(w.untold, l.batch.left()+len(l.queue)+int(reported+l.over))
	l.mu.Unlock()
	got := l.Counts()
	if noted := w.noted[w.name-1]; int(got.Written+got.Lost)+l.batch.left()+len(l.queue) != noted {
		w.t.Fatalf("%d noted: %+v, and %d, %d left", noted, got, l.batch.left(), len(l.queue))
	}
	if err := l.pen.lay(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *randomRun) step() {
	switch w.pick(8) {
	case 0, 1:
		w.disk.has(w.pick(400))
	case 2:
		w.disk.has(1 << 30)
	case 3:
		w.end()
		w.begin()
	case 4, 5:
		was := w.log.Counts().Failed
		w.log.flush()
		if w.log.Counts().Failed > was {
			w.saw["refused"]++
		}
	default:
		for range w.pick(5) {
			w.noted[w.name-1]++
			w.log.Note(Line{Key: types.KeyID(w.name), Status: w.noted[w.name-1], Route: strings.Repeat("r", w.pick(40))})
		}
	}
}

func (w *randomRun) check(paths []string) {
	all, torn := entries(w.t, paths...)
	at := make([]int, w.name)
	writer := 0
	for _, e := range all {
		if e.Lost > 0 {
			w.saw["lost"]++
			at[writer] += e.Lost
			continue
		}
		var of int
		if _, err := fmt.Sscanf(e.Key, "mk_%x", &of); err != nil || of < writer+1 {
			w.t.Fatalf("%+v after those of %d: %v", e, writer, err)
		}
		if writer = of - 1; e.Status != at[writer]+1 {
			w.t.Fatalf("%+v after %d of %v", e, at[writer], w.noted)
		}
		at[writer] = e.Status
	}
	w.saw["torn"] += torn
	if torn > w.disk.torn {
		w.t.Fatalf("%d torn lines in the files, want %d", torn, w.disk.torn)
	}
	for i, n := range w.noted {
		if at[i]+w.untold[i] != n {
			w.t.Fatalf("%d of %d are told by %d, %d are not: %v", at[i], n, i, w.untold[i], all)
		}
	}
}

func (w *randomRun) walk(steps int) {
	w.disk.has(1 << 30)
	w.begin()
	for range steps {
		w.step()
	}
	w.disk.has(1 << 30)
	w.end()
	paths := files(w.t, w.dir)
	w.saw["files"] += len(paths)
	w.check(paths)
}

// TestEveryLossIsCounted checks random runs.
func TestEveryLossIsCounted(t *testing.T) {
	saw := map[string]int{}
	for seed := range uint64(50) {
		dice := rand.New(rand.NewPCG(seed, 1))
		w := randomRun{t: t, pick: dice.IntN, dir: t.TempDir(), saw: saw}
		w.walk(60)
	}
	for _, what := range []string{"refused", "lost", "torn", "files"} {
		if saw[what] < 50 {
			t.Errorf("%s was seen %d times", what, saw[what])
		}
	}
	t.Log(saw)
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			r.Fatal(err)
		}
		w := randomRun{t: least{t, r}, pick: func(n int) int { return rapid.IntRange(0, n-1).Draw(r, "pick") }, dir: dir, saw: map[string]int{}}
		w.walk(20)
	})
}

// least reports a failure to rapid, so that it shrinks the example.
type least struct {
	testing.TB
	rapid *rapid.T
}

func (l least) Fatal(args ...any)                 { l.rapid.Fatal(args...) }
func (l least) Fatalf(format string, args ...any) { l.rapid.Fatalf(format, args...) }
