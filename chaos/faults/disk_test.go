package faults_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/fstest"
	"macronode/chaos/faults"
)

// hands names the disk on which a worker process runs a test. The process that serves a disk must not wait for it,
// or both block.
const hands = "MACRONODE_TEST_DISK"

// TestContract: a disk without trouble is a directory like any other.
func TestContract(t *testing.T) {
	if dir := os.Getenv(hands); dir != "" {
		fstest.FS(t, func(t *testing.T) fs.FS {
			dir, err := os.MkdirTemp(dir, "")
			if err != nil {
				t.Fatal(err)
			}
			return fs.Dir(dir)
		})
		return
	}
	t.Parallel()
	p := newPlace(t)
	cmd := exec.Command(os.Args[0], "-test.run", "^TestContract$", "-test.v")
	cmd.Env = append(os.Environ(), hands+"="+p.at)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestContract/") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// work runs calls on a disk, one per line, and prints their results.
func work(dir fs.Dir) error {
	open := map[string]fs.File{}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var verb, name, text string
		var off int64
		if _, err := fmt.Sscanf(in.Text(), "%s %q %d %q", &verb, &name, &off, &text); err != nil {
			return err
		}
		result, err := "", error(nil)
		switch f := open[name]; verb {
		case "create":
			open[name], err = dir.Create(name)
		case "rename":
			err = dir.Rename(name, text)
			open[text] = f
		case "write":
			_, err = f.WriteAt([]byte(text), off)
		case "read":
			got := make([]byte, 64)
			n, e := f.ReadAt(got, off)
			if result = string(got[:n]); !errors.Is(e, io.EOF) {
				err = e
			}
		case "sync":
			err = f.Sync()
		case "names":
			err = dir.SyncDir()
		case "free":
			var n uint64
			n, err = dir.Free()
			result = fmt.Sprint(n)
		}
		if err != nil {
			result = err.Error()
		}
		fmt.Printf("%q\n", result)
	}
	return in.Err()
}

// place is a disk, the directory below it, and a worker process.
type place struct {
	*faults.Disk
	t         *testing.T
	at, below string
	in        io.WriteCloser
	out       *bufio.Reader
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, at: t.TempDir(), below: t.TempDir()}
	p.Disk = mount(t, p.below, p.at)
	return p
}

// newPlaceWithWorker returns a place with a worker.
func newPlaceWithWorker(t *testing.T) *place {
	t.Helper()
	p := newPlace(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), hands+"="+p.at), os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		p.in, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	t.Cleanup(func() {
		p.Heal()
		if err := p.in.Close(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// begin starts a call, nextResult returns its result, call does both.
func (p *place) begin(verb, name string, off int64, text string) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.in, "%s %q %d %q\n", verb, name, off, text); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) nextResult() (result string) {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err == nil {
		_, err = fmt.Sscanf(line, "%q", &result)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return result
}

func (p *place) call(verb, name string, off int64, text, want string) {
	p.t.Helper()
	p.begin(verb, name, off, text)
	if result := p.nextResult(); result != want && (want == "" || !strings.Contains(result, want)) {
		p.t.Fatalf("%s %s: %q, not %q", verb, name, result, want)
	}
}

// checkFile compares a file below the disk with what the disk shows.
func (p *place) checkFile(name, text string) {
	p.t.Helper()
	if below, err := os.ReadFile(filepath.Join(p.below, name)); err != nil || string(below) != text {
		p.t.Fatalf("%s is %q, not %q (%v)", name, below, text, err)
	}
	p.begin("read", name, 0, "")
	if seen := p.nextResult(); seen != text {
		p.t.Fatalf("%s is seen as %q, not %q", name, seen, text)
	}
}

const eio = "input/output error"

// TestTrouble: each trouble affects its calls while it lasts, and the first of several applies.
func TestTrouble(t *testing.T) {
	t.Parallel()
	p := newPlaceWithWorker(t)
	p.call("create", "a", 0, "", "")
	p.call("write", "a", 0, "abc", "")
	p.Leave(1 << 20)
	all := map[string]faults.Op{"read": faults.Read, "write": faults.Write, "sync": faults.Sync, "names": faults.SyncDir, "free": faults.Free}
	fine := map[string]string{"read": "abc", "free": "1048576"}
	for verb, op := range all {
		elsewhere := p.Begin(faults.Trouble{On: []faults.Op{op}, Err: syscall.ENOSPC, Of: func(c faults.Call) bool { return c.Name == "b" }})
		trouble := p.Begin(faults.Trouble{On: []faults.Op{op}, Err: syscall.EIO})
		hidden := p.Begin(faults.Trouble{On: []faults.Op{op}, Err: syscall.ENOSPC})
		for other := range all {
			want := fine[other]
			if other == verb {
				want = eio
			}
			p.call(other, "a", 0, "abc", want)
		}
		hidden.End()
		trouble.End()
		p.call(verb, "a", 0, "abc", fine[verb])
		elsewhere.End()
	}
}

// TestHeld: a held call returns when its trouble ends.
func TestHeld(t *testing.T) {
	t.Parallel()
	p := newPlaceWithWorker(t)
	p.call("create", "a", 0, "", "")
	trouble := p.Begin(faults.Trouble{On: []faults.Op{faults.Sync}, Hold: true, Err: syscall.EIO})
	p.begin("sync", "a", 0, "")
	<-trouble.Met()
	trouble.End()
	if result := p.nextResult(); !strings.Contains(result, eio) {
		t.Fatal(result)
	}
	p.call("sync", "a", 0, "", "")
}

// TestHalf: a write whose calls are halved is complete in the end.
func TestHalf(t *testing.T) {
	t.Parallel()
	p := newPlaceWithWorker(t)
	p.call("create", "a", 0, "", "")
	var sizes []int
	p.Begin(faults.Trouble{On: []faults.Op{faults.Write}, Half: true, Of: func(c faults.Call) bool {
		sizes = append(sizes, len(c.Data))
		return true
	}})
	p.call("write", "a", 0, "abcdefgh", "")
	p.checkFile("a", "abcdefgh")
	if fmt.Sprint(sizes) != "[8 4 2 1]" {
		t.Fatal(sizes)
	}
}

// TestLose: synced bytes stay under the current name; later writes are undone.
func TestLose(t *testing.T) {
	t.Parallel()
	p := newPlaceWithWorker(t)
	p.call("create", "a.tmp", 0, "", "")
	p.call("create", "b", 0, "", "")
	p.call("write", "a.tmp", 0, "synced", "")
	p.call("write", "b", 0, "never", "")
	p.call("sync", "a.tmp", 0, "", "")
	p.call("rename", "a.tmp", 0, "a", "")
	p.call("write", "a", 0, "SYN", "")
	p.call("write", "a", 3, "CED and more", "")
	p.call("write", "a", 1, "xx", "")
	p.checkFile("a", "SxxCED and more")
	p.Begin(faults.Trouble{On: []faults.Op{faults.Sync}, Err: syscall.EIO, Lose: true})
	p.call("sync", "a", 0, "", eio)
	p.checkFile("a", "synced")
	p.checkFile("b", "")
}

// TestReportedFreeSpace: the disk reports the free space that was set.
func TestReportedFreeSpace(t *testing.T) {
	t.Parallel()
	p := newPlaceWithWorker(t)
	p.Leave(1 << 20)
	p.call("free", "", 0, "", "1048576")
	p.Leave(0)
	p.begin("free", "", 0, "")
	if result := p.nextResult(); result != "0" {
		t.Fatal(result)
	}
	p.Honest()
	p.begin("free", "", 0, "")
	if result := p.nextResult(); len(result) < 7 {
		t.Fatal(result)
	}
}
