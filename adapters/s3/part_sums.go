package s3

import (
	"hash"
	"net/http"
	"strings"

	"macronode/adapters/checksum"
)

// uploadChecksum reads which checksum an upload in parts has.
func uploadChecksum(h http.Header) (s storedChecksum, err error) {
	name, kind := h.Get(checksum.AlgorithmHeader), h.Get(checksum.TypeHeader)
	if name == "" && kind == "" {
		return s, nil
	}
	a, ok := checksum.ParseAlgorithm(name)
	if !ok {
		return s, errMalformedChecksums
	}
	return checksumOfParts(a, kind)
}

// checksumOfParts returns the checksum of an object in parts, without a sum.
func checksumOfParts(a checksum.Algorithm, kind string) (storedChecksum, error) {
	s := storedChecksum{algorithm: a, kind: checksum.Composite}
	if !a.HasComposite() {
		s.kind = checksum.FullObject
	}
	if kind != "" {
		s.kind, _ = checksum.ParseType(kind)
	}
	if !s.isPossible() {
		return s, errMalformedChecksums
	}
	return s, nil
}

// isPossible reports whether the algorithm has the type.
func (s storedChecksum) isPossible() bool {
	return s.kind == checksum.Composite && s.algorithm.HasComposite() || s.kind == checksum.FullObject && s.algorithm.HasFullObject()
}

// partSums computes the checksums of the parts of an object and of the object.
type partSums struct {
	of    storedChecksum // without a sum
	keep  bool           // the object has the checksum
	want  string         // of the object; empty: the client sent none
	part  hash.Hash      // nil: no checksum is computed
	size  int64          // of the part
	parts []checksum.Part
}

// newPartSums returns the sums for an upload with a checksum, or with those that the client sends to complete it.
func newPartSums(h http.Header, of storedChecksum, list []listedPart) (*partSums, error) {
	s := &partSums{of: of, keep: of.algorithm != checksum.None}
	for _, a := range checksum.Algorithms {
		value := h.Get(a.Header())
		if value == "" {
			continue
		}
		if s.want != "" || s.keep && a != of.algorithm {
			return nil, errMalformedChecksums
		}
		s.want = value
		var err error
		if s.of, err = checksumOfParts(a, h.Get(checksum.TypeHeader)); s.keep {
			s.of = of
		} else if err != nil {
			return nil, err
		}
	}
	s.keep = s.keep || s.want != ""
	for _, a := range checksum.Algorithms { // the parts are verified even if the object keeps none
		if !s.keep && *list[0].field(a) != "" {
			s.of = storedChecksum{algorithm: a, kind: checksum.Composite}
		}
	}
	s.reset()
	return s, nil
}

// reset begins with the first part again.
func (s *partSums) reset() {
	if s.parts, s.size = s.parts[:0], 0; s.of.algorithm != checksum.None {
		s.part = checksum.New(s.of.algorithm)
	}
}

// Write hashes p.
func (s *partSums) Write(p []byte) (int, error) {
	if s.part != nil {
		s.size += int64(len(p))
		_, _ = s.part.Write(p) // hashes do not fail
	}
	return len(p), nil
}

// endPart ends a part. It is false if the client sent another checksum for it.
func (s *partSums) endPart(listed *checksumFields) bool {
	if s.part == nil {
		return true
	}
	sum := s.part.Sum(nil)
	s.parts = append(s.parts, checksum.Part{Sum: sum, Size: s.size})
	s.part.Reset()
	s.size = 0
	want := *listed.field(s.of.algorithm)
	return want == "" || want == checksum.Encode(sum)
}

// finish returns the checksum of the object. Its error is errDigest if the client sent another one.
func (s *partSums) finish() (storedChecksum, error) {
	if !s.keep {
		return storedChecksum{}, nil
	}
	combine := checksum.CombineComposite
	if s.of.kind == checksum.FullObject {
		combine = checksum.CombineFullObject
	}
	b, err := combine(s.of.algorithm, s.parts)
	if err != nil {
		return storedChecksum{}, err
	}
	sum := s.of
	sum.sum = string(b)
	text := sum.text(uint16(len(s.parts)))
	if bare, _, _ := strings.Cut(text, "-"); s.want != "" && s.want != text && s.want != bare {
		return sum, errDigest
	}
	return sum, nil
}
