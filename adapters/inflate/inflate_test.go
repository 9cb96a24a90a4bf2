package inflate_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"macronode/adapters/inflate"
)

const window = 8 << 20

// gz returns gzip data with a member for each part.
func gz(parts ...[]byte) []byte {
	var b bytes.Buffer
	for _, part := range parts {
		z := gzip.NewWriter(&b)
		_, _ = z.Write(part)
		_ = z.Close()
	}
	return b.Bytes()
}

// zs returns zstd data with a frame for each part.
func zs(t testing.TB, parts ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, part := range parts {
		z, err := zstd.NewWriter(&b, zstd.WithWindowSize(1<<20), zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = z.Write(part)
		_ = z.Close()
	}
	return b.Bytes()
}

// all decompresses packed with reads of a given size.
func all(packed []byte, of inflate.Coding, l inflate.Limits, size int) (out []byte, err error) {
	r := inflate.New(bytes.NewReader(packed), of, l)
	defer r.Close()
	buf := make([]byte, size)
	for {
		n, err := r.Read(buf)
		out = append(out, buf[:n]...)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
	}
}

// noise returns bytes that do not compress.
func noise(n int) []byte {
	b := make([]byte, n)
	c := rand.NewChaCha8([32]byte{7})
	_, _ = c.Read(b)
	return b
}

// text returns bytes that compress to a quarter.
func text(lines int) (b []byte) {
	for line := noise(100 * lines); len(line) > 0; line = line[100:] {
		b = append(append(b, line[:100]...), even(300)...)
	}
	return b
}

func even(n int) []byte { return bytes.Repeat([]byte{' '}, n) }

// huge returns a zstd frame with a given window that repeats one byte.
func huge(exponent byte, blocks int) []byte {
	b := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, exponent << 3}
	const size = 128 << 10
	for i := range blocks {
		head := uint32(size<<3 | 1<<1)
		if i == blocks-1 {
			head |= 1
		}
		b = append(b, byte(head), byte(head>>8), byte(head>>16), 'x')
	}
	return b
}

// TestValidDataIsDecompressed: completely, for any read size on either side.
func TestValidDataIsDecompressed(t *testing.T) {
	for name, plain := range map[string][]byte{"empty": nil, "little": []byte("hello"), "even, as much as Free": even(inflate.Free),
		"noise": noise(3 << 20), "text": text(2000)} {
		half := len(plain) / 2
		for of, packed := range map[inflate.Coding][][]byte{
			inflate.Gzip: {gz(plain), gz(plain[:half], plain[half:]), gz(nil, plain, nil)},
			inflate.Zstd: {zs(t, plain), zs(t, plain[:half], plain[half:]), append([]byte{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3}, zs(t, plain)...)},
		} {
			for i, p := range packed {
				for _, size := range []int{1, 1000, 1 << 20} {
					if size == 1 && len(plain) > 1<<17 || testing.Short() && len(plain) > 1<<10*size {
						continue // the same input, repeated
					}
					if len(p) == 0 { // empty zstd
						continue
					}
					if got, err := all(p, of, inflate.Limits{Window: window}, size); err != nil || !bytes.Equal(got, plain) {
						t.Errorf("%s, %d, form %d, by %d: %d of %d bytes, %v", name, of, i, size, len(got), len(plain), err)
					}
				}
			}
		}
	}
	got, err := io.ReadAll(inflate.New(iotest.OneByteReader(bytes.NewReader(gz(even(inflate.Free)))), inflate.Gzip, inflate.Limits{}))
	if err != nil || len(got) != inflate.Free {
		t.Errorf("byte by byte: %d, %v", len(got), err)
	}
}

// TestBombsAreRejected: each bomb is too large, with limited output and memory.
func TestBombsAreRejected(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine inflates some 300 MiB: without -short")
	}
	zeros := make([]byte, 1<<20)
	member, frame := gz(zeros), zs(t, zeros)
	for name, c := range map[string]struct {
		packed []byte
		of     inflate.Coding
		most   int64
	}{
		"gzip":                       {gz(make([]byte, 64<<20)), inflate.Gzip, 0},
		"gzip of many members":       {bytes.Repeat(member, 64), inflate.Gzip, 0},
		"gzip, a byte too many":      {gz(even(inflate.Free*2 + 1)), inflate.Gzip, inflate.Free * 2},
		"zstd":                       {zs(t, make([]byte, 64<<20)), inflate.Zstd, 0},
		"zstd of many frames":        {bytes.Repeat(frame, 64), inflate.Zstd, 0},
		"zstd, a byte repeated":      {huge(10, 1000), inflate.Zstd, 0},
		"zstd, a window of a 64 GiB": {huge(26, 1), inflate.Zstd, 0},
		"zstd, a window of 16 MiB":   {huge(14, 1), inflate.Zstd, 0},
		"noise, more than at most":   {gz(noise(inflate.Most + 1)), inflate.Gzip, 0},
		"noise, the same, of zstd":   {zs(t, noise(inflate.Most+1)), inflate.Zstd, 0},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := inflate.New(bytes.NewReader(c.packed), c.of, inflate.Limits{Most: c.most, Window: window})
		n, err := io.Copy(io.Discard, struct{ io.Reader }{r})
		_ = r.Close()
		runtime.ReadMemStats(&after)
		most := min(int64(inflate.Ratio*len(c.packed)+inflate.Free), inflate.Most)
		if c.most > 0 {
			most = min(most, c.most)
		}
		if !errors.Is(err, inflate.ErrLarge) || n > most {
			t.Errorf("%s: %d bytes of at most %d, %v", name, n, most, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > window+4<<20 {
			t.Errorf("%s: took %d bytes of memory", name, took)
		}
	}
}

// TestRatioHoldsAtAnyTime: at no time is more output than the input so far permits.
func TestRatioHoldsAtAnyTime(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine inflates 32 MiB: without -short")
	}
	plain := append(even(8<<20), noise(8<<20)...) // within the ratio on average
	for of, packed := range map[inflate.Coding][]byte{inflate.Gzip: gz(plain), inflate.Zstd: zs(t, plain)} {
		if n, err := all(packed, of, inflate.Limits{Window: window}, 1<<20); !errors.Is(err, inflate.ErrLarge) || len(n) > 1<<20 {
			t.Errorf("%d: %d bytes, %v", of, len(n), err)
		}
	}
}

// TestEmptyMembersTakeNoMemory: empty members and frames give empty output.
func TestEmptyMembersTakeNoMemory(t *testing.T) {
	empty := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0} // single segment, empty
	for of, packed := range map[inflate.Coding][]byte{inflate.Gzip: bytes.Repeat(gz(nil), 100_000), inflate.Zstd: bytes.Repeat(empty, 100_000)} {
		if out, err := all(packed, of, inflate.Limits{Window: window}, 100); err != nil || len(out) > 0 {
			t.Errorf("%d: %d bytes, %v", of, len(out), err)
		}
	}
}

// TestTruncatedDataIsBroken: truncated data ends cleanly only at the end of a member or frame.
func TestTruncatedDataIsBroken(t *testing.T) {
	a, b := []byte("first part"), append(noise(500), even(1000)...)
	for of, c := range map[inflate.Coding][2][]byte{inflate.Gzip: {gz(a), gz(b)}, inflate.Zstd: {zs(t, a), zs(t, b)}} {
		whole := bytes.Join(c[:], nil)
		for n := range len(whole) {
			out, err := all(whole[:n], of, inflate.Limits{Window: window}, 100)
			if ends := n == len(c[0]); ends != (err == nil) || ends && !bytes.Equal(out, a) || !ends && !errors.Is(err, inflate.ErrBroken) {
				t.Errorf("%d cut at %d of %d: %d bytes, %v", of, n, len(whole), len(out), err)
			}
		}
		if _, err := all(append(whole, "xyz0"...), of, inflate.Limits{Window: window}, 100); !errors.Is(err, inflate.ErrBroken) {
			t.Errorf("%d and more: %v", of, err)
		}
	}
}

// TestSourceErrorIsReturned: neither an end nor ErrBroken.
func TestSourceErrorIsReturned(t *testing.T) {
	away := errors.New("the client has left")
	for of, packed := range map[inflate.Coding][]byte{inflate.Gzip: gz(noise(1000)), inflate.Zstd: zs(t, noise(1000))} {
		for _, n := range []int{0, 3, len(packed) / 2, len(packed)} {
			r := inflate.New(io.MultiReader(bytes.NewReader(packed[:n]), iotest.ErrReader(away)), of, inflate.Limits{Window: window})
			if _, err := io.ReadAll(r); !errors.Is(err, away) {
				t.Errorf("%d after %d bytes: %v", of, n, err)
			}
			_ = r.Close()
			if _, err := r.Read(make([]byte, 1)); err == nil {
				t.Error("it is read when it is closed")
			}
		}
	}
}

// TestContentEncodings: one coding, and not several.
func TestContentEncodings(t *testing.T) {
	for _, c := range []struct {
		reported []string
		want     inflate.Coding
		err      error
	}{
		{nil, inflate.Plain, nil}, {[]string{"gzip"}, inflate.Gzip, nil}, {[]string{"X-GZip"}, inflate.Gzip, nil}, {[]string{"ZSTD"}, inflate.Zstd, nil},
		{[]string{"gzip, gzip"}, 0, inflate.ErrCoding}, {[]string{"gzip", "zstd"}, 0, inflate.ErrCoding}, {[]string{"gzip,"}, 0, inflate.ErrCoding},
		{[]string{""}, 0, inflate.ErrCoding}, {[]string{"identity"}, 0, inflate.ErrCoding}, {[]string{"br"}, 0, inflate.ErrCoding}, {[]string{"deflate"}, 0, inflate.ErrCoding},
	} {
		if got, err := inflate.Of(c.reported); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q: %d, %v", c.reported, got, err)
		}
	}
	if got := fmt.Sprint(inflate.Ratio, inflate.Free, inflate.Most); got != "10 65536 33554432" {
		t.Error(got)
	}
}
