package sigv4_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"macronode/adapters/sigv4"
)

// A refusal changes a signed request and names the code of the rejection.
type refusal struct {
	name   string
	change func(r *http.Request)
	code   string
	status int
	text   string // part of the message
}

// header returns a change of the header Authorization.
func header(old, new string) func(r *http.Request) {
	return func(r *http.Request) {
		value := r.Header.Get("Authorization")
		if !strings.Contains(value, old) {
			panic(value + " lacks " + old)
		}
		r.Header.Set("Authorization", strings.Replace(value, old, new, 1))
	}
}

// query returns a change of one parameter of the query.
func query(name string, values ...string) func(r *http.Request) {
	return func(r *http.Request) {
		q := r.URL.Query()
		if q.Get(name) == "" && name != "X-Amz-Content-Sha256" {
			panic("the query lacks " + name)
		}
		q[name] = values
		r.URL.RawQuery = q.Encode()
	}
}

func set(name string, values ...string) func(r *http.Request) {
	return func(r *http.Request) { r.Header[name] = values }
}

func (c refusal) run(t *testing.T, r *http.Request) {
	t.Run(c.name, func(t *testing.T) {
		c.change(r)
		_, err := check(r, secret)
		wantCode(t, err, c.code, c.status)
		if !strings.Contains(err.Error(), c.text) {
			t.Errorf("the message %q lacks %q", err, c.text)
		}
		if strings.Contains(err.Error(), secret) {
			t.Error("the message contains the secret")
		}
	})
}

// TestHeaderRefusals checks each rejection of a signature in the header.
func TestHeaderRefusals(t *testing.T) {
	const malformed = "AuthorizationHeaderMalformed"
	long := strings.Repeat("x", sigv4.MaxAccessKey+1)
	for _, c := range []refusal{
		{"signature version 2", set("Authorization", "AWS AKID:c2ln"), "InvalidRequest", 400, "AWS4-HMAC-SHA256"},
		{"signature version 4A", header("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"), "InvalidRequest", 400, "AWS4-HMAC-SHA256"},
		{"header repeated", func(r *http.Request) { r.Header.Add("Authorization", r.Header.Get("Authorization")) }, "InvalidRequest", 400, "repeated"},
		{"header repeated with another scheme", func(r *http.Request) { r.Header.Add("Authorization", "Bearer x") }, "InvalidRequest", 400, "repeated"},
		{"header and query", func(r *http.Request) { r.URL.RawQuery = "X-Amz-Signature=00" }, "InvalidArgument", 400, "Only one"},
		{"unknown field", header("Signature=", "Sig="), malformed, 400, "unknown or repeated"},
		{"field repeated", header("Signature=", "Credential=a,Signature="), malformed, 400, "unknown or repeated"},
		{"no signature", func(r *http.Request) {
			value, _, _ := strings.Cut(r.Header.Get("Authorization"), ", Signature=")
			r.Header.Set("Authorization", value)
		}, malformed, 400, "Signature"},
		{"nothing but the algorithm", set("Authorization", "AWS4-HMAC-SHA256"), malformed, 400, "fields"},
		{"short signature", header("Signature=", "Signature=0"), malformed, 400, "64"},
		{"upper-case signature", func(r *http.Request) {
			value, signature, _ := strings.Cut(r.Header.Get("Authorization"), "Signature=")
			r.Header.Set("Authorization", value+"Signature="+strings.ToUpper(signature))
		}, malformed, 400, "lower-case"},
		{"signature not hexadecimal", func(r *http.Request) {
			value, _, _ := strings.Cut(r.Header.Get("Authorization"), "Signature=")
			r.Header.Set("Authorization", value+"Signature="+strings.Repeat("g", 64))
		}, malformed, 400, "hexadecimal"},
		{"access key with a blank", header(accessKey, "AK ID"), malformed, 400, "access key"},
		{"access key that is not ASCII", header(accessKey, "AKÄ"), malformed, 400, "access key"},
		{"credential too short", header("/s3/", "/"), malformed, 400, "Credential"},
		{"credential too long", header("/s3/", "/s3/s3/"), malformed, 400, "Credential"},
		{"wrong termination", header("aws4_request", "aws4"), malformed, 400, "Credential"},
		{"no access key", header(accessKey, ""), malformed, 400, "access key"},
		{"long access key", header(accessKey, long), malformed, 400, "access key"},
		{"date that is none", header("/20260504/", "/20269904/"), malformed, 400, "YYYYMMDD"},
		{"other date", header("/20260504/", "/20260503/"), malformed, 400, "date"},
		{"wrong region", header("/eu-central-1/", "/us-east-1/"), malformed, 400, "expecting 'eu-central-1'"},
		{"wrong service", header("/s3/", "/sts/"), malformed, 400, "expecting 's3'"},
		{"no signed headers", header("SignedHeaders=", "SignedHeaders=;"), malformed, 400, "SignedHeaders"},
		{"host not signed", header("host;", ""), malformed, 400, "host"},
		{"upper case", header("host;", "Host;"), malformed, 400, "lower-case"},
		{"name twice", header("host;", "host;host;"), malformed, 400, "distinct"},
		{"not sorted", header("host;", "host;a;"), malformed, 400, "ascending"},
		{"too many", header("host;", "host;"+strings.Repeat("i;", sigv4.MaxSignedHeaders)), malformed, 400, "256"},
		{"header not signed", set("X-Amz-Acl", "private"), "AccessDenied", 403, "x-amz-acl"},
		{"no date", func(r *http.Request) { r.Header.Del("X-Amz-Date") }, "AccessDenied", 403, "x-amz-date"},
		{"date malformed", set("X-Amz-Date", "2026-05-04"), "AccessDenied", 403, "x-amz-date"},
		{"date repeated", set("X-Amz-Date", stamp, stamp), "InvalidRequest", 400, "x-amz-date"},
		{"no content hash", func(r *http.Request) { r.Header.Del("X-Amz-Content-Sha256") }, "MissingSecurityHeader", 400, "x-amz-content-sha256"},
		{"content hash repeated", set("X-Amz-Content-Sha256", unsigned, unsigned), "InvalidRequest", 400, "x-amz-content-sha256"},
		{"unknown content hash", set("X-Amz-Content-Sha256", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD"), "InvalidRequest", 400, "x-amz-content-sha256"},
		{"short content hash", set("X-Amz-Content-Sha256", strings.Repeat("a", 62)), "InvalidRequest", 400, "x-amz-content-sha256"},
		{"long content hash", set("X-Amz-Content-Sha256", strings.Repeat("a", 66)), "InvalidRequest", 400, "x-amz-content-sha256"},
		{"no decoded length", set("X-Amz-Content-Sha256", chunksSigned), "MissingContentLength", 411, "x-amz-decoded-content-length"},
		{"query malformed", func(r *http.Request) { r.URL.RawQuery = "a=%zz" }, "InvalidURI", 400, "query"},
		{"query with a semicolon", func(r *http.Request) { r.URL.RawQuery = "a=1;b=2" }, "InvalidURI", 400, "query"},
		{"too many parameters", func(r *http.Request) { r.URL.RawQuery = strings.Repeat("a&", sigv4.MaxQueryParameters) }, "InvalidURI", 400, "128"},
		{"wrong signature", func(r *http.Request) {
			value, signature, _ := strings.Cut(r.Header.Get("Authorization"), "Signature=")
			r.Header.Set("Authorization", value+"Signature="+strings.Map(func(d rune) rune { return map[bool]rune{true: '1', false: '0'}[d == '0'] }, signature))
		}, "SignatureDoesNotMatch", 403, "does not match"},
	} {
		r := newRequest(t, "GET", "https://s3.example.com/bucket/key", nil)
		signHeader(t, r, hexSum(nil))
		c.run(t, receive(t, r))
	}
}

// distinctNames returns a list of n names for a trailer.
func distinctNames(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("x-amz-checksum-%d", i)
	}
	return strings.Join(names, ",")
}

// TestUploadRefusals checks the headers of payloads in chunks.
func TestUploadRefusals(t *testing.T) {
	for _, c := range []struct{ name, hash, length, trailer, code string }{
		{"length negative", chunksSigned, "-1", "", "InvalidArgument"},
		{"length not a number", chunksSigned, "1e3", "", "InvalidArgument"},
		{"length larger than 63 bits", chunksSigned, "9223372036854775808", "", "InvalidArgument"},
		{"trailer without a place", chunksSigned, "0", crcName, "InvalidRequest"},
		{"trailer of a plain payload", unsigned, "0", crcName, "InvalidRequest"},
		{"name repeated", trailerUnsigned, "0", crcName + ", " + crcName, "InvalidRequest"},
		{"length of a plain payload", unsigned, "3", "", "InvalidRequest"},
		{"name malformed", trailerUnsigned, "0", crcName + " b", "InvalidRequest"},
		{"name of no checksum", trailerUnsigned, "0", "x-amz-meta-a", "InvalidRequest"},
		{"name reserved", trailerSigned, "0", "x-amz-trailer-signature", "InvalidRequest"},
		{"too many names", trailerSigned, "0", distinctNames(sigv4.MaxTrailers + 1), "InvalidRequest"},
	} {
		u := &upload{hash: c.hash, length: c.length, trailer: c.trailer}
		u.sign(t)
		_, err := sigv4.Parse(u.request, at, policy)
		t.Run(c.name, func(t *testing.T) { wantCode(t, err, c.code, 400) })
	}
}

// TestQueryRefusals checks each rejection of a presigned URL.
func TestQueryRefusals(t *testing.T) {
	const malformed = "AuthorizationQueryParametersError"
	credential := func(date, region, service string) string {
		return strings.Join([]string{accessKey, date, region, service, "aws4_request"}, "/")
	}
	for _, c := range []refusal{
		{"signature version 2", func(r *http.Request) { r.URL.RawQuery = "AWSAccessKeyId=AKID&Signature=c2ln&Expires=1" }, "InvalidRequest", 400, "AWS4-HMAC-SHA256"},
		{"signature version 4A", query("X-Amz-Algorithm", "AWS4-ECDSA-P256-SHA256"), "InvalidRequest", 400, "AWS4-HMAC-SHA256"},
		{"header and query", set("Authorization", "Bearer x"), "InvalidArgument", 400, "Only one"},
		{"unknown algorithm", query("X-Amz-Algorithm", "AWS4-HMAC-MD5"), malformed, 400, "X-Amz-Algorithm"},
		{"no algorithm", query("X-Amz-Algorithm"), malformed, 400, "X-Amz-Algorithm"},
		{"no credential", query("X-Amz-Credential"), malformed, 400, "X-Amz-Credential"},
		{"no date", query("X-Amz-Date"), malformed, 400, "X-Amz-Date"},
		{"no expiry", query("X-Amz-Expires"), malformed, 400, "X-Amz-Expires"},
		{"no signed headers", query("X-Amz-SignedHeaders"), malformed, 400, "X-Amz-SignedHeaders"},
		{"no signature", query("X-Amz-Signature"), malformed, 400, "X-Amz-Signature"},
		{"parameter repeated", query("X-Amz-Expires", "60", "61"), malformed, 400, "repeated"},
		{"wrong region", query("X-Amz-Credential", credential("20260504", "us-east-1", "s3")), malformed, 400, "expecting 'eu-central-1'"},
		{"wrong service", query("X-Amz-Credential", credential("20260504", region, "sts")), malformed, 400, "expecting 's3'"},
		{"other date", query("X-Amz-Credential", credential("20260503", region, "s3")), malformed, 400, "date"},
		{"date malformed", query("X-Amz-Date", "20260504T120000.5Z"), malformed, 400, "X-Amz-Date"},
		{"expires at once", query("X-Amz-Expires", "0"), malformed, 400, "604800"},
		{"expires after more than a week", query("X-Amz-Expires", "604801"), malformed, 400, "604800"},
		{"negative expiry", query("X-Amz-Expires", "-1"), malformed, 400, "604800"},
		{"expiry not a number", query("X-Amz-Expires", "1h"), malformed, 400, "604800"},
		{"host not signed", query("X-Amz-SignedHeaders", "range"), malformed, 400, "host"},
		{"header not signed", set("X-Amz-Acl", "private"), "AccessDenied", 403, "x-amz-acl"},
		{"streaming payload", query("X-Amz-Content-Sha256", trailerUnsigned), "MissingContentLength", 411, ""},
		{"hash differs", func(r *http.Request) {
			query("X-Amz-Content-Sha256", hexSum(nil))(r)
			r.Header.Set("X-Amz-Content-Sha256", unsigned)
		}, "InvalidRequest", 400, "differs"},
		{"signature malformed", query("X-Amz-Signature", "00"), malformed, 400, "64"},
		{"wrong signature", query("X-Amz-Signature", hexSum(nil)), "SignatureDoesNotMatch", 403, ""},
	} {
		c.run(t, receive(t, presign(t, newRequest(t, "GET", "https://s3.example.com/bucket/key", nil), unsigned, time.Minute)))
	}
}

// TestPresignedChunksAreRefused: a presigned URL cannot announce a streaming payload.
func TestPresignedChunksAreRefused(t *testing.T) {
	r := presign(t, newRequest(t, "PUT", "https://s3.example.com/bucket/key?X-Amz-Content-Sha256="+trailerUnsigned, nil), trailerUnsigned, time.Minute)
	r.Header.Set("X-Amz-Decoded-Content-Length", "0")
	query("X-Amz-SignedHeaders", "host;x-amz-decoded-content-length")(r)
	_, err := sigv4.Parse(receive(t, r), at, policy)
	wantCode(t, err, "InvalidRequest", 400)
}

// TestTimes checks the clock of a header and the period of a presigned URL, at their edges.
func TestTimes(t *testing.T) {
	const skew, expires = sigv4.DefaultSkew, time.Hour
	signed := newRequest(t, "GET", "https://s3.example.com/bucket/key", nil)
	signHeader(t, signed, hexSum(nil))
	presigned := presign(t, newRequest(t, "GET", "https://s3.example.com/bucket/key", nil), unsigned, expires)
	for _, c := range []struct {
		name  string
		r     *http.Request
		after time.Duration
		code  string
	}{
		{"clock equal", signed, 0, ""},
		{"clock as late as allowed", signed, skew, ""},
		{"clock too late", signed, skew + time.Second, "RequestTimeTooSkewed"},
		{"clock as early as allowed", signed, -skew, ""},
		{"clock too early", signed, -skew - time.Second, "RequestTimeTooSkewed"},
		{"before the end", presigned, expires, ""},
		{"after the end", presigned, expires + time.Second, "AccessDenied"},
		{"as early as allowed", presigned, -skew, ""},
		{"too early", presigned, -skew - time.Second, "AccessDenied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := sigv4.Parse(receive(t, c.r), at.Add(c.after), policy)
			if c.code != "" {
				wantCode(t, err, c.code, 403)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Verify(secret, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWrongRegionIsNamed: the rejection carries the region, so that clients can sign again.
func TestWrongRegionIsNamed(t *testing.T) {
	r := newRequest(t, "GET", "https://s3.example.com/bucket/key", nil)
	signHeader(t, r, hexSum(nil))
	_, err := sigv4.Parse(receive(t, r), at, sigv4.Policy{Region: "us-west-2", Service: "s3"})
	var e *sigv4.Error
	if !errors.As(err, &e) || e.Region != "us-west-2" {
		t.Errorf("got %v with region %q", err, e.Region)
	}
}

// TestOtherRequestsAreNotSigned: other schemes and anonymous requests are ErrMissing.
func TestOtherRequestsAreNotSigned(t *testing.T) {
	for _, authorization := range []string{"", "Bearer abc", "Basic AWS4-HMAC-SHA256", "AWS4"} {
		r := &http.Request{Header: http.Header{}, URL: &url.URL{Path: "/", RawQuery: "prefix=X-Amz-Signature"}}
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		if _, err := sigv4.Parse(r, at, policy); !errors.Is(err, sigv4.ErrMissing) || sigv4.IsSigned(r) {
			t.Errorf("%q: %v", authorization, err)
		}
	}
	r := newRequest(t, "GET", "https://s3.example.com/bucket?X-Amz-Signature=", nil)
	if !sigv4.IsSigned(r) || testing.AllocsPerRun(10, func() { sigv4.IsSigned(r) }) > 0 {
		t.Error("a presigned URL is not seen, or costs memory")
	}
}

// TestEmptySecretVerifiesNothing: a caller without a secret cannot accept a request by accident.
func TestEmptySecretVerifiesNothing(t *testing.T) {
	r := receive(t, newRequest(t, "GET", "https://s3.example.com/", nil))
	r.Header.Set("X-Amz-Date", stamp)
	r.Header.Set("X-Amz-Content-Sha256", unsigned)
	names := "host;x-amz-content-sha256;x-amz-date"
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+accessKey+"/20260504/"+region+"/s3/aws4_request, SignedHeaders="+names+
		", Signature="+simpleSignature(r, "/", names, unsigned, stamp, ""))
	_, err := check(r, "")
	wantCode(t, err, "SignatureDoesNotMatch", 403)
}
