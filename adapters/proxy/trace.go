package proxy

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"strings"
)

// Offsets in a traceparent: version-trace-span-flags.
const (
	traceAt  = 3
	spanAt   = traceAt + 32 + 1
	flagsAt  = spanAt + 16 + 1
	traceLen = flagsAt + 2
)

// traceparent continues the trace of a request with a new span, and forwards its tracestate. It
// returns "" if the request has no valid trace. A new trace would need a sampling decision, and
// "not sampled" turns off the tracing of the upstream.
func traceparent(r *http.Request, h http.Header) string {
	var room [traceLen]byte
	values := r.Header["Traceparent"]
	if len(values) != 1 || !isTraceparent(values[0]) {
		return ""
	}
	text, flags := append(room[:0], "00-"...), "-00"
	text = append(text, values[0][traceAt:spanAt-1]...)
	if unhex(values[0][flagsAt+1])&1 == 1 {
		flags = "-01"
	}
	if state := r.Header["Tracestate"]; len(state) > 0 {
		h["Tracestate"] = state
	}
	text = appendHex(append(text, '-'), rand.Uint64()|1)
	return string(append(text, flags...))
}

// appendHex appends n in hexadecimal, 16 digits.
func appendHex(to []byte, n uint64) []byte {
	return hex.AppendEncode(to, binary.BigEndian.AppendUint64(make([]byte, 0, 8), n))
}

// isTraceparent reports whether s is a valid traceparent of version 00, or of a later version
// with the same beginning.
func isTraceparent(s string) bool {
	if len(s) < traceLen || s[2] != '-' || s[spanAt-1] != '-' || s[flagsAt-1] != '-' || s[:2] == "ff" ||
		len(s) > traceLen && (s[:2] == "00" || s[traceLen] != '-') {
		return false
	}
	for _, part := range [...]string{s[:2], s[traceAt : spanAt-1], s[spanAt : flagsAt-1], s[flagsAt:traceLen]} {
		if strings.Trim(part, "0123456789abcdef") != "" {
			return false
		}
	}
	return strings.Trim(s[traceAt:spanAt-1], "0") != "" && strings.Trim(s[spanAt:flagsAt-1], "0") != ""
}
