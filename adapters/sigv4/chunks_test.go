package sigv4_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"macronode/adapters/sigv4"
)

const (
	chunksSigned    = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	trailerSigned   = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
	trailerUnsigned = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"

	crcName = "x-amz-checksum-crc32"
	crcLine = crcName + ":AAAAAA=="
)

var errOther = errors.New("connection reset")

// An upload is a request in chunks. Its parts can be changed before body joins them.
type upload struct {
	hash    string
	length  string // x-amz-decoded-content-length; empty: none
	trailer string // x-amz-trailer; empty: none
	request *http.Request
	parts   []string // chunk header, data with line end, …, last chunk header, lines of the trailer, end
}

// newUpload signs a request with the SDK, and its chunks as the description of AWS lists the steps.
func newUpload(t testing.TB, hash string, chunks ...string) *upload {
	t.Helper()
	total := 0
	for _, chunk := range chunks {
		total += len(chunk)
	}
	u := &upload{hash: hash, length: strconv.Itoa(total)}
	if hash != chunksSigned {
		u.trailer = crcName
	}
	u.sign(t, chunks...)
	return u
}

// sign builds the request and its parts.
func (u *upload) sign(t testing.TB, chunks ...string) {
	t.Helper()
	r := newRequest(t, "PUT", "https://s3.example.com/bucket/key", nil)
	r.Header.Set("Content-Encoding", "aws-chunked")
	if u.length != "" {
		r.Header.Set("X-Amz-Decoded-Content-Length", u.length)
	}
	if u.trailer != "" {
		r.Header.Set("X-Amz-Trailer", u.trailer)
	}
	signHeader(t, r, u.hash)
	u.request = receive(t, r)
	u.request.ContentLength = -1
	_, previous, _ := strings.Cut(r.Header.Get("Authorization"), "Signature=")
	u.parts = nil
	for _, chunk := range append(chunks, "") {
		header := strconv.FormatInt(int64(len(chunk)), 16)
		if u.hash != trailerUnsigned {
			previous = chainSignature("AWS4-HMAC-SHA256-PAYLOAD", previous, hexSum(nil)+"\n"+hexSum([]byte(chunk)))
			header += ";chunk-signature=" + previous
		}
		u.parts = append(u.parts, header+"\r\n")
		if chunk != "" {
			u.parts = append(u.parts, chunk+"\r\n")
		}
	}
	if u.hash != chunksSigned {
		u.parts = append(u.parts, crcLine+"\r\n")
	}
	if u.hash == trailerSigned {
		u.parts = append(u.parts, "x-amz-trailer-signature:"+chainSignature("AWS4-HMAC-SHA256-TRAILER", previous, hexSum([]byte(crcLine+"\n")))+"\r\n")
	}
	u.parts = append(u.parts, "\r\n")
}

func chainSignature(name, previous, rest string) string {
	text := name + "\n" + stamp + "\n" + stamp[:8] + "/" + region + "/s3/aws4_request\n" + previous + "\n" + rest
	return hex.EncodeToString(mac(signingKey(secret, stamp[:8], region), text))
}

// open parses and verifies the head, and returns the body for a wire.
func (u *upload) open(t testing.TB, p sigv4.Policy, wire io.Reader) *sigv4.Body {
	t.Helper()
	s, err := sigv4.Parse(u.request, at, p)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(secret, nil); err != nil {
		t.Fatal(err)
	}
	return s.Body(wire)
}

func (u *upload) wire() string { return strings.Join(u.parts, "") }

// TestChunksDecode decodes each kind of payload in chunks, by whole and by single bytes.
func TestChunksDecode(t *testing.T) {
	for _, hash := range []string{chunksSigned, trailerSigned, trailerUnsigned} {
		for _, chunks := range [][]string{nil, {"a"}, {"hello ", "world"}, {strings.Repeat("x", 200_000), strings.Repeat("y", 70_000), "z"}} {
			u := newUpload(t, hash, chunks...)
			for name, in := range map[string]io.Reader{"whole": strings.NewReader(u.wire()), "bytes": iotest.OneByteReader(strings.NewReader(u.wire())),
				"early end": iotest.DataErrReader(strings.NewReader(u.wire()))} {
				b := u.open(t, policy, in)
				if len(b.Trailer()) != 0 {
					t.Errorf("%s: trailer before the end", hash)
				}
				if n, ok := b.Length(); strconv.FormatInt(n, 10) != u.length || !ok {
					t.Errorf("%s: length %d, %v", hash, n, ok)
				}
				content, err := io.ReadAll(b)
				if err != nil || string(content) != strings.Join(chunks, "") {
					t.Fatalf("%s by %s: %d bytes, %v", hash, name, len(content), err)
				}
				if want := hash != chunksSigned; (b.Trailer()[crcName] == "AAAAAA==") != want {
					t.Errorf("%s: trailer %v", hash, b.Trailer())
				}
			}
		}
	}
}

// TestChunksAcceptLineEndsOfClients accepts the blank lines and line ends that clients vary.
func TestChunksAcceptLineEndsOfClients(t *testing.T) {
	for _, hash := range []string{trailerSigned, trailerUnsigned} {
		for name, change := range map[string]func(u *upload){
			"line feed and a blank line after the checksum": func(u *upload) { u.parts[3] = crcLine + "\n\r\n" },
			"two blank lines at the end":                    func(u *upload) { u.parts[len(u.parts)-1] = "\r\n\r\n" },
			"blank line before the trailer":                 func(u *upload) { u.parts[2] += "\r\n" },
			"no blank line at the end":                      func(u *upload) { u.parts[len(u.parts)-1] = "" },
			"blank after the colon":                         func(u *upload) { u.parts[3] = strings.Replace(crcLine, ":", ": ", 1) + "\r\n" },
		} {
			u := newUpload(t, hash, "hello")
			change(u)
			if content, err := io.ReadAll(u.open(t, policy, strings.NewReader(u.wire()))); err != nil || string(content) != "hello" {
				t.Errorf("%s, %s: %q, %v", hash, name, content, err)
			}
		}
	}
}

// TestWrongChunksFail: each fault is reported instead of io.EOF, with its code.
func TestWrongChunksFail(t *testing.T) {
	all, signed, trailers := []string{chunksSigned, trailerSigned, trailerUnsigned}, []string{chunksSigned, trailerSigned}, []string{trailerSigned, trailerUnsigned}
	for _, test := range []struct {
		name   string
		kinds  []string
		change func(u *upload)
		code   string
		status int
	}{
		{"content changed", signed, func(u *upload) { u.parts[1] = "jello\r\n" }, "SignatureDoesNotMatch", 403},
		{"chunk signature changed", signed, func(u *upload) { u.parts[0] = flipLast(u.parts[0]) }, "SignatureDoesNotMatch", 403},
		{"last chunk signature changed", signed, func(u *upload) { u.parts[4] = flipLast(u.parts[4]) }, "SignatureDoesNotMatch", 403},
		{"chunks swapped", signed, func(u *upload) { u.parts = append(u.parts[2:4:4], append(u.parts[:2:2], u.parts[4:]...)...) }, "SignatureDoesNotMatch", 403},
		{"chunk without a signature", signed, func(u *upload) { u.parts[0] = "5\r\n" }, "InvalidRequest", 400},
		{"upper-case signature", signed, func(u *upload) { u.parts[0] = strings.ToUpper(u.parts[0]) }, "InvalidRequest", 400},
		{"chunk with a signature", []string{trailerUnsigned}, func(u *upload) { u.parts[0] = "5;chunk-signature=" + hexSum(nil) + "\r\n" }, "InvalidRequest", 400},
		{"chunk missing", all, func(u *upload) { u.parts = append(u.parts[:2:2], u.parts[4:]...) }, "", 0},
		{"size too small", all, func(u *upload) { u.parts[0] = "4" + u.parts[0][1:] }, "", 0},
		{"size not hexadecimal", all, func(u *upload) { u.parts[0] = "-5" + u.parts[0][1:] }, "InvalidRequest", 400},
		{"size larger than 63 bits", all, func(u *upload) { u.parts[0] = "ffffffffffffffff" + u.parts[0][1:] }, "InvalidRequest", 400},
		{"size larger than the length", all, func(u *upload) { u.parts[0] = "7fffffffffffffff" + u.parts[0][1:] }, "IncompleteBody", 400},
		{"long chunk header", all, func(u *upload) { u.parts[0] = strings.Repeat("0", sigv4.MaxChunkHeader) + u.parts[0] }, "InvalidRequest", 400},
		{"line feed after the header", all, func(u *upload) { u.parts[0] = strings.Replace(u.parts[0], "\r\n", "\n", 1) }, "InvalidRequest", 400},
		{"no line end after the data", all, func(u *upload) { u.parts[1] = "hello--" }, "InvalidRequest", 400},
		{"ends in the header", all, func(u *upload) { u.parts = []string{"5"} }, "IncompleteBody", 400},
		{"ends in the data", all, func(u *upload) { u.parts = []string{u.parts[0], "hel"} }, "IncompleteBody", 400},
		{"ends after a chunk", all, func(u *upload) { u.parts = u.parts[:2] }, "IncompleteBody", 400},
		{"ends without the last line end", []string{chunksSigned}, func(u *upload) { u.parts = u.parts[:len(u.parts)-1] }, "IncompleteBody", 400},
		{"bytes after the end", []string{chunksSigned}, func(u *upload) { u.parts = append(u.parts, "x") }, "InvalidRequest", 400},
		{"bytes after the trailer", trailers, func(u *upload) { u.parts = append(u.parts, "x") }, "MalformedTrailerError", 400},
		{"line after the trailer", trailers, func(u *upload) { u.parts = append(u.parts, "x:y\r\n") }, "MalformedTrailerError", 400},
		{"ends in the trailer", trailers, func(u *upload) { u.parts = append(u.parts[:5:5], "x-amz-check") }, "IncompleteBody", 400},
		{"trailer missing", []string{trailerUnsigned}, func(u *upload) { u.parts[5] = "" }, "MalformedTrailerError", 400},
		{"signed trailer missing", []string{trailerSigned}, func(u *upload) { u.parts = append(u.parts[:5:5], u.parts[6:]...) }, "MalformedTrailerError", 400},
		{"trailer without a colon", trailers, func(u *upload) { u.parts[5] = "x-amz-checksum-crc32\r\n" }, "MalformedTrailerError", 400},
		{"trailer not announced", trailers, func(u *upload) { u.parts[5] = "x-amz-checksum-sha1:AAAAAA==\r\n" }, "MalformedTrailerError", 400},
		{"trailer repeated", trailers, func(u *upload) { u.parts[5] += u.parts[5] }, "MalformedTrailerError", 400},
		{"trailer line too long", trailers, func(u *upload) { u.parts[5] = crcName + ":" + strings.Repeat("A", sigv4.MaxChunkHeader) + "\r\n" }, "MalformedTrailerError", 400},
		{"trailer too long", trailers, func(u *upload) { u.parts[5] = strings.Repeat("\r\n", sigv4.MaxTrailer/2+1) + crcLine + "\r\n" }, "MalformedTrailerError", 400},
		{"trailer value changed", []string{trailerSigned}, func(u *upload) { u.parts[5] = crcName + ":AAAAAQ==\r\n" }, "SignatureDoesNotMatch", 403},
		{"trailer signature changed", []string{trailerSigned}, func(u *upload) { u.parts[6] = flipLast(u.parts[6]) }, "SignatureDoesNotMatch", 403},
		{"trailer signature missing", []string{trailerSigned}, func(u *upload) { u.parts[6] = "" }, "MalformedTrailerError", 400},
		{"trailer signature malformed", []string{trailerSigned}, func(u *upload) { u.parts[6] = "x-amz-trailer-signature:00\r\n" }, "MalformedTrailerError", 400},
		{"trailer signature unexpected", []string{trailerUnsigned}, func(u *upload) { u.parts[5] += "x-amz-trailer-signature:" + hexSum(nil) + "\r\n" }, "MalformedTrailerError", 400},
	} {
		for _, kind := range test.kinds {
			t.Run(test.name+" "+kind, func(t *testing.T) {
				u := newUpload(t, kind, "hello", "world")
				test.change(u)
				b := u.open(t, policy, strings.NewReader(u.wire()))
				content, err := io.ReadAll(b)
				if err == nil {
					t.Fatalf("%q is accepted", content)
				}
				if test.code != "" {
					wantCode(t, err, test.code, test.status)
				}
				if _, again := b.Read(make([]byte, 1)); !errors.Is(again, err) || b.Trailer() != nil {
					t.Errorf("then %v, trailer %v", again, b.Trailer())
				}
				if kind != trailerUnsigned && !strings.HasPrefix("helloworld", string(content)) {
					t.Errorf("%q was returned unverified", content)
				}
			})
		}
	}
}

// flipLast changes the last digit before the line end.
func flipLast(line string) string {
	i := len(line) - 3
	return fmt.Sprintf("%s%c\r\n", line[:i], map[bool]byte{true: '1', false: '0'}[line[i] == '0'])
}

// TestLengthMustFit: the chunks must have the announced length in total.
func TestLengthMustFit(t *testing.T) {
	for _, kind := range []string{chunksSigned, trailerSigned, trailerUnsigned} {
		for _, length := range []string{"9", "11"} {
			u := &upload{hash: kind, length: length}
			if kind != chunksSigned {
				u.trailer = crcName
			}
			u.sign(t, "hello", "world")
			_, err := io.ReadAll(u.open(t, policy, strings.NewReader(u.wire())))
			wantCode(t, err, "IncompleteBody", 400)
		}
	}
}

// TestChunkIsLimited: a signed chunk beyond the limit is rejected before its data is read. An
// unsigned chunk is not buffered and has no limit.
func TestChunkIsLimited(t *testing.T) {
	p := policy
	p.MaxChunk = 4
	u := newUpload(t, chunksSigned, "hello")
	_, err := io.ReadAll(u.open(t, p, io.MultiReader(strings.NewReader(u.parts[0]), iotest.ErrReader(errOther))))
	wantCode(t, err, "InvalidRequest", 400)

	p.MaxChunk = 1 << 40 // the package has a limit of its own
	u = &upload{hash: chunksSigned, length: strconv.Itoa(1 << 40)}
	u.sign(t)
	_, err = io.ReadAll(u.open(t, p, strings.NewReader(fmt.Sprintf("%x;chunk-signature=%s\r\n", sigv4.MaxChunk+1, hexSum(nil)))))
	wantCode(t, err, "InvalidRequest", 400)

	p.MaxChunk = 4
	u = newUpload(t, trailerUnsigned, "hello")
	if content, err := io.ReadAll(u.open(t, p, strings.NewReader(u.wire()))); err != nil || string(content) != "hello" {
		t.Errorf("%q, %v", content, err)
	}
}

// TestChunkMemoryFollowsData: an announced size alone reserves little memory.
func TestChunkMemoryFollowsData(t *testing.T) {
	p := policy
	p.MaxChunk = sigv4.MaxChunk
	u := &upload{hash: chunksSigned, length: strconv.Itoa(sigv4.MaxChunk)}
	u.sign(t)
	wire := fmt.Sprintf("%x;chunk-signature=%s\r\n", sigv4.MaxChunk, hexSum(nil))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const runs = 10
	for range runs {
		_, err := io.ReadAll(u.open(t, p, strings.NewReader(wire)))
		wantCode(t, err, "IncompleteBody", 400)
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / runs; got > 200<<10 {
		t.Errorf("%d bytes for a chunk without data", got)
	}
}

// TestErrorsOfReaderStay: an error of the connection is returned unchanged.
func TestErrorsOfReaderStay(t *testing.T) {
	for _, kind := range []string{chunksSigned, trailerSigned, trailerUnsigned} {
		u := newUpload(t, kind, "hello")
		wire := u.wire()
		for cut := range len(wire) + 1 {
			_, err := io.ReadAll(u.open(t, policy, io.MultiReader(strings.NewReader(wire[:cut]), iotest.ErrReader(errOther))))
			if !errors.Is(err, errOther) {
				t.Fatalf("%s after %d bytes: %v", kind, cut, err)
			}
		}
	}
}

// TestPlainBody checks payloads without framing.
func TestPlainBody(t *testing.T) {
	for _, test := range []struct {
		name, hash, sent string
		length           int64
		code             string
	}{
		{"hashed", hexSum([]byte("hello")), "hello", 5, ""},
		{"hashed of unknown length", hexSum([]byte("hello")), "hello", -1, ""},
		{"empty", hexSum(nil), "", 0, ""},
		{"unsigned", unsigned, "hello", 5, ""},
		{"other content", hexSum([]byte("hello")), "jello", 5, "XAmzContentSHA256Mismatch"},
		{"shorter", unsigned, "hell", 5, "IncompleteBody"},
		{"shorter of unknown length", hexSum([]byte("hello")), "hell", -1, "XAmzContentSHA256Mismatch"},
		{"longer", unsigned, "hellooo", 5, "IncompleteBody"},
	} {
		r := newRequest(t, "PUT", "https://s3.example.com/bucket/key", nil)
		signHeader(t, r, test.hash)
		r = receive(t, r)
		r.ContentLength = test.length
		s, err := sigv4.Parse(r, at, policy)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Body(strings.NewReader(test.sent)).Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: read before Verify: %v", test.name, err)
		}
		if err := s.Verify(secret, nil); err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		b := s.Body(bytes.NewReader([]byte(test.sent)))
		if n, ok := b.Length(); ok != (test.length >= 0) || ok && n != test.length {
			t.Errorf("%s: length %d, %v", test.name, n, ok)
		}
		content, err := io.ReadAll(b)
		if test.code != "" {
			wantCode(t, err, test.code, 400)
		} else if err != nil || string(content) != test.sent {
			t.Errorf("%s: %q, %v", test.name, content, err)
		}
	}
}
