package s3

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzXML: a document of a client is refused, or it has what the operation needs.
func FuzzXML(f *testing.F) {
	for _, text := range []string{
		`<Delete><Object><Key>a</Key></Object><Quiet>true</Quiet></Delete>`,
		`<?xml version="1.0"?><Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Object><Key>&lt;&#x9;</Key><VersionId>null</VersionId></Object></Delete>`,
		`<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"900150983cd24fb0d6963f7d28e17f72"</ETag><ChecksumCRC32>AAAA</ChecksumCRC32></Part></CompleteMultipartUpload>`,
		`<CompleteMultipartUpload><Part><PartNumber>2</PartNumber></Part><Part><PartNumber>1</PartNumber></Part></CompleteMultipartUpload>`,
		`<CompleteMultipartUpload><Part><PartNumber>-1</PartNumber></Part></CompleteMultipartUpload>`,
		`<CreateBucketConfiguration><LocationConstraint>mars</LocationConstraint></CreateBucketConfiguration>`,
		`<!DOCTYPE x [<!ENTITY a "aaaa">]><Delete><Object><Key>&a;</Key></Object></Delete>`,
		`<Delete><a><a><a><a><a><a><a><a></a></a></a></a></a></a></a></a></Delete>`,
		`<Delete></Delete><Delete></Delete>`, `<Delete/>x`, `<Delete>`, `<x:Delete xmlns:x="y"/>`, ``, `</Delete>`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := readDeletes([]byte(text)); err == nil {
			if n := len(d.Objects); n == 0 || n > maxDeleted {
				t.Errorf("%q: %d objects", text, n)
			}
			for _, o := range d.Objects {
				if !utf8.ValidString(o.Key) {
					t.Errorf("%q: the key %q", text, o.Key)
				}
			}
		}
		if list, err := readParts([]byte(text)); err == nil {
			last := uint32(0)
			for _, p := range list {
				if p.Number <= last || p.Number > 10_000 {
					t.Errorf("%q: part %d after %d", text, p.Number, last)
				}
				last = p.Number
			}
			if tag := tagOf(list); tag.Parts != 0 && int(tag.Parts) != len(list) {
				t.Errorf("%q: %d parts", text, tag.Parts)
			}
		}
		var conf bucketConfiguration
		if err := decodeXML([]byte(text), "CreateBucketConfiguration", &conf); err == nil && strings.Contains(text, "<!") && strings.Contains(text, "ENTITY") && !strings.Contains(text, "<!--") && !strings.Contains(text, "CDATA") {
			t.Errorf("%q: a document type", text)
		}
	})
}

func TestDocumentsAreShallow(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("<Delete>", n) + strings.Repeat("</Delete>", n) }
	for text, want := range map[string]error{deep(maxDepth): nil, deep(maxDepth + 1): errMalformedXML, "<Delete/><Delete/>": errMalformedXML, "<!DOCTYPE Delete><Delete/>": errMalformedXML,
		"<Delete><Object><Key>a</Key></Object><Object><Key>b</Key></Object></Delete>": nil, "<Delete><Object><Key>a</Key><Key>b</Key></Object></Delete>": errMalformedXML} {
		if err := checkXML([]byte(text), "Delete"); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
}

// FuzzOperation: every request has an operation or none, and what selects it does not depend on the order of the query.
func FuzzOperation(f *testing.F) {
	for _, text := range []string{"GET / x", "GET /b?list-type=2 x", "PUT /b/k?partNumber=1&uploadId=x s3.test", "HEAD /k b.s3.test", "POST /?delete b.s3.test:1", "DELETE /b/?acl x", "GET /b//k?%61cl x", "PUT //k x"} {
		method, rest, _ := strings.Cut(text, " ")
		target, host, _ := strings.Cut(rest, " ")
		path, query, _ := strings.Cut(target, "?")
		f.Add(method, path, query, host, false)
	}
	h := New(Config{Domain: "s3.test"})
	f.Fuzz(func(t *testing.T, method, path, query, host string, copies bool) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Method, r.Host = method, host
		r.URL = &url.URL{Path: path, RawQuery: query}
		if copies {
			r.Header.Set("X-Amz-Copy-Source", "b/k")
		}
		op := h.Operation(r)
		parts := strings.Split(query, "&")
		for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
			parts[i], parts[j] = parts[j], parts[i]
		}
		r.URL.RawQuery = strings.Join(parts, "&")
		if again := h.Operation(r); again != op {
			t.Errorf("%s %s?%s on %s: %v, and %v", method, path, query, host, op, again)
		}
		if op >= numOps || op != Unknown && operations[op].serve == nil {
			t.Errorf("%v is not implemented", op)
		}
		if target := targetOf(r, h.Domain); op != Unknown && (op == ListBuckets) != (target.bucket == "") {
			t.Errorf("%v of %+v", op, target)
		}
		if reads := method == http.MethodGet || method == http.MethodHead; op != Unknown && reads != (operations[op].scope&operations[GetObject].scope != 0 && op != CopyObject && op != UploadPartCopy) {
			t.Errorf("%s is %v", method, op)
		}
	})
}

// TestOperations names the operation of each kind of request.
func TestOperations(t *testing.T) {
	h := New(Config{Domain: "s3.test"})
	seen := map[Op]bool{Unknown: true}
	for text, want := range map[string]Op{
		"GET / x": ListBuckets, "PUT /b x": CreateBucket, "PUT /b/ x": CreateBucket, "HEAD /b x": HeadBucket, "DELETE /b x": DeleteBucket, "GET /b?location x": GetBucketLocation,
		"GET /b?versioning= x": GetBucketVersioning, "GET /b?acl x": GetBucketAcl, "GET /b x": ListObjects, "GET /b?list-type=1 x": ListObjects, "GET /b?list-type=2 x": ListObjectsV2,
		"GET /b?uploads x": ListMultipartUploads, "POST /b?delete x": DeleteObjects, "PUT /b/k x": PutObject, "PUT /b/k?x-id=PutObject x": PutObject, "COPY /b/k x": CopyObject,
		"GET /b/k x": GetObject, "GET /b/k?partNumber=1 x": GetObject, "HEAD /b/k x": HeadObject, "DELETE /b/k x": DeleteObject, "GET /b/k?acl x": GetObjectAcl, "GET /b/k?tagging x": GetObjectTagging,
		"POST /b/k?uploads x": CreateMultipartUpload, "PUT /b/k?uploadId=1&partNumber=2 x": UploadPart, "COPY /b/k?uploadId=1&partNumber=2 x": UploadPartCopy,
		"GET /b/k?uploadId=1 x": ListParts, "POST /b/k?uploadId=1 x": CompleteMultipartUpload, "DELETE /b/k?uploadId=1 x": AbortMultipartUpload,
		"PUT /k b.s3.test": PutObject, "GET / b.s3.test": ListObjects, "GET / s3.test": ListBuckets, "GET /k/l B.S3.TEST.:80": GetObject,
		"GET /b?policy x": Unknown, "GET /b/k?%74orrent x": Unknown, "DELETE /b/k?acl x": Unknown, "DELETE /b?uploads x": Unknown, "PUT /b/k?acl x": Unknown, "OPTIONS /b/k x": Unknown,
		"POST /b x": Unknown, "GET //k x": Unknown, "PUT / x": Unknown,
	} {
		method, rest, _ := strings.Cut(text, " ")
		target, host, _ := strings.Cut(rest, " ")
		r := &http.Request{Method: method, Host: host, Header: http.Header{}, URL: &url.URL{}}
		r.URL.Path, r.URL.RawQuery, _ = strings.Cut(target, "?")
		if method == "COPY" {
			r.Method, r.Header = http.MethodPut, http.Header{"X-Amz-Copy-Source": {"b/k"}}
		}
		if got := h.Operation(r); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
		seen[want] = true
	}
	for _, op := range Ops() {
		if !seen[op] || op.String() == "" || op != Unknown && op.String() == "Unknown" || op.Lists() && op.Transfers() {
			t.Errorf("%v is not tested", op)
		}
	}
	if Op(200).String() != "Unknown" {
		t.Error(Op(200).String())
	}
}
