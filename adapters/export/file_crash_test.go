package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"macronode/adapters/fs"
	"macronode/chaos/world"
)

// simulated is a disk in memory. All files of the tests have other names, so it needs no directories.
type simulated struct{ *world.Disk }

func (s simulated) open(path string) (file, error) {
	f, err := s.Change(filepath.Base(path))
	if !errors.Is(err, os.ErrNotExist) {
		return simulatedFile{f}, err
	}
	created, err := s.Create(filepath.Base(path))
	if err != nil {
		return nil, err
	}
	return simulatedFile{created.(world.Changeable)}, nil
}

func (s simulated) read(path string) (file, error) {
	f, err := s.Open(filepath.Base(path))
	if err != nil {
		return nil, err
	}
	return simulatedFile{f.(world.Changeable)}, nil
}

func (s simulated) has(path string) bool {
	names, err := s.List()
	return err == nil && slices.Contains(names, filepath.Base(path))
}

func (s simulated) list(string) ([]string, error)         { return s.List() }
func (s simulated) syncDir(string) error                  { return s.SyncDir() }
func (s simulated) lock(fs.Dir, string) (*fs.Held, error) { return nil, nil }

type simulatedFile struct{ world.Changeable }

func (simulatedFile) isAt(string) bool { return true }

// exported are the positions of each lane in the files of a disk, in their order. Each line is an object.
func (s simulated) exported(t require) map[string][]uint64 {
	names, err := s.List()
	if err != nil {
		t.Fatalf("%v", err)
	}
	all := map[string][]uint64{}
	for _, name := range names {
		text, err := fs.ReadAll(s, name)
		if err != nil {
			t.Fatalf("%v", err)
		}
		for line := range strings.Lines(string(text)) {
			var of struct {
				Tenant string
				Seq    uint64
			}
			if err := json.Unmarshal([]byte(line), &of); err != nil || !strings.HasSuffix(line, "\n") {
				t.Fatalf("%s has the line %q: %v", name, line, err)
			}
			all[of.Tenant] = append(all[of.Tenant], of.Seq)
		}
	}
	return all
}

type require interface {
	Fatalf(format string, args ...any)
}

// crashed is a node with two lanes to a file sink: what the sink has acknowledged is settled later, and a restart goes on after that.
type crashed struct {
	simulated
	dir            string
	sink           *fileSink
	acked, settled [2]uint64
}

func newCrashed(dir string, d *world.Disk) *crashed {
	c := &crashed{simulated: simulated{d}, dir: dir}
	c.start()
	return c
}

// start starts the node again. What the sink had open stays open in the kernel, and is not used any more.
func (c *crashed) start() {
	c.sink, c.acked = newFile(&Config{Name: "test", Dir: c.dir}, 300, c.simulated), c.settled
}

// deliver attempts to deliver the next item of a lane.
func (c *crashed) deliver(t require, lane int) (ok bool) {
	i := item(c.acked[lane] + 1)
	i.Tenant = fmt.Sprint("t", lane)
	i.Body = fmt.Appendf(nil, `{"tenant":%q,"dimension":"custom:a/b","seq":%d,"rows":[%q]}`, i.Tenant, i.Seq, strings.Repeat("x", int(i.Seq)*7%90))
	switch r := c.sink.Deliver(nil, i); r.Outcome { //nolint:staticcheck // it has no use for a context
	case OK, Duplicate:
		c.acked[lane]++
		return true
	case Retryable:
	default:
		t.Fatalf("%+v", r)
	}
	return false
}

// finish starts the node on a disk without faults, and delivers all items up to one. Each line is there once, in order, also after a
// power failure.
func (c *crashed) finish(t require, last uint64) {
	c.Fuse, c.FailRead, c.FailWrite, c.FailSync, c.FailDir, c.Full = -1, false, false, false, false, false
	c.start()
	for seq := uint64(1); seq <= last; seq++ {
		for lane := range c.acked {
			if c.acked[lane] < seq && !c.deliver(t, lane) {
				t.Fatalf("item %d of lane %d is not delivered to a disk without faults", seq, lane)
			}
		}
	}
	var want []uint64
	for seq := uint64(1); seq <= last; seq++ {
		want = append(want, seq)
	}
	c.Crash(world.Dull{})
	for lane, got := range c.exported(t) {
		if !slices.Equal(got, want) {
			t.Fatalf("the files have %v of lane %s", got, lane)
		}
	}
}

// TestFilesSurviveCrashAtEachOperation ends the process or the power at each operation of the disk, with each state of the disk that a
// power failure can leave, and with each number of lines that are not settled.
func TestFilesSurviveCrashAtEachOperation(t *testing.T) {
	const items = 5
	dir, ended := t.TempDir(), 0
	for fuse := 1; ; fuse++ {
		c := newCrashed(dir, world.NewDisk())
		c.Fuse = fuse
		for n := 0; n < 2*items && c.deliver(t, n%2); n++ {
		}
		if !c.Dead() {
			break
		}
		acked := c.acked
		after := func(d *world.Disk) {
			for lag := range uint64(3) {
				n := newCrashed(dir, d.Copy())
				for lane := range acked {
					n.settled[lane] = acked[lane] - min(lag, acked[lane])
				}
				n.finish(t, items)
				ended++
			}
		}
		killed := c.Copy()
		killed.Fuse = -1
		after(killed)
		for every := (world.Odometer{}); every.Next(); {
			lost := c.Copy()
			lost.Crash(&every)
			after(lost)
		}
	}
	if ended < 1000 {
		t.Fatalf("%d ends", ended)
	}
}

// TestFilesAgreeWithLanes ends the process or the power at any time, on a disk with faults, while two lanes deliver, settle, and go on
// where they have settled.
func TestFilesAgreeWithLanes(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		c := newCrashed(dir, world.NewDisk())
		last := uint64(0)
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			lane := rapid.IntRange(0, 1).Draw(r, "lane")
			switch rapid.SampledFrom([]string{"deliver", "deliver", "deliver", "deliver", "settle", "fault", "fuse", "restart"}).Draw(r, "step") {
			case "deliver":
				c.deliver(r, lane)
			case "settle":
				c.settled[lane] = rapid.Uint64Range(c.settled[lane], c.acked[lane]).Draw(r, "settled")
			case "fault":
				*rapid.SampledFrom([]*bool{&c.FailRead, &c.FailWrite, &c.FailSync, &c.FailDir, &c.Full}).Draw(r, "fault") = true
			case "fuse":
				c.Fuse = rapid.IntRange(1, 12).Draw(r, "fuse")
			case "restart":
				c.start()
			}
			last = max(last, c.acked[0], c.acked[1])
			if c.Dead() {
				if rapid.Bool().Draw(r, "power") {
					c.Crash(world.NewSeeded(rapid.Uint64().Draw(r, "crash")))
				}
				c.Fuse, c.Full = -1, false
				c.start()
			}
		}
		c.finish(r, last+1)
	})
}

// TestLineOfFailedSyncIsWrittenAgain: after a failed sync the system shows a line that is not on the disk. If the process is killed
// before it cuts the line, the next one finds it, and makes it durable before it counts as delivered.
func TestLineOfFailedSyncIsWrittenAgain(t *testing.T) {
	c := newCrashed(t.TempDir(), world.NewDisk())
	if !c.deliver(t, 0) {
		t.Fatal("not delivered")
	}
	c.FailSync = true
	c.OnOperation = func(op, _ string) {
		if op == "sync" {
			c.Fuse = 1 // the next one is the last: the file is not cut
		}
	}
	if c.deliver(t, 0) {
		t.Fatal("delivered without a sync")
	}
	c.OnOperation, c.Fuse = nil, -1
	c.settled[0] = 1
	c.start()
	if !c.deliver(t, 0) {
		t.Fatal("not delivered again")
	}
	c.Crash(world.Dull{})
	if got := c.exported(t)["t0"]; !slices.Equal(got, []uint64{1, 2}) {
		t.Fatalf("after a power failure the files have %v", got)
	}
}
