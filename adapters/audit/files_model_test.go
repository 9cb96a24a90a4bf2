package audit

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"macronode/core/types"
)

// filesModel is a reference model of the audit files: their number, size and lines. A log must keep the newest
// files, and must not touch anything else at the path of the file.
type filesModel struct {
	t      *testing.T
	dir    string
	limits Limits
	log    *Log
	noted  int      // lines so far
	apart  []string // files moved away from outside, the oldest first
	stands string   // what is at the path instead of a regular file
}

func (s *filesModel) path() string { return filepath.Join(s.dir, name) }

// blocked puts something other than a regular file at the path, or removes it.
func (s *filesModel) blocked(what string) {
	s.t.Helper()
	var err error
	if s.stands != "" {
		err = errors.Join(os.Remove(s.path()), s.restored())
	} else {
		err = s.aside()
		switch what {
		case "a link":
			err = errors.Join(err, os.WriteFile(s.path()+".else", []byte("not ours"), 0o600), os.Symlink(s.path()+".else", s.path()))
		case "a pipe":
			err = errors.Join(err, syscall.Mkfifo(s.path(), 0o600))
		case "a directory":
			err = errors.Join(err, os.Mkdir(s.path(), 0o700))
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
	if s.stands == "" {
		s.stands = what
	} else {
		s.stands = ""
	}
}

// aside moves the file away, as an external log rotation does.
func (s *filesModel) aside() error {
	if !there(s.path()) {
		return nil
	}
	to := filepath.Join(s.t.TempDir(), "moved")
	s.apart = append(s.apart, to)
	return os.Rename(s.path(), to)
}

func (s *filesModel) restored() error {
	if s.stands != "a link" {
		return nil
	}
	is, err := os.ReadFile(s.path() + ".else")
	if string(is) != "not ours" {
		s.t.Errorf("the link was followed: %q", is)
	}
	return errors.Join(err, os.Remove(s.path()+".else"))
}

// flush writes the noted lines, or checks that none is written while the path is blocked.
func (s *filesModel) flush() {
	s.t.Helper()
	was := s.log.Counts()
	s.log.flush()
	now := s.log.Counts()
	if s.stands != "" && (now.Written != was.Written || now.Failed == was.Failed) {
		s.t.Fatalf("beside %s: %+v after %+v", s.stands, now, was)
	}
	if s.stands == "" && (int(now.Written) != s.noted || now.Lost > 0 || now.Failed != was.Failed) {
		s.t.Fatalf("%d noted: %+v after %+v", s.noted, now, was)
	}
	if s.stands == "" {
		s.check()
	}
}

// check compares the files with the lines written.
func (s *filesModel) check() {
	s.t.Helper()
	kept := files(s.t, s.dir)
	if len(kept) > s.limits.Keep+1 {
		s.t.Fatalf("%d files, want at most %d rotated ones", len(kept), s.limits.Keep)
	}
	seen := map[int]bool{}
	for _, path := range append(slices.Clone(s.apart), kept...) {
		is, err := os.Lstat(path)
		if err != nil || is.Mode() != 0o600 || is.Size() > s.limits.Size {
			s.t.Fatalf("%s: %v", path, err)
		}
		all, torn := entries(s.t, path)
		for i, e := range all {
			if torn > 0 || seen[e.Status] || i > 0 && e.Status != all[i-1].Status+1 {
				s.t.Fatalf("%s: line %d is repeated or does not follow %d; %d torn", path, e.Status, e.Status-1, torn)
			}
			seen[e.Status] = true
		}
	}
	if s.noted > 0 && !seen[s.noted] || len(s.apart) == 0 && len(seen) < s.noted && len(kept) <= s.limits.Keep {
		s.t.Fatalf("%d of %d lines in %d files, limit %d", len(seen), s.noted, len(kept), s.limits.Keep)
	}
}

// TestFilesMatchModel checks number, size, mode and content of the files after random notes, external moves of the
// file, and other objects at its path. Only lines of the oldest files may be missing.
func TestFilesMatchModel(t *testing.T) {
	for seed := range uint64(8) {
		dice := rand.New(rand.NewPCG(seed, 7))
		s := &filesModel{t: t, dir: t.TempDir(), limits: Limits{Queue: 64, Size: int64(300 + dice.IntN(900)), Keep: 1 + dice.IntN(3), Every: time.Hour}}
		s.log = New(s.dir, s.limits, newLogBuffer().Logger)
		for range 60 {
			switch n := dice.IntN(12); {
			case n == 0 && s.stands == "":
				if err := s.aside(); err != nil {
					t.Fatal(err)
				}
				s.flush() // detects that the file was moved
			case n == 1 || n < 5 && s.stands != "":
				s.blocked([]string{"a link", "a pipe", "a directory"}[dice.IntN(3)])
			case s.stands == "":
				for range dice.IntN(8) {
					s.noted++
					s.log.Note(Line{Status: s.noted, Route: strings.Repeat("r", dice.IntN(40))})
				}
			default:
				s.noted++
				s.log.Note(Line{Status: s.noted})
			}
			s.flush()
		}
		if s.stands != "" {
			s.blocked("")
		}
		s.flush()
		if err := s.log.pen.lay(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPartialWriteIsCompleted checks that after a partial write, cut at any byte, the next write leaves each line
// in the file exactly once.
func TestPartialWriteIsCompleted(t *testing.T) {
	lines := []Line{{Status: 1}, {Status: 22, Route: "r"}, {Status: 333}}
	b := batch{lines: lines}
	whole := len(b.write(chunk))
	for n := range whole + 1 {
		b := batch{lines: lines}
		file := bytes.Clone(b.write(chunk)[:n])
		reported := b.wrote(n)
		if n > 0 && file[n-1] != '\n' {
			file = append(file, '\n') // as pen does
		}
		rest := bytes.Clone(b.write(chunk))
		if reported += b.wrote(len(rest)); int(reported) != len(lines) || !b.empty() {
			t.Fatalf("cut at %d of %d: %d lines reported", n, whole, reported)
		}
		path := filepath.Join(t.TempDir(), "half")
		if err := os.WriteFile(path, append(file, rest...), 0o600); err != nil {
			t.Fatal(err)
		}
		all, torn := entries(t, path)
		if got := fmt.Sprint(len(all), torn <= 1, all[0].Status, all[1].Status, all[2].Status); got != "3 true 1 22 333" {
			t.Fatalf("cut at %d of %d: %s", n, whole, got)
		}
	}
}

// TestTextEncodingGolden compares the encoding of texts with special characters byte for byte.
func TestTextEncodingGolden(t *testing.T) {
	for text, want := range map[string]string{
		`a"b\c/d`:          `"a\"b\\c/d"`,
		"\n\r\t\x00\x1b[":  `"\u000a\u000d\u0009\u0000\u001b["`,
		"\x7f\u0080\u00ff": `"\u007f\u0080\u00ff"`,
		"é\u2028\u202e":    `"\u00e9\u2028\u202e"`,
		"\U0001f600":       `"\ud83d\ude00"`,
		"\xff\xc3":         `"\ufffd\ufffd"`,
	} {
		if got := string(appendText(nil, `"`, text)); got != want {
			t.Errorf("%q is written as %s, want %s", text, got, want)
		}
	}
}

// TestNotesDuringShutdown checks that each line noted during shutdown is either written or counted as
// lost, and that no line noted before is lost.
func TestNotesDuringShutdown(t *testing.T) {
	const writers, each = 4, 50
	for range 5 {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			l := New(dir, Limits{Queue: 4096, Size: 1 << 30, Keep: 1, Every: time.Hour}, newLogBuffer().Logger)
			end := runs(t, l)
			synctest.Wait() // Run waits for lines
			var all sync.WaitGroup
			for i := range writers {
				all.Go(func() {
					for n := range each {
						if l.Note(Line{Key: types.KeyID(1 + i), Status: 1 + n}); i == 0 && n == each/2 {
							end()
						}
					}
				})
			}
			all.Wait()
			lines, torn := entries(t, filepath.Join(dir, name))
			before, written := 0, 0
			for _, e := range lines {
				if e.Lost == 0 {
					written++
				}
				if e.Key == "mk_0000000000000001" && e.Status <= each/2+1 {
					before++
				}
			}
			if got := l.Counts(); before != each/2+1 || got.Written+got.Lost != writers*each || int(got.Written) != written || torn > 0 {
				t.Fatalf("%d noted, %d of %d before the end, %d in the file: %+v", writers*each, before, each/2+1, written, got)
			}
		})
	}
}
