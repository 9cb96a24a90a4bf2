package objectstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/adapters/provider"
	"macronode/chaos/world"
	"macronode/core/placement"
	"macronode/core/storage"
)

// farPort is a directory that is reached over a network.
type farPort struct {
	provider.Port
	opened   int    // objects
	expected string // ranges
	probe    error  // of a probe
	away     error  // of each attempt to open a file
	claiming func() // is called before a file gets its name; nil: nothing is
}

// announced is a file that notes which ranges are announced.
type announced struct {
	fs.File
	of *farPort
}

// Expect notes a range.
func (f announced) Expect(off, end uint64) { f.of.expected += fmt.Sprintf("%d-%d ", off, end) }

func (p *farPort) Open(name string) (fs.File, error) {
	f, err := p.Port.Open(name)
	if strings.Contains(name, "-") {
		p.opened++
	}
	if p.away != nil {
		return nil, p.away
	}
	return announced{f, p}, err
}

func (p *farPort) Put(draft, name string) error {
	if p.claiming != nil {
		p.claiming()
	}
	return p.Port.Put(draft, name)
}

func (p *farPort) Probe(e provider.Effort) (unreadable, unwritable error) {
	if p.probe != nil {
		return nil, p.probe
	}
	return p.Port.Probe(e)
}

// newFar returns a store of a far provider and a near one.
func newFar(t *testing.T) (*objectstore.Store, *farPort, *world.Disk) {
	t.Helper()
	near, far := world.NewDisk(), &farPort{Port: provider.Dir{FS: fs.Dir(t.TempDir())}}
	s := objectstore.NewCopies([]objectstore.Provider{
		{Provider: placement.Provider{Name: "far", Domain: "far", Weight: 1}, Port: far, Far: true},
		{Provider: placement.Provider{Name: "near", Domain: "near", Weight: 1}, Port: provider.Dir{FS: near}},
	}, two, limits)
	return s, far, near
}

// TestFarCopyIsReadLast: the near copy of each object is read, and the far one from the damage of the near one on.
func TestFarCopyIsReadLast(t *testing.T) {
	s, far, near := newFar(t)
	b := content(4)
	for range 16 {
		u, a, err := put(s, b, 50_000)
		if err != nil {
			t.Fatal(err)
		}
		u.Done()
		row := storage.Object{Size: uint64(len(b)), File: u.File()}
		if got, err := read(s, a, row, 0, row.Size); err != nil || !bytes.Equal(got, b) || far.opened > 0 {
			t.Fatalf("%d bytes, %v; the far copy was opened %d times", len(got), err, far.opened)
		}
		names, err := near.List()
		if err != nil || len(names) != 1 {
			t.Fatalf("%q, %v", names, err)
		}
		flip(t, near, names[0], 70_000)
		if got, err := read(s, a, row, 0, row.Size); err != nil || !bytes.Equal(got, b) || far.opened != 1 || far.expected != fmt.Sprintf("65536-%d ", len(b)) {
			t.Fatalf("%d bytes, %v; the far copy was opened %d times, announced %q", len(got), err, far.opened, far.expected)
		}
		far.opened, far.expected = 0, ""
		if err := near.Remove(names[0]); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFarShardsAreReadLast: with as many near shards as there are of data, far ones are not opened. Others are announced when they are read.
func TestFarShardsAreReadLast(t *testing.T) {
	var list []objectstore.Provider
	var fars []*farPort
	var near []*world.Disk
	for i := range 5 {
		name, disk := fmt.Sprintf("p%d", i), world.NewDisk()
		p := objectstore.Provider{Provider: placement.Provider{Name: name, Domain: name, Weight: 1}, Port: provider.Dir{FS: disk}}
		if i < 2 {
			fars = append(fars, &farPort{Port: p.Port})
			p.Port, p.Far = fars[i], true
		} else {
			near = append(near, disk)
		}
		list = append(list, p)
	}
	s, b := objectstore.NewCopies(list, threeTwo, limits), random(700_000)
	for range 8 {
		u, a, err := put(s, b, 50_000)
		if err != nil {
			t.Fatal(err)
		}
		u.Done()
		row := storage.Object{Size: uint64(len(b)), File: u.File()}
		if got, err := read(s, a, row, 0, row.Size); err != nil || !bytes.Equal(got, b) || fars[0].opened+fars[1].opened > 0 {
			t.Fatalf("file %d: %d bytes, %v; far shards were opened %d times, health %+v", row.File, len(got), err, fars[0].opened+fars[1].opened, s.Health())
		}
		names, _ := near[0].List()
		if err := near[0].Remove(names[0]); err != nil {
			t.Fatal(err)
		}
		if got, err := read(s, a, row, 0, row.Size); err != nil || !bytes.Equal(got, b) || fars[0].opened+fars[1].opened != 1 {
			t.Fatalf("without a near shard: %d bytes, %v; far shards were opened %d times", len(got), err, fars[0].opened+fars[1].opened)
		}
		fars[0].opened, fars[1].opened = 0, 0
	}
	if fars[0].expected+fars[1].expected == "" {
		t.Error("no range of a far shard was announced")
	}
	u, a, err := put(s, b, 50_000)
	if err != nil {
		t.Fatal(err)
	}
	u.Done()
	for _, d := range near {
		names, _ := d.List()
		_ = d.Remove(names[len(names)-1])
		_ = d.Remove(names[0])
	}
	fars[0].opened, fars[0].away, fars[1].away = 0, provider.ErrUnavailable, provider.ErrUnavailable
	if _, err := s.Get(a, storage.Object{Size: uint64(len(b)), File: u.File()}); !errors.Is(err, objectstore.ErrUnavailable) || fars[0].opened > 3 {
		t.Errorf("too few shards can be reached: %v, after %d attempts", err, fars[0].opened)
	}
}

// TestUnsuitableProviderIsRefused when it is claimed. Another fault makes it failed.
func TestUnsuitableProviderIsRefused(t *testing.T) {
	s, far, _ := newFar(t)
	far.probe = fmt.Errorf("ignores conditions: %w", provider.ErrUnsuitable)
	if err := s.Claim(objectstore.Owner{Journal: 7}); !errors.Is(err, provider.ErrUnsuitable) || !strings.Contains(err.Error(), "provider far: ignores conditions") {
		t.Fatalf("%v", err)
	}
	far.probe = errors.New("down")
	if err := s.Claim(objectstore.Owner{Journal: 7}); err != nil || s.Health()[0].Failed != "down" {
		t.Fatalf("%v, %+v", err, s.Health())
	}
	far.probe = nil
	if _, err := s.Probe(0); err != nil || s.Health()[0].Failed != "" {
		t.Fatalf("%v, %+v", err, s.Health())
	}
}

// TestOneOfTwoNodesClaims: another node claims the provider after this one has found it empty.
func TestOneOfTwoNodesClaims(t *testing.T) {
	s, far, _ := newFar(t)
	other := objectstore.NewCopies([]objectstore.Provider{{Provider: placement.Provider{Name: "far", Domain: "far", Weight: 1}, Port: far.Port}},
		objectstore.Copies{Count: 1, Required: 1}, limits)
	far.claiming = func() {
		if err := other.Claim(objectstore.Owner{Journal: 8}); err != nil {
			t.Error(err)
		}
	}
	if err := s.Claim(objectstore.Owner{Journal: 7}); !errors.Is(err, objectstore.ErrForeign) || !strings.Contains(err.Error(), "0000000000000008") {
		t.Fatalf("%v", err)
	}
}
