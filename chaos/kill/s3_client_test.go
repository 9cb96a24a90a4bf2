package kill_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"

	"macronode/core/types"
)

const (
	s3Bucket    = "photos"
	mib         = 1 << 20
	minPartSize = 5 * mib // of each part but the last
)

// sharedKeys are written by all clients.
var sharedKeys = [...]string{"a", "a/b", "a b+ä", "z"}

// A credential is what the command keys s3 prints.
type credential struct {
	ID       string `json:"access_key_id"`
	Secret   string `json:"secret_access_key"`
	Region   string `json:"region"`
	Endpoint string `json:"endpoint_url"`
}

// connect returns a client of the SDK that does not retry, and its HTTP client.
func (c *credential) connect() (*sdk.Client, *http.Client) {
	direct := &http.Client{Transport: &http.Transport{}}
	return sdk.New(sdk.Options{BaseEndpoint: aws.String(c.Endpoint), Region: c.Region, UsePathStyle: true, HTTPClient: direct, Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider(c.ID, c.Secret, "")}), direct
}

// A pendingUpload is a multipart upload whose end was not answered.
type pendingUpload struct {
	key, id  string
	parts    []s3types.CompletedPart
	complete *keyWrite // nil if completing it was not tried
	tried    bool      // completing it was sent
	aborted  bool      // aborting it was sent
}

// An s3Client sends one request at a time.
type s3Client struct {
	number  int
	sdk     *sdk.Client
	http    *http.Client
	history *keyHistory
	dice    types.Rand
	count   int // of contents
	pending *pendingUpload
	own     []byte // the content of the key of its own, if it was acknowledged

	writes, reads, lists, refusals int
	cut                            int // paid writes without an answer
}

func newS3Client(number int, of *credential, h *keyHistory) *s3Client {
	c := &s3Client{number: number, history: h, dice: types.NewRand(*seed + uint64(number)<<32)}
	c.sdk, c.http = of.connect()
	return c
}

// errGone reports that the node did not answer.
var errGone = errors.New("no answer")

// An outcome is what an answer says about a write.
type outcome struct {
	state writeState
	sent  bool   // false: the request did not reach the node
	code  string // of the error
}

// outcomeOf reads the answer of a request. Its error is errGone, or that of an answer that no request of this test may get.
func outcomeOf(err error) (outcome, error) {
	var status interface{ HTTPStatusCode() int }
	var api interface{ ErrorCode() string }
	switch {
	case err == nil:
		return outcome{acknowledged, true, ""}, nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return outcome{state: refused}, errGone
	case !errors.As(err, &status) || !errors.As(err, &api):
		return outcome{state: unanswered, sent: true}, errGone
	}
	o := outcome{unanswered, true, api.ErrorCode()}
	switch o.code {
	case "QuotaExceeded", "PaymentRequired", "NoSuchKey", "NoSuchUpload":
		o.state = refused
	case "SlowDown", "ServiceUnavailable":
	default:
		if !strings.Contains(err.Error(), "outcome is not known") {
			return o, err
		}
	}
	return o, nil
}

// end notes the answer of a write. paid reports that the request reserves a price.
func (c *s3Client) end(w *keyWrite, paid bool, etag *string, err error) (outcome, error) {
	o, bad := outcomeOf(err)
	if c.history.finish(w, o.state, unquoted(etag)); o.state == acknowledged {
		c.writes++
		if want := unquoted(etag); etag != nil && !w.copies && want != w.etag {
			bad = fmt.Errorf("%s: acknowledged with the ETag %q, want %q", w.key, want, w.etag)
		}
	}
	if o.state == refused && o.sent {
		c.refusals++
	}
	if o.state == unanswered && paid {
		c.cut++
	}
	return o, bad
}

func unquoted(etag *string) string { return strings.Trim(aws.ToString(etag), `"`) }

// run sends requests until the node does not answer.
func (c *s3Client) run(ctx context.Context) error {
	defer c.http.CloseIdleConnections()
	for ctx.Err() == nil {
		if err := c.step(ctx); errors.Is(err, errGone) {
			return nil
		} else if err != nil {
			return fmt.Errorf("client %d: %w", c.number, err)
		}
	}
	return nil
}

func (c *s3Client) step(ctx context.Context) error {
	if c.pending != nil {
		return c.resume(ctx)
	}
	key := sharedKeys[c.dice.Uint64n(uint64(len(sharedKeys)))]
	switch c.dice.Uint64n(12) {
	case 0, 1, 2:
		return c.put(ctx, key, c.fresh())
	case 3, 4:
		return c.putOwn(ctx)
	case 5, 6:
		return c.copy(ctx, key, sharedKeys[c.dice.Uint64n(uint64(len(sharedKeys)))])
	case 7:
		return c.delete(ctx, key)
	case 8:
		return c.upload(ctx, key)
	case 9:
		return c.list(ctx)
	}
	return c.read(ctx, key)
}

// fresh returns a content that no other write has.
func (c *s3Client) fresh() []byte {
	c.count++
	b := fmt.Appendf(nil, "client %d, content %d;", c.number, c.count)
	sizes := [...]int{len(b), 65536, 65537, mib, mib + 1}
	return append(b, bytes.Repeat([]byte{byte('a' + c.number)}, sizes[c.dice.Uint64n(uint64(len(sizes)))]-len(b))...)
}

func (c *s3Client) put(ctx context.Context, key string, content []byte) error {
	w := c.history.open(keyWrite{key: key, etag: c.history.learn(content)})
	out, err := c.sdk.PutObject(ctx, &sdk.PutObjectInput{Bucket: aws.String(s3Bucket), Key: &key, Body: bytes.NewReader(content)})
	var etag *string
	if out != nil {
		etag = out.ETag
	}
	_, err = c.end(w, true, etag, err)
	return err
}

// putOwn writes the key that no other client writes, half of the time with the content that it has already.
func (c *s3Client) putOwn(ctx context.Context) error {
	content := c.own
	if content == nil || c.dice.Uint64n(2) == 0 {
		content = append(c.fresh(), make([]byte, 100)...)[:100]
	}
	c.own = nil
	writes := c.writes
	err := c.put(ctx, ownKey(c.number), content)
	if c.writes > writes {
		c.own = content
	}
	return err
}

func (c *s3Client) copy(ctx context.Context, key, source string) error {
	if key == source {
		return c.read(ctx, key)
	}
	began := c.history.now()
	w := c.history.open(keyWrite{key: key, copies: true})
	out, err := c.sdk.CopyObject(ctx, &sdk.CopyObjectInput{Bucket: aws.String(s3Bucket), Key: &key,
		CopySource: aws.String(s3Bucket + "/" + strings.NewReplacer(" ", "%20", "+", "%2B", "ä", "%C3%A4").Replace(source))})
	var etag *string
	if err == nil {
		etag = out.CopyObjectResult.ETag
	}
	o, err := c.end(w, true, etag, err)
	switch {
	case err != nil || o.state == unanswered:
		return err
	case o.code == "NoSuchKey":
		return c.history.check(source, deleted, began, c.history.now())
	case o.state == acknowledged:
		return c.history.check(source, unquoted(etag), began, c.history.now())
	}
	return nil
}

func (c *s3Client) delete(ctx context.Context, key string) error {
	w := c.history.open(keyWrite{key: key})
	_, err := c.sdk.DeleteObject(ctx, &sdk.DeleteObjectInput{Bucket: aws.String(s3Bucket), Key: &key})
	_, err = c.end(w, false, nil, err)
	return err
}

// read reads a key. It must have an object that a write explains, and all of its content.
func (c *s3Client) read(ctx context.Context, key string) error {
	began := c.history.now()
	etag, ok, err := c.get(ctx, key)
	if err != nil || !ok {
		return err
	}
	c.reads++
	return c.history.check(key, etag, began, c.history.now())
}

// get returns the ETag of a key whose content was compared. ok is false if the node rejected the request.
func (c *s3Client) get(ctx context.Context, key string) (etag string, ok bool, err error) {
	out, err := c.sdk.GetObject(ctx, &sdk.GetObjectInput{Bucket: aws.String(s3Bucket), Key: &key})
	switch o, err := outcomeOf(err); {
	case err != nil:
		return "", false, err
	case o.code == "NoSuchKey":
		return deleted, true, nil
	case o.state != acknowledged:
		return "", false, nil
	}
	defer out.Body.Close()
	got, err := io.ReadAll(out.Body)
	if err != nil {
		return "", false, errGone
	}
	etag = unquoted(out.ETag)
	if want, ok := c.history.content(etag); !ok || !bytes.Equal(got, want) {
		return "", false, fmt.Errorf("%s has the ETag %s, known %v, and %d bytes, want %d", key, etag, ok, len(got), len(want))
	}
	return etag, true, nil
}

// list lists all keys. Each object must be one that a write explains.
func (c *s3Client) list(ctx context.Context) error {
	began := c.history.now()
	found, ok, err := c.keys(ctx)
	if err != nil || !ok {
		return err
	}
	c.lists++
	ended := c.history.now()
	for _, key := range sharedKeys {
		if err := c.history.check(key, found[key], began, ended); err != nil {
			return fmt.Errorf("list: %w", err)
		}
	}
	return nil
}

// keys returns the ETags of all keys in a list. ok is false if the node rejected the request.
func (c *s3Client) keys(ctx context.Context) (found map[string]string, ok bool, err error) {
	out, err := c.sdk.ListObjectsV2(ctx, &sdk.ListObjectsV2Input{Bucket: aws.String(s3Bucket)})
	if o, err := outcomeOf(err); err != nil || o.state != acknowledged {
		return nil, false, err
	}
	found = map[string]string{}
	for _, o := range out.Contents {
		etag := unquoted(o.ETag)
		if want, ok := c.history.content(etag); !ok || aws.ToInt64(o.Size) != int64(len(want)) {
			return nil, false, fmt.Errorf("list: %s has the ETag %s, known %v, and %d bytes, want %d", aws.ToString(o.Key), etag, ok, aws.ToInt64(o.Size), len(want))
		}
		found[aws.ToString(o.Key)] = etag
	}
	return found, true, nil
}

// ownKey returns the key that only one client writes.
func ownKey(number int) string { return fmt.Sprintf("own/%d", number) }
