// Package s3sign signs requests for S3 with AWS Signature Version 4. The body is not signed.
package s3sign

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Credentials are those of an S3 client.
type Credentials struct {
	AccessKey string `json:"access_key_id"`
	Secret    string `json:"secret_access_key"`
	Region    string `json:"region"`
}

// A Signer signs requests. It is not safe for concurrent use.
type Signer struct {
	Credentials
	host string
	day  string
	key  []byte // of the day
}

// New returns a signer for the requests to a host.
func New(c Credentials, host string) *Signer { return &Signer{Credentials: c, host: host} }

const (
	service  = "s3"
	unsigned = "UNSIGNED-PAYLOAD"
	names    = "host;x-amz-content-sha256;x-amz-date"
)

// Append appends the header lines of a signed request to to. The path has no characters that need an escape, and there is no query.
func (s *Signer) Append(to []byte, method, path string, at time.Time) []byte {
	stamp := at.UTC().Format("20060102T150405Z")
	day := stamp[:8]
	if day != s.day {
		key := sum([]byte("AWS4"+s.Secret), day)
		s.day, s.key = day, sum(sum(sum(key, s.Region), service), "aws4_request")
	}
	canonical := method + "\n" + path + "\n\nhost:" + s.host + "\nx-amz-content-sha256:" + unsigned + "\nx-amz-date:" + stamp + "\n\n" + names + "\n" + unsigned
	hash := sha256.Sum256([]byte(canonical))
	scope := day + "/" + s.Region + "/" + service + "/aws4_request"
	signature := sum(s.key, "AWS4-HMAC-SHA256\n"+stamp+"\n"+scope+"\n"+hex.EncodeToString(hash[:]))
	to = append(to, "X-Amz-Content-Sha256: "+unsigned+"\r\nX-Amz-Date: "+stamp+"\r\nAuthorization: AWS4-HMAC-SHA256 Credential="...)
	to = append(to, s.AccessKey+"/"+scope+", SignedHeaders="+names+", Signature="...)
	return append(hex.AppendEncode(to, signature), "\r\n"...)
}

func sum(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte(text)) // a hash does not fail
	return h.Sum(nil)
}
