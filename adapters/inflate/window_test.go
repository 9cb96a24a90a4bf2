package inflate_test

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"

	"macronode/adapters/inflate"
)

// streamed returns a zstd frame as an encoder makes it of a stream: with a window, and without the size of the content.
func streamed(t *testing.T, window int, withSum bool, parts ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, zstd.WithWindowSize(window), zstd.WithEncoderCRC(withSum), zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(false))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		_, _ = z.Write(part)
		_ = z.Flush() // a header without the size of the content
	}
	_ = z.Close()
	return b.Bytes()
}

// TestWindowsAreLowered: data in memory may have windows up to MaxWindow in each of its frames, and takes no more memory than its output
// may have. A larger window is too large.
func TestWindowsAreLowered(t *testing.T) {
	const most = 1 << 20
	body := text(1000)
	skipped := []byte{0x51, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3}
	single := []byte("\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00hello")
	for _, window := range []int{1 << 20, 2 << 20, inflate.MaxWindow} {
		packed := bytes.Join([][]byte{streamed(t, window, true, body, body), skipped, streamed(t, window, false, even(100), body[:100]), single, streamed(t, window, true, []byte("end"))}, nil)
		want := bytes.Join([][]byte{body, body, even(100), body[:100], []byte("hello"), []byte("end")}, nil)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := inflate.FromMemory(packed, inflate.Zstd, most)
		got := make([]byte, len(want))
		n, err := io.ReadFull(r, got)
		rest, end := io.Copy(io.Discard, r)
		_ = r.Close()
		runtime.ReadMemStats(&after)
		if !bytes.Equal(got, want) || err != nil || rest != 0 || end != nil {
			t.Errorf("a window of %d: %d of %d bytes and %d more, %v, %v", window, n, len(want), rest, err, end)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 3*most {
			t.Errorf("a window of %d takes %d bytes of memory", window, took)
		}
	}
	for name, packed := range map[string][]byte{"9 MiB": []byte("\x28\xb5\x2f\xfd\x00\x69\x01\x00\x00"), "64 GiB": huge(26, 1), "a bomb": huge(13, 1000)} {
		if _, err := io.ReadAll(inflate.FromMemory(packed, inflate.Zstd, most)); !errors.Is(err, inflate.ErrLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	whole := streamed(t, inflate.MaxWindow, true, body)
	for n := range 100 {
		if _, err := io.ReadAll(inflate.FromMemory(bytes.Clone(whole[:n]), inflate.Zstd, most)); !errors.Is(err, inflate.ErrBroken) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
}
