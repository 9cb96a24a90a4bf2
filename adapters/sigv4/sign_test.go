package sigv4_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"macronode/adapters/sigv4"
)

const (
	accessKey = "AKIDEXAMPLE"
	secret    = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	region    = "eu-central-1"
	stamp     = "20260504T120000Z"
	unsigned  = "UNSIGNED-PAYLOAD"
)

var (
	at       = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	policy   = sigv4.Policy{Region: region, Service: "s3"}
	identity = aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secret}
	signer   = v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
)

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// newRequest returns a request of a client with a body.
func newRequest(t testing.TB, method, target string, body []byte) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, target, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// signHeader signs with the SDK, in the header Authorization.
func signHeader(t testing.TB, r *http.Request, hash string) {
	t.Helper()
	r.Header.Set("X-Amz-Content-Sha256", hash)
	if err := signer.SignHTTP(context.Background(), identity, r, hash, "s3", region, at); err != nil {
		t.Fatal(err)
	}
}

// presign signs with the SDK, in the query.
func presign(t testing.TB, r *http.Request, hash string, expires time.Duration) *http.Request {
	t.Helper()
	query := r.URL.Query()
	query.Set("X-Amz-Expires", strconv.Itoa(int(expires/time.Second)))
	r.URL.RawQuery = query.Encode()
	uri, header, err := signer.PresignHTTP(context.Background(), identity, r, hash, "s3", region, at)
	if err != nil {
		t.Fatal(err)
	}
	signed := r.Clone(context.Background())
	if signed.URL, err = url.Parse(uri); err != nil {
		t.Fatal(err)
	}
	signed.Header = header
	return signed
}

// receive writes a request and reads it as a server does.
func receive(t testing.TB, r *http.Request) *http.Request {
	t.Helper()
	var wire bytes.Buffer
	if err := r.Write(&wire); err != nil {
		t.Fatal(err)
	}
	got, err := http.ReadRequest(bufio.NewReader(&wire))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// check runs Parse, Verify and Body, and returns the content.
func check(r *http.Request, secret string) ([]byte, error) {
	s, err := sigv4.Parse(r, at, policy)
	if err != nil {
		return nil, err
	}
	if err := s.Verify(secret, nil); err != nil {
		return nil, err
	}
	return io.ReadAll(s.Body(r.Body))
}

// wantCode requires an *Error with a code and a status.
func wantCode(t *testing.T, err error, code string, status int) {
	t.Helper()
	var e *sigv4.Error
	if !errors.As(err, &e) || e.Code != code || e.Status != status {
		t.Fatalf("got %v, want %s with status %d", err, code, status)
	}
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func signingKey(secret, date, region string) []byte {
	return mac(mac(mac(mac([]byte("AWS4"+secret), date), region), "s3"), "aws4_request")
}

// simpleSignature computes a signature from a received request, step by step as the description of
// AWS lists them. It shares no code with the package.
func simpleSignature(r *http.Request, path, signedHeaders, hash, stamp, secret string) string {
	escape := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
	var query []string
	for name, values := range r.URL.Query() {
		for _, value := range values {
			if name != "X-Amz-Signature" {
				query = append(query, escape(name)+"\x00"+escape(value))
			}
		}
	}
	slices.Sort(query)
	headers := ""
	for _, name := range strings.Split(signedHeaders, ";") {
		values := slices.Clone(r.Header.Values(name))
		switch name {
		case "host":
			values = []string{r.Host}
		case "content-length":
			values = []string{strconv.FormatInt(r.ContentLength, 10)}
		case "transfer-encoding":
			values = r.TransferEncoding
		case "expect":
			values = []string{"100-continue"}
		}
		for i := range values {
			values[i] = strings.Trim(values[i], " \t")
			for strings.Contains(values[i], "  ") {
				values[i] = strings.ReplaceAll(values[i], "  ", " ")
			}
		}
		headers += name + ":" + strings.Join(values, ",") + "\n"
	}
	canonical := strings.Join([]string{r.Method, path, strings.ReplaceAll(strings.Join(query, "&"), "\x00", "="), headers, signedHeaders, hash}, "\n")
	text := strings.Join([]string{"AWS4-HMAC-SHA256", stamp, stamp[:8] + "/" + region + "/s3/aws4_request", hexSum([]byte(canonical))}, "\n")
	return hex.EncodeToString(mac(signingKey(secret, stamp[:8], region), text))
}
