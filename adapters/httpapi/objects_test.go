package httpapi_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"macronode/adapters/fs"
	"macronode/adapters/httpapi"
	"macronode/adapters/httpapi/wire"
	"macronode/core/event"
	"macronode/core/storage"
	"macronode/core/types"
)

// request returns a request for an object with key 1.
func (s *testServer) request(method, path, body string, header ...string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", bearer(1))
	if body != "" {
		r.Header.Set("Content-Type", "application/octet-stream")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// large is an object of three groups.
var large = strings.Repeat("0123456789abcdef", 10_000)

// TestObjectLife: put, put again, read, list, delete.
func TestObjectLife(t *testing.T) {
	s := serve(t, build(t))
	at := "/o/" + addressOf(large)
	for i, want := range []int{201, 200} {
		a := s.send(s.request("PUT", at, large))
		if got := parse[wire.StoredObject](t, a); a.status != want || got.Address != addressOf(large) || got.Size != "160000" || got.Created != (i == 0) ||
			a.header.Get("ETag") != `"`+addressOf(large)+`"` || a.header.Get("Location") != at {
			t.Errorf("put %d: %d %v %s", i, a.status, a.header, a.body)
		}
	}
	a := s.send(s.request("GET", at, ""))
	if a.status != 200 || a.body != large || a.header.Get("Content-Length") != "160000" || a.header.Get("Accept-Ranges") != "bytes" ||
		a.header.Get("Cache-Control") != "private, max-age=31536000, immutable" || a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("Content-Type") != "application/octet-stream" ||
		a.header.Get("Vary") != "Accept-Encoding" || a.header.Get("ETag") != `"`+addressOf(large)+`"` {
		t.Errorf("get: %d, %d bytes, %v", a.status, len(a.body), a.header)
	}
	a = s.send(s.request("HEAD", at, ""))
	if a.status != 200 || a.body != "" || a.header.Get("Content-Length") != "160000" || a.header.Get("ETag") == "" || a.header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("head: %d %v", a.status, a.header)
	}
	if a = s.send(s.request("POST", "/o?bucket=photos", large)); a.status != 201 || a.header.Get("Location") != at+"?bucket=photos" {
		t.Errorf("post: %d %v", a.status, a.header)
	}
	if logical, physical := s.objects().plane.Totals(); logical.Bytes != 320_000 || physical.Bytes != 160_000 {
		t.Errorf("%v and %v: it is not stored once", logical, physical)
	}
	if page := parse[wire.ObjectsPage](t, s.send(s.request("GET", "/o?bucket=photos", ""))); page.Bytes != "160000" || page.Objects != 1 || len(page.Items) != 1 || page.Items[0].Address != addressOf(large) {
		t.Errorf("list: %+v", page)
	}
	if a = s.send(s.request("DELETE", at, "")); a.status != 200 || !strings.Contains(a.body, `"deleted":true`) {
		t.Errorf("delete: %d %s", a.status, a.body)
	}
	for _, method := range []string{"GET", "HEAD", "DELETE"} {
		if a = s.send(s.request(method, at, "")); a.status != 404 || a.header.Get("ETag") != "" {
			t.Errorf("%s after the delete: %d %v", method, a.status, a.header)
		}
	}
	if a = s.send(s.request("GET", at+"?bucket=photos", "")); a.body != large {
		t.Errorf("the other bucket: %d", a.status)
	}
}

// TestListInPages lists a bucket with pages of two.
func TestListInPages(t *testing.T) {
	s := serve(t, build(t))
	var want, got []string
	for i := range 5 {
		s.objects().put(1, fmt.Sprint(i))
		want = append(want, addressOf(fmt.Sprint(i)))
	}
	for cursor, pages := "", 0; pages < 9; pages++ {
		page := parse[wire.ObjectsPage](t, s.send(s.request("GET", "/o?limit=2"+cursor, "")))
		for _, i := range page.Items {
			if i.Name != i.Address {
				t.Errorf("the name of %s is %s", i.Address, i.Name)
			}
			got = append(got, i.Address)
		}
		if page.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + *page.NextCursor
	}
	slices.Sort(want) // the order of the names
	if !slices.Equal(got, want) {
		t.Errorf("%d objects are listed as %d", len(want), len(got))
	}
	for _, bad := range []string{"cursor=AQX_", "limit=0", "limit=1001", "bucket=No", "what=1"} {
		if a := s.send(s.request("GET", "/o?"+bad, "")); a.status != 400 {
			t.Errorf("%s: %d %s", bad, a.status, a.body)
		}
	}
}

// TestRangesOfObjects: RFC 9110, 14.
func TestRangesOfObjects(t *testing.T) {
	s := serve(t, build(t))
	s.objects().put(1, large)
	s.objects().put(1, "")
	at, tag := "/o/"+addressOf(large), `"`+addressOf(large)+`"`
	for _, c := range []struct {
		value, ifRange string
		status         int
		from, to       int
	}{
		{"bytes=0-0", "", 206, 0, 1}, {"bytes=5-70000", "", 206, 5, 70001}, {"bytes=159999-", "", 206, 159_999, 160_000}, {"bytes=-3", "", 206, 159_997, 160_000},
		{"bytes=100-999999999", "", 206, 100, 160_000}, {"bytes=-999999", "", 206, 0, 160_000}, {"BYTES=1-2", "", 206, 1, 3}, {"bytes=1-99999999999999999999999", "", 206, 1, 160_000},
		{"bytes=160000-", "", 416, 0, 0}, {"bytes=160000-160001", "", 416, 0, 0}, {"bytes=-0", "", 416, 0, 0}, {"bytes=99999999999999999999999-", "", 416, 0, 0},
		{"bytes=0-1,3-4", "", 200, 0, 160_000}, {"bytes=2-1", "", 200, 0, 160_000}, {"bytes=a-1", "", 200, 0, 160_000}, {"lines=0-1", "", 200, 0, 160_000}, {"bytes=-", "", 200, 0, 160_000}, {"bytes", "", 200, 0, 160_000},
		{"bytes=0-0", tag, 206, 0, 1}, {"bytes=0-0", "W/" + tag, 200, 0, 160_000}, {"bytes=0-0", `"b3:0"`, 200, 0, 160_000}, {"bytes=0-0", "Mon, 23 Nov 2026 10:00:00 GMT", 200, 0, 160_000},
	} {
		r := s.request("GET", at, "", "Range", c.value)
		if c.ifRange != "" {
			r.Header.Set("If-Range", c.ifRange)
		}
		a := s.send(r)
		length := ""
		switch c.status {
		case 206:
			length = fmt.Sprintf("bytes %d-%d/160000", c.from, c.to-1)
		case 416:
			length = "bytes */160000"
		}
		if a.status != c.status || a.header.Get("Content-Range") != length || a.status < 300 && a.body != large[c.from:c.to] {
			t.Errorf("%s if %s: %d %q, %d bytes", c.value, c.ifRange, a.status, a.header.Get("Content-Range"), len(a.body))
		}
	}
	for value, status := range map[string]int{"": 200, "bytes=0-": 416, "bytes=-1": 416} {
		if a := s.send(s.request("GET", "/o/"+addressOf(""), "", "Range", value)); a.status != status {
			t.Errorf("%q of nothing: %d", value, a.status)
		}
	}
}

// TestConditionsOfObjects: RFC 9110, 13.
func TestConditionsOfObjects(t *testing.T) {
	s := serve(t, build(t))
	s.objects().put(1, "hello")
	at, tag := "/o/"+addressOf("hello"), `"`+addressOf("hello")+`"`
	for _, c := range []struct {
		method, name, value string
		status              int
	}{
		{"GET", "If-None-Match", tag, 304}, {"HEAD", "If-None-Match", `"x", W/` + tag, 304}, {"GET", "If-None-Match", "*", 304}, {"GET", "If-None-Match", `"x"`, 200},
		{"GET", "If-Match", tag, 200}, {"GET", "If-Match", "*", 200}, {"GET", "If-Match", `"x"`, 412}, {"GET", "If-Match", "W/" + tag, 412},
		{"PUT", "If-None-Match", "*", 412}, {"PUT", "If-None-Match", `"x"`, 200}, {"PUT", "If-Match", "*", 200},
	} {
		body := ""
		if c.method == "PUT" {
			body = "hello"
		}
		if a := s.send(s.request(c.method, at, body, c.name, c.value)); a.status != c.status || c.status == 304 && (a.body != "" || a.header.Get("ETag") != tag) {
			t.Errorf("%s %s: %s: %d %s", c.method, c.name, c.value, a.status, a.body)
		}
	}
	if a := s.send(s.request("PUT", "/o/"+addressOf("new"), "new", "If-Match", "*")); a.status != 412 {
		t.Errorf("If-Match of what is not there: %d", a.status)
	}
	if a := s.send(s.request("PUT", "/o/"+addressOf("new"), "new", "If-None-Match", "*")); a.status != 201 {
		t.Errorf("If-None-Match of what is not there: %d", a.status)
	}
}

// leaves describes the files and uploads that requests have left behind.
func (s *testServer) leaves() string {
	names, _ := s.objects().disk.List()
	return fmt.Sprint(len(names), " files, ", s.objects().store.Uploads(), " uploads, ", s.objects().disk.Handles(), " open")
}

// TestRefusedUploads: each upload is rejected with its code, and leaves nothing behind.
func TestRefusedUploads(t *testing.T) {
	s := serve(t, build(t))
	bucketQuota := fmt.Sprintf("storage.bucket_bytes limits the bytes of the objects and parts of the bucket: needed %d, left %d. The request changed nothing.", bucketBytes+1, bucketBytes)
	const decompressed = "A body with a Content-Encoding has at most 10 times the compressed bytes and 65536 more, at most 33554432, and a zstd window of at most 8388608 bytes. Send the content without Content-Encoding."
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(make([]byte, 600<<10))
	_ = z.Close()
	for what, c := range map[string]struct {
		r    *http.Request
		want event.Problem
	}{
		"another content":     {s.request("PUT", "/o/"+addressOf("a"), "b"), event.DigestMismatch},
		"uppercase":           {s.request("PUT", "/o/"+strings.ToUpper(addressOf("a")), "a"), event.BadRequest},
		"a short address":     {s.request("GET", "/o/"+addressOf("a")[:60], ""), event.BadRequest},
		"zeros":               {s.request("PUT", "/o/b3:"+strings.Repeat("0", 64), "a"), event.BadRequest},
		"a bucket":            {s.request("POST", "/o?bucket=A", "a"), event.BadRequest},
		"a query":             {s.request("POST", "/o?what=a", "a"), event.BadRequest},
		"a coding":            {s.request("POST", "/o", "a", "Content-Encoding", "br"), event.UnsupportedMedia},
		"broken gzip":         {s.request("POST", "/o", "abc", "Content-Encoding", "gzip"), event.BadRequest},
		"a bomb":              {s.request("POST", "/o", bomb.String(), "Content-Encoding", "gzip"), event.PayloadTooLarge},
		"more than the quota": {s.request("POST", "/o", strings.Repeat("q", bucketBytes+1)), event.QuotaExceeded},
		"a bad key":           {s.request("POST", "/o", "a", "Idempotency-Key", "a b"), event.BadRequest},
		"a reader's":          {s.request("POST", "/o", "a", "Authorization", bearer(2)), event.Forbidden},
		"no key":              {s.request("POST", "/o", "a", "Authorization", "x"), event.Unauthorized},
	} {
		a := s.send(c.r)
		if got := parse[wire.Problem](t, a); a.status != c.want.Status() || string(got.Code) != c.want.Code() || c.want == event.QuotaExceeded && got.Detail != bucketQuota || c.want == event.PayloadTooLarge && got.Detail != decompressed {
			t.Errorf("%s: %d %s, want %v", what, a.status, a.body, c.want)
		}
	}
	r := s.request("POST", "/o", "")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("q", bucketBytes+1))), -1
	r.Header.Set("Content-Type", "application/octet-stream")
	if a := s.send(r); a.status != 507 || parse[wire.Problem](t, a).Detail != bucketQuota {
		t.Errorf("more than the quota, of unknown length: %d %s", a.status, a.body)
	}
	s.objects().disk.Full = true
	if a := s.send(s.request("POST", "/o", "a")); a.status != 503 {
		t.Errorf("on a full disk: %d %s", a.status, a.body)
	}
	s.objects().disk.Full = false
	s.set(func(st *event.Status) { st.AdmittedWrites = false })
	if a := s.send(s.request("POST", "/o", "a")); a.status != 503 {
		t.Errorf("without writes: %d %s", a.status, a.body)
	}
	s.set(func(st *event.Status) { st.AdmittedWrites = true })
	if left := s.leaves(); left != "0 files, 0 uploads, 0 open" {
		t.Errorf("left: %s", left)
	}
	if a := s.send(s.request("POST", "/o", strings.Repeat("q", bucketBytes))); a.status != 201 {
		t.Errorf("all of the quota: %d %s", a.status, a.body)
	}
	if a := s.send(s.request("PUT", "/o/"+addressOf(strings.Repeat("q", bucketBytes)), strings.Repeat("q", bucketBytes))); a.status != 200 {
		t.Errorf("what is there, with no quota left: %d %s", a.status, a.body)
	}
}

// open sends the header of a request with key 1 and the begin of its body, and returns the connection.
func (s *testServer) open(method, path string, length uint64, sent string, header ...string) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: node\r\nAuthorization: %s\r\nContent-Length: %d\r\n", method, path, bearer(1), length)
	for i := 0; i < len(header); i += 2 {
		text += header[i] + ": " + header[i+1] + "\r\n"
	}
	if _, err := io.WriteString(conn, text+"\r\n"+sent); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

// statusWithoutBody returns the status and the body of the response to a request of which only the header is sent.
func (s *testServer) statusWithoutBody(method, path string, length uint64, header ...string) (int, string) {
	s.t.Helper()
	conn := s.open(method, path, length, "", header...)
	defer conn.Close()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err.Error()
	}
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// TestTooLargeObjectIsRejectedBeforeItsBody: an object of one byte more than 5 GiB.
func TestTooLargeObjectIsRejectedBeforeItsBody(t *testing.T) {
	s := serve(t, build(t))
	for _, c := range []struct{ method, path string }{{"PUT", "/o/" + addressOf(large)}, {"POST", "/o"}} {
		if status, body := s.statusWithoutBody(c.method, c.path, 5<<30+1, "Content-Type", "application/octet-stream"); status != 413 || !strings.Contains(body, `"code":"payload_too_large"`) {
			t.Errorf("%s: %d %s", c.method, status, body)
		}
	}
	if left := s.leaves(); left != "0 files, 0 uploads, 0 open" {
		t.Errorf("left: %s", left)
	}
}

// TestPaymentIsRequiredBeforeTheBody: if the tenant cannot pay for an object, the request is rejected with 402 although its body is never
// sent.
func TestPaymentIsRequiredBeforeTheBody(t *testing.T) {
	const length = 600 << 10 // the server of net/http reads what is left of a body of at most 256 KiB before it answers
	h := build(t)
	s := serve(t, h, func(c *httpapi.Config) { c.MinAppend, c.Paid = minAppend, true })
	put := "/o/" + addressOf(large)
	upload := s.send(s.request("PUT", put, "", "Upload-Complete", "?0")).header.Get("Location")
	h.reply = &event.Reply{Problem: event.PaymentRequired}
	for _, c := range []struct {
		method, path string
		header       []string
	}{
		{"PUT", put, []string{"Content-Type", "application/octet-stream"}},
		{"POST", "/o", []string{"Content-Type", "application/octet-stream"}},
		{"PATCH", upload, []string{"Content-Type", "application/partial-upload", "Upload-Offset", "0", "Upload-Complete", "?1"}},
	} {
		if status, body := s.statusWithoutBody(c.method, c.path, length, c.header...); status != 402 || !strings.Contains(body, `"code":"payment_required"`) {
			t.Errorf("%s: %d %s", c.method, status, body)
		}
	}
	if left := s.leaves(); left != "0 files, 0 uploads, 0 open" {
		t.Errorf("left: %s", left)
	}
}

// TestDisconnectedUploadLeavesNothing: the client of a plain upload disconnects in the middle of the body. The node goes on, and after a
// collection no upload and no file is left.
func TestDisconnectedUploadLeavesNothing(t *testing.T) {
	s := serve(t, build(t))
	at := "/o/" + addressOf(large)
	await := func(uploads int) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); s.objects().store.Uploads() != uploads; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("left: %s", s.leaves())
			}
		}
	}
	conn := s.open("PUT", at, uint64(len(large)), large[:100_000], "Content-Type", "application/octet-stream")
	await(1)
	_ = conn.Close()
	await(0)
	if _, err := s.objects().store.Collect(func(storage.Address, storage.File) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if left := s.leaves(); left != "0 files, 0 uploads, 0 open" {
		t.Errorf("left: %s", left)
	}
	if a := s.send(s.request("GET", at, "")); a.status != 404 {
		t.Errorf("the object: %d", a.status)
	}
	if a := s.send(s.request("PUT", at, large)); a.status != 201 {
		t.Errorf("put again: %d %s", a.status, a.body)
	}
}

// TestLimitOfBucketsIsNamed: if the first object of a bucket would exceed the limit of the tenant, the response names its
// key.
func TestLimitOfBucketsIsNamed(t *testing.T) {
	s := serve(t, build(t))
	for i := range 5 {
		if a := s.send(s.request("POST", fmt.Sprintf("/o?bucket=bucket-%d", i), "a")); a.status != 201 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	a := s.send(s.request("POST", "/o?bucket=another", "a"))
	const want = "storage.tenant_buckets limits the buckets of the tenant: needed 1, left 0. The request changed nothing."
	if p := parse[wire.Problem](t, a); a.status != 403 || p.Code != "limits_exceeded" || p.Detail != want {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestCompressedUploads: the address is that of the decompressed content.
func TestCompressedUploads(t *testing.T) {
	s := serve(t, build(t))
	content := large[:50_000]
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.NoCompression)
	_, _ = z.Write([]byte(content))
	_ = z.Close()
	if a := s.send(s.request("PUT", "/o/"+addressOf(content), packed.String(), "Content-Encoding", "gzip")); a.status != 201 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := s.send(s.request("GET", "/o/"+addressOf(content), "")); a.body != content {
		t.Errorf("%d, %d bytes", a.status, len(a.body))
	}
}

// TestUploadsAreLimited: an upload beyond the limit is rejected with Retry-After.
func TestUploadsAreLimited(t *testing.T) {
	s := serve(t, build(t))
	for i := range 3 {
		if _, err := s.objects().store.Begin(types.Tenant(i + 1)); err != nil {
			t.Fatal(err)
		}
	}
	if a := s.send(s.request("POST", "/o", "a")); a.status != 429 || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %v", a.status, a.header)
	}
}

// TestUnknownOutcomeKeepsTheFile: the row may still become durable.
func TestUnknownOutcomeKeepsTheFile(t *testing.T) {
	h := build(t)
	s := serve(t, h)
	h.silent = true
	if a := s.send(s.request("POST", "/o", "a")); a.status != 504 || a.header.Get("ETag") != "" {
		t.Errorf("%d %v", a.status, a.header)
	}
	if left := s.leaves(); left != "1 files, 1 uploads, 0 open" {
		t.Errorf("left: %s", left)
	}
}

// TestDamagedObjects: content that the disk changed is never sent. Before the first byte the response is a
// problem; after it the response ends early.
func TestDamagedObjects(t *testing.T) {
	for at, want := range map[int64]string{0: "problem", 150_000: "cut"} {
		s := serve(t, build(t))
		s.objects().put(1, large)
		disk := s.objects().disk
		names, _ := disk.List()
		content, err := fs.ReadAll(disk, names[0])
		if err != nil {
			t.Fatal(err)
		}
		content[at] ^= 1
		_ = disk.Remove(names[0])
		f, _ := disk.Create(names[0])
		_, _ = f.WriteAt(content, 0)
		_ = f.Close()
		resp, err := http.DefaultClient.Do(s.request("GET", "/o/"+addressOf(large), ""))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		switch {
		case want == "problem" && (resp.StatusCode != 500 || !strings.Contains(string(got), `"code":"object_unreadable"`) || resp.Header.Get("ETag") != ""):
			t.Errorf("%d %v %.100s", resp.StatusCode, err, got)
		case want == "cut" && (resp.StatusCode != 200 || err == nil || len(got) > 131_072 || !strings.HasPrefix(large, string(got))):
			t.Errorf("%d %v, %d bytes", resp.StatusCode, err, len(got))
		}
		if s.count.get("damaged") != 1 {
			t.Errorf("%s is not counted", want)
		}
		if a := s.send(s.request("POST", "/o", large)); a.status != 200 {
			t.Errorf("put again: %d %s", a.status, a.body)
		}
		if a := s.send(s.request("GET", "/o/"+addressOf(large), "")); a.body != large {
			t.Errorf("after it was put again: %d, %d bytes", a.status, len(a.body))
		}
		http.DefaultClient.CloseIdleConnections()
	}
}

// TestLostFile: a row whose file is not there.
func TestLostFile(t *testing.T) {
	s := serve(t, build(t))
	s.objects().put(1, "hello")
	names, _ := s.objects().disk.List()
	_ = s.objects().disk.Remove(names[0])
	if a := s.send(s.request("GET", "/o/"+addressOf("hello"), "")); a.status != 500 || !strings.Contains(a.body, "object_unreadable") {
		t.Errorf("%d %s", a.status, a.body)
	}
}
