package s3_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// An answer is a response without the SDK.
type answer struct {
	status int
	header http.Header
	body   string
	xml    struct {
		XMLName                                   xml.Name
		Code, Message, Resource                   string
		RequestID                                 string `xml:"RequestId"`
		Key, BucketName, ActualObjectSize, Region string
	}
}

// send signs a request and serves it without a connection. A body of nil has no length.
func (w *world) send(t testing.TB, method, target string, header map[string]string, body string) answer {
	t.Helper()
	r, err := http.NewRequest(method, "http://localhost"+target, strings.NewReader(body))
	if err != nil {
		return answer{status: http.StatusBadRequest}
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
		r.Header.Del("Host")
	}
	return w.sendSigned(t, "ALL", r, body)
}

func (w *world) sendSigned(t testing.TB, accessKey string, r *http.Request, body string) answer {
	t.Helper()
	sum := sha256.Sum256([]byte(body))
	hash := hex.EncodeToString(sum[:])
	r.Header.Set("X-Amz-Content-Sha256", hash)
	secret, _ := secretOf(accessKey)
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if err := signer.SignHTTP(context.Background(), aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secret}, r, hash, "s3", region, w.now()); err != nil {
		t.Fatal(err)
	}
	return w.serveDirectly(t, r, body)
}

func (w *world) serveDirectly(t testing.TB, r *http.Request, body string) (a answer) {
	t.Helper()
	in := httptest.NewRequest(r.Method, r.URL.String(), strings.NewReader(body))
	in.Header, in.Host, in.ContentLength = r.Header, r.Host, r.ContentLength
	if in.Host == "" {
		in.Host = r.URL.Host
	}
	rec := httptest.NewRecorder()
	w.serve(rec, in)
	res := rec.Result()
	b, _ := io.ReadAll(res.Body)
	a.status, a.header, a.body = res.StatusCode, res.Header, string(b)
	if len(b) > 0 && a.status >= 300 {
		if err := xml.Unmarshal(b, &a.xml); err != nil {
			t.Fatalf("%s %s: %d %q is not XML: %v", r.Method, r.URL, a.status, b, err)
		}
	}
	return a
}

// TestErrors has a request for each error that a client can cause.
func TestErrors(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	put(t, c, "a", []byte("abc"))
	long := strings.Repeat("k", 1025)
	const b = "/" + bucketName
	for _, want := range []struct {
		method, target string
		header         map[string]string
		body           string
		status         int
		code           string
	}{
		{"GET", "/missing/a", nil, "", 404, "NoSuchBucket"},
		{"GET", b + "/missing", nil, "", 404, "NoSuchKey"},
		{"GET", "/UPPER/a", nil, "", 400, "InvalidBucketName"},
		{"GET", "/x/a", nil, "", 400, "InvalidBucketName"},
		{"PUT", b + "/" + long, nil, "x", 400, "KeyTooLongError"},
		{"PUT", b + "/%ff", nil, "x", 400, "InvalidURI"},
		{"PATCH", b + "/a", nil, "", 405, "MethodNotAllowed"},
		{"POST", "/", nil, "", 405, "MethodNotAllowed"},
		{"PUT", "/", nil, "", 405, "MethodNotAllowed"},
		{"POST", b + "/a", nil, "", 405, "MethodNotAllowed"},
		{"GET", b + "?policy", nil, "", 501, "NotImplemented"},
		{"GET", b + "?versions", nil, "", 501, "NotImplemented"},
		{"GET", b + "?lifecycle", nil, "", 501, "NotImplemented"},
		{"GET", b + "?cors", nil, "", 501, "NotImplemented"},
		{"GET", b + "/missing?tagging", nil, "", 404, "NoSuchKey"},
		{"GET", b + "?tagging", nil, "", 501, "NotImplemented"},
		{"PUT", b + "/a?tagging", nil, "", 501, "NotImplemented"},
		{"DELETE", b + "/a?tagging", nil, "", 501, "NotImplemented"},
		{"GET", b + "/a?attributes", nil, "", 501, "NotImplemented"},
		{"PUT", b + "?versioning", nil, "", 501, "NotImplemented"},
		{"PUT", b + "/a?acl", nil, "", 501, "NotImplemented"},
		{"POST", b, nil, "", 501, "NotImplemented"},
		{"DELETE", b + "?%70olicy", nil, "", 501, "NotImplemented"},
		{"DELETE", b + "?acl", nil, "", 501, "NotImplemented"},
		{"DELETE", b + "/a?partNumber=1", nil, "", 501, "NotImplemented"},
		{"GET", b + "/a?versionId=3", nil, "", 400, "InvalidArgument"},
		{"GET", b + "/a?partNumber=0", nil, "", 400, "InvalidArgument"},
		{"GET", b + "/a?partNumber=2", nil, "", 416, "InvalidPartNumber"},
		{"GET", b + "/a?partNumber=1", map[string]string{"Range": "bytes=0-0"}, "", 400, "InvalidRequest"},
		{"GET", b + "/a", map[string]string{"Range": "bytes=3-"}, "", 416, "InvalidRange"},
		{"PUT", b + "/b", map[string]string{"X-Amz-Acl": "public-read"}, "x", 501, "NotImplemented"},
		{"PUT", b + "/b", map[string]string{"X-Amz-Grant-Read": "id=1"}, "x", 501, "NotImplemented"},
		{"PUT", b + "/b", map[string]string{"X-Amz-Server-Side-Encryption": "AES256"}, "x", 501, "NotImplemented"},
		{"PUT", b + "/b", map[string]string{"X-Amz-Server-Side-Encryption-Customer-Key": "k"}, "x", 501, "NotImplemented"},
		{"PUT", b + "/b", map[string]string{"X-Amz-Tagging": "a=b"}, "x", 501, "NotImplemented"},
		{"PUT", b + "/b", map[string]string{"X-Amz-Object-Lock-Mode": "GOVERNANCE"}, "x", 501, "NotImplemented"},
		{"PUT", b + "/b", map[string]string{"X-Amz-Website-Redirect-Location": "/"}, "x", 501, "NotImplemented"},
		{"PUT", b + "/b", map[string]string{"X-Amz-Storage-Class": "GLACIER"}, "x", 400, "InvalidStorageClass"},
		{"PUT", "/new-bucket", map[string]string{"X-Amz-Bucket-Object-Lock-Enabled": "true"}, "", 501, "NotImplemented"},
		{"GET", b, map[string]string{"X-Amz-Expected-Bucket-Owner": "2"}, "", 403, "AccessDenied"},
		{"PUT", b + "/b", map[string]string{"Content-Md5": "x"}, "x", 400, "InvalidDigest"},
		{"PUT", b + "/b", map[string]string{"Content-Md5": "kAFQmDzST7DWlj99KOF/cg=="}, "x", 400, "BadDigest"},
		{"PUT", b + "/b", map[string]string{"X-Amz-Checksum-Crc32": "AAAAAA=="}, "x", 400, "BadDigest"},
		{"PUT", b + "/b", map[string]string{"X-Amz-Checksum-Crc32": "AAAA"}, "x", 400, "InvalidRequest"},
		{"PUT", b + "/b", map[string]string{"X-Amz-Checksum-Md4": "AAAA"}, "x", 400, "InvalidRequest"},
		{"PUT", b + "/b?partNumber=1", nil, "x", 400, "InvalidRequest"},
		{"PUT", b + "/b?uploadId=1", nil, "x", 400, "InvalidRequest"},
		{"PUT", b + "/b?uploadId=1&partNumber=0", nil, "x", 400, "InvalidArgument"},
		{"PUT", b + "/b?uploadId=1&partNumber=10001", nil, "x", 400, "InvalidArgument"},
		{"PUT", b + "/b?uploadId=1&partNumber=1", nil, "x", 404, "NoSuchUpload"},
		{"PUT", b + "/b?uploadId=0000000000010000&partNumber=1", nil, "x", 404, "NoSuchUpload"},
		{"GET", b + "/b?uploadId=1", nil, "", 404, "NoSuchUpload"},
		{"DELETE", b + "/b?uploadId=1", nil, "", 404, "NoSuchUpload"},
		{"POST", b + "/b?uploads", map[string]string{"X-Amz-Checksum-Algorithm": "MD4"}, "", 400, "InvalidRequest"},
		{"POST", b + "/b?uploads", map[string]string{"X-Amz-Checksum-Algorithm": "SHA256", "X-Amz-Checksum-Type": "FULL_OBJECT"}, "", 400, "InvalidRequest"},
		{"POST", b + "/b?uploads", map[string]string{"X-Amz-Checksum-Algorithm": "CRC64NVME", "X-Amz-Checksum-Type": "COMPOSITE"}, "", 400, "InvalidRequest"},
		{"POST", "/missing/b?uploads", nil, "", 404, "NoSuchBucket"},
		{"POST", b + "/b?uploadId=1", nil, "<CompleteMultipartUpload/>", 400, "MalformedXML"},
		{"POST", b + "/b?uploadId=1", nil, "", 400, "MalformedXML"},
		{"POST", b + "?delete", nil, "<Delete/>", 400, "InvalidRequest"},
		{"POST", b + "?delete", map[string]string{"Content-Md5": "z1LzOf5hdPFaywPEzqlqfw=="}, "<Delete/>", 400, "BadDigest"},
		{"PUT", "/new-bucket", nil, "<CreateBucketConfiguration><Bucket/></CreateBucketConfiguration>", 501, "NotImplemented"},
		{"PUT", "/new-bucket", nil, "<CreateBucketConfiguration>", 400, "MalformedXML"},
		{"PUT", "/new-bucket", nil, "<Other/>", 400, "MalformedXML"},
		{"PUT", b, nil, "", 409, "BucketAlreadyOwnedByYou"},
		{"DELETE", b, nil, "", 409, "BucketNotEmpty"},
		{"PUT", b + "/b", map[string]string{"X-Amz-Copy-Source": "%zz"}, "", 400, "InvalidArgument"},
		{"GET", b + "?max-keys=x", nil, "", 400, "InvalidArgument"},
		{"GET", "/?max-buckets=0", nil, "", 400, "InvalidArgument"},
	} {
		got := w.send(t, want.method, want.target, want.header, want.body)
		if got.status != want.status || got.xml.Code != want.code {
			t.Errorf("%s %.60s %v: %d %s %s, want %d %s", want.method, want.target, want.header, got.status, got.xml.Code, got.xml.Message, want.status, want.code)
		}
		if path, _, _ := strings.Cut(want.target, "?"); got.xml.RequestID != "request-1" || got.header.Get("X-Amz-Request-Id") != "request-1" || got.xml.Message == "" ||
			!strings.Contains(path, "%") && got.xml.Resource != path || w.quiet().code != want.code || got.header.Get("Content-Type") != "application/xml" {
			t.Errorf("%s %.60s: incomplete: %v %+v", want.method, want.target, got.header, got.xml)
		}
	}
	if got := w.send(t, "HEAD", b+"/missing", nil, ""); got.status != 404 || got.body != "" || got.header.Get("X-Amz-Request-Id") == "" {
		t.Errorf("HEAD: %+v", got)
	}
	if got := w.send(t, "GET", b+"/a", map[string]string{"Range": "bytes=3-"}, ""); got.header.Get("Content-Range") != "bytes */3" || got.xml.ActualObjectSize != "3" {
		t.Errorf("range: %+v", got)
	}
	for _, key := range []string{"b", "new-bucket"} {
		if got := w.send(t, "HEAD", b+"/"+key, nil, ""); got.status != 404 {
			t.Errorf("%s became visible", key)
		}
	}
}

// TestEmptyBodyGetsContinue: a client that waits for 100 Continue before an empty body gets it, as from S3: botocore misreads the
// next response otherwise.
func TestEmptyBodyGetsContinue(t *testing.T) {
	w := newWorld(t)
	w.bucket(t)
	for _, body := range []string{"", "x"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, w.server.URL+"/"+bucketName+"/empty", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
			if code == http.StatusContinue {
				got++
			}
			return nil
		}}))
		r.Header.Set("Expect", "100-continue")
		r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
		secret, _ := secretOf("ALL")
		if err := v4.NewSigner().SignHTTP(r.Context(), aws.Credentials{AccessKeyID: "ALL", SecretAccessKey: secret}, r, "UNSIGNED-PAYLOAD", "s3", region, w.now()); err != nil {
			t.Fatal(err)
		}
		res, err := w.server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK || got != 1 {
			t.Errorf("%q: %d, 100 Continue %d times", body, res.StatusCode, got)
		}
	}
}
