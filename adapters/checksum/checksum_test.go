package checksum_test

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"macronode/adapters/checksum"
)

func sum(a checksum.Algorithm, content []byte) []byte {
	h := checksum.New(a)
	h.Write(content)
	return h.Sum(nil)
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var e *checksum.Error
	if !errors.As(err, &e) || e.Code != code || e.Status != http.StatusBadRequest {
		t.Errorf("got %v, want %s with status 400", err, code)
	}
}

// TestCheckValues compares each algorithm with published check values: of the CRC catalogue for
// "123456789", of FIPS 180 for "abc", of the NVMe specification and of RFC 3720.
func TestCheckValues(t *testing.T) {
	zeros, ones := make([]byte, 4096), bytes.Repeat([]byte{0xff}, 4096)
	for _, c := range []struct {
		algorithm checksum.Algorithm
		content   []byte
		want      string
	}{
		{checksum.CRC32, []byte("123456789"), "cbf43926"},
		{checksum.CRC32C, []byte("123456789"), "e3069283"},
		{checksum.CRC32C, zeros[:32], "8a9136aa"},
		{checksum.CRC32C, ones[:32], "62a8ab43"},
		{checksum.CRC64NVME, []byte("123456789"), "ae8b14860a799888"},
		{checksum.CRC64NVME, zeros, "6482d367eb22b64e"},
		{checksum.CRC64NVME, ones, "c0ddba7302eca3ac"},
		{checksum.SHA1, []byte("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d"},
		{checksum.SHA256, []byte("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
	} {
		got := sum(c.algorithm, c.content)
		if hex.EncodeToString(got) != c.want || len(got) != c.algorithm.Size() {
			t.Errorf("%s of %d bytes: %x, want %s", c.algorithm, len(c.content), got, c.want)
		}
	}
	if got := checksum.Encode(sum(checksum.CRC64NVME, []byte("123456789"))); got != "rosUhgp5mIg=" {
		t.Errorf("encoded %s", got)
	}
}

// TestNames checks the names of S3 for algorithms, headers and types.
func TestNames(t *testing.T) {
	headers := map[checksum.Algorithm]string{checksum.CRC32: "x-amz-checksum-crc32", checksum.CRC32C: "x-amz-checksum-crc32c",
		checksum.CRC64NVME: "x-amz-checksum-crc64nvme", checksum.SHA1: "x-amz-checksum-sha1", checksum.SHA256: "x-amz-checksum-sha256"}
	for _, a := range checksum.Algorithms {
		if a.Header() != headers[a] {
			t.Errorf("%s: header %s", a, a.Header())
		}
		if got, ok := checksum.ParseAlgorithm(a.String()); got != a || !ok {
			t.Errorf("%s is read as %s", a, got)
		}
		if full := a == checksum.CRC32 || a == checksum.CRC32C || a == checksum.CRC64NVME; a.HasFullObject() != full || a.HasComposite() == (a == checksum.CRC64NVME) {
			t.Errorf("%s: full object %v, composite %v", a, a.HasFullObject(), a.HasComposite())
		}
	}
	if got, ok := checksum.ParseAlgorithm("crc64nvme"); got != checksum.CRC64NVME || !ok {
		t.Error("case matters")
	}
	for _, name := range []string{"", "MD5"} {
		if _, ok := checksum.ParseAlgorithm(name); ok {
			t.Errorf("%q is an algorithm", name)
		}
	}
	for name, want := range map[string]checksum.Type{"COMPOSITE": checksum.Composite, "FULL_OBJECT": checksum.FullObject} {
		if got, ok := checksum.ParseType(name); got != want || !ok || got.String() != name {
			t.Errorf("type %s is read as %s", name, got)
		}
	}
	if _, ok := checksum.ParseType(""); ok {
		t.Error("an empty type is accepted")
	}
}

// head returns headers from pairs of name and value.
func head(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

const (
	crc32Of  = "y/Q5Jg==" // CRC32 of "123456789"
	md5Of    = "JfnnlDI7RTiF9RgfG2JNCw=="
	sha1Name = "x-amz-checksum-sha1"
)

// TestParse reads the headers that clients send.
func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		header    http.Header
		algorithm checksum.Algorithm
		inTrailer bool
	}{
		"nothing":          {head(), checksum.None, false},
		"header":           {head("x-amz-checksum-crc32", crc32Of, "x-amz-sdk-checksum-algorithm", "CRC32"), checksum.CRC32, false},
		"trailer":          {head("x-amz-trailer", "x-amz-checksum-crc64nvme", "x-amz-sdk-checksum-algorithm", "CRC64NVME"), checksum.CRC64NVME, true},
		"other trailers":   {head("x-amz-trailer", "x-a, X-Amz-Checksum-Sha1", "x-amz-trailer", "x-b"), checksum.SHA1, true},
		"other headers":    {head("x-amz-checksum-type", "COMPOSITE", "x-amz-checksum-algorithm", "SHA256", "x-amz-checksum-mode", "ENABLED"), checksum.None, false},
		"only Content-MD5": {head("Content-MD5", md5Of), checksum.None, false},
	} {
		e, err := checksum.Parse(c.header)
		if err != nil || e.Algorithm != c.algorithm || e.InTrailer() != c.inTrailer || (e.MD5 != nil) != (c.header.Get("Content-Md5") != "") {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

// TestParseRefusals checks each rejection.
func TestParseRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		header http.Header
		code   string
	}{
		"two headers":               {head("x-amz-checksum-crc32", crc32Of, "x-amz-checksum-crc32c", crc32Of), "InvalidRequest"},
		"header repeated":           {head("x-amz-checksum-crc32", crc32Of, "x-amz-checksum-crc32", crc32Of), "InvalidRequest"},
		"not base64":                {head("x-amz-checksum-crc32", "y/Q5J?=="), "InvalidRequest"},
		"line end after base64":     {head("x-amz-checksum-crc32", crc32Of+"\r\n"), "InvalidRequest"},
		"line ends in base64":       {head(sha1Name, "AAAAAAAAAAAA\r\n\r\nAAAAAAAAAAAA"), "InvalidRequest"},
		"unused bits":               {head("x-amz-checksum-crc32", "y/Q5Jh=="), "InvalidRequest"},
		"wrong length":              {head(sha1Name, crc32Of), "InvalidRequest"},
		"empty":                     {head(sha1Name, ""), "InvalidRequest"},
		"unknown algorithm":         {head("x-amz-checksum-sha512", crc32Of), "InvalidRequest"},
		"header and trailer":        {head("x-amz-checksum-crc32", crc32Of, "x-amz-trailer", sha1Name), "InvalidRequest"},
		"two in the trailer":        {head("x-amz-trailer", sha1Name+",x-amz-checksum-crc32"), "InvalidRequest"},
		"unknown in the trailer":    {head("x-amz-trailer", "x-amz-checksum-xxhash64"), "InvalidRequest"},
		"unknown algorithm of SDK":  {head("x-amz-sdk-checksum-algorithm", "XXHASH3", "x-amz-checksum-crc32", crc32Of), "InvalidRequest"},
		"other algorithm of SDK":    {head("x-amz-sdk-checksum-algorithm", "CRC32C", "x-amz-checksum-crc32", crc32Of), "InvalidRequest"},
		"other in the trailer":      {head("x-amz-sdk-checksum-algorithm", "CRC32C", "x-amz-trailer", sha1Name), "InvalidRequest"},
		"algorithm without a value": {head("x-amz-sdk-checksum-algorithm", "CRC32C"), "InvalidRequest"},
		"algorithm of SDK repeated": {head("x-amz-sdk-checksum-algorithm", "CRC32", "x-amz-sdk-checksum-algorithm", "CRC32", "x-amz-checksum-crc32", crc32Of), "InvalidRequest"},
		"Content-MD5 not base64":    {head("Content-MD5", "?"), "InvalidDigest"},
		"Content-MD5 of 4 bytes":    {head("Content-MD5", crc32Of), "InvalidDigest"},
		"Content-MD5 empty":         {head("Content-MD5", ""), "InvalidDigest"},
		"Content-MD5 repeated":      {head("Content-MD5", md5Of, "Content-MD5", md5Of), "InvalidDigest"},
	} {
		_, err := checksum.Parse(c.header)
		t.Run(name, func(t *testing.T) { wantCode(t, err, c.code) })
	}
}

// TestParseNamesMissingValue: the message tells a missing checksum from another one.
func TestParseNamesMissingValue(t *testing.T) {
	_, err := checksum.Parse(head("x-amz-sdk-checksum-algorithm", "CRC32C"))
	if err == nil || !strings.Contains(err.Error(), "no header or trailer") {
		t.Error(err)
	}
}

// TestVerifier checks content against the header, the trailer and Content-MD5.
func TestVerifier(t *testing.T) {
	content := []byte("123456789")
	digest := md5.Sum(content)
	value := checksum.Encode(sum(checksum.SHA1, content))
	trailer := head("x-amz-trailer", sha1Name)
	for name, c := range map[string]struct {
		header  http.Header
		trailer map[string]string
		content string
		code    string
	}{
		"nothing":                 {head(), nil, "123456789", ""},
		"header":                  {head("x-amz-checksum-crc32", crc32Of), nil, "123456789", ""},
		"header, other content":   {head("x-amz-checksum-crc32", crc32Of), nil, "123456780", "BadDigest"},
		"header, trailer ignored": {head("x-amz-checksum-crc32", crc32Of), map[string]string{"x-amz-checksum-crc32": "?"}, "123456789", ""},
		"trailer":                 {trailer, map[string]string{sha1Name: value}, "123456789", ""},
		"trailer, other content":  {trailer, map[string]string{sha1Name: value}, "12345678", "BadDigest"},
		"trailer missing":         {trailer, nil, "123456789", "MalformedTrailerError"},
		"trailer malformed":       {trailer, map[string]string{sha1Name: crc32Of}, "123456789", "InvalidRequest"},
		"MD5":                     {head("Content-MD5", checksum.Encode(digest[:])), nil, "123456789", ""},
		"MD5, other content":      {head("Content-MD5", checksum.Encode(digest[:])), nil, "", "BadDigest"},
		"both, MD5 wrong":         {head("Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA==", "x-amz-checksum-crc32", crc32Of), nil, "123456789", "BadDigest"},
	} {
		e, err := checksum.Parse(c.header)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		v := checksum.NewVerifier(e)
		for i := range len(c.content) {
			if n, err := v.Write([]byte{c.content[i]}); n != 1 || err != nil {
				t.Fatalf("%s: wrote %d, %v", name, n, err)
			}
		}
		err = v.Check(c.trailer)
		t.Run(name, func(t *testing.T) {
			if c.code != "" {
				wantCode(t, err, c.code)
			} else if err != nil {
				t.Error(err)
			}
			if e.Algorithm == checksum.None && v.Sum() != nil || e.Algorithm != checksum.None && !bytes.Equal(v.Sum(), sum(e.Algorithm, []byte(c.content))) {
				t.Errorf("sum %x", v.Sum())
			}
		})
	}
}

// TestClientOfSDK uploads with each algorithm. Over plain HTTP the client sends the checksum in a
// header, over TLS in the trailer.
func TestClientOfSDK(t *testing.T) {
	content := bytes.Repeat([]byte("macronode"), 10_000)
	for _, secure := range []bool{false, true} {
		var header http.Header
		var body []byte
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			header = r.Header
			body, _ = io.ReadAll(r.Body)
		}))
		if secure {
			server.StartTLS()
		} else {
			server.Start()
		}
		t.Cleanup(server.Close)
		client := s3.New(s3.Options{Region: "eu-central-1", BaseEndpoint: aws.String(server.URL), UsePathStyle: true, HTTPClient: server.Client(),
			RetryMaxAttempts: 1, Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", "")})
		for _, a := range checksum.Algorithms {
			_, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("bucket"), Key: aws.String("key"),
				Body: bytes.NewReader(content), ChecksumAlgorithm: types.ChecksumAlgorithm(a.String())})
			if err != nil {
				t.Fatal(err)
			}
			e, err := checksum.Parse(header)
			if err != nil || e.Algorithm != a || e.InTrailer() != secure {
				t.Fatalf("%s: %+v, %v", a, e, err)
			}
			value := checksum.Encode(sum(a, content))
			if secure && !bytes.Contains(body, []byte(a.Header()+":"+value)) || !secure && checksum.Encode(e.Sum) != value {
				t.Errorf("%s: %s is not what the client sent", a, value)
			}
		}
	}
}
