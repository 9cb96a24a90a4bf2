package checksum_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"macronode/adapters/checksum"
)

// TestFullObjectEqualsWhole combines the checksums of drawn parts, also of empty ones, and compares
// the result with the checksum of the whole content.
func TestFullObjectEqualsWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a := rapid.SampledFrom([]checksum.Algorithm{checksum.CRC32, checksum.CRC32C, checksum.CRC64NVME}).Draw(rt, "algorithm")
		contents := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 70), 1, 6).Draw(rt, "parts")
		got, err := checksum.CombineFullObject(a, partsOf(a, contents))
		if want := sum(a, slices.Concat(contents...)); err != nil || !bytes.Equal(got, want) {
			rt.Fatalf("%s: %x, %v, want %x", a, got, err, want)
		}
	})
}

func partsOf(a checksum.Algorithm, contents [][]byte) (parts []checksum.Part) {
	for _, c := range contents {
		parts = append(parts, checksum.Part{Sum: sum(a, c), Size: int64(len(c))})
	}
	return parts
}

// TestFullObjectOfLargeParts combines parts of zeros: their sizes exceed what a test can hash, but
// two halves of a size must combine like four quarters.
func TestFullObjectOfLargeParts(t *testing.T) {
	for _, a := range []checksum.Algorithm{checksum.CRC32, checksum.CRC32C, checksum.CRC64NVME} {
		part := checksum.Part{Sum: sum(a, make([]byte, 1<<20)), Size: 1 << 20}
		for range 30 { // up to 2^50 bytes
			double, err := checksum.CombineFullObject(a, []checksum.Part{part, part})
			if err != nil {
				t.Fatal(err)
			}
			next := checksum.Part{Sum: double, Size: 2 * part.Size}
			four, err := checksum.CombineFullObject(a, []checksum.Part{part, part, part, part})
			if err != nil {
				t.Fatal(err)
			}
			if two, err := checksum.CombineFullObject(a, []checksum.Part{next, next}); err != nil || !bytes.Equal(two, four) {
				t.Fatalf("%s at %d bytes: %x, %v, want %x", a, part.Size, two, err, four)
			}
			part = next
		}
	}
}

// TestComposite: the checksum of the concatenated checksums, in the order of the parts.
func TestComposite(t *testing.T) {
	contents := [][]byte{[]byte("abc"), nil, []byte("123456789")}
	for _, a := range checksum.Algorithms {
		if !a.HasComposite() {
			continue
		}
		var all []byte
		for _, c := range contents {
			all = append(all, sum(a, c)...)
		}
		got, err := checksum.CombineComposite(a, partsOf(a, contents))
		if err != nil || !bytes.Equal(got, sum(a, all)) {
			t.Errorf("%s: %x, %v", a, got, err)
		}
		text := checksum.EncodeComposite(got, len(contents))
		if text != checksum.Encode(got)+"-3" {
			t.Errorf("%s: %s", a, text)
		}
		if back, n, ok := checksum.DecodeComposite(a, text); !ok || n != 3 || !bytes.Equal(back, got) {
			t.Errorf("%s: %s is read as %x-%d", a, text, back, n)
		}
	}
	for _, text := range []string{"", "y/Q5Jg==", "y/Q5Jg==-", "y/Q5Jg==-0", "y/Q5Jg==-01", "y/Q5Jg==-+1", "y/Q5Jg==-10001", "y/Q5Jg=-1", "y/Q5Jg==-1-1"} {
		if _, _, ok := checksum.DecodeComposite(checksum.CRC32, text); ok {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestPartsThatDoNotCombine checks each rejection.
func TestPartsThatDoNotCombine(t *testing.T) {
	one := checksum.Part{Sum: make([]byte, 4), Size: 1}
	for name, parts := range map[string][]checksum.Part{
		"none":          nil,
		"too many":      slices.Repeat([]checksum.Part{one}, checksum.MaxParts+1),
		"other length":  {one, {Sum: make([]byte, 8), Size: 1}},
		"negative size": {one, {Sum: make([]byte, 4), Size: -1}},
	} {
		if _, err := checksum.CombineFullObject(checksum.CRC32, parts); !errors.Is(err, checksum.ErrParts) {
			t.Errorf("full object of %s: %v", name, err)
		}
		if _, err := checksum.CombineComposite(checksum.CRC32, parts); !errors.Is(err, checksum.ErrParts) {
			t.Errorf("composite of %s: %v", name, err)
		}
	}
	for _, a := range []checksum.Algorithm{checksum.None, checksum.SHA1, checksum.SHA256} {
		if _, err := checksum.CombineFullObject(a, []checksum.Part{{Sum: make([]byte, a.Size())}}); !errors.Is(err, checksum.ErrParts) {
			t.Errorf("full object of %s: %v", a, err)
		}
	}
	for _, a := range []checksum.Algorithm{checksum.None, checksum.CRC64NVME} {
		if _, err := checksum.CombineComposite(a, []checksum.Part{{Sum: make([]byte, a.Size())}}); !errors.Is(err, checksum.ErrParts) {
			t.Errorf("composite of %s: %v", a, err)
		}
	}
	if _, err := checksum.CombineFullObject(checksum.CRC32, slices.Repeat([]checksum.Part{one}, checksum.MaxParts)); err != nil {
		t.Errorf("all parts that are allowed: %v", err)
	}
}

// BenchmarkCombineFullObject combines the largest number of parts.
func BenchmarkCombineFullObject(b *testing.B) {
	parts := slices.Repeat([]checksum.Part{{Sum: make([]byte, 8), Size: 8 << 20}}, checksum.MaxParts)
	for b.Loop() {
		if _, err := checksum.CombineFullObject(checksum.CRC64NVME, parts); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHash measures each algorithm on writes of 64 KiB.
func BenchmarkHash(b *testing.B) {
	content := make([]byte, 64<<10)
	for _, a := range checksum.Algorithms {
		b.Run(a.String(), func(b *testing.B) {
			b.SetBytes(int64(len(content)))
			h := checksum.New(a)
			for b.Loop() {
				h.Write(content)
			}
		})
	}
}
