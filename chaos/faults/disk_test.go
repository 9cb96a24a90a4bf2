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

// hands names the disk that a process works on for a test: the process that carries a
// disk must not wait for it, or both stand still.
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
	p := laid(t)
	cmd := exec.Command(os.Args[0], "-test.run", "^TestContract$", "-test.v")
	cmd.Env = append(os.Environ(), hands+"="+p.at)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestContract/") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// work does what it is told to on a disk, one line a call, and says what came of it.
func work(dir fs.Dir) error {
	open := map[string]fs.File{}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var verb, name, text string
		var off int64
		if _, err := fmt.Sscanf(in.Text(), "%s %q %d %q", &verb, &name, &off, &text); err != nil {
			return err
		}
		said, err := "", error(nil)
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
			if said = string(got[:n]); !errors.Is(e, io.EOF) {
				err = e
			}
		case "sync":
			err = f.Sync()
		case "names":
			err = dir.SyncDir()
		case "free":
			var n uint64
			n, err = dir.Free()
			said = fmt.Sprint(n)
		}
		if err != nil {
			said = err.Error()
		}
		fmt.Printf("%q\n", said)
	}
	return in.Err()
}

// place is a disk, what lies below, and hands that work on it.
type place struct {
	*faults.Disk
	t         *testing.T
	at, below string
	in        io.WriteCloser
	out       *bufio.Reader
}

func laid(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, at: t.TempDir(), below: t.TempDir()}
	p.Disk = mount(t, p.below, p.at)
	return p
}

// worked is a place with hands.
func worked(t *testing.T) *place {
	t.Helper()
	p := laid(t)
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

// tell begins a call, said is what came of it, do is both.
func (p *place) tell(verb, name string, off int64, text string) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.in, "%s %q %d %q\n", verb, name, off, text); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) said() (said string) {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err == nil {
		_, err = fmt.Sscanf(line, "%q", &said)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return said
}

func (p *place) do(verb, name string, off int64, text, want string) {
	p.t.Helper()
	p.tell(verb, name, off, text)
	if said := p.said(); said != want && (want == "" || !strings.Contains(said, want)) {
		p.t.Fatalf("%s %s: %q, not %q", verb, name, said, want)
	}
}

// holds compares what is below, and what is seen of it.
func (p *place) holds(name, text string) {
	p.t.Helper()
	if below, err := os.ReadFile(filepath.Join(p.below, name)); err != nil || string(below) != text {
		p.t.Fatalf("%s is %q, not %q (%v)", name, below, text, err)
	}
	p.tell("read", name, 0, "")
	if seen := p.said(); seen != text {
		p.t.Fatalf("%s is seen as %q, not %q", name, seen, text)
	}
}

const eio = "input/output error"

// TestTrouble: each trouble befalls what it is for, as long as it lasts, and the first of
// several has it.
func TestTrouble(t *testing.T) {
	t.Parallel()
	p := worked(t)
	p.do("create", "a", 0, "", "")
	p.do("write", "a", 0, "abc", "")
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
			p.do(other, "a", 0, "abc", want)
		}
		hidden.End()
		trouble.End()
		p.do(verb, "a", 0, "abc", fine[verb])
		elsewhere.End()
	}
}

// TestHeld: a call that is held comes back when its trouble ends.
func TestHeld(t *testing.T) {
	t.Parallel()
	p := worked(t)
	p.do("create", "a", 0, "", "")
	trouble := p.Begin(faults.Trouble{On: []faults.Op{faults.Sync}, Hold: true, Err: syscall.EIO})
	p.tell("sync", "a", 0, "")
	<-trouble.Met()
	trouble.End()
	if said := p.said(); !strings.Contains(said, eio) {
		t.Fatal(said)
	}
	p.do("sync", "a", 0, "", "")
}

// TestHalf: a write that is taken by halves is whole in the end.
func TestHalf(t *testing.T) {
	t.Parallel()
	p := worked(t)
	p.do("create", "a", 0, "", "")
	var sizes []int
	p.Begin(faults.Trouble{On: []faults.Op{faults.Write}, Half: true, Of: func(c faults.Call) bool {
		sizes = append(sizes, len(c.Data))
		return true
	}})
	p.do("write", "a", 0, "abcdefgh", "")
	p.holds("a", "abcdefgh")
	if fmt.Sprint(sizes) != "[8 4 2 1]" {
		t.Fatal(sizes)
	}
}

// TestLose: what was synced is there, under the name that it has now; what was written
// after it has never been.
func TestLose(t *testing.T) {
	t.Parallel()
	p := worked(t)
	p.do("create", "a.tmp", 0, "", "")
	p.do("create", "b", 0, "", "")
	p.do("write", "a.tmp", 0, "synced", "")
	p.do("write", "b", 0, "never", "")
	p.do("sync", "a.tmp", 0, "", "")
	p.do("rename", "a.tmp", 0, "a", "")
	p.do("write", "a", 0, "SYN", "")
	p.do("write", "a", 3, "CED and more", "")
	p.do("write", "a", 1, "xx", "")
	p.holds("a", "SxxCED and more")
	p.Begin(faults.Trouble{On: []faults.Op{faults.Sync}, Err: syscall.EIO, Lose: true})
	p.do("sync", "a", 0, "", eio)
	p.holds("a", "synced")
	p.holds("b", "")
}

// TestRoomThatIsSaid: a disk says that it has as much room as it is told to.
func TestRoomThatIsSaid(t *testing.T) {
	t.Parallel()
	p := worked(t)
	p.Leave(1 << 20)
	p.do("free", "", 0, "", "1048576")
	p.Leave(0)
	p.tell("free", "", 0, "")
	if said := p.said(); said != "0" {
		t.Fatal(said)
	}
	p.Honest()
	p.tell("free", "", 0, "")
	if said := p.said(); len(said) < 7 {
		t.Fatal(said)
	}
}
