// Package s3compare sends the same requests of S3 to this node and to another server, and compares the answers.
// Every difference must be in the list of known differences of adapters/s3.
package s3compare

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"macronode/adapters/s3"
)

const region = "us-east-1"

// A Server is an S3 server that is compared. Saved has what earlier answers contained, by the name of the variable.
type Server struct {
	URL               string
	AccessKey, Secret string
	Saved             map[string]string
}

// A Request is one line of the table. Header has lines "Name: value"; those that begin with ! change the signature.
// {NAME} stands for what an earlier answer contained, and in headers {md5}, {crc32}, {crc32c}, {sha1} and {sha256}
// for a digest of the body.
type Request struct {
	Name   string
	Target string // METHOD PATH?QUERY
	Header string
	Body   string
	Save   string // VARIABLE=ELEMENT or VARIABLE=HEADER of the answer
}

// Operation returns the operation for which the node takes the request.
func (q *Request) Operation() s3.Op {
	method, target, _ := strings.Cut(q.Target, " ")
	path, query, _ := strings.Cut(target, "?")
	r := &http.Request{Method: method, URL: &url.URL{Path: path, RawQuery: query}, Header: http.Header{}}
	for line := range strings.Lines(q.Header) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		r.Header.Add(name, value)
	}
	return (&s3.Handler{}).Operation(r)
}

// Send sends a request and returns its answer.
func (s *Server) Send(ctx context.Context, q *Request) (*Answer, error) {
	method, target, _ := strings.Cut(s.expand(q.Target, ""), " ")
	body := s.expand(q.Body, "")
	r, err := http.NewRequestWithContext(ctx, method, s.URL+target, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	how := signing{key: s.AccessKey, secret: s.Secret, region: region, at: time.Now()}
	for line := range strings.Lines(q.Header) {
		name, value, _ := strings.Cut(strings.TrimSpace(s.expand(line, body)), ": ")
		if strings.HasPrefix(name, "!") {
			how.change(name, value)
		} else {
			r.Header.Set(name, value)
		}
	}
	if err := how.sign(ctx, r, body); err != nil {
		return nil, err
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q.Name, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q.Name, err)
	}
	a := newAnswer(response, content)
	if name, from, ok := strings.Cut(q.Save, "="); ok {
		if s.Saved[name] = a.find(from); s.Saved[name] == "" {
			return nil, fmt.Errorf("%s: the answer has no %s: %d %s", q.Name, from, response.StatusCode, content)
		}
	}
	return a, nil
}

// expand replaces the variables of a text.
func (s *Server) expand(text, body string) string {
	if !strings.Contains(text, "{") {
		return text
	}
	b := []byte(body)
	m, s1, s2 := md5.Sum(b), sha1.Sum(b), sha256.Sum256(b)
	all := []string{"{md5}", encode(m[:]), "{sha1}", encode(s1[:]), "{sha256}", encode(s2[:]), "{crc32}", encodeCRC(b, crc32.IEEE),
		"{crc32c}", encodeCRC(b, crc32.Castagnoli), "{5MiB}", strings.Repeat("12345", 1<<20)}
	for name, value := range s.Saved {
		all = append(all, "{"+name+"}", value)
	}
	return strings.NewReplacer(all...).Replace(text)
}

func encode(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func encodeCRC(b []byte, polynomial uint32) string {
	h := crc32.New(crc32.MakeTable(polynomial))
	_, _ = h.Write(b)
	return encode(h.Sum(nil))
}

// signing is how a request is signed.
type signing struct {
	key, secret, region string
	at                  time.Time
	anonymous, query    bool
	hash                string // of the body, as the client declares it
}

// change applies a line of the header that begins with !.
func (s *signing) change(name, value string) {
	switch name {
	case "!key":
		s.key = value
	case "!secret":
		s.secret = value
	case "!region":
		s.region = value
	case "!skew":
		skew, err := time.ParseDuration(value)
		if err != nil {
			panic(err)
		}
		s.at = s.at.Add(skew)
	case "!anonymous":
		s.anonymous = true
	case "!query":
		s.query = true
	case "!hash":
		s.hash = value
	default:
		panic(name)
	}
}

// sign signs r.
func (s *signing) sign(ctx context.Context, r *http.Request, body string) error {
	if s.anonymous {
		return nil
	}
	if s.hash == "" {
		sum := sha256.Sum256([]byte(body))
		s.hash = hex.EncodeToString(sum[:])
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	credentials := aws.Credentials{AccessKeyID: s.key, SecretAccessKey: s.secret}
	if !s.query {
		r.Header.Set("X-Amz-Content-Sha256", s.hash)
		return signer.SignHTTP(ctx, credentials, r, s.hash, "s3", s.region, s.at)
	}
	q := r.URL.Query()
	q.Set("X-Amz-Expires", "600")
	r.URL.RawQuery = q.Encode()
	signed, header, err := signer.PresignHTTP(ctx, credentials, r, "UNSIGNED-PAYLOAD", "s3", s.region, s.at)
	if err != nil {
		return err
	}
	to, err := http.NewRequestWithContext(ctx, r.Method, signed, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	to.Header = header
	*r = *to
	return nil
}
