package snapshot_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/adapters/snapshot"
	"macronode/chaos/world"
	"macronode/core/state"
	"macronode/core/types"
)

// TestLoadRestoresState: a snapshot of any frame restores the state of that frame.
func TestLoadRestoresState(t *testing.T) {
	b, d := newBooks(3), world.NewDisk()
	for range 60 {
		b.add(t)
		_, err := snapshot.Write(d, b.head(), &b.state, nil)
		must(t, err)
		if h, err := snapshot.Check(d, b.state.LSN, nil); err != nil || h != b.head() {
			t.Fatalf("%+v, %v", h, err)
		}
		if h, err := snapshot.Look(d, b.state.LSN); err != nil || h != b.head() {
			t.Fatalf("%+v, %v", h, err)
		}
		must(t, snapshot.Same(d, b.head(), &b.state))
	}
	for lsn := range types.LSN(60) {
		b.loaded(t, d, lsn+1)
	}
	if all := listed(t, d); len(all) != 60 || all[0] != 60 || all[59] != 1 {
		t.Fatalf("%v", all)
	}
	if d.Handles() != 0 {
		t.Fatalf("%d files are still open", d.Handles())
	}
}

// TestLargeSnapshotHasManyBlocks writes more than one block.
func TestLargeSnapshotHasManyBlocks(t *testing.T) {
	l := limits()
	l.Idempotency.Keys, l.Idempotency.TTL = 10_000, 1000*time.Hour
	long := newBooks(1)
	long.state = state.New(l, 1)
	for range 3000 {
		long.add(t)
	}
	d, steps := world.NewDisk(), 0
	step := func() error { steps++; return nil }
	_, err := snapshot.Write(d, long.head(), &long.state, step)
	must(t, err)
	wrote := steps
	st := state.New(l, 9)
	_, err = snapshot.Load(d, long.state.LSN, &st, step)
	must(t, err)
	if st.Hash() != long.state.Hash() || wrote < 3 || steps != 2*wrote {
		t.Fatalf("%x, want %x; %d steps, then %d", st.Hash(), long.state.Hash(), wrote, steps)
	}
	stop := errors.New("enough")
	for n := range wrote {
		left := n
		few := func() error {
			if left--; left < 0 {
				return stop
			}
			return nil
		}
		e := world.NewDisk()
		if _, err := snapshot.Write(e, long.head(), &long.state, few); !errors.Is(err, stop) || len(listed(t, e)) != 0 {
			t.Fatalf("ended after %d blocks: %v", n, err)
		}
		left = n
		if _, err := snapshot.Check(d, long.state.LSN, few); !errors.Is(err, stop) || errors.Is(err, snapshot.ErrDoubt) {
			t.Fatalf("ended after %d blocks: %v", n, err)
		}
	}
}

// TestBitFlipsAreRejected: a snapshot with any changed bit, cut anywhere, or with trailing bytes
// is rejected.
func TestBitFlipsAreRejected(t *testing.T) {
	b := kept(t, 30)
	text := written(t, b)
	refused := func(what string, at int, text []byte) {
		t.Helper()
		d := world.NewDisk()
		put(t, d, snapshot.Name(30), text)
		st := state.New(limits(), 1)
		_, checking := snapshot.Check(d, 30, nil)
		if _, err := snapshot.Load(d, 30, &st, nil); !errors.Is(err, snapshot.ErrDoubt) || !errors.Is(checking, snapshot.ErrDoubt) {
			t.Fatalf("%s at %d: loaded: %v; checked: %v", what, at, err, checking)
		}
		if d.Handles() != 0 {
			t.Fatal("a file is still open")
		}
	}
	step := 1
	if testing.Short() {
		step = 17
	}
	for n := 0; n < 8*len(text); n += step {
		flipped := bytes.Clone(text)
		flipped[n/8] ^= 1 << (n % 8)
		refused("a bit", n/8, flipped)
	}
	for n := range text {
		refused("the end", n, text[:n])
	}
	refused("a byte more", len(text), append(bytes.Clone(text), 0))
	refused("the same again", len(text), append(bytes.Clone(text), text...))
}

// TestForgedItemsAreRejected: items with valid checksums must also be consistent.
func TestForgedItemsAreRejected(t *testing.T) {
	b := kept(t, 30)
	other := kept(t, 31)
	rows := func(b *books, head snapshot.Head) []byte {
		d := world.NewDisk()
		was := b.state.LSN
		b.state.LSN, b.state.At = head.LSN, head.At
		_, err := snapshot.Write(d, head, &b.state, nil)
		must(t, err)
		text := read(t, d, head.LSN)
		b.state.LSN = was
		return text
	}
	for what, text := range map[string][]byte{
		"of another frame": written(t, other),
		"of another row":   flippedRow(t, b, true),
		"of another block": flippedRow(t, b, false),
		"of another time":  rows(kept(t, 30), snapshot.Head{LSN: 30, At: -1, Journal: ours}),
	} {
		d := world.NewDisk()
		put(t, d, snapshot.Name(30), text)
		st := state.New(limits(), 1)
		if _, err := snapshot.Load(d, 30, &st, nil); !errors.Is(err, snapshot.ErrDoubt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	d := world.NewDisk()
	put(t, d, snapshot.Name(30), written(t, b))
	if err := snapshot.Same(d, b.head(), &other.state); !errors.Is(err, snapshot.ErrDoubt) {
		t.Errorf("the same as another: %v", err)
	}
	foreign := b.head()
	foreign.Root[3]++
	if err := snapshot.Same(d, foreign, &b.state); !errors.Is(err, snapshot.ErrDoubt) {
		t.Errorf("the same, of another root: %v", err)
	}
	must(t, snapshot.Same(d, b.head(), &b.state))
}

// flippedRow returns a snapshot with a changed first row and valid sums; end decides whether the
// end matches.
func flippedRow(t *testing.T, b *books, end bool) []byte {
	t.Helper()
	text := written(t, b)
	text[72+8+2+2+3*8] ^= 1 // number of starts
	last := bytes.Clone(text[len(text)-60:])
	if mend(text); !end {
		copy(text[len(text)-60:], last)
	}
	d := world.NewDisk()
	put(t, d, snapshot.Name(30), text)
	if _, err := snapshot.Check(d, 30, nil); end != (err == nil) {
		t.Fatalf("its sums do not hold: %v", err)
	}
	return text
}

// TestSmallLimitsReturnErrRoom: limits that are too small do not make a snapshot invalid.
func TestSmallLimitsReturnErrRoom(t *testing.T) {
	b := kept(t, 30)
	d := world.NewDisk()
	_, err := snapshot.Write(d, b.head(), &b.state, nil)
	must(t, err)
	l := limits()
	l.Ledger.Accounts = 2
	st := state.New(l, 1)
	if _, err := snapshot.Load(d, 30, &st, nil); !errors.Is(err, state.ErrRoom) || errors.Is(err, snapshot.ErrDoubt) {
		t.Fatal(err)
	}
}

// TestReadErrorIsNotErrDoubt: a read error or a missing file does not make a snapshot invalid.
func TestReadErrorIsNotErrDoubt(t *testing.T) {
	b := kept(t, 30)
	d := world.NewDisk()
	_, err := snapshot.Write(d, b.head(), &b.state, nil)
	must(t, err)
	d.FailRead = true
	st := state.New(limits(), 1)
	if _, err := snapshot.Load(d, 30, &st, nil); !errors.Is(err, world.ErrRead) || errors.Is(err, snapshot.ErrDoubt) {
		t.Fatal(err)
	}
	if _, err := snapshot.Look(d, 29); !errors.Is(err, os.ErrNotExist) || errors.Is(err, snapshot.ErrDoubt) {
		t.Fatal(err)
	}
}

// TestCrashKeepsEarlierSnapshot: after a crash at any operation, the previous snapshot is whole,
// and so is a new one with its final name.
func TestCrashKeepsEarlierSnapshot(t *testing.T) {
	b := kept(t, 20)
	old, _ := snapshot.Name(20), written(t, b)
	before := world.NewDisk()
	_, err := snapshot.Write(before, b.head(), &b.state, nil)
	must(t, err)
	for range 10 {
		b.add(t)
	}
	ops := before.Copy()
	_, err = snapshot.Write(ops, b.head(), &b.state, nil)
	must(t, err)
	saw := map[bool]int{}
	for fuse := range ops.Ops - before.Ops + 1 {
		for seed := range uint64(100) {
			d := before.Copy()
			if d.Fuse = fuse; fuse == ops.Ops-before.Ops {
				d.Fuse = -1
			}
			_, err := snapshot.Write(d, b.head(), &b.state, nil)
			if d.Crash(world.NewSeeded(seed)); err == nil && len(listed(t, d)) != 2 {
				t.Fatalf("seed %d: it was written, and is not there", seed)
			}
			all := listed(t, d)
			for _, lsn := range all {
				b.loaded(t, d, lsn)
			}
			saw[len(all) == 2]++
			must(t, snapshot.Sweep(d, func(types.LSN) bool { return true }))
			if names, _ := d.List(); len(names) != len(all) || names[0] != old {
				t.Fatalf("%q", names)
			}
			_, err = snapshot.Write(d, b.head(), &b.state, nil)
			must(t, err)
			b.loaded(t, d, 30)
		}
	}
	if saw[true] < 100 || saw[false] < 300 {
		t.Errorf("%v", saw)
	}
}

// TestFailureLeavesNoFile: a failure is returned and leaves no named file.
func TestFailureLeavesNoFile(t *testing.T) {
	b := kept(t, 20)
	for what, arm := range map[string]func(*world.Disk){
		"write":     func(d *world.Disk) { d.FailWrite = true },
		"sync":      func(d *world.Disk) { d.FailSync = true },
		"full":      func(d *world.Disk) { d.Size = 100 },
		"directory": func(d *world.Disk) { d.FailDir = true },
	} {
		d := world.NewDisk()
		arm(d)
		_, err := snapshot.Write(d, b.head(), &b.state, nil)
		d.Crash(world.Dull{})
		if err == nil || len(listed(t, d)) != 0 || d.Handles() != 0 {
			t.Errorf("%s: %v, %v", what, err, listed(t, d))
		}
	}
}

// TestForeignFilesAreKept: only files of snapshots are listed or removed.
func TestForeignFilesAreKept(t *testing.T) {
	d := world.NewDisk()
	for _, name := range []string{"notes", "12.snap", "0000000000000012.snap", "0000000000000013.snap", "0000000000000013.snap.tmp", "x.snap"} {
		put(t, d, name, nil)
	}
	if all := listed(t, d); len(all) != 2 || all[0] != 13 {
		t.Fatalf("%v", all)
	}
	must(t, snapshot.Sweep(d, func(lsn types.LSN) bool { return lsn == 13 }))
	if names, _ := d.List(); strings.Join(names, " ") != "0000000000000013.snap 12.snap notes x.snap" {
		t.Fatalf("%q", names)
	}
}

// TestFormatIsFrozen: the bytes of a small snapshot. Later versions must read them.
func TestFormatIsFrozen(t *testing.T) {
	b := kept(t, 12)
	path := filepath.Join("testdata", "12.hex")
	if os.Getenv("REWRITE") != "" {
		must(t, os.WriteFile(path, []byte(hex.Dump(written(t, b))), 0o600))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if got := hex.Dump(written(t, b)); got != string(want) {
		t.Fatalf("it is\n%s\nfor ever was\n%s", got, want)
	}
}
