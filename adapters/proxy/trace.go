package proxy

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"strings"
)

// The parts of a traceparent: version-trace-span-flags.
const (
	traceAt  = 3
	spanAt   = traceAt + 32 + 1
	flagsAt  = spanAt + 16 + 1
	traceLen = flagsAt + 2
)

// traceparent continues the trace of a request, under a span of its own, and passes on its
// tracestate. It is empty where the request has no valid one: a trace that begins here would
// need a decision whether it is sampled, and "not sampled" turns off the tracing of the
// upstream.
func traceparent(r *http.Request, h http.Header) string {
	var room [traceLen]byte
	said := r.Header["Traceparent"]
	if len(said) != 1 || !traced(said[0]) {
		return ""
	}
	text, flags := append(room[:0], "00-"...), "-00"
	text = append(text, said[0][traceAt:spanAt-1]...)
	if unhex(said[0][flagsAt+1])&1 == 1 {
		flags = "-01"
	}
	if state := r.Header["Tracestate"]; len(state) > 0 {
		h["Tracestate"] = state
	}
	text = number(append(text, '-'), rand.Uint64()|1)
	return string(append(text, flags...))
}

// number writes n in hexadecimal, of 16 digits.
func number(to []byte, n uint64) []byte {
	return hex.AppendEncode(to, binary.BigEndian.AppendUint64(make([]byte, 0, 8), n))
}

// traced reports a traceparent, of this version or of a later one as far as it is known.
func traced(s string) bool {
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
