package fuzz

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"

	"macronode/adapters/inflate"
)

// FuzzInflate decompresses any bytes. The output never exceeds the limit. Complete gzip output equals that of the
// standard reader, and other read sizes give the same output.
func FuzzInflate(f *testing.F) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(bytes.Repeat([]byte("0123456789abcdef"), 1000))
	_ = z.Close()
	f.Add(b.Bytes(), uint16(100))
	f.Add(append(b.Bytes(), b.Bytes()...), uint16(1))
	f.Add([]byte("\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00hello"), uint16(3))                              // a block as it is
	f.Add([]byte("\x28\xb5\x2f\xfd\x00\x58\x02\x00\x10x\x03\x00\x10y"), uint16(7))                     // bytes repeated
	f.Add([]byte("\x50\x2a\x4d\x18\x02\x00\x00\x00ab\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00"), uint16(9)) // skipped, then nothing
	f.Add([]byte("\x28\xb5\x2f\xfd\x00\xd0"), uint16(1))                                               // looks back very far
	f.Fuzz(func(t *testing.T, packed []byte, size uint16) {
		for _, of := range []inflate.Coding{inflate.Gzip, inflate.Zstd} {
			by, err := inflated(t, packed, of, int(size)+1)
			if again, other := inflated(t, packed, of, 1<<16); !errors.Is(other, err) || err == nil && !bytes.Equal(again, by) {
				t.Fatalf("%d: %d bytes and %v, by other reads %d and %v", of, len(by), err, len(again), other)
			}
			if of != inflate.Gzip || errors.Is(err, inflate.ErrLarge) {
				continue
			}
			want, wrong := io.ReadAll(io.LimitReader(reader(packed), inflate.Most))
			if (wrong == nil) != (err == nil) || err == nil && !bytes.Equal(want, by) {
				t.Fatalf("%d bytes and %v, the plain reader gives %d and %v", len(by), err, len(want), wrong)
			}
		}
	})
}

// reader returns the standard reader; without a valid header it fails.
func reader(packed []byte) io.Reader {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return failing{io.ErrUnexpectedEOF}
	}
	return z
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// inflated returns the output for reads of a size.
func inflated(t *testing.T, packed []byte, of inflate.Coding, size int) (out []byte, err error) {
	left := bytes.NewReader(packed)
	r := inflate.New(left, of, inflate.Limits{Window: 1 << 20})
	defer func() { _ = r.Close() }()
	buf := make([]byte, size)
	for {
		n, err := r.Read(buf)
		out = append(out, buf[:n]...)
		if most := inflate.Ratio*(len(packed)-left.Len()) + inflate.Free; len(out) > most || len(out) > inflate.Most {
			t.Fatalf("%d: %d bytes out of %d", of, len(out), len(packed)-left.Len())
		}
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return out, err
		}
	}
}
