package sigv4_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"macronode/adapters/sigv4"
)

// The examples of the S3 documentation have this secret, region and day.
const exampleSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

var (
	exampleAt     = time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	examplePolicy = sigv4.Policy{Region: "us-east-1", Service: "s3"}
)

func example(t *testing.T, method, target, body string, header map[string]string, signed, signature string) *http.Request {
	t.Helper()
	r := newRequest(t, method, target, []byte(body))
	for name, value := range header {
		r.Header.Set(name, value)
	}
	if signed != "" {
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders="+
			signed+",Signature="+signature)
	}
	return receive(t, r)
}

// TestDocumentationExamplesVerify checks the published examples of S3: signature in the header with
// and without a body, sub-resource, list, presigned URL.
func TestDocumentationExamplesVerify(t *testing.T) {
	const host, empty = "https://examplebucket.s3.amazonaws.com", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	date := map[string]string{"x-amz-date": "20130524T000000Z", "x-amz-content-sha256": empty}
	for name, r := range map[string]*http.Request{
		"get a range": example(t, "GET", host+"/test.txt", "", map[string]string{"Range": "bytes=0-9", "x-amz-date": "20130524T000000Z", "x-amz-content-sha256": empty},
			"host;range;x-amz-content-sha256;x-amz-date", "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
		"put": example(t, "PUT", host+"/test$file.text", "Welcome to Amazon S3.", map[string]string{"Date": "Fri, 24 May 2013 00:00:00 GMT",
			"x-amz-date": "20130524T000000Z", "x-amz-storage-class": "REDUCED_REDUNDANCY", "x-amz-content-sha256": "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"},
			"date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class", "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
		"sub-resource": example(t, "GET", host+"/?lifecycle", "", date, "host;x-amz-content-sha256;x-amz-date",
			"fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
		"list": example(t, "GET", host+"/?max-keys=2&prefix=J", "", date, "host;x-amz-content-sha256;x-amz-date",
			"34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
		"presigned": example(t, "GET", host+"/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"+
			"&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
			"", nil, "", ""),
	} {
		s, err := sigv4.Parse(r, exampleAt, examplePolicy)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := s.Verify(exampleSecret, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := io.ReadAll(s.Body(r.Body)); err != nil {
			t.Errorf("%s: body: %v", name, err)
		}
		if s.AccessKey() != "AKIAIOSFODNN7EXAMPLE" || s.Presigned() != (name == "presigned") {
			t.Errorf("%s: access key %s, presigned %v", name, s.AccessKey(), s.Presigned())
		}
	}
}

// streamingExample returns the published upload in chunks, with or without a signed trailer.
func streamingExample(t *testing.T, trailer bool) *http.Request {
	t.Helper()
	header := map[string]string{"x-amz-date": "20130524T000000Z", "x-amz-storage-class": "REDUCED_REDUNDANCY", "Content-Encoding": "aws-chunked",
		"x-amz-decoded-content-length": "66560", "x-amz-content-sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"}
	signed, seed := "content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class",
		"4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"
	signatures := []string{"ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
		"0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497", "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"}
	tail := ""
	if trailer {
		header["x-amz-content-sha256"], header["x-amz-trailer"] = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", "x-amz-checksum-crc32c"
		signed, seed = "content-encoding;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class;x-amz-trailer",
			"106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e"
		signatures = []string{"b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
			"1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7", "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992"}
		tail = "x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n"
	}
	body := "10000;chunk-signature=" + signatures[0] + "\r\n" + strings.Repeat("a", 65536) + "\r\n400;chunk-signature=" + signatures[1] + "\r\n" +
		strings.Repeat("a", 1024) + "\r\n0;chunk-signature=" + signatures[2] + "\r\n" + tail + "\r\n"
	return example(t, "PUT", "https://s3.amazonaws.com/examplebucket/chunkObject.txt", body, header, signed, seed)
}

// TestStreamingExamplesVerify decodes both published uploads in chunks.
func TestStreamingExamplesVerify(t *testing.T) {
	for _, trailer := range []bool{false, true} {
		r := streamingExample(t, trailer)
		s, err := sigv4.Parse(r, exampleAt, examplePolicy)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Verify(exampleSecret, nil); err != nil {
			t.Fatal(err)
		}
		b := s.Body(r.Body)
		if n, ok := b.Length(); n != 66560 || !ok {
			t.Errorf("length %d, %v", n, ok)
		}
		content, err := io.ReadAll(b)
		if err != nil || !bytes.Equal(content, bytes.Repeat([]byte("a"), 66560)) {
			t.Fatalf("trailer %v: %d bytes, %v", trailer, len(content), err)
		}
		if got := b.Trailer()["x-amz-checksum-crc32c"]; trailer && got != "sOO8/Q==" || !trailer && len(b.Trailer()) != 0 {
			t.Errorf("trailer %v", b.Trailer())
		}
	}
}
