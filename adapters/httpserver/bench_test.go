package httpserver

import (
	"strings"
	"testing"
)

// BenchmarkFollow measures the cost of a guard for a request of usual length.
func BenchmarkFollow(b *testing.B) {
	text := []byte("POST /v1/transfer HTTP/1.1\r\nHost: node.example:8080\r\nUser-Agent: somebody/1.0 (of somewhere)\r\nAccept: */*\r\n" +
		"Authorization: Bearer mk_0000000000000001_" + strings.Repeat("s", 43) + "\r\nIdempotency-Key: order-0000000001\r\nContent-Type: application/json\r\nContent-Length: 80\r\n\r\n" +
		strings.Repeat("x", 80))
	var f framing
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if f.follow(text); f.state != beforeLine {
			b.Fatal(f.failure)
		}
	}
}
