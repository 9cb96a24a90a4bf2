package sigv4

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const unsignedPayload = "UNSIGNED-PAYLOAD"

// payloadKind is how the payload is framed and verified.
type payloadKind uint8

const (
	hashedPayload   payloadKind = iota // as it is, with its SHA-256
	plainPayload                       // as it is, not verified
	signedChunks                       // aws-chunked, each chunk signed
	signedTrailer                      // aws-chunked, each chunk and the trailer signed
	unsignedTrailer                    // aws-chunked, not signed, with a trailer
)

// payload describes the payload that the head of a request announces.
type payload struct {
	kind     payloadKind
	sum      [sha256.Size]byte // hashedPayload: the expected hash
	length   int64             // bytes of the decoded payload; -1: unknown
	trailers []string          // lower-case names that the trailer must contain, each once
}

func (p *payload) isChunked() bool  { return p.kind >= signedChunks }
func (p *payload) hasTrailer() bool { return p.kind >= signedTrailer }

// parsePayload reads the value of x-amz-content-sha256 and the headers that belong to it.
func parsePayload(r *http.Request, hash string) (p payload, err error) {
	switch hash {
	case unsignedPayload:
		p.kind = plainPayload
	case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD":
		p.kind = signedChunks
	case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER":
		p.kind = signedTrailer
	case "STREAMING-UNSIGNED-PAYLOAD-TRAILER":
		p.kind = unsignedTrailer
	default:
		if n, err := hex.Decode(p.sum[:], []byte(hash[:min(len(hash), 2*len(p.sum))])); err != nil || n != len(p.sum) || len(hash) != 2*n {
			return p, refuse(codeInvalidRequest, http.StatusBadRequest,
				"x-amz-content-sha256 must be a SHA-256 in hexadecimal digits, UNSIGNED-PAYLOAD or a supported streaming value")
		}
	}
	if p.trailers, err = parseTrailerNames(r.Header["X-Amz-Trailer"]); err != nil {
		return p, err
	}
	if len(p.trailers) > 0 && !p.hasTrailer() {
		return p, refuse(codeInvalidRequest, http.StatusBadRequest, "x-amz-trailer requires a streaming payload with a trailer")
	}
	p.length = r.ContentLength
	if p.isChunked() {
		p.length, err = decodedLength(r)
		return p, err
	}
	if len(r.Header["X-Amz-Decoded-Content-Length"]) > 0 {
		return p, refuse(codeInvalidRequest, http.StatusBadRequest, "x-amz-decoded-content-length requires a streaming payload")
	}
	return p, nil
}

// decodedLength reads x-amz-decoded-content-length.
func decodedLength(r *http.Request) (int64, error) {
	text, err := singleHeader(r, "X-Amz-Decoded-Content-Length")
	if err != nil {
		return 0, err
	}
	if text == "" {
		return 0, refuse(codeMissingContentLength, http.StatusLengthRequired, "The header x-amz-decoded-content-length is missing")
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, refuse(codeInvalidArgument, http.StatusBadRequest, "x-amz-decoded-content-length must be a number of bytes")
	}
	return int64(n), nil
}

// trailerPrefix begins the names that a trailer may have.
const trailerPrefix = "x-amz-checksum-"

// parseTrailerNames reads the values of x-amz-trailer.
func parseTrailerNames(values []string) (names []string, err error) {
	for _, value := range values {
		for name := range strings.SplitSeq(value, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			if !isToken(name) || !strings.HasPrefix(name, trailerPrefix) || slices.Contains(names, name) || len(names) == MaxTrailers {
				return nil, refuse(codeInvalidRequest, http.StatusBadRequest, "x-amz-trailer must list 1 to %d distinct checksums", MaxTrailers)
			}
			names = append(names, name)
		}
	}
	return names, nil
}
