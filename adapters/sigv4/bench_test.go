package sigv4_test

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"macronode/adapters/sigv4"
)

// BenchmarkVerify measures Parse and Verify of a usual request, and a SHA-256 of an API key for comparison.
func BenchmarkVerify(b *testing.B) {
	r := newRequest(b, "PUT", "https://s3.example.com/bucket/some/longer/key.bin?partNumber=3&uploadId=0123456789abcdef", nil)
	r.Header.Set("Content-Type", "application/octet-stream")
	r.Header.Set("X-Amz-Meta-Mtime", "1777896000")
	signHeader(b, r, unsigned)
	header := receive(b, r)
	query := receive(b, presign(b, newRequest(b, "GET", "https://s3.example.com/bucket/some/longer/key.bin", nil), unsigned, time.Hour))
	for _, c := range []struct {
		name    string
		request *http.Request
		cache   *sigv4.KeyCache
	}{
		{"header/derive", header, nil}, {"header/cached", header, sigv4.NewKeyCache()},
		{"presigned/derive", query, nil}, {"presigned/cached", query, sigv4.NewKeyCache()},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s, err := sigv4.Parse(c.request, at, policy)
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Verify(secret, c.cache); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := sigv4.Parse(header, at, policy); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("hash of an API key", func(b *testing.B) {
		key := []byte("mn_0123456789abcdef0123456789abcdef0123456789ab")
		for b.Loop() {
			_ = sha256.Sum256(key)
		}
	})
}

// BenchmarkChunked decodes 1 MiB in chunks of 64 KiB, and hashes the same bytes for comparison.
func BenchmarkChunked(b *testing.B) {
	var chunks []string
	for range 16 {
		chunks = append(chunks, strings.Repeat("x", 64<<10))
	}
	for _, kind := range []string{chunksSigned, trailerSigned, trailerUnsigned} {
		u := newUpload(b, kind, chunks...)
		wire := u.wire()
		b.Run(kind, func(b *testing.B) {
			b.SetBytes(1 << 20)
			b.ReportAllocs()
			for b.Loop() {
				if n, err := io.Copy(io.Discard, u.open(b, policy, strings.NewReader(wire))); err != nil || n != 1<<20 {
					b.Fatal(n, err)
				}
			}
		})
	}
	b.Run("SHA-256", func(b *testing.B) {
		b.SetBytes(1 << 20)
		data := bytes.Repeat([]byte("x"), 1<<20)
		for b.Loop() {
			_ = sha256.Sum256(data)
		}
	})
}
