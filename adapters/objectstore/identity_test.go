package objectstore_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"macronode/adapters/objectstore"
	"macronode/chaos/world"
)

// TestDirectoriesBelongToOneNode: a directory of another node, of another provider or with other files is refused; a new one, and one
// that a restore takes over, is claimed. The identity survives a loss of power.
func TestDirectoriesBelongToOneNode(t *testing.T) {
	w := newCopies(2, two)
	if err := w.Claim(7, 0); err != nil {
		t.Fatal(err)
	}
	for i, d := range w.disks {
		d.Crash(world.NewSeeded(uint64(i)))
	}
	refused := func(what, text string, err error) {
		t.Helper()
		if !errors.Is(err, objectstore.ErrForeign) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	w.start(two)
	if err := w.Claim(7, 0); err != nil {
		t.Errorf("again: %v", err)
	}
	w.start(two)
	refused("another journal", `provider disk0: its directory says "macronode provider disk0, journal 0000000000000007"`, w.Claim(8, 0))
	refused("another journal before", "disk0", w.Claim(9, 8))
	if err := w.Claim(9, 7); err != nil {
		t.Errorf("a restore: %v", err)
	}
	w.devices[0], w.devices[1] = w.devices[1], w.devices[0]
	w.start(two)
	refused("exchanged directories", "provider disk0: its directory says \"macronode provider disk1", w.Claim(9, 0))

	w = newCopies(2, two)
	w.store(t, content(1))
	refused("files without an identity", "and no file provider.id", w.Claim(7, 0))

	w = newCopies(2, two)
	w.devices[0].err = syscall.EIO
	if err := w.Claim(7, 0); err != nil || w.Health()[0].Failed == "" || w.Health()[1].Failed != "" {
		t.Errorf("a failing device: %v, %+v", err, w.Health())
	}
	w.devices[0].err = nil
	if _, err := w.Probe(0); err != nil || w.Health()[0].Failed != "" {
		t.Errorf("probe: %v", err)
	}
	w.start(two)
	refused("the probe claimed it", "disk0", w.Claim(8, 0))
	w.devices[0].err, w.devices[1].err = syscall.EIO, syscall.EIO
	w.start(two)
	if err := w.Claim(7, 0); err == nil || !strings.Contains(err.Error(), "no provider of objects can be used") {
		t.Errorf("no device: %v", err)
	}
}

// TestIdentityStays: neither a collection nor a probe removes it.
func TestIdentityStays(t *testing.T) {
	w := newCopies(2, two)
	if err := w.Claim(7, 0); err != nil {
		t.Fatal(err)
	}
	if err := w.Recover(); err != nil {
		t.Fatal(err)
	}
	if c, err := w.Collect(nil); err != nil || c.Files != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	for i := range w.disks {
		if _, err := w.Probe(i); err != nil {
			t.Error(err)
		}
	}
	w.start(two)
	if err := w.Claim(7, 0); err != nil {
		t.Error(err)
	}
}

// TestEmptiedDirectoryIsClaimedAgain: a disk was replaced while the node runs; a directory of another node stays failed.
func TestEmptiedDirectoryIsClaimedAgain(t *testing.T) {
	w := newCopies(2, two)
	if err := w.Claim(7, 0); err != nil {
		t.Fatal(err)
	}
	if err := w.disks[0].Remove("provider.id"); err != nil {
		t.Fatal(err)
	}
	w.MarkFailed(0, syscall.EIO)
	if _, err := w.Probe(0); err != nil {
		t.Error(err)
	}
	other := newCopies(2, two)
	if err := other.Claim(8, 0); err != nil {
		t.Fatal(err)
	}
	w.devices[0].FS = other.disks[0]
	if _, err := w.Probe(0); !errors.Is(err, objectstore.ErrForeign) || w.Health()[0].Failed == "" {
		t.Errorf("%v, %+v", err, w.Health())
	}
}
