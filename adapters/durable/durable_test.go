package durable_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"macronode/adapters/durable"
	"macronode/chaos/world"
	"macronode/core/types"
)

// mark returns the n-th mark of a journal.
func mark(n uint64) durable.Mark {
	return durable.Mark{Journal: 0xfedcba9876543210, LSN: types.LSN(n), Root: types.Root{1, 2, byte(n)}, At: types.Time(1_700_000_000_000 + n)}
}

// TestMarkSurvivesAnyCrash: after a power loss at any point, the file has the last mark whose
// Write returned, or the next one. It is never unreadable.
func TestMarkSurvivesAnyCrash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		disk := world.NewDisk()
		disk.Fuse = rapid.IntRange(1, 40).Draw(t, "operations")
		written, tried := uint64(0), uint64(0)
		for !disk.Dead() {
			if tried++; mark(tried).Write(disk, durable.Name) == nil {
				written = tried
			}
		}
		disk.Crash(world.NewSeeded(rapid.Uint64().Draw(t, "loss")))
		disk.Fuse = -1
		is, err := durable.Read(disk, durable.Name)
		switch {
		case err != nil:
			t.Fatalf("unreadable after %d marks: %v", written, err)
		case written > 0 && is != mark(written) && is != mark(tried):
			t.Fatalf("mark %v after a crash, written were %d, tried %d", is.LSN, written, tried)
		case written == 0 && is.LSN > 1:
			t.Fatalf("mark %v, and none was written", is.LSN)
		}
		if err := mark(99).Write(disk, durable.Name); err != nil {
			t.Fatalf("a mark cannot be written after a crash: %v", err)
		}
		if is, err := durable.Read(disk, durable.Name); err != nil || is != mark(99) {
			t.Fatalf("%v, %v", is, err)
		}
	})
}

// TestDamagedMarkIsRejected: a file with a changed byte, or cut anywhere, is rejected.
func TestDamagedMarkIsRejected(t *testing.T) {
	disk := world.NewDisk()
	disk.Fuse = -1
	if is, err := durable.Read(disk, durable.Name); err != nil || is != (durable.Mark{}) {
		t.Fatalf("no file is %v, %v", is, err)
	}
	if err := mark(7).Write(disk, durable.Name); err != nil {
		t.Fatal(err)
	}
	f, err := disk.Open(durable.Name)
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, size)
	if _, err := f.ReadAt(text, 0); err != nil {
		t.Fatal(err)
	}
	put := func(text []byte) {
		if err := disk.Remove(durable.Name); err != nil {
			t.Fatal(err)
		}
		f, err := disk.Create(durable.Name)
		if err == nil {
			_, err = f.WriteAt(text, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	sum := len(text) - len(" 01234567\n")
	for i := range len(text) - 1 { // the last byte is the newline
		spoiled := append([]byte(nil), text...)
		spoiled[i] ^= 1
		put(spoiled)
		if is, err := durable.Read(disk, durable.Name); !errors.Is(err, durable.ErrFormat) {
			t.Errorf("byte %d: %v, %v", i, is, err)
		}
		if i == sum { // the rest is valid without a checksum
			continue
		}
		put(text[:i])
		if is, err := durable.Read(disk, durable.Name); i < sum && !errors.Is(err, durable.ErrFormat) {
			t.Errorf("cut at %d: %v, %v", i, is, err)
		}
	}
	put(text[:sum])
	if is, err := durable.Read(disk, durable.Name); err != nil || is != mark(7) {
		t.Errorf("without a checksum: %v, %v", is, err)
	}
}

// TestUnknownIsDamaged: a file that stands for an unknown frame is read as damaged, until a mark replaces it.
func TestUnknownIsDamaged(t *testing.T) {
	disk := world.NewDisk()
	disk.Fuse = -1
	if err := durable.WriteUnknown(disk, durable.Name); err != nil {
		t.Fatal(err)
	}
	if is, err := durable.Read(disk, durable.Name); !errors.Is(err, durable.ErrFormat) {
		t.Errorf("%v, %v", is, err)
	}
	if err := mark(7).Write(disk, durable.Name); err != nil {
		t.Fatal(err)
	}
	if is, err := durable.Read(disk, durable.Name); err != nil || is != mark(7) {
		t.Errorf("%v, %v", is, err)
	}
}
