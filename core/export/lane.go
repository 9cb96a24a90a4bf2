package export

import (
	"fmt"
	"strings"

	"macronode/core/digest"
	"macronode/core/types"
)

// Limits of the names of a lane, in bytes.
const (
	MaxSink   = 32
	MaxStream = len(usagePrefix) + 64 // a dimension has at most 64
)

// WalletStream is the stream of the movements of a tenant. Their positions are their seq.
const WalletStream = "wallet"

const (
	usagePrefix = "usage/"
	sinkChars   = "._-" // beside letters and digits
)

// UsageStream returns the stream of the slices of a dimension. Their positions are their seq.
func UsageStream(dimension string) string { return usagePrefix + dimension }

// DimensionOf returns the dimension of a stream of slices; false if it is another stream.
func DimensionOf[T ~string | ~[]byte](stream T) (dimension T, ok bool) {
	if len(stream) < len(usagePrefix) || string(stream[:len(usagePrefix)]) != usagePrefix {
		return stream[:0], false
	}
	return stream[len(usagePrefix):], true
}

// A Lane is the ordered export of one stream of a tenant to one sink. NewLane makes it.
type Lane struct {
	types.LaneID
	Sink, Stream []byte
}

// A FieldError names a field of a lane that is invalid.
type FieldError struct{ Field, Problem string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// NewLane returns the lane of a stream of a tenant to a sink. Its error is a *FieldError.
func NewLane(sink string, t types.Tenant, stream string) (Lane, error) {
	switch {
	case !isName(sink, MaxSink, sinkChars):
		return Lane{}, &FieldError{"sink", fmt.Sprintf("must be 1..%d of a-z 0-9 . _ -", MaxSink)}
	case !isStream(stream):
		return Lane{}, &FieldError{"stream", "must be " + WalletStream + ", or " + usagePrefix + " and a dimension"}
	}
	return identify([]byte(sink), t, []byte(stream)), nil
}

// identify computes the digest of a lane. It allocates nothing.
func identify(sink []byte, t types.Tenant, stream []byte) Lane {
	var room [MaxSink + 1 + MaxStream]byte
	both := append(append(append(room[:0], sink...), 0), stream...)
	return Lane{LaneID: types.LaneID{Tenant: t, ID: digest.Name(both)}, Sink: sink, Stream: stream}
}

// validNames reports whether the texts could come from NewLane.
func validNames(sink, stream []byte) bool {
	return isName(sink, MaxSink, sinkChars) && isStream(stream)
}

func isStream[T ~string | ~[]byte](s T) bool {
	d, usage := DimensionOf(s)
	return string(s) == WalletStream || usage && isName(d, MaxStream-len(usagePrefix), "._-/{}:")
}

func isName[T ~string | ~[]byte](s T, limit int, also string) bool {
	if len(s) == 0 || len(s) > limit {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && strings.IndexByte(also, c) < 0 {
			return false
		}
	}
	return true
}
