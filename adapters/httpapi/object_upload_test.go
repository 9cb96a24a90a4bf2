package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/adapters/fs"
	"macronode/adapters/httpapi"
	"macronode/adapters/httpapi/wire"
	"macronode/adapters/objectstore"
	"macronode/core/event"
	"macronode/core/storage"
)

// minAppend is the smallest part of these tests, except for the last one.
const minAppend = 1000

func serveUploads(t testing.TB) *testServer {
	return serve(t, build(t), func(c *httpapi.Config) { c.MinAppend, c.UploadTTL = minAppend, time.Hour })
}

// begin begins an upload of a content, and returns its path.
func (s *testServer) begin(content string) string {
	s.t.Helper()
	a := s.send(s.request("PUT", "/o/"+addressOf(content), "", "Upload-Complete", "?0", "Upload-Length", strconv.Itoa(len(content))))
	if a.status != 201 || a.header.Get("Upload-Offset") != "0" || a.header.Get("Upload-Complete") != "?0" ||
		a.header.Get("Upload-Limit") != "max-size=5368709120, min-append-size=1000, max-age=3600" {
		s.t.Fatalf("begin: %d %v %s", a.status, a.header, a.body)
	}
	return a.header.Get("Location")
}

// part returns a request for a part.
func (s *testServer) part(path, body string, offset int, complete bool) *http.Request {
	s.t.Helper()
	value := map[bool]string{false: "?0", true: "?1"}[complete]
	return s.request("PATCH", path, body, "Content-Type", "application/partial-upload", "Upload-Offset", strconv.Itoa(offset), "Upload-Complete", value)
}

// isAt reports that an upload has the state that is wanted.
func (s *testServer) isAt(path string, offset int, complete bool) {
	s.t.Helper()
	for _, method := range []string{"HEAD", "GET"} {
		a := s.send(s.request(method, path, ""))
		if a.status != 200 || a.header.Get("Upload-Offset") != strconv.Itoa(offset) || a.header.Get("Upload-Complete") != map[bool]string{false: "?0", true: "?1"}[complete] {
			s.t.Fatalf("%s: %d %v, want offset %d, complete %v", method, a.status, a.header, offset, complete)
		}
		if method == "GET" {
			if want := fmt.Sprintf(`"offset":"%d","complete":%v}`, offset, complete); !strings.HasSuffix(strings.TrimSpace(a.body), want) {
				s.t.Fatalf("%s, want %s", a.body, want)
			}
		}
	}
}

// TestUploadIsResumed: begin, parts, a wrong offset, completion, and the state after each.
func TestUploadIsResumed(t *testing.T) {
	s := serveUploads(t)
	at := s.begin(large)
	s.isAt(at, 0, false)
	for _, p := range []struct {
		from, to, status int
		complete         bool
	}{{0, 50_000, 204, false}, {0, 50_000, 409, false}, {60_000, 90_000, 409, false}, {50_000, 50_999, 400, false}, {50_000, 51_000, 204, false}, {50_000, len(large), 409, true}, {51_000, len(large), 201, true}} {
		a := s.send(s.part(at, large[p.from:p.to], p.from, p.complete))
		if a.status != p.status || p.status == 409 && (a.header.Get("Upload-Offset") == strconv.Itoa(p.from) || !strings.Contains(a.body, "upload_offset_mismatch")) {
			t.Fatalf("%+v: %d %v %s", p, a.status, a.header, a.body)
		}
		if p.complete && p.status == 201 {
			if got := parse[wire.StoredObject](t, a); got.Address != addressOf(large) || got.Size != "160000" || !got.Created || a.header.Get("Location") != "/o/"+addressOf(large) {
				t.Errorf("%v %+v", a.header, got)
			}
		}
	}
	s.isAt(at, len(large), true)
	if a := s.send(s.request("GET", "/o/"+addressOf(large), "")); a.body != large {
		t.Errorf("%d, %d bytes", a.status, len(a.body))
	}
	for _, c := range []struct {
		what           string
		from, to       int
		complete       bool
		status, offset int
	}{
		{"the last part again, whose response was lost", 51_000, len(large), true, 200, 0}, {"a part without bytes", len(large), len(large), true, 200, 0},
		{"a part that ends before", 51_000, len(large) - 1, true, 404, 0}, {"one that does not end the content", 51_000, len(large), false, 404, 0},
		{"one that ends behind", 51_000, len(large), true, 404, 51_001}, {"one behind the end", 0, 0, true, 404, len(large) + 1},
	} {
		a := s.send(s.part(at, large[c.from:c.to], max(c.from, c.offset), c.complete))
		if a.status != c.status {
			t.Errorf("%s: %d %s", c.what, a.status, a.body)
		}
		if c.status != 200 {
			continue
		}
		if got := parse[wire.StoredObject](t, a); got.Address != addressOf(large) || got.Bucket != "default" || got.Size != "160000" || got.Created ||
			a.header.Get("Location") != "/o/"+addressOf(large) || a.header.Get("Etag") == "" {
			t.Errorf("%s: %v %+v", c.what, a.header, got)
		}
	}
	if logical, _ := s.objects().plane.Totals(); logical != (storage.Usage{Bytes: 160_000, Objects: 1}) {
		t.Errorf("usage %v", logical)
	}
	if a := s.send(s.request("DELETE", "/o/"+addressOf(large), "")); a.status != 200 {
		t.Errorf("delete: %d %s", a.status, a.body)
	}
}

// TestUploadOfAnotherContentIsRejected: the digest of the whole content is checked, and the upload stays until it is canceled.
func TestUploadOfAnotherContentIsRejected(t *testing.T) {
	s := serveUploads(t)
	at := s.begin(large)
	if a := s.send(s.part(at, large[1:], 0, true)); a.status != 409 || !strings.Contains(a.body, "digest_mismatch") {
		t.Errorf("%d %s", a.status, a.body)
	}
	s.isAt(at, len(large)-1, false)
	for _, want := range []int{204, 404} {
		if a := s.send(s.request("DELETE", at, "")); a.status != want {
			t.Errorf("cancel: %d %s", a.status, a.body)
		}
	}
	if a := s.send(s.request("HEAD", at, "")); a.status != 404 {
		t.Errorf("after it was canceled: %d", a.status)
	}
	if a := s.send(s.request("GET", "/o/"+addressOf(large), "")); a.status != 404 {
		t.Errorf("the object: %d", a.status)
	}
}

// TestUploadBeginsWithAPart: the begin may have a body. If that is rejected, no upload is left.
func TestUploadBeginsWithAPart(t *testing.T) {
	s := serveUploads(t)
	r := s.request("PUT", "/o/"+addressOf(large)+"?bucket=photos", large[:2000], "Upload-Complete", "?0")
	a := s.send(r)
	if a.status != 201 || a.header.Get("Upload-Offset") != "2000" || !strings.HasSuffix(a.header.Get("Location"), "?bucket=photos") {
		t.Fatalf("%d %v %s", a.status, a.header, a.body)
	}
	if b := s.send(s.part(a.header.Get("Location"), large[2000:], 2000, true)); b.status != 201 {
		t.Errorf("%d %s", b.status, b.body)
	}
	r = s.request("PUT", "/o/"+addressOf("x"), "", "Upload-Complete", "?0", "Content-Type", "application/octet-stream")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(large[:999])), -1
	if a := s.send(r); a.status != 400 {
		t.Errorf("a small part of unknown length: %d %s", a.status, a.body)
	}
	if uploads, _ := s.objects().plane.Uploads(); uploads != 1 { // the completed one, whose part is not removed yet
		t.Errorf("%d uploads", uploads)
	}
}

// TestUploadFields: each header field that is missing, malformed or of no use has a problem.
func TestUploadFields(t *testing.T) {
	s := serveUploads(t)
	at := s.begin(large)
	put := "/o/" + addressOf(large)
	const yes, no, offset, length, kind, part = "?1", "?0", "Upload-Offset", "Upload-Length", "Content-Type", "application/partial-upload"
	for what, c := range map[string]struct {
		method, path, body string
		header             []string
		want               event.Problem
	}{
		"no offset":                  {"PATCH", at, large, []string{kind, part, "Upload-Complete", no}, event.BadRequest},
		"no complete":                {"PATCH", at, large, []string{kind, part, offset, "0"}, event.BadRequest},
		"another boolean":            {"PATCH", at, large, []string{kind, part, offset, "0", "Upload-Complete", "true"}, event.BadRequest},
		"a negative offset":          {"PATCH", at, large, []string{kind, part, offset, "-1", "Upload-Complete", no}, event.BadRequest},
		"a signed offset":            {"PATCH", at, large, []string{kind, part, offset, "+1", "Upload-Complete", no}, event.BadRequest},
		"an empty offset":            {"PATCH", at, large, []string{kind, part, offset, "", "Upload-Complete", no}, event.BadRequest},
		"a long offset":              {"PATCH", at, large, []string{kind, part, offset, "0000000000000000", "Upload-Complete", no}, event.BadRequest},
		"a parameter":                {"PATCH", at, large, []string{kind, part, offset, "0;a=1", "Upload-Complete", no}, event.BadRequest},
		"another media type":         {"PATCH", at, large, []string{offset, "0", "Upload-Complete", no}, event.UnsupportedMedia},
		"a coding":                   {"PATCH", at, large, []string{kind, part, offset, "0", "Upload-Complete", no, "Content-Encoding", "gzip"}, event.UnsupportedMedia},
		"a wrong offset":             {"PATCH", at, large, []string{kind, part, offset, "1", "Upload-Complete", no}, event.UploadMoved},
		"more than the length":       {"PATCH", at, large, []string{kind, part, offset, "0", "Upload-Complete", no, length, "159999"}, event.BadRequest},
		"less than the length":       {"PATCH", at, large, []string{kind, part, offset, "0", "Upload-Complete", yes, length, "160001"}, event.BadRequest},
		"a short part":               {"PATCH", at, large[:999], []string{kind, part, offset, "0", "Upload-Complete", no}, event.BadRequest},
		"an empty part":              {"PATCH", at, "", []string{kind, part, offset, "0", "Upload-Complete", no}, event.BadRequest},
		"more than the quota":        {"PATCH", at, strings.Repeat("q", bucketBytes+1), []string{kind, part, offset, "0", "Upload-Complete", no}, event.QuotaExceeded},
		"another upload":             {"PATCH", at[:len(at)-4] + "0001", large, []string{kind, part, offset, "0", "Upload-Complete", no}, event.NotFound},
		"an ID":                      {"PATCH", at[:len(at)-4] + "000G", large, []string{kind, part, offset, "0", "Upload-Complete", no}, event.BadRequest},
		"another address":            {"HEAD", strings.Replace(at, addressOf(large), addressOf("b"), 1), "", nil, event.NotFound},
		"another bucket":             {"HEAD", at + "?bucket=photos", "", nil, event.NotFound},
		"another tenant":             {"HEAD", at, "", []string{"Authorization", bearer(4)}, event.NotFound},
		"a reader":                   {"HEAD", at, "", []string{"Authorization", bearer(2)}, event.Forbidden},
		"a state at an offset":       {"GET", at, "", []string{offset, "0"}, event.BadRequest},
		"a cancel at an offset":      {"DELETE", at, "", []string{offset, "0"}, event.BadRequest},
		"a begin at an offset":       {"PUT", put, large, []string{offset, "0", "Upload-Complete", no}, event.BadRequest},
		"a begin of anything":        {"POST", "/o", "", []string{"Upload-Complete", no}, event.BadRequest},
		"a begin of too much":        {"PUT", put, "", []string{"Upload-Complete", no, length, "5368709121"}, event.PayloadTooLarge},
		"a begin beyond the quota":   {"PUT", put, "", []string{"Upload-Complete", no, length, strconv.Itoa(bucketBytes + 1)}, event.QuotaExceeded},
		"a begin with a short part":  {"PUT", put, "q", []string{"Upload-Complete", no}, event.BadRequest},
		"a length without more":      {"PUT", put, large, []string{length, "160000"}, event.BadRequest},
		"a whole of another length":  {"PUT", put, large, []string{length, "160001", "Upload-Complete", yes}, event.BadRequest},
		"a begin of another boolean": {"PUT", put, large, []string{"Upload-Complete", "1"}, event.BadRequest},
	} {
		a := s.send(s.request(c.method, c.path, c.body, c.header...))
		if a.status != c.want.Status() || c.method != "HEAD" && !strings.Contains(a.body, `"code":"`+c.want.Code()+`"`) {
			t.Errorf("%s: %d %s, want %v", what, a.status, a.body, c.want)
		}
	}
	r := s.part(at, large, 0, false)
	r.Header.Add("Upload-Offset", "0")
	if a := s.send(r); a.status != 400 {
		t.Errorf("two offsets: %d %s", a.status, a.body)
	}
	s.isAt(at, 0, false)
	r = s.request("PUT", put, large, length, "100", "Upload-Complete", yes)
	r.ContentLength = -1 // its length is known at its end only
	if a := s.send(r); a.status != 400 || !strings.Contains(a.body, "Upload-Length") {
		t.Errorf("a whole that is longer than it announced: %d %s", a.status, a.body)
	}
	if a := s.send(s.request("PUT", put, large, length, "160000", "Upload-Complete", yes)); a.status != 201 {
		t.Errorf("a whole: %d %s", a.status, a.body)
	}
}

// TestUploadAgreesWithModel sends parts with right and wrong offsets, and compares the offset of the node with the sum
// of the parts that it accepted.
func TestUploadAgreesWithModel(t *testing.T) {
	s := serveUploads(t)
	content := large[:30_000]
	rapid.Check(t, func(t *rapid.T) {
		at, offset, complete := s.begin(content), 0, false
		defer func() {
			s.send(s.request("DELETE", at, ""))
			s.send(s.request("DELETE", "/o/"+addressOf(content), ""))
			s.objects().expire()
		}()
		t.Repeat(map[string]func(*rapid.T){
			"part": func(t *rapid.T) {
				from := offset
				if rapid.IntRange(0, 2).Draw(t, "wrong offset") == 0 {
					from = rapid.IntRange(0, len(content)).Draw(t, "offset")
				}
				size := min(len(content)-from, rapid.SampledFrom([]int{0, 1, minAppend - 1, minAppend, 2000, len(content)}).Draw(t, "size"))
				ends, chunked := rapid.Bool().Draw(t, "ends"), rapid.Bool().Draw(t, "chunked")
				want := 204
				switch {
				case complete && ends && (chunked || from+size == len(content)):
					want = 200 // the response was lost
				case complete:
					want = 404
				case from != offset:
					want = 409
				case ends && from+size == len(content):
					want = 201
				case ends:
					want = 409 // the digest
				case size < minAppend:
					want = 400
				}
				r := s.part(at, content[from:from+size], from, ends)
				if chunked {
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader(content[from:from+size])), -1
				}
				a := s.send(r)
				if a.status != want {
					t.Fatalf("%d bytes at %d of %d, ends %v: %d %s, want %d", size, from, offset, ends, a.status, a.body, want)
				}
				if !complete && from == offset && want != 400 {
					offset, complete = offset+size, want == 201
				}
			},
			"": func(*rapid.T) { s.isAt(at, offset, complete) },
		})
	})
}

// expire removes the parts of uploads that have ended.
func (o *objects) expire() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.backend.mu.Lock()
	defer o.backend.mu.Unlock()
	for f := (&stepFrame{objects: o}); o.plane.Expire(now, &f.record); f = (&stepFrame{objects: o}) {
		f.Add()
	}
}

// TestUploadKeepsWhatArrived: of a body that ends too early, what was received is a part.
func TestUploadKeepsWhatArrived(t *testing.T) {
	s := serveUploads(t)
	at := s.begin(large)
	cut := func(offset, sent int) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(conn, "PATCH %s HTTP/1.1\r\nHost: node\r\nAuthorization: %s\r\nContent-Type: application/partial-upload\r\nContent-Length: %d\r\nUpload-Offset: %d\r\nUpload-Complete: ?1\r\n\r\n%s",
			at, bearer(1), len(large)-offset, offset, large[offset:offset+sent])
		_ = conn.(*net.TCPConn).CloseWrite()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != 400 {
			t.Errorf("%v %v", resp, err)
		}
		_ = conn.Close()
	}
	cut(0, 5000)
	s.isAt(at, 5000, false)
	cut(5000, minAppend-1) // too small for a part
	s.isAt(at, 5000, false)
	if a := s.send(s.part(at, large[5000:], 5000, true)); a.status != 201 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestUploadHasOneWriter: of two requests at one offset, one succeeds, and no bytes are mixed.
func TestUploadHasOneWriter(t *testing.T) {
	dir, err := fs.Make(t.TempDir()) // the simulated disk has one user
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, build(t), func(c *httpapi.Config) {
		c.MinAppend, c.UploadTTL, c.Contents = minAppend, time.Hour, objectstore.New(dir, objectstore.Limits{Uploads: 3, Object: 2 << 20})
	})
	at := s.begin(large)
	for offset := 0; offset < len(large); {
		sizes := [...]int{20_000, 30_000}
		var got [2]answer
		var both sync.WaitGroup
		for i, size := range sizes {
			both.Go(func() {
				end := min(offset+size, len(large))
				got[i] = s.send(s.part(at, large[offset:end], offset, end == len(large)))
			})
		}
		both.Wait()
		won := 0
		for i, a := range got {
			if a.status < 300 {
				won++
				offset += sizes[i]
			} else if a.status != 409 && a.status != 404 {
				t.Errorf("%d %s", a.status, a.body)
			}
		}
		if won != 1 && offset < len(large) {
			t.Fatalf("%d writers", won)
		}
	}
	s.isAt(at, len(large), true)
}

// TestUploadPaysAtItsEnd: the price is checked with the announced length, and reserved for what the upload has.
func TestUploadPaysAtItsEnd(t *testing.T) {
	h := build(t)
	s := serve(t, h, func(c *httpapi.Config) { c.MinAppend, c.Paid = minAppend, true })
	put := "/o/" + addressOf(large)
	for _, want := range []event.Problem{event.PaymentRequired, event.PaymentExpired} {
		h.reply = &event.Reply{Problem: want}
		if a := s.send(s.request("PUT", put, "", "Upload-Complete", "?0", "Upload-Length", "160000")); a.status != 402 {
			t.Errorf("begin: %d %s", a.status, a.body)
		}
		h.reply = nil
		a := s.send(s.request("PUT", put, "", "Upload-Complete", "?0"))
		h.reply = &event.Reply{Problem: want}
		if b := s.send(s.part(a.header.Get("Location"), large, 0, true)); b.status != 402 || !strings.Contains(b.body, want.Detail()) {
			t.Errorf("end: %d %s", b.status, b.body)
		}
		h.reply = nil
		s.isAt(a.header.Get("Location"), 0, false)
	}
}

// TestUploadsOfATenantAreLimited: the limits of uploads in parts apply.
func TestUploadsOfATenantAreLimited(t *testing.T) {
	s := serveUploads(t)
	for range 3 {
		s.begin(large)
	}
	a := s.send(s.request("PUT", "/o/"+addressOf(large), "", "Upload-Complete", "?0"))
	if p := parse[wire.Problem](t, a); a.status != 403 || p.Code != "limits_exceeded" || !strings.Contains(p.Detail, "storage.multipart.tenant_uploads") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestUploadReportsALostPart: a part that cannot be read is a problem, and no object is stored.
func TestUploadReportsALostPart(t *testing.T) {
	s := serveUploads(t)
	at := s.begin(large)
	s.send(s.part(at, large[:100_000], 0, false))
	names, _ := s.objects().disk.List()
	_ = s.objects().disk.Remove(names[0])
	if a := s.send(s.part(at, large[100_000:], 100_000, true)); a.status != 500 || !strings.Contains(a.body, "object_unreadable") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if s.count.get("damaged") != 1 {
		t.Error("the damage is not counted")
	}
}
