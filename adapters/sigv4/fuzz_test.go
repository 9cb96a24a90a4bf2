package sigv4_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"macronode/adapters/sigv4"
)

// FuzzParse reads any bytes as a request. A request that verifies has the signature that a simple
// computation gives, from the same head.
func FuzzParse(f *testing.F) {
	add := func(r *http.Request) {
		var wire bytes.Buffer
		if err := r.Write(&wire); err != nil {
			f.Fatal(err)
		}
		f.Add(wire.Bytes())
	}
	for _, target := range []string{"/bucket/key", "/a%20b/%2F/c+d/?x=1&a=%20+&a=&b", "//x/../y"} {
		r := newRequest(f, "PUT", "https://s3.example.com"+target, []byte("hello"))
		r.Header.Set("X-Amz-Meta-One", "a  b")
		r.Header.Add("X-Amz-Meta-One", "c")
		signHeader(f, r, hexSum([]byte("hello")))
		add(r)
		add(presign(f, newRequest(f, "GET", "https://s3.example.com"+target, nil), unsigned, time.Hour))
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(wire)))
		if err != nil {
			return
		}
		s, err := sigv4.Parse(r, at, policy)
		if err != nil || s.Verify(secret, nil) != nil {
			return
		}
		signed, signature, hash, date := authorizationOf(r, s.Presigned())
		sent, _, _ := strings.Cut(r.RequestURI, "?")
		if !strings.HasPrefix(sent, "/") {
			sent = r.URL.EscapedPath()
		}
		if signature != simpleSignature(r, sent, signed, hash, date, secret) && signature != simpleSignature(r, simplePath(sent), signed, hash, date, secret) {
			t.Fatalf("accepted with the signature %s", signature)
		}
	})
}

// authorizationOf reads the parts of an accepted authorization.
func authorizationOf(r *http.Request, presigned bool) (signed, signature, hash, date string) {
	if q := r.URL.Query(); presigned {
		hash = unsigned
		if value := q.Get("X-Amz-Content-Sha256") + r.Header.Get("X-Amz-Content-Sha256"); value != "" {
			hash = value[:min(len(value), 64)]
		}
		return q.Get("X-Amz-SignedHeaders"), q.Get("X-Amz-Signature"), hash, q.Get("X-Amz-Date")
	}
	for _, field := range strings.FieldsFunc(r.Header.Get("Authorization"), func(c rune) bool { return c == ' ' || c == ',' || c == '\t' }) {
		if value, ok := strings.CutPrefix(field, "SignedHeaders="); ok {
			signed = value
		}
		if value, ok := strings.CutPrefix(field, "Signature="); ok {
			signature = value
		}
	}
	date = r.Header.Get("X-Amz-Date")
	if other, err := http.ParseTime(r.Header.Get("Date")); date == "" && err == nil {
		date = other.UTC().Format("20060102T150405Z")
	} else if date == "" {
		date = r.Header.Get("Date")
	}
	return signed, signature, r.Header.Get("X-Amz-Content-Sha256"), date
}

// simplePath encodes each segment of a path again.
func simplePath(sent string) string {
	segments := strings.Split(sent, "/")
	for i, segment := range segments {
		plain, err := url.PathUnescape(segment)
		if err != nil {
			return "invalid"
		}
		segments[i] = strings.ReplaceAll(url.QueryEscape(plain), "+", "%20")
	}
	return strings.Join(segments, "/")
}

// FuzzChunked decodes a valid payload in which one byte changed, or any bytes. Package and simple
// decoder accept the same payloads and return the same content, whatever the sizes of the reads.
func FuzzChunked(f *testing.F) {
	f.Add([]byte("hello world"), uint8(4), uint8(0), uint16(0), uint8(0), []byte(nil))
	f.Add([]byte("hello world"), uint8(5), uint8(1), uint16(300), uint8(1), []byte(nil))
	f.Add([]byte(""), uint8(5), uint8(1), uint16(0), uint8(0), []byte(nil))
	f.Add([]byte("hello world"), uint8(5), uint8(2), uint16(0), uint8(0), []byte(nil))
	f.Add([]byte("hello"), uint8(5), uint8(2), uint16(0), uint8(0), []byte("5\r\nhello\r\n0\r\n\r\n"+crcLine+"\n\r\n"))
	f.Add([]byte("hello"), uint8(1), uint8(2), uint16(0), uint8(0), []byte("005\r\nhello\r\n0\r\n"+crcLine+"\r\n"))
	f.Fuzz(func(t *testing.T, content []byte, size, kind uint8, place uint16, flip uint8, raw []byte) {
		var chunks []string
		for rest := content; len(rest) > 0; {
			n := min(len(rest), int(size)+1)
			chunks, rest = append(chunks, string(rest[:n])), rest[n:]
		}
		u := newUpload(t, []string{chunksSigned, trailerSigned, trailerUnsigned}[kind%3], chunks...)
		wire := []byte(u.wire())
		wire[int(place)%len(wire)] ^= flip
		if raw != nil {
			wire = raw
		}
		want, ok := simpleDecode(u, string(wire))
		for name, in := range map[string]io.Reader{"whole": bytes.NewReader(wire), "bytes": iotest.OneByteReader(bytes.NewReader(wire))} {
			got, err := io.ReadAll(u.open(t, policy, in))
			if ok != (err == nil) || ok && string(got) != want {
				t.Fatalf("%s by %s: %q and %v, the simple decoder has %q and %v", u.hash, name, got, err, want, ok)
			}
			if err != nil && u.hash != trailerUnsigned && !strings.HasPrefix(string(content), string(got)) {
				t.Fatalf("%q was returned unverified", got)
			}
		}
	})
}

// simpleDecode decodes a whole payload in chunks. It shares no code with the package.
func simpleDecode(u *upload, wire string) (content string, ok bool) {
	_, previous, _ := strings.Cut(u.request.Header.Get("Authorization"), "Signature=")
	for last := false; !last; {
		line, rest, found := strings.Cut(wire, "\r\n")
		if !found || strings.Contains(line, "\n") || len(line)+2 > 4096 {
			return "", false
		}
		digits, signature, isSigned := strings.Cut(line, ";chunk-signature=")
		n, err := strconv.ParseUint(digits, 16, 63)
		if err != nil || isSigned != (u.hash != trailerUnsigned) || n > uint64(len(rest)) {
			return "", false
		}
		chunk := rest[:n]
		if wire, last = rest[n:], n == 0; !last {
			if wire, found = strings.CutPrefix(wire, "\r\n"); !found {
				return "", false
			}
		}
		if isSigned {
			previous = chainSignature("AWS4-HMAC-SHA256-PAYLOAD", previous, hexSum(nil)+"\n"+hexSum([]byte(chunk)))
			if signature != previous {
				return "", false
			}
		}
		content += chunk
	}
	if strconv.Itoa(len(content)) != u.length {
		return "", false
	}
	return content, u.hash == chunksSigned && wire == "\r\n" || u.hash != chunksSigned && simpleTrailer(u, wire, previous)
}

// simpleTrailer checks a trailer that has one checksum.
func simpleTrailer(u *upload, wire, previous string) bool {
	if len(wire) > 8192 {
		return false
	}
	value, seen, isSigned := "", false, false
	for wire != "" {
		line, rest, found := strings.Cut(wire, "\n")
		if !found || len(line) >= 4096 {
			return false
		}
		line = strings.TrimSuffix(line, "\r")
		wire = rest
		name, text, colon := strings.Cut(line, ":")
		name, text = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(text)
		switch {
		case line == "":
		case colon && name == crcName && !seen:
			value, seen = text, true
		case colon && name == "x-amz-trailer-signature" && seen && !isSigned && u.hash == trailerSigned:
			if isSigned = text == chainSignature("AWS4-HMAC-SHA256-TRAILER", previous, hexSum([]byte(crcName+":"+value+"\n"))); !isSigned {
				return false
			}
		default:
			return false
		}
	}
	return seen && (isSigned || u.hash == trailerUnsigned)
}
