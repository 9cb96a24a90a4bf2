package objectio

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// ErrRange reports a range that begins behind the end of the object.
var ErrRange = errors.New("objectio: the range begins behind the end")

// A Range is the part of an object that is sent.
type Range struct {
	Off, Length uint64
	Partial     bool // the request named it
}

// ContentRange returns the value of the header Content-Range.
func (r Range) ContentRange(size uint64) string {
	return "bytes " + strconv.FormatUint(r.Off, 10) + "-" + strconv.FormatUint(r.Off+r.Length-1, 10) + "/" + strconv.FormatUint(size, 10)
}

// RequestedRange returns the range that a request wants (RFC 9110, 14.2). A malformed range, several ranges
// and a range whose If-Range does not hold are ignored. current reports whether a value of If-Range
// names the object as it is.
func RequestedRange(h http.Header, size uint64, current func(tag string) bool) (Range, error) {
	whole := Range{Length: size}
	ranges := h["Range"]
	if len(ranges) != 1 {
		return whole, nil
	}
	if tags := h["If-Range"]; len(tags) > 0 && (len(tags) != 1 || !current(tags[0])) {
		return whole, nil
	}
	first, last, ok := ParseRange(ranges[0], size)
	switch {
	case !ok:
		return whole, nil
	case first >= size || first > last:
		return Range{}, ErrRange
	}
	return Range{Off: first, Length: min(last, size-1) - first + 1, Partial: true}, nil
}

// ParseRange reads bytes=a-b, bytes=a- and bytes=-n. A range without a last byte ends with the object; one
// that names no byte begins behind it.
func ParseRange(text string, size uint64) (first, last uint64, ok bool) {
	unit, set, ok := strings.Cut(text, "=")
	from, to, ranged := strings.Cut(strings.TrimSpace(set), "-")
	if !ok || !ranged || !strings.EqualFold(unit, "bytes") {
		return 0, 0, false
	}
	a, isA := digits(from)
	b, isB := digits(to)
	switch {
	case from == "" && isB:
		if b == 0 {
			return size, size, true
		}
		return size - min(b, size), 1<<64 - 1, true
	case isA && to == "":
		return a, 1<<64 - 1, true
	case isA && isB && a <= b:
		return a, b, true
	}
	return 0, 0, false
}

// digits reads a number of decimal digits. One that is too large for 64 bits is the largest.
func digits(s string) (n uint64, ok bool) {
	if s == "" {
		return 0, false
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		n = 1<<64 - 1
	}
	return n, true
}
