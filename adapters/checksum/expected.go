package checksum

import (
	"crypto/md5"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// Expected is what the headers of a request announce about its content.
type Expected struct {
	Algorithm Algorithm // None: no checksum
	Sum       []byte    // expected checksum; nil: the trailer has it
	MD5       []byte    // expected MD5; nil: none
}

// InTrailer reports whether the trailer has the value of the checksum.
func (e *Expected) InTrailer() bool { return e.Algorithm != None && e.Sum == nil }

// Parse reads x-amz-checksum-*, x-amz-trailer, x-amz-sdk-checksum-algorithm and Content-MD5. The
// error is an *Error: InvalidRequest for a malformed, unknown or second checksum, InvalidDigest for a
// malformed Content-MD5.
func Parse(header http.Header) (e Expected, err error) {
	if e.Algorithm, e.Sum, err = parseHeaders(header); err != nil {
		return Expected{}, err
	}
	trailer, err := parseTrailer(header)
	if err != nil {
		return Expected{}, err
	}
	if trailer != None {
		if e.Algorithm != None {
			return Expected{}, refuse(codeInvalidRequest, "Only one checksum is allowed: a header or a trailer")
		}
		e.Algorithm = trailer
	}
	if err := checkSDKAlgorithm(header, e.Algorithm); err != nil {
		return Expected{}, err
	}
	if values := header["Content-Md5"]; len(values) > 0 {
		sum, ok := decode(values[0], md5.Size)
		if !ok || len(values) > 1 {
			return Expected{}, refuse("InvalidDigest", "Content-MD5 must be the base64 of 16 bytes")
		}
		e.MD5 = sum
	}
	return e, nil
}

const codeInvalidRequest = "InvalidRequest"

// parseHeaders finds the header that has a checksum.
func parseHeaders(header http.Header) (found Algorithm, sum []byte, err error) {
	for key, values := range header {
		name := strings.ToLower(key)
		if !strings.HasPrefix(name, headerPrefix) || slices.Contains([]string{TypeHeader, AlgorithmHeader, ModeHeader}, name) {
			continue
		}
		a, ok := ParseAlgorithm(name[len(headerPrefix):])
		switch {
		case !ok:
			return None, nil, refuse(codeInvalidRequest, "The checksum %.64s is not supported", name)
		case found != None || len(values) != 1:
			return None, nil, refuse(codeInvalidRequest, "Only one header x-amz-checksum-* is allowed")
		}
		if sum, ok = Decode(a, values[0]); !ok {
			return None, nil, refuse(codeInvalidRequest, "The value of %s is not the base64 of %d bytes", name, a.Size())
		}
		found = a
	}
	return found, sum, nil
}

// parseTrailer finds the checksum among the names in x-amz-trailer. Other names are ignored.
func parseTrailer(header http.Header) (found Algorithm, err error) {
	for _, value := range header[textproto.CanonicalMIMEHeaderKey(TrailerHeader)] {
		for name := range strings.SplitSeq(value, ",") {
			name, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(name)), headerPrefix)
			if !ok {
				continue
			}
			a, known := ParseAlgorithm(name)
			if !known {
				return None, refuse(codeInvalidRequest, "The checksum %.64s in x-amz-trailer is not supported", name)
			}
			if found != None {
				return None, refuse(codeInvalidRequest, "x-amz-trailer may name only one checksum")
			}
			found = a
		}
	}
	return found, nil
}

// checkSDKAlgorithm requires that x-amz-sdk-checksum-algorithm, if present, names the checksum found.
func checkSDKAlgorithm(header http.Header, found Algorithm) error {
	values := header[textproto.CanonicalMIMEHeaderKey(SDKAlgorithmHeader)]
	if len(values) == 0 {
		return nil
	}
	a, ok := ParseAlgorithm(values[0])
	switch {
	case !ok || len(values) > 1:
		return refuse(codeInvalidRequest, "The value of %s is not supported", SDKAlgorithmHeader)
	case found == None:
		return refuse(codeInvalidRequest, "%s is present, but no header or trailer has the checksum", SDKAlgorithmHeader)
	case found != a:
		return refuse(codeInvalidRequest, "%s is %s, but the request has %s", SDKAlgorithmHeader, a, found)
	}
	return nil
}
