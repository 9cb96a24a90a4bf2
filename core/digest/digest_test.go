package digest_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	other "lukechampine.com/blake3"
	"pgregory.net/rapid"

	"macronode/core/digest"
	"macronode/core/types"
)

// TestMatchesPublishedVectors checks test vectors published with BLAKE3.
func TestMatchesPublishedVectors(t *testing.T) {
	for text, want := range map[string]string{
		"":    "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
		"abc": "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85",
	} {
		sum := digest.Sum([]byte(text))
		if got := hex.EncodeToString(sum[:]); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
		name, asked := digest.Name([]byte(text)), digest.RequestHash([]byte(text))
		if hex.EncodeToString(name[:]) != want[:32] || hex.EncodeToString(asked[:]) != want[:32] {
			t.Errorf("%q has the name hash %x and the request hash %x", text, name, asked)
		}
	}
}

// TestMatchesAnotherImplementation compares with another BLAKE3 at every length around a chunk.
func TestMatchesAnotherImplementation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chunks := rapid.IntRange(0, 20).Draw(t, "chunks")
		n := max(0, 1024*chunks+rapid.IntRange(-65, 65).Draw(t, "more"))
		b := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, n)
		if n > 0 {
			b[rapid.IntRange(0, n-1).Draw(t, "at")] ^= 1
		}
		if digest.Sum(b) != other.Sum256(b) {
			t.Errorf("%d bytes: they differ", n)
		}
	})
}

// TestChainHashesPreviousRootAndBody shows that a root depends on the previous root and the body,
// and not on the content of scratch.
func TestChainHashesPreviousRootAndBody(t *testing.T) {
	var scratch []byte
	root := types.Root{}
	for i := range 50 {
		body := bytes.Repeat([]byte{byte(i)}, i*7)
		was := root
		root, scratch = digest.Chain(scratch, was, body)
		if want := other.Sum256(append(was[:], body...)); root != types.Root(want) {
			t.Fatalf("frame %d: root %x, want %x", i, root, want)
		}
		if cap(scratch) < 32+len(body) {
			t.Fatalf("frame %d: the scratch did not grow", i)
		}
		for j := range body {
			if body[j] != byte(i) {
				t.Fatalf("frame %d: the body was written to", i)
			}
		}
	}
	if n := testing.AllocsPerRun(100, func() { root, scratch = digest.Chain(scratch, root, scratch[:0]) }); n != 0 {
		t.Errorf("%v allocations with a scratch that is large enough", n)
	}
}
