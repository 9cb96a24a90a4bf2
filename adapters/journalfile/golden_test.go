package journalfile_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/record"
	"macronode/core/types"
)

// golden reads a frozen segment: hex in testdata, with its meaning.
func golden(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	must(t, err)
	var digits strings.Builder
	for line := range strings.Lines(string(text)) {
		reported, _, _ := strings.Cut(line, "#")
		for _, word := range strings.Fields(reported) {
			digits.WriteString(word)
		}
	}
	all, err := hex.DecodeString(digits.String())
	must(t, err)
	return all
}

// TestFormatIsFrozen: the bytes of a tiny journal, and of the segment that recovery makes of its
// tail. Later versions must read them.
func TestFormatIsFrozen(t *testing.T) {
	d := world.NewDisk()
	j := open(t, d, types.MaxSegment)
	one := add(t, j, 1)
	two := add(t, j, 2)
	must(t, j.Close())
	j, _, _ = recovered(t, d)
	must(t, j.Close())
	for _, name := range []string{"00000001.seg", "00000002.seg"} {
		want := golden(t, strings.TrimSuffix(name, ".seg")+".hex")
		if got := bytes.TrimRight(read(t, d, name), "\x00"); !bytes.Equal(got, want) {
			t.Errorf("%s is\n%x, for ever was\n%x", name, got, want)
		}
	}

	old := disk(t, map[string][]byte{"00000001.seg": golden(t, "00000001.hex"), "00000002.seg": golden(t, "00000002.hex")})
	var k kept
	found, err := journalfile.Scan(old, k.each, nil)
	must(t, err)
	wrote := append(one, two...)
	if len(k.frames) != 3 || found.Last != 3 || found.Known != 3 || found.Epoch != 2 || found.Journal != ours || found.CutBytes != 0 {
		t.Fatalf("%d frames, found %+v", len(k.frames), found)
	}
	for n, s := range k.frames {
		if !same(s, wrote[n]) {
			t.Errorf("frame %d is %+v, was %+v", n+1, s, wrote[n])
		}
	}
}

// TestLaterFormatIsNotTouched: a segment of a later format is left unchanged.
func TestLaterFormatIsNotTouched(t *testing.T) {
	later := golden(t, "later.hex")
	d := disk(t, map[string][]byte{first: later, "00000002.seg.tmp": nil})
	before := files(t, d)
	_, _, err := journalfile.Recover(d, ours, func([]record.Sealed) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "00000001.seg is of format 2") || files(t, d) != before {
		t.Fatalf("%v\n%s", err, files(t, d))
	}
}
