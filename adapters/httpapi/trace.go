package httpapi

import (
	"net/http"
	"strings"

	"macronode/core/wallet/receipt"
)

const maxEchoed = 64

// nameDecision sets X-Decision-Id to the decision ID, and X-Request-Id to the ID that the client sent, or to the
// decision ID if it sent no usable one.
func (k *call) nameDecision(h http.Header) {
	k.headerValues[0] = string(k.id[:])
	h["X-Decision-Id"] = k.headerValues[0:1:1]
	h["X-Request-Id"] = h["X-Decision-Id"]
	if sent := k.r.Header["X-Request-Id"]; k.sentRequestID() != "" {
		h["X-Request-Id"] = sent
	}
}

// sentRequestID returns the request ID that the client sent; empty: none that is usable.
func (k *call) sentRequestID() string {
	if sent := k.r.Header["X-Request-Id"]; len(sent) == 1 && printable(sent[0]) {
		return sent[0]
	}
	return ""
}

// printable reports whether s may be echoed: at most 64 visible ASCII characters.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) > 0 && len(s) <= maxEchoed
}

// The parts of a traceparent: version-trace-span-flags.
const (
	traceAt  = 3
	spanAt   = traceAt + 32 + 1
	flagsAt  = spanAt + 16 + 1
	traceLen = flagsAt + 2
)

// continueTrace returns a traceparent of the same trace, whose span is the second half of the decision ID. Later
// versions of the header are read as far as they are known.
func continueTrace(parent string, id *receipt.DecisionText) (string, bool) {
	if len(parent) < traceLen || len(parent) > traceLen && (parent[:2] == "00" || parent[traceLen] != '-') {
		return "", false
	}
	trace, span, flags := parent[traceAt:spanAt-1], parent[spanAt:flagsAt-1], parent[flagsAt:traceLen]
	dashes := parent[2] == '-' && parent[spanAt-1] == '-' && parent[flagsAt-1] == '-'
	if !dashes || !hexadecimal(parent[:2]+trace+span+flags) || parent[:2] == "ff" || zeros(trace) || zeros(span) {
		return "", false
	}
	sampled := "-00"
	if (flags[1]-'0')&1 == 1 && flags[1] <= '9' || flags[1] == 'b' || flags[1] == 'd' || flags[1] == 'f' {
		sampled = "-01"
	}
	return "00-" + trace + "-" + string(id[len(id)-16:]) + sampled, true
}

func zeros(s string) bool { return strings.Trim(s, "0") == "" }

func hexadecimal(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
