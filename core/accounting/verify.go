package accounting

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"macronode/core/types"
)

// ContentDigest returns the digest that a slice with the content of s has. It does not read s.Digest. The fields of s
// are valid.
func (s *Slice) ContentDigest() Digest {
	b := s.encode()
	return Digest(b[len(b)-digestSize:])
}

// encode returns the payload of s, which is due at 0.
func (s *Slice) encode() []byte {
	b := s.header(nil, 0)
	for i := range s.Rows {
		b = appendRow(b, s.Rows[i].Labels, s.Rows[i].Count)
	}
	return s.finish(b, len(s.Rows), nil)
}

// Verify returns a *FieldError unless s is a slice, and its digest is that of its content.
func (s *Slice) Verify() error {
	if checkDimension(string(s.Dimension)) != nil {
		return &FieldError{"dimension", "is no dimension"}
	}
	for i := range s.Rows {
		switch r := &s.Rows[i]; {
		case !validSeries(s.Dimension, r.Labels):
			return &FieldError{fmt.Sprintf("rows[%d].labels", i), "are no labels"}
		case r.Events == 0:
			return &FieldError{fmt.Sprintf("rows[%d].events", i), "must be at least 1"}
		}
	}
	if err := s.check(); err != nil {
		return err
	}
	b := s.encode()
	if len(b) > maxSlice {
		return &FieldError{"rows", "are more than a slice takes"}
	}
	if is := Digest(b[len(b)-digestSize:]); is != s.Digest {
		return &FieldError{"digest", "is not that of the content, " + is.String()}
	}
	return nil
}

// A Verifier verifies slices and the chains that they form. Slices may come in any order. Its memory grows with the
// number of gaps, not with that of slices.
type Verifier struct {
	streams []VerifiedStream
	at      map[streamID]int
}

type streamID struct {
	tenant    types.Tenant
	dimension string
}

// A VerifiedStream sums up the slices of a stream.
type VerifiedStream struct {
	Tenant    types.Tenant
	Dimension []byte
	Slices    uint64
	Window    Window       // from the first window to the last
	Total     types.Amount // in units of the dimension
	Late      types.Amount // of Total: in corrections
	Events    uint64
	runs      []run // in order, with a gap before each but the first
}

// A run is slices that follow each other.
type run struct {
	first, last    uint64
	previous, head Digest // of the slice before the first, and of the last
}

// A SeqRange is the numbers First to Last.
type SeqRange struct{ First, Last uint64 }

// NewVerifier returns a verifier of no slices.
func NewVerifier() *Verifier { return &Verifier{at: map[streamID]int{}} }

// Add verifies a slice and its links to the slices that were added before. Its error is a *FieldError; then s is not
// added.
func (v *Verifier) Add(s *Slice) error {
	if err := s.Verify(); err != nil {
		return err
	}
	id := streamID{s.Tenant, string(s.Dimension)}
	at, known := v.at[id]
	if !known {
		at = len(v.streams)
		v.at[id] = at
		v.streams = append(v.streams, VerifiedStream{Tenant: s.Tenant, Dimension: bytes.Clone(s.Dimension), Window: s.Window})
	}
	stream := &v.streams[at]
	if err := stream.link(s); err != nil {
		return err
	}
	stream.count(s)
	return nil
}

// Streams returns the streams in the order of tenant and dimension.
func (v *Verifier) Streams() []VerifiedStream {
	all := slices.Clone(v.streams)
	slices.SortFunc(all, func(a, b VerifiedStream) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), bytes.Compare(a.Dimension, b.Dimension))
	})
	return all
}

// link adds a slice to the runs.
func (v *VerifiedStream) link(s *Slice) error {
	at, exists := slices.BinarySearchFunc(v.runs, s.Seq, func(r run, seq uint64) int { return cmp.Compare(r.first, seq) })
	if exists || at > 0 && v.runs[at-1].last >= s.Seq {
		return &FieldError{"seq", "occurs twice"}
	}
	follows := at > 0 && v.runs[at-1].last == s.Seq-1
	precedes := at < len(v.runs) && v.runs[at].first == s.Seq+1
	switch {
	case follows && v.runs[at-1].head != s.Previous:
		return &FieldError{"previous", fmt.Sprintf("is not the digest of the slice with seq %d, %v", s.Seq-1, v.runs[at-1].head)}
	case precedes && v.runs[at].previous != s.Digest:
		return &FieldError{"digest", fmt.Sprintf("is not the field previous of the slice with seq %d, %v", s.Seq+1, v.runs[at].previous)}
	case follows && precedes:
		v.runs[at-1].last, v.runs[at-1].head = v.runs[at].last, v.runs[at].head
		v.runs = slices.Delete(v.runs, at, at+1)
	case follows:
		v.runs[at-1].last, v.runs[at-1].head = s.Seq, s.Digest
	case precedes:
		v.runs[at].first, v.runs[at].previous = s.Seq, s.Previous
	default:
		v.runs = slices.Insert(v.runs, at, run{s.Seq, s.Seq, s.Previous, s.Digest})
	}
	return nil
}

// count adds the rows of a slice to the sums.
func (v *VerifiedStream) count(s *Slice) {
	v.Slices++
	v.Window = Window{min(v.Window.From, s.Window.From), max(v.Window.To, s.Window.To)}
	for _, r := range s.Rows {
		v.Total, _ = v.Total.Add(types.Amount{Lo: r.Value})
		if s.Kind.IsLate() {
			v.Late, _ = v.Late.Add(types.Amount{Lo: r.Value})
		}
		v.Events += r.Events
	}
}

// Seqs returns the first and the last seq, and Head the digest of the last slice. There is at least one slice.
func (v *VerifiedStream) Seqs() SeqRange {
	return SeqRange{v.runs[0].first, v.runs[len(v.runs)-1].last}
}
func (v *VerifiedStream) Head() Digest { return v.runs[len(v.runs)-1].head }

// Gaps returns the numbers between the first and the last seq that have no slice.
func (v *VerifiedStream) Gaps() (gaps []SeqRange) {
	for i := range v.runs[1:] {
		gaps = append(gaps, SeqRange{v.runs[i].last + 1, v.runs[i+1].first - 1})
	}
	return gaps
}
