package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"macronode/adapters/httpapi/wire"
	"macronode/core/event"
	"macronode/core/types"
)

// A hostile request is a valid transfer with one thing wrong.
type hostile struct {
	name   string
	change func(*http.Request)
	status int
	code   wire.ProblemCode
}

func header(name string, values ...string) func(*http.Request) {
	return func(r *http.Request) { r.Header[name] = values }
}

func body(text string) func(*http.Request) {
	return func(r *http.Request) { *r = *r.Clone(r.Context()); setBody(r, text) }
}

func setBody(r *http.Request, text string) {
	r.Body, r.ContentLength, r.GetBody = io.NopCloser(strings.NewReader(text)), int64(len(text)), nil
}

// with returns the valid body with a part replaced.
func with(old, now string) func(*http.Request) { return body(strings.Replace(transfer, old, now, 1)) }

func query(q string) func(*http.Request) { return func(r *http.Request) { r.URL.RawQuery = q } }

func gzipped(t testing.TB, text string) func(*http.Request) {
	return func(r *http.Request) {
		setBody(r, zipped(t, text))
		r.Header.Set("Content-Encoding", "gzip")
	}
}

// zstdFrame is a zstd body: a frame header with a window descriptor, and blocks.
func zstdFrame(window, blocks string) func(*http.Request) {
	return func(r *http.Request) {
		setBody(r, "\x28\xb5\x2f\xfd\x00"+window+blocks)
		r.Header.Set("Content-Encoding", "zstd")
	}
}

// rawBlock returns a short text as the last, uncompressed block of a frame.
func rawBlock(text string) string {
	head := len(text)<<3 | 1
	return string([]byte{byte(head), byte(head >> 8), byte(head >> 16)}) + text
}

// bomb returns blocks that each decompress to 128 KiB of blanks.
func bomb(blocks int) string { return strings.Repeat("\x02\x00\x10 ", blocks-1) + "\x03\x00\x10 " }

func all(changes ...func(*http.Request)) func(*http.Request) {
	return func(r *http.Request) {
		for _, change := range changes {
			change(r)
		}
	}
}

// chunked hides the length of the body.
func chunked(r *http.Request) { r.ContentLength = -1 }

const (
	bad          = wire.ProblemCodeBadRequest
	unauthorized = wire.ProblemCodeUnauthorized
	forbidden    = wire.ProblemCodeForbidden
	tooLarge     = wire.ProblemCodePayloadTooLarge
	unsupported  = wire.ProblemCodeUnsupportedMediaType
)

func hostileRequests(t testing.TB) []hostile {
	long := strings.Repeat("x", 300)
	return []hostile{
		{"no key", header("Authorization"), 401, unauthorized},
		{"an empty key", header("Authorization", ""), 401, unauthorized},
		{"two keys", header("Authorization", bearer(1), bearer(1)), 401, unauthorized},
		{"another scheme", header("Authorization", "Basic"+bearer(1)[6:]), 401, unauthorized},
		{"no scheme", header("Authorization", bearer(1)[7:]), 401, unauthorized},
		{"a tab", header("Authorization", "Bearer\t"+bearer(1)[7:]), 401, unauthorized},
		{"another prefix", header("Authorization", "Bearer sk"+bearer(1)[9:]), 401, unauthorized},
		{"a key cut short", header("Authorization", bearer(1)[:69]), 401, unauthorized},
		{"a key too long", header("Authorization", bearer(1)+"A"), 401, unauthorized},
		{"an id in capitals", header("Authorization", "Bearer mk_000000000000000A_"+secret(1)), 401, unauthorized},
		{"an id with a sign", header("Authorization", "Bearer mk_+000000000000001_"+secret(1)), 401, unauthorized},
		{"a secret behind a dash", header("Authorization", "Bearer mk_0000000000000001-"+secret(1)), 401, unauthorized},
		{"an unknown key", header("Authorization", bearer(9)), 401, unauthorized},
		{"another key's secret", header("Authorization", "Bearer mk_0000000000000001_"+secret(2)), 401, unauthorized},
		{"a key that may only read", header("Authorization", bearer(2)), 403, forbidden},
		{"a key that may only issue", header("Authorization", bearer(3)), 403, forbidden},
		{"no key, and an invalid body", all(header("Authorization"), body("{")), 401, unauthorized},

		{"no idempotency key", header("Idempotency-Key"), 400, bad},
		{"an empty idempotency key", header("Idempotency-Key", ""), 400, bad},
		{"two idempotency keys", header("Idempotency-Key", "k", "k"), 400, bad},
		{"an idempotency key with a blank", header("Idempotency-Key", "k k"), 400, bad},
		{"an idempotency key in quotes", header("Idempotency-Key", `"k"`), 400, bad},
		{"an idempotency key of 65", header("Idempotency-Key", long[:65]), 400, bad},
		{"a query", query("dry_run=true"), 400, bad},

		{"no content type", header("Content-Type"), 415, unsupported},
		{"two content types", header("Content-Type", "application/json", "text/plain"), 415, unsupported},
		{"a form", header("Content-Type", "application/x-www-form-urlencoded"), 415, unsupported},
		{"text", header("Content-Type", "text/json"), 415, unsupported},
		{"a problem", header("Content-Type", "application/problem+json"), 415, unsupported},
		{"another charset", header("Content-Type", "application/json; charset=latin1"), 415, unsupported},
		{"another parameter", header("Content-Type", "application/json; version=2"), 415, unsupported},
		{"a broken content type", header("Content-Type", "application/json; charset"), 415, unsupported},
		{"deflate", header("Content-Encoding", "deflate"), 415, unsupported},
		{"brotli", header("Content-Encoding", "br"), 415, unsupported},
		{"gzip in zstd", header("Content-Encoding", "gzip, zstd"), 415, unsupported},
		{"gzip twice", header("Content-Encoding", "gzip, gzip"), 415, unsupported},
		{"two codings", header("Content-Encoding", "gzip", "gzip"), 415, unsupported},

		{"1 MiB and a byte", body(transfer + strings.Repeat(" ", types.MaxBody+1-len(transfer))), 413, tooLarge},
		{"1 MiB and a byte, hidden", all(body(transfer+strings.Repeat(" ", types.MaxBody+1-len(transfer))), chunked), 413, tooLarge},
		{"a bomb", gzipped(t, transfer+strings.Repeat(" ", 900_000)), 413, tooLarge},
		{"a bomb of many", func(r *http.Request) {
			setBody(r, strings.Repeat(zipped(t, strings.Repeat(" ", 100_000)), 12))
			r.Header.Set("Content-Encoding", "gzip")
		}, 413, tooLarge},
		{"a bomb of zstd", zstdFrame("\x58", bomb(8)), 413, tooLarge},
		{"zstd that looks back 9 MiB", zstdFrame("\x69", rawBlock(transfer)), 413, tooLarge},
		{"zstd that looks back 64 GiB", zstdFrame("\xd0", bomb(1)), 413, tooLarge},
		{"a bomb without a key", all(gzipped(t, strings.Repeat(" ", 900_000)), header("Authorization")), 401, unauthorized},
		{"said to be gzip", header("Content-Encoding", "gzip"), 400, bad},
		{"said to be zstd", header("Content-Encoding", "zstd"), 400, bad},
		{"zstd of nothing", zstdFrame("\x00", "\x01\x00\x00"), 400, bad},
		{"zstd cut short", zstdFrame("\x00", rawBlock(transfer)[:50]), 400, bad},
		{"zstd without its end", zstdFrame("\x00", ""), 400, bad},
		{"zstd and more", zstdFrame("\x00", rawBlock(transfer)+"x"), 400, bad},
		{"zstd of two bodies", zstdFrame("\x00", rawBlock(transfer)+"\x28\xb5\x2f\xfd\x00\x00"+rawBlock(transfer)), 400, bad},
		{"gzip cut short", func(r *http.Request) {
			setBody(r, zipped(t, transfer)[:40])
			r.Header.Set("Content-Encoding", "gzip")
		}, 400, bad},
		{"gzip and more", func(r *http.Request) {
			setBody(r, zipped(t, transfer)+"x")
			r.Header.Set("Content-Encoding", "gzip")
		}, 400, bad},
		{"gzip of two bodies", func(r *http.Request) {
			setBody(r, zipped(t, transfer)+zipped(t, transfer))
			r.Header.Set("Content-Encoding", "gzip")
		}, 400, bad},

		{"nothing", body(""), 400, bad},
		{"blank", body(" \n"), 400, bad},
		{"null", body("null"), 400, bad},
		{"an array", body("[" + transfer + "]"), 400, bad},
		{"a string", body(`"transfer"`), 400, bad},
		{"cut short", body(transfer[:30]), 400, bad},
		{"two values", body(transfer + transfer), 400, bad},
		{"a comma at the end", with("}", ",}"), 400, bad},
		{"a comment", body("/**/" + transfer), 400, bad},
		{"a byte order mark", body("\ufeff" + transfer), 400, bad},
		{"UTF-16", body("\xfe\xff\x00{\x00}"), 400, bad},
		{"NaN", with(`"nonce":1`, `"nonce":NaN`), 400, bad},
		{"deep", body(strings.Repeat("[", types.MaxDepth+1) + strings.Repeat("]", types.MaxDepth+1)), 400, bad},
		{"as deep as can be", body(strings.Repeat("[", types.MaxBody)), 400, bad},
		{"a deep member", with(`"a"`, strings.Repeat(`{"from":`, 9)+"1"+strings.Repeat("}", 9)), 400, bad},

		{"an unknown member", with(`}`, `,"reference":"r"}`), 400, bad},
		{"a ref that is empty", with(`}`, `,"ref":""}`), 400, bad},
		{"a ref that is null", with(`}`, `,"ref":null}`), 400, bad},
		{"a ref that is a number", with(`}`, `,"ref":1}`), 400, bad},
		{"a ref of 65", with(`}`, `,"ref":"`+long[:65]+`"}`), 400, bad},
		{"a ref with a slash", with(`}`, `,"ref":"a/b"}`), 400, bad},
		{"a member twice", with(`}`, `,"from":"a"}`), 400, bad},
		{"a member twice, once escaped", with(`}`, `,"fro\u006d":"a"}`), 400, bad},
		{"a member in another case", with(`"from"`, `"From"`), 400, bad},
		{"a long s for an s", with(`"asset"`, "\"a\u017fset\""), 400, bad},
		{"an issue's member", with(`"from":"a",`, ``), 400, bad},
		{"bytes that are no UTF-8", with(`}`, ",\"memo\":\"\xff\"}"), 400, bad},
		{"half a surrogate", with(`}`, `,"memo":"\ud800"}`), 400, bad},
		{"a memo that is null", with(`}`, `,"memo":null}`), 400, bad},
		{"a memo that is a number", with(`}`, `,"memo":1}`), 400, bad},
		{"a memo of 257", with(`}`, `,"memo":"`+long[:257]+`"}`), 400, bad},
		{"a memo of 129 letters, 258 bytes", with(`}`, `,"memo":"`+strings.Repeat("ö", 129)+`"}`), 400, bad},
		{"a memo with a line's end", with(`}`, `,"memo":"a\nb"}`), 400, bad},
		{"a memo with a C1 control", with(`}`, `,"memo":"a\u0085b"}`), 400, bad},

		{"an amount that is a number", with(`"7"`, `7`), 400, bad},
		{"an amount that is null", with(`"7"`, `null`), 400, bad},
		{"nothing moved", with(`"7"`, `"0"`), 400, bad},
		{"less than nothing", with(`"7"`, `"-7"`), 400, bad},
		{"a plus", with(`"7"`, `"+7"`), 400, bad},
		{"leading zeros", with(`"7"`, `"07"`), 400, bad},
		{"a fraction", with(`"7"`, `"7.0"`), 400, bad},
		{"an exponent", with(`"7"`, `"7e0"`), 400, bad},
		{"blanks", with(`"7"`, `" 7"`), 400, bad},
		{"another script's digits", with(`"7"`, `"\u0667"`), 400, bad},
		{"an empty amount", with(`"7"`, `""`), 400, bad},
		{"2^128", with(`"7"`, `"340282366920938463463374607431768211456"`), 400, bad},
		{"40 digits", with(`"7"`, `"`+strings.Repeat("9", 40)+`"`), 400, bad},

		{"no nonce", with(`,"nonce":1`, ``), 400, bad},
		{"nonce 0", with(`"nonce":1`, `"nonce":0`), 400, bad},
		{"nonce -1", with(`"nonce":1`, `"nonce":-1`), 400, bad},
		{"nonce null", with(`"nonce":1`, `"nonce":null`), 400, bad},
		{"a nonce that is a string", with(`"nonce":1`, `"nonce":"1"`), 400, bad},
		{"nonce 1.0", with(`"nonce":1`, `"nonce":1.0`), 400, bad},
		{"nonce 1e0", with(`"nonce":1`, `"nonce":1e0`), 400, bad},
		{"nonce 2^53", with(`"nonce":1`, `"nonce":9007199254740992`), 400, bad},
		{"nonce 2^64+1", with(`"nonce":1`, `"nonce":18446744073709551617`), 400, bad},

		{"no from", with(`"from":"a",`, ``), 400, bad},
		{"an empty from", with(`"from":"a"`, `"from":""`), 400, bad},
		{"from of 257", with(`"from":"a"`, `"from":"`+long[:257]+`"`), 400, bad},
		{"from with a dot", with(`"from":"a"`, `"from":"a.b"`), 400, bad},
		{"from with a zero byte", with(`"from":"a"`, `"from":"a\u0000"`), 400, bad},
		{"from in another script", with(`"from":"a"`, `"from":"а"`), 400, bad},
		{"to oneself", with(`"to":"b"`, `"to":"a"`), 400, bad},
		{"from the ledger's own", with(`"from":"a"`, `"from":"issuance:USD/2"`), 400, bad},
		{"to the ledger's own", with(`"to":"b"`, `"to":"burned:USD/2"`), 400, bad},
		{"an empty asset", with(`"USD/2"`, `""`), 400, bad},
		{"an asset of 33", with(`"USD/2"`, `"`+long[:33]+`"`), 400, bad},
		{"an asset with a colon", with(`"USD/2"`, `"US:D"`), 400, bad},
	}
}

// Each request is rejected with its status and code. The problem has no text of the request, and the node is not
// asked.
func TestHostileRequests(t *testing.T) {
	s := serve(t, build(t))
	for _, c := range hostileRequests(t) {
		t.Run(c.name, func(t *testing.T) {
			r := s.post("transfer", "k", transfer)
			c.change(r)
			a := s.send(r)
			p := parse[wire.Problem](t, a)
			if a.status != c.status || p.Code != c.code || p.Status != c.status || p.Retryable {
				t.Fatalf("%d %s", a.status, a.body)
			}
			if p.DecisionId != a.header.Get("X-Request-Id") || p.Type != "urn:macronode:problem:"+string(p.Code) {
				t.Fatalf("%+v under %s", p, a.header.Get("X-Request-Id"))
			}
			if (a.header.Get("Www-Authenticate") != "") != (a.status == 401) {
				t.Fatalf("%d with WWW-Authenticate %q", a.status, a.header.Get("Www-Authenticate"))
			}
		})
	}
	if len(s.requests) > 0 {
		t.Fatalf("the node got %+v", s.requests[0])
	}
}

// A valid request, and requests that only look wrong, are accepted. So each rejection above is caused by the one
// thing that was changed.
func TestHarmlessRequests(t *testing.T) {
	for _, c := range []hostile{
		{name: "nothing changed", change: func(*http.Request) {}},
		{name: "another case of the scheme", change: header("Authorization", "bEARER"+bearer(1)[6:])},
		{name: "utf-8", change: header("Content-Type", "application/json;charset=UTF-8")},
		{name: "another case of the type", change: header("Content-Type", "Application/JSON")},
		{name: "an idempotency key of 64", change: header("Idempotency-Key", strings.Repeat("k", 64))},
		{name: "1 MiB", change: body(transfer + strings.Repeat(" ", types.MaxBody-len(transfer)))},
		{name: "1 MiB, hidden", change: all(body(transfer+strings.Repeat("\n", types.MaxBody-len(transfer))), chunked)},
		{name: "gzip", change: gzipped(t, transfer)},
		{name: "gzip, and blanks as many as are free", change: gzipped(t, transfer+strings.Repeat(" ", 60<<10))},
		{name: "zstd", change: zstdFrame("\x00", rawBlock(transfer))},
		{name: "zstd that looks back 1 MiB", change: zstdFrame("\x50", rawBlock(transfer))},
		{name: "zstd that looks back 8 MiB", change: zstdFrame("\x68", rawBlock(transfer))},
		{name: "an empty memo", change: with("}", `,"memo":""}`)},
		{name: "a memo of 256 bytes", change: with("}", `,"memo":"`+strings.Repeat("ö", 128)+`"}`)},
		{name: "an escaped name", change: with(`"from"`, `"\u0066rom"`)},
		{name: "members in another order", change: body(`{"nonce":1,"to":"b","amount_minor":"7","from":"a","asset":"USD/2"}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, build(t))
			s.send(s.post("issue", "first", issue))
			r := s.post("transfer", "k", transfer)
			c.change(r)
			if a := s.send(r); a.status != 200 {
				t.Fatalf("%d %s", a.status, a.body)
			}
		})
	}
}

// An issue has no nonce and no from; a burn has no to.
func TestOperationsTakeTheirOwnMembers(t *testing.T) {
	s := serve(t, build(t))
	for op, body := range map[string]string{
		"issue":    transfer,
		"burn":     transfer,
		"transfer": burn,
	} {
		if a := s.send(s.post(op, "k", body)); a.status != 400 {
			t.Errorf("%s took %s: %d", op, body, a.status)
		}
	}
}

// A command without an idempotency key is rejected, because a retry would pay twice. A billing service accepted
// it, and its retries doubled wallets (lago-api 5870).
func TestLagoAPI5870MissingIdempotencyKeyIsRejected(t *testing.T) {
	s := serve(t, build(t))
	for op, body := range map[string]string{"issue": issue, "transfer": transfer, "burn": burn} {
		r := s.post(op, "k", body)
		r.Header.Del("Idempotency-Key")
		if a := s.send(r); a.status != 400 || parse[wire.Problem](t, a).Code != bad {
			t.Errorf("%s: %d %s", op, a.status, a.body)
		}
	}
	if len(s.requests) > 0 {
		t.Fatalf("the node got %+v", s.requests[0])
	}
}

// Bytes after the JSON value are rejected. A wallet read the first value of a body and ignored the rest
// (ron-wallet).
func TestRonWalletTrailingBytesAreRejected(t *testing.T) {
	s := serve(t, build(t))
	for _, rest := range []string{" x", "x", "{}", "\x00", "]", ", ", transfer} {
		if a := s.send(s.post("transfer", "k", transfer+rest)); a.status != 400 {
			t.Errorf("behind it %q: %d", rest, a.status)
		}
	}
	if len(s.requests) > 0 {
		t.Fatalf("the node got %+v", s.requests[0])
	}
}

// A rejected request gets Retry-After. A gateway shed load without it, and its clients returned at once
// (ron-gate). All other tests check it too.
func TestRonGateShedRequestsGetRetryAfter(t *testing.T) {
	h := build(t)
	h.full = true
	busy := serve(t, h)
	closed := serve(t, build(t))
	closed.set(func(s *event.Status) { s.Reads, s.Writes = false, false })
	for _, s := range []*testServer{busy, closed} {
		for op, body := range map[string]string{"issue": issue, "transfer": transfer, "burn": burn} {
			a := s.send(s.post(op, "k", body))
			if a.status != 429 && a.status != 503 || a.header.Get("Retry-After") == "" || !parse[wire.Problem](t, a).Retryable {
				t.Errorf("%s: %+v", op, a)
			}
		}
	}
}

// A request without a valid key is answered before its body is read, and before 100 Continue is sent.
func TestAuthenticationComesBeforeTheBody(t *testing.T) {
	s := serve(t, build(t))
	for _, authorization := range []string{"", "Authorization: " + bearer(9) + "\r\n", "Authorization: " + bearer(2) + "\r\n"} {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(c, "POST /v1/issue HTTP/1.1\r\nHost: node\r\n%sExpect: 100-continue\r\nIdempotency-Key: k\r\n"+
			"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n", authorization)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != 401 && resp.StatusCode != 403 {
			t.Errorf("%q: %d", authorization, resp.StatusCode)
		}
		_ = resp.Body.Close()
		_ = c.Close()
	}
}

// A body that is shorter than announced is rejected, even if the part that arrived is valid.
func TestTruncatedBodyIsRejected(t *testing.T) {
	s := serve(t, build(t))
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, err = fmt.Fprintf(c, "POST /v1/issue HTTP/1.1\r\nHost: node\r\nAuthorization: %s\r\nIdempotency-Key: k\r\n"+
		"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n%s", bearer(1), issue)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != 400 {
		t.Fatalf("answered %d", resp.StatusCode)
	}
}

// TestRejectedBodyEndsConnection: a caller without a key gets the response before it sends a body. Then the
// connection ends.
func TestRejectedBodyEndsConnection(t *testing.T) {
	s := serve(t, build(t))
	for _, body := range []string{"Content-Length: 200000", "Transfer-Encoding: chunked"} {
		for _, target := range []string{"/nope", "/v1/issue"} {
			c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: node\r\nContent-Type: application/json\r\n%s\r\n\r\n", target, body)
			if err != nil {
				t.Fatal(err)
			}
			all, err := io.ReadAll(c)
			if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 40") || !strings.Contains(string(all), "\r\nConnection: close\r\n") {
				t.Errorf("%s, %s: %v, %s", target, body, err, all)
			}
			_ = c.Close()
		}
	}
}

// TestReadIsAnsweredBeforeItsBody: a read is answered although a body is announced that does not come, because no
// endpoint reads it. Then the connection ends.
func TestReadIsAnsweredBeforeItsBody(t *testing.T) {
	s := serve(t, build(t))
	for _, body := range []string{"Content-Length: 10", "Transfer-Encoding: chunked"} {
		for target, want := range map[string]string{"GET /": "200", "GET /v1/keys": "200", "HEAD /": "200", "GET /v1/nope": "404"} {
			c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			_, err = fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: node\r\nAuthorization: %s\r\n%s\r\n\r\n", target, bearer(1), body)
			if err != nil {
				t.Fatal(err)
			}
			_ = c.SetReadDeadline(time.Now().Add(time.Minute)) // ends a hang
			all, err := io.ReadAll(c)
			if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 "+want) || !strings.Contains(string(all), "\r\nConnection: close\r\n") {
				t.Fatalf("%s, %s: %v, %s", target, body, err, all)
			}
		}
	}
}
