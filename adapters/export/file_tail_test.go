package export

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestLineIsNotRepeatedAfterRestart: a sink that starts again, as after a kill, delivers none of the lines that the files have, also in
// a file before the last one. What an operator delivers once more is written again.
func TestLineIsNotRepeatedAfterRestart(t *testing.T) {
	f := &fileTarget{t: t, dir: t.TempDir()}
	to := func(sink Sink, seq uint64, want Outcome) {
		t.Helper()
		if got := sink.Deliver(t.Context(), item(seq)); got.Outcome != want {
			t.Fatalf("seq %d: %+v, want %v", seq, got, want)
		}
	}
	first := f.sink()
	for seq := uint64(1); seq <= 7; seq++ { // in three files
		to(first, seq, OK)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := f.sink()
	for seq := uint64(4); seq <= 7; seq++ { // settled up to 3
		to(second, seq, Duplicate)
	}
	to(second, 8, OK)
	to(second, 6, OK) // an operator sends it again
	to(second, 7, OK)
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	third := f.sink()
	to(third, 7, Duplicate) // the last delivery counts
	to(third, 8, OK)
	changed := item(9)
	to(third, 9, OK)
	if err := third.Close(); err != nil {
		t.Fatal(err)
	}
	fourth := f.sink()
	defer fourth.Close()
	changed.Body = bytes.Replace(changed.Body, []byte("}"), []byte(`,"x":1}`), 1) // after a restore of the node
	if got := fourth.Deliver(t.Context(), changed); got.Outcome != OK {
		t.Fatalf("another item at the same position: %+v", got)
	}
	if got := f.seqs(); !slices.Equal(got, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 6, 7, 8, 9, 9}) {
		t.Fatal(got)
	}
}

// TestLineOfMovedFileIsWrittenAgain: a line counts as delivered only while its file is there.
func TestLineOfMovedFileIsWrittenAgain(t *testing.T) {
	f := &fileTarget{t: t, dir: t.TempDir()}
	first := f.sink()
	for seq := uint64(1); seq <= 4; seq++ {
		deliver(t, first, item(seq))
	}
	_ = first.Close()
	second := f.sink()
	defer second.Close()
	for seq, want := range map[uint64]Outcome{2: Duplicate} {
		if got := second.Deliver(t.Context(), item(seq)); got.Outcome != want {
			t.Fatalf("seq %d: %+v, want %v", seq, got, want)
		}
	}
	if err := os.Remove(filepath.Join(f.dir, "usage-00000001.ndjson")); err != nil { // has 1 to 3
		t.Fatal(err)
	}
	deliver(t, second, item(3))
	if got := f.seqs(); !slices.Equal(got, []uint64{4, 3}) {
		t.Fatal(got)
	}
}

// TestTailHasLimits: lines of few lanes are found again, and of each lane the last ones. Before a line that is too long, nothing is read.
func TestTailHasLimits(t *testing.T) {
	all := tail{}
	for lane := range fileLanes + 1 {
		all.add(fmt.Sprint(lane), 1000, []byte("x"), 1)
	}
	for seq := uint64(999); seq > 800; seq-- {
		all.add("7", seq, []byte("x"), 1)
	}
	if len(all) != fileLanes || len(all["7"].lines) != FileWindow {
		t.Errorf("%d lanes, %d lines of one", len(all), len(all["7"].lines))
	}
	f := &fileTarget{t: t, dir: t.TempDir()}
	line := func(seq uint64, more string) string {
		return string(bytes.Replace(item(seq).Body, []byte("}"), fmt.Appendf(nil, `,"x":%q}`, more), 1)) + "\n"
	}
	text := line(1, "") + line(2, strings.Repeat("x", fileLine)) + line(3, "") + "not JSON\n" + "{\"seq\":0}\n[]\n{\"tenant\":1\n" + line(4, "")
	if err := os.WriteFile(filepath.Join(f.dir, "usage-00000001.ndjson"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := newFile(&Config{Dir: f.dir}, fileBytes, disk{}).readTail(Usage, []uint64{1})
	if err != nil || len(got) != 1 || got["default/custom:a/b"].last != 4 || len(got["default/custom:a/b"].lines) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	left := 2
	got = tail{}
	err = newFile(&Config{Dir: f.dir}, fileBytes, disk{}).readFile(got, Usage, 1, &left)
	if err != nil || left != 0 || len(got["default/custom:a/b"].lines) != 1 {
		t.Errorf("%v, %d lines left to read, %v", got, left, err)
	}
}

// TestLaneOfLine: the lane and the position of a line are those of its members, whatever its texts are.
func TestLaneOfLine(t *testing.T) {
	for line, want := range map[string]string{
		`{"tenant":"a","dimension":"custom:a/{b}","seq":12,"rows":[{"seq":3}]}`:           "usage a/custom:a/{b} 12",
		`{"tenant":"a","txid":"x","memo":",\"seq\":7,","seq":18446744073709551615,"x":1}`: "wallet a 18446744073709551615",
		`{"tenant":"a","dimension":"b","seq":0}`:                                          "",
		`{"tenant":"a","dimension":"b","seq":-1}`:                                         "",
		`{"tenant":"a","dimension":"b","seq":18446744073709551616}`:                       "",
		`{"tenant":"a","dimension":"b","seq":1`:                                           "",
		`{"tenant":"a","seq":1}`:                                                          "wallet a 1",
		`{"dimension":"b","x":{"tenant":"a","seq":1}}`:                                    "",
		`{"tenant":"a`: "",
		``:             "",
	} {
		stream := Wallet
		if strings.Contains(line, "dimension") {
			stream = Usage
		}
		got := ""
		if lane, seq, ok := laneOfLine(stream, []byte(line)); ok {
			got = fmt.Sprint(stream, " ", lane, " ", seq)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	if _, _, ok := laneOfLine(Usage, []byte(`{"tenant":"a","seq":1}`)); ok {
		t.Error("a slice has a dimension")
	}
}

// TestLinesAreReadBackwards: the lines of a file are those that its text has, wherever the parts that are read begin.
func TestLinesAreReadBackwards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(filePart-3, filePart+3), rapid.IntRange(0, 3*filePart)), 0, 12).Draw(t, "sizes")
		var text []byte
		var want [][]byte
		for i, size := range sizes {
			line := bytes.Repeat([]byte{byte('a' + i)}, size)
			want, text = append(want, line), append(append(text, line...), '\n')
		}
		torn := rapid.IntRange(0, filePart+3).Draw(t, "torn")
		f := bytes.NewReader(append(bytes.Clone(text), bytes.Repeat([]byte("T"), torn)...))
		end, err := lineEnd(f, f.Size())
		if err != nil || end != int64(len(text)) {
			t.Fatalf("the lines end at %d of %d, %v", end, len(text), err)
		}
		slices.Reverse(want)
		var got [][]byte
		if err := eachLine(f, end, func(line []byte) bool {
			got = append(got, bytes.Clone(line))
			return true
		}); err != nil || !slices.EqualFunc(got, want, bytes.Equal) {
			t.Fatalf("%d lines, not %d: %v", len(got), len(want), err)
		}
	})
}
