package epochs_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"macronode/adapters/epochs"
	"macronode/adapters/fs"
	"macronode/chaos/world"
	"macronode/core/types"
)

func must(t interface{ Fatal(...any) }, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// TestEpochsSurviveAnyCrash: after a power loss at any point, the file has the epochs that Next returned, and perhaps the next one. Each is
// higher than the one before.
func TestEpochsSurviveAnyCrash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		disk := world.NewDisk()
		disk.Fuse = rapid.IntRange(1, 40).Draw(t, "operations")
		random := rapid.Uint64()
		l := epochs.List{Dir: disk, Random: func() uint64 { return random.Draw(t, "epoch") }}
		last := types.Epoch(0)
		for !disk.Dead() {
			e, err := l.Next(last)
			if err != nil {
				continue
			}
			if e <= last {
				t.Fatalf("%d follows %d", e, last)
			}
			l.All, last = append(l.All, e), e
		}
		disk.Crash(world.NewSeeded(rapid.Uint64().Draw(t, "loss")))
		disk.Fuse = -1
		is, err := epochsIn(disk)
		must(t, err)
		if len(is) < len(l.All) || len(is) > len(l.All)+1 || !slices.Equal(is[:len(l.All)], l.All) {
			t.Fatalf("%v after a crash, recorded were %v", is, l.All)
		}
	})
}

// TestPartialListIsReadAsPartial: the file records that its list may lack writers, also with one damaged place, and each next list does.
func TestPartialListIsReadAsPartial(t *testing.T) {
	disk := world.NewDisk()
	disk.Fuse = -1
	for _, want := range []epochs.List{{All: []types.Epoch{3, 9}}, {All: []types.Epoch{3, 9}, Partial: true}} {
		want.Dir, want.Random = disk, func() uint64 { return 0 }
		must(t, want.Write())
		whole, err := fs.ReadAll(disk, epochs.Name)
		must(t, err)
		for at := range whole {
			text := slices.Clone(whole)
			text[at] ^= 1
			must(t, fs.Replace(disk, epochs.Name, string(text)))
			if is, err := epochs.Load(disk); err != nil || is.Partial != want.Partial || !slices.Equal(is.All, want.All) {
				t.Fatalf("byte %d: %+v, %v", at, is, err)
			}
		}
		_, err = want.Next(9)
		must(t, err)
		if is, err := epochs.Load(disk); err != nil || is.Partial != want.Partial || len(is.All) != 3 {
			t.Fatalf("the next list is %+v, %v", is, err)
		}
	}
}

// A huge file has a size, and no content that fits into memory.
type huge struct {
	fs.File
	size int64
}

func (f huge) Size() (int64, error) { return f.size, nil }

func (huge) ReadAt([]byte, int64) (int, error) { return 0, errors.New("it was read") }

func (huge) Close() error { return nil }

type hugeFiles struct {
	fs.FS
	size int64
}

func (d hugeFiles) Open(string) (fs.File, error) { return huge{size: d.size}, nil }

// TestHugeFileIsNotRead: a file of more than 64 MiB is damaged.
func TestHugeFileIsNotRead(t *testing.T) {
	if _, err := epochs.Load(hugeFiles{size: 64<<20 + 1}); !errors.Is(err, epochs.ErrFormat) {
		t.Errorf("64 MiB and a byte: %v", err)
	}
	if _, err := epochs.Load(hugeFiles{size: 64 << 20}); err == nil || errors.Is(err, epochs.ErrFormat) {
		t.Errorf("64 MiB: %v", err)
	}
}

// TestDamagedFile: a file with one damaged place has all epochs; one that lacks an epoch is rejected.
func TestDamagedFile(t *testing.T) {
	want := []types.Epoch{3, 1 << 31, 1<<62 + 5}
	disk := world.NewDisk()
	disk.Fuse = -1
	if is, err := epochsIn(disk); err != nil || is != nil {
		t.Fatalf("no file is %v, %v", is, err)
	}
	must(t, epochs.List{Dir: disk, All: want}.Write())
	whole, err := fs.ReadAll(disk, epochs.Name)
	must(t, err)
	read := func(text []byte) ([]types.Epoch, error) {
		must(t, fs.Replace(disk, epochs.Name, string(text)))
		return epochsIn(disk)
	}
	for at := range whole {
		for bit := range 8 {
			text := slices.Clone(whole)
			text[at] ^= 1 << bit
			if is, err := read(text); err != nil || !slices.Equal(is, want) {
				t.Fatalf("bit %d of byte %d: %v, %v", bit, at, is, err)
			}
		}
		is, err := read(whole[:at])
		if isWhole := at >= len(whole)/2-1; isWhole != (err == nil) || isWhole && !slices.Equal(is, want) || !isWhole && !errors.Is(err, epochs.ErrFormat) {
			t.Fatalf("cut at %d: %v, %v", at, is, err)
		}
	}
	lines := strings.SplitAfter(string(whole), "\n")
	for n := range 3 {
		lines[1+n], lines[5+n] = "\n", "\n" // in both lists
		if is, err := read([]byte(strings.Join(lines, ""))); !errors.Is(err, epochs.ErrFormat) {
			t.Errorf("without an epoch: %v, %v", is, err)
		}
	}
}

func epochsIn(dir fs.FS) ([]types.Epoch, error) {
	l, err := epochs.Load(dir)
	return l.All, err
}
