package sigv4_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"macronode/adapters/sigv4"
)

// A recorder verifies each request and keeps what the last one contained.
type recorder struct {
	mu      sync.Mutex
	hash    string
	content []byte
	trailer map[string]string
	err     error
}

// ServeHTTP implements http.Handler.
func (h *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hash, h.content, h.trailer = r.Header.Get("X-Amz-Content-Sha256"), nil, nil
	s, err := sigv4.Parse(r, time.Now(), policy)
	if err == nil {
		err = s.Verify(secret, nil)
	}
	if err == nil {
		b := s.Body(r.Body)
		h.content, err = io.ReadAll(b)
		h.trailer = b.Trailer()
	}
	if h.err = err; err != nil {
		w.WriteHeader(http.StatusForbidden)
	}
}

// newClient returns a client of the SDK for a server.
func newClient(server *httptest.Server) *s3.Client {
	return s3.New(s3.Options{Region: region, BaseEndpoint: aws.String(server.URL), UsePathStyle: true, HTTPClient: server.Client(), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, secret, "")})
}

// keys are object keys that clients encode in different ways.
var keys = []string{"key", "a b", "a+b", "a/b//c", "ä€", "a%2Fb", "..", "a/../b", "~!*'();:@&=$,?#[]", "trailing/"}

// TestClientOfSDKPuts uploads with the client of the SDK: over TLS in chunks with an unsigned
// trailer, over plain HTTP with a hash of the payload.
func TestClientOfSDKPuts(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 20_000)
	for _, secure := range []bool{true, false} {
		h := &recorder{}
		server := httptest.NewUnstartedServer(h)
		if secure {
			server.StartTLS()
		} else {
			server.Start()
		}
		t.Cleanup(server.Close)
		client := newClient(server)
		for _, key := range keys {
			_, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("bucket"), Key: aws.String(key), Body: bytes.NewReader(content),
				ChecksumAlgorithm: types.ChecksumAlgorithmCrc32, ContentType: aws.String("text/plain"), Metadata: map[string]string{"one": " a  b ", "two": "x"}})
			if err != nil || h.err != nil || !bytes.Equal(h.content, content) {
				t.Fatalf("TLS %v, key %q: %v, %v, %d bytes", secure, key, err, h.err, len(h.content))
			}
			if chunked := h.hash == trailerUnsigned; chunked != secure {
				t.Errorf("TLS %v: payload %s", secure, h.hash)
			}
			sum := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(content)))
			if secure && h.trailer[crcName] != sum {
				t.Errorf("trailer %v, want %s", h.trailer, sum)
			}
			_, err = client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("bucket"), Prefix: aws.String(key), Delimiter: aws.String("/")})
			if h.err != nil {
				t.Errorf("TLS %v, list %q: %v, %v", secure, key, err, h.err)
			}
		}
		_, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("bucket"), Key: aws.String("key"), Body: bytes.NewReader(content)},
			s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware))
		if err != nil || h.err != nil {
			t.Errorf("TLS %v, unsigned payload: %v, %v", secure, err, h.err)
		}
	}
}

// TestPresignClientOfSDK uses URLs of the presign client, with and without signed headers.
func TestPresignClientOfSDK(t *testing.T) {
	h := &recorder{}
	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)
	client := s3.NewPresignClient(newClient(server))
	for _, key := range keys {
		get, err := client.PresignGetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("bucket"), Key: aws.String(key),
			ResponseContentType: aws.String("text/plain; charset=utf-8")}, s3.WithPresignExpires(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		send(t, server, h, get, "")
		put, err := client.PresignPutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("bucket"), Key: aws.String(key), ContentLength: aws.Int64(5),
			ContentType: aws.String("text/plain"), RequestPayer: types.RequestPayerRequester, Metadata: map[string]string{"one": "a"}})
		if err != nil {
			t.Fatal(err)
		}
		send(t, server, h, put, "hello")
		if string(h.content) != "hello" {
			t.Errorf("content %q", h.content)
		}
	}
}

// send uses a presigned URL and requires that it verifies.
func send(t *testing.T, server *httptest.Server, h *recorder, p *v4.PresignedHTTPRequest, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), p.Method, p.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range p.SignedHeader {
		if name != "Host" && name != "Content-Length" {
			r.Header[name] = values
		}
	}
	response, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if h.err != nil {
		t.Errorf("%s %s: %v", p.Method, p.URL, h.err)
	}
}
