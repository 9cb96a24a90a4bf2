package journalfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"macronode/adapters/journalfile"
	"macronode/core/digest"
	"macronode/core/types"
)

// A forge makes items with valid checksums and any content, by the format and without code of the
// journal.
type forge struct {
	bytes.Buffer
	prev types.Root
}

func (f *forge) item(magic string, root []byte, payload ...any) {
	var b bytes.Buffer
	for _, field := range payload {
		_ = binary.Write(&b, binary.LittleEndian, field) // in memory: never fails
	}
	whole := binary.LittleEndian.AppendUint32([]byte(magic), uint32(b.Len()))
	whole = append(append(whole, b.Bytes()...), root...)
	f.Write(binary.LittleEndian.AppendUint32(whole, crc32.Checksum(whole, crc32.MakeTable(crc32.Castagnoli))))
}

func (f *forge) start(first, known, epoch uint64) {
	f.item("MNS1", nil, uint32(1), uint64(ours), first, known, epoch, f.prev)
}

// forged is the size of one forged frame.
const forged = 76

func (f *forge) batch(known, epoch, first uint64, bytes, count uint32) {
	f.item("MNB1", nil, known, epoch, first, bytes, count)
}

func (f *forge) frames(lsns ...types.LSN) {
	for _, lsn := range lsns {
		body, _ := frames(lsn, 1, 0)
		f.prev, _ = digest.Chain(nil, f.prev, body)
		f.item("MNF1", f.prev[:], body)
	}
}

// TestForgedItemsAreRejected: an item with valid checksums must also be valid in its place.
func TestForgedItemsAreRejected(t *testing.T) {
	whole := func(f *forge) {
		f.start(1, 0, 5)
		f.batch(0, 5, 1, 2*forged, 2)
		f.frames(1, 2)
	}
	for _, c := range []struct {
		name   string
		first  func(*forge)
		second func(*forge) // the next segment, if any
		want   string
	}{
		{"all in order", whole, func(f *forge) { f.start(3, 2, 5); f.batch(2, 5, 3, forged, 1); f.frames(3) }, "last @3, cut 0, tail 1"},
		{"a batch that did not end", func(f *forge) { f.start(1, 0, 5); f.batch(0, 5, 1, 3*forged, 3); f.frames(1, 2) }, nil, "last @2, cut 0, tail 2"},
		{"the next segment begins inside a batch",
			func(f *forge) { f.start(1, 0, 5); f.batch(0, 5, 1, 3*forged, 3); f.frames(1, 2) },
			func(f *forge) { f.start(3, 2, 5); f.batch(2, 5, 3, forged, 1); f.frames(3) }, "last @3, cut 0, tail 1"},
		{"two batches before a sync", func(f *forge) { whole(f); f.batch(0, 5, 3, forged, 1); f.frames(3) }, nil, "last @3, cut 0, tail 3"},
		{"one and a half were synced", func(f *forge) { whole(f); f.batch(1, 5, 3, forged, 1); f.frames(3) }, nil, "last @3, cut 0, tail 2"},
		{"a root that does not follow", func(f *forge) { whole(f); f.batch(2, 5, 3, forged, 1); f.prev[0]++; f.frames(3) }, nil, "last @2, cut 76, tail 0"},
		{"a root that does not follow, and a batch after it",
			func(f *forge) {
				f.start(1, 0, 5)
				f.batch(0, 5, 1, forged, 1)
				f.prev[0]++
				f.frames(1)
				f.batch(1, 5, 2, forged, 1)
				f.frames(2)
			}, nil, "at byte 124, frames @1 to @1: a frame that breaks the chain"},
		{"a frame too far on", func(f *forge) { whole(f); f.batch(2, 5, 3, forged, 1); f.frames(4) }, nil, "last @2, cut 76, tail 0"},
		{"a frame again", func(f *forge) { whole(f); f.batch(2, 5, 3, forged, 1); f.frames(2) }, nil, "last @2, cut 76, tail 0"},
		{"a frame without a batch", func(f *forge) { whole(f); f.frames(3) }, nil, "last @2, cut 76, tail 2"},
		{"a batch inside a batch",
			func(f *forge) {
				f.start(1, 0, 5)
				f.batch(0, 5, 1, 2*forged, 2)
				f.frames(1)
				f.batch(0, 5, 2, forged, 1)
				f.frames(2)
			},
			nil, "last @1, cut 120, tail 1"},
		{"a batch of fewer bytes", func(f *forge) { whole(f); f.batch(2, 5, 3, forged-1, 1); f.frames(3) }, nil, "last @2, cut 76, tail 0"},
		{"a batch of more bytes", func(f *forge) { whole(f); f.batch(2, 5, 3, forged+1, 1); f.frames(3) }, nil, "last @2, cut 76, tail 0"},
		{"a batch that has no room for its last", func(f *forge) { whole(f); f.batch(2, 5, 3, forged+40, 2); f.frames(3, 4) }, nil, "last @3, cut 76, tail 1"},
		{"a batch that has no room for its second", func(f *forge) { whole(f); f.batch(2, 5, 3, forged+70, 3); f.frames(3, 4) }, nil, "last @3, cut 76, tail 1"},
		{"a batch of frames that no bytes could be", func(f *forge) { whole(f); f.batch(2, 5, 3, 2*forged, 5); f.frames(3, 4) }, nil, "last @2, cut 196, tail 2"},
		{"a batch of no frames", func(f *forge) { whole(f); f.batch(2, 5, 3, 0, 0) }, nil, "last @2, cut 44, tail 2"},
		{"a batch too far on", func(f *forge) { whole(f); f.batch(2, 5, 4, forged, 1); f.frames(3) }, nil, "last @2, cut 120, tail 2"},
		{"a batch that claims later frames durable", func(f *forge) { whole(f); f.batch(3, 5, 3, forged, 1); f.frames(3) }, nil, "last @2, cut 120, tail 2"},
		{"a batch of an earlier writer", func(f *forge) { whole(f); f.batch(2, 4, 3, forged, 1); f.frames(3) }, nil, "last @2, cut 120, tail 2"},
		{"a batch of a later writer", func(f *forge) { whole(f); f.batch(2, 6, 3, forged, 1); f.frames(3) }, nil, "last @2, cut 120, tail 2"},
		{"a journal with ID 0", func(f *forge) {
			f.item("MNS1", nil, uint32(1), uint64(0), uint64(1), uint64(0), uint64(5), f.prev)
			f.batch(0, 5, 1, forged, 1)
			f.frames(1)
		}, nil, "at byte 0, frames @1 to @1: its start is invalid"},
		{"a start inside", func(f *forge) { whole(f); f.start(3, 2, 5) }, nil, "last @2, cut 80, tail 2"},
		{"a segment of an earlier writer", whole, func(f *forge) { f.start(3, 2, 4) }, "at byte 0, frames @3 to @3: its writer had been replaced by a later one"},
		{"a segment that follows another", whole, func(f *forge) { f.prev[0]++; f.start(3, 2, 5) }, "at byte 0, frames @3 to @3: it does not follow the segment before it"},
		{"a segment begun too early", whole, func(f *forge) { f.start(3, 1, 5) }, "at byte 0, frames @3 to @3: it began before its predecessor was durable"},
		{"a segment start that claims missing frames durable", whole, func(f *forge) { f.start(3, 4, 5); f.batch(2, 5, 3, forged, 1); f.frames(3) },
			"at byte 200, frames @4 to @4: the data ends here: the end of this segment or 00000003.seg is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &forge{}
			c.first(f)
			segments := map[string][]byte{first: bytes.Clone(f.Bytes())}
			if f.Reset(); c.second != nil {
				c.second(f)
				segments["00000002.seg"] = f.Bytes()
			}
			d := disk(t, segments)
			_, found, err := journalfile.Recover(d, ours, nil)
			got := fmt.Sprintf("last %v, cut %d, tail %d", found.Last, found.CutBytes, found.TailFrames)
			if err != nil {
				got = err.Error()
			}
			if !strings.HasSuffix(got, c.want) || (err != nil) != errors.Is(err, journalfile.ErrDamaged) || found.Damaged != (err != nil) {
				t.Fatalf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestSegmentsOutOfOrder: of three segments, the last begins before the second.
func TestSegmentsOutOfOrder(t *testing.T) {
	f, segments := &forge{}, map[string][]byte{}
	keep := func(name string) { segments[name] = bytes.Clone(f.Bytes()); f.Reset() }
	f.start(1, 0, 1)
	f.batch(0, 1, 1, 2*forged, 2)
	f.frames(1, 2)
	keep("00000001.seg")
	f.start(3, 2, 1)
	keep("00000002.seg")
	f.start(2, 1, 1)
	keep("00000003.seg")
	_, _, err := journalfile.Recover(disk(t, segments), ours, nil)
	damage := (*journalfile.Damage)(nil)
	if !errors.As(err, &damage) || damage.Segment != "00000003.seg" || damage.From != 3 {
		t.Fatal(err)
	}
}

// TestFindsProofBehindHole: a whole batch behind a hole is found anywhere, also across the
// boundary of two reads.
func TestFindsProofBehindHole(t *testing.T) {
	const read = 1 << 20
	for gap := read - 50; gap < read+5; gap++ {
		f := &forge{}
		f.start(1, 0, 1)
		f.Write(make([]byte, gap))
		f.batch(1, 1, 2, forged, 1)
		f.Write(make([]byte, 10))
		_, err := journalfile.Scan(disk(t, map[string][]byte{first: f.Bytes()}), nil, nil)
		damage := (*journalfile.Damage)(nil)
		if !errors.As(err, &damage) || damage.Offset != startSize || damage.From != 1 || damage.To != 1 {
			t.Fatalf("a hole of %d bytes, then a batch that proves it: %v", gap, err)
		}
	}
}
