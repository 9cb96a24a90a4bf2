// Package bucket keeps the files of a provider in a bucket of a server with the S3 protocol:
//
//	Create ──► draft in the spool directory ──► Put ──► PUT prefix/name, If-None-Match: *
//	Open   ──► HEAD ──► ReadAt ──► GET with a range
//
// A draft is a file on this machine, because the name of a file is known only when its content is complete. Every request ends within
// a time that the size of its content limits. What the bucket returns is not trusted: the caller verifies it.
package bucket

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"macronode/adapters/fs"
	"macronode/adapters/provider"
)

// Config is where a bucket is.
type Config struct {
	Endpoint        string // URL of the server
	Region          string // of the signature
	Bucket          string
	Prefix          string // of the names, without a slash at its end; empty: there is none
	CredentialsFile string // has the ID of the access key and the secret key, a line each; it is read for each request, so it can be replaced
	CAFile          string // certificates that sign that of the server; empty: those of the system
	Spool           fs.Dir // of drafts, on this machine
	Requests        int    // at once; 0: MaxRequests
}

// Limits of requests.
const (
	MaxRequests   = 256                    // at once; a further one waits, and fails with provider.ErrBusy
	MaxIdleConns  = 32                     // connections without requests
	firstByte     = time.Second            // until the head of a response to a read, with all attempts
	progress      = time.Second            // until a part of a body, beside the time of its bytes
	readRate      = 1 << 20                // bytes per second of a part; a slower one fails
	answer        = 5 * time.Second        // until the response to another request, with all attempts
	putProgress   = 5 * time.Second        // between two parts of a body that is sent
	putRate       = 4 << 20                // bytes per second of a put; a slower one fails
	settleRate    = 64 << 20               // bytes per second by which a server stores a body that it has
	attempts      = 3                      // of a request that may be repeated
	minBackoff    = 50 * time.Millisecond  // between two attempts
	maxBackoff    = 100 * time.Millisecond // between two attempts
	connTimeout   = time.Second            // of a connection, and of its TLS handshake
	idleTimeout   = time.Minute            // of a connection without requests
	maxSecretFile = 4096                   // bytes of the file with the credentials
	maxHeader     = 64 << 10               // bytes of the header of a response
	maxAnswer     = 4 << 20                // bytes of a body that is no content of a file
	pageKeys      = 1000                   // names in a page of a list
)

// RequestBytes is the memory of a request, at most, without the buffer of its caller.
const RequestBytes = 128 << 10

// Bucket is a provider.Port to a bucket. It is safe for concurrent use; an open file is not.
type Bucket struct {
	Config
	client *s3.Client
	slots  chan struct{} // has an element for each request
}

// New returns a bucket. It reads and makes nothing.
func New(c Config) *Bucket {
	b := &Bucket{Config: c, slots: make(chan struct{}, cmp.Or(c.Requests, MaxRequests))}
	b.client = s3.New(s3.Options{
		BaseEndpoint: &b.Endpoint, Region: b.Region, UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(b.credentials),
		HTTPClient: &http.Client{Transport: b.transport(),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		Retryer:                    aws.NopRetryer{}, // call repeats, within its own time
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	})
	return b
}

// begin waits until a request may begin. A request that has begun calls end.
func (b *Bucket) begin(ctx context.Context) error {
	select {
	case b.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return provider.ErrBusy
	}
}

func (b *Bucket) end() { <-b.slots }

// credentials reads the credentials.
func (b *Bucket) credentials(context.Context) (aws.Credentials, error) {
	text, err := os.ReadFile(b.CredentialsFile)
	if err != nil {
		return aws.Credentials{}, unreadable(err)
	}
	lines := strings.Fields(string(text))
	if len(lines) != 2 || len(text) > maxSecretFile || len(strings.Split(strings.TrimSpace(string(text)), "\n")) != 2 {
		return aws.Credentials{}, secretError(b.CredentialsFile + " must have two lines: the ID of the access key, and the secret key")
	}
	return aws.Credentials{AccessKeyID: lines[0], SecretAccessKey: lines[1]}, nil
}

// secretError is why the credentials cannot be read. It is not the error of a file of the bucket.
type secretError string

func (e secretError) Error() string { return "credentials: " + string(e) }

// unreadable returns why a file of the credentials cannot be read. If the node has too many open files, the error says so.
func unreadable(err error) error {
	if provider.IsShortage(err) {
		return err
	}
	return secretError(err.Error())
}

// key returns the key of a file.
func (b *Bucket) key(name string) *string {
	if b.Prefix != "" {
		name = b.Prefix + "/" + name
	}
	return &name
}

// Local returns the spool directory.
func (b *Bucket) Local() (fs.Dir, bool) { return b.Spool, true }

// Free returns the free bytes of the spool directory: the size of a bucket has no limit that is known here.
func (b *Bucket) Free() (uint64, error) { return b.Spool.Free() }

// Flush does nothing: a file is durable when its put is answered.
func (b *Bucket) Flush() error { return nil }
