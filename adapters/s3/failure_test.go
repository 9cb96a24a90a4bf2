package s3_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/adapters/s3"
	"macronode/adapters/sigv4"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/storage"
	"macronode/core/types"
)

// files returns the files of objects, without those of hash trees.
func (w *world) files(t *testing.T) (list []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(w.dir, "objects", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if !strings.HasSuffix(f, ".nodes") {
			list = append(list, f)
		}
	}
	return list
}

// damage changes the byte of the only object at an offset.
func (w *world) damage(t *testing.T, off int64) {
	t.Helper()
	list := w.files(t)
	if len(list) != 1 {
		t.Fatalf("%d files", len(list))
	}
	f, err := os.OpenFile(list[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{0xaa}, off); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedObjectIsNotSent: damage in the first group is an error; damage behind it ends the connection.
func TestDamagedObjectIsNotSent(t *testing.T) {
	for name, off := range map[string]int64{"the first group": 5, "the last group": 190_000} {
		w := newWorld(t)
		c := w.bucket(t)
		put(t, c, "a", content(200_000, 1))
		w.damage(t, off)
		out, err := c.GetObject(context.Background(), &sdk.GetObjectInput{Bucket: aws.String(bucketName), Key: aws.String("a")})
		if off == 5 {
			if codeOf(err) != "500 InternalError" {
				t.Errorf("%s: %v", name, err)
			}
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		} else {
			if b, err := io.ReadAll(out.Body); err == nil || len(b) >= 190_000 {
				t.Errorf("%s: %d bytes, %v", name, len(b), err)
			}
			out.Body.Close()
		}
		if w.quiet().sent.damaged != 1 || w.quiet().code != "InternalError" {
			t.Errorf("%s: %d objects are reported, %s", name, w.quiet().sent.damaged, w.quiet().code)
		}
		if got := w.send(t, http.MethodGet, "/"+bucketName+"/a", map[string]string{"Range": "bytes=5-5"}, ""); off == 5 && (got.status != 500 || got.header.Get("Content-Range") != "" || got.header.Get("Etag") != "") {
			t.Errorf("%s: %+v", name, got)
		}
		// The same content replaces the file.
		put(t, c, "b", content(200_000, 1))
		if _, b := get(t, c, "a"); len(b) != 200_000 {
			t.Errorf("%s: %d bytes after the repair", name, len(b))
		}
	}
}

// TestBrokenResponseAbortsConnection: the handler does not return as if the response were complete.
func TestBrokenResponseAbortsConnection(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	put(t, c, "a", content(200_000, 1))
	w.damage(t, 190_000)
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("recovered %v", err)
		}
	}()
	got := w.send(t, http.MethodGet, "/"+bucketName+"/a", nil, "")
	t.Errorf("%d with %d bytes", got.status, len(got.body))
}

// TestClientThatLeavesIsNoError: what a client got of an object has no error, so it counts as usage.
func TestClientThatLeavesIsNoError(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	put(t, c, "a", content(8<<20, 1))
	out, err := c.GetObject(context.Background(), &sdk.GetObjectInput{Bucket: aws.String(bucketName), Key: aws.String("a")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out.Body, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	_ = out.Body.Close() // ends the connection
	if got := w.quiet(); got.code != "" || got.sent.sent < 1000 || got.sent.sent >= 8<<20 {
		t.Errorf("%d bytes, %s", got.sent.sent, got.code)
	}
}

func TestLostObject(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	put(t, c, "a", []byte("abc"))
	if err := os.Remove(w.files(t)[0]); err != nil {
		t.Fatal(err)
	}
	_, err := c.GetObject(context.Background(), &sdk.GetObjectInput{Bucket: aws.String(bucketName), Key: aws.String("a")})
	if codeOf(err) != "500 InternalError" || w.quiet().sent.damaged != 1 {
		t.Error(err)
	}
}

// TestDamagedPartFailsCompletion: an object is never made of a damaged part.
func TestDamagedPartFailsCompletion(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	u := begin(t, c, "a")
	u.part(1, content(200_000, 1))
	w.damage(t, 190_000)
	if _, err := u.complete(u.parts); codeOf(err) != "500 InternalError" {
		t.Error(err)
	}
	u.parts = nil
	u.part(1, content(200_000, 1)) // replaces the file
	if _, err := u.complete(u.parts); err != nil {
		t.Error(err)
	}
}

// TestOutcomes: what the node answers decides about the answer and about the file.
func TestOutcomes(t *testing.T) {
	for problem, want := range map[event.Problem]struct {
		code  string
		kept  bool
		retry string
	}{
		event.Busy:             {"503 SlowDown", false, "1"},
		event.RateLimited:      {"503 SlowDown", false, "1"},
		event.Unavailable:      {"503 ServiceUnavailable", false, "1"},
		event.Timeout:          {"503 ServiceUnavailable", false, "1"},
		event.OutcomeUnknown:   {"500 InternalError", true, ""},
		event.QuotaExceeded:    {"403 QuotaExceeded", false, ""},
		event.CapacityExceeded: {"403 QuotaExceeded", false, ""},
		event.Forbidden:        {"403 AccessDenied", false, ""},
		event.PaymentRequired:  {"402 PaymentRequired", false, ""},
		event.PaymentExpired:   {"402 PaymentExpired", false, ""},
		event.Internal:         {"500 InternalError", false, ""},
		event.NotFound:         {"404 NoSuchBucket", false, ""},
	} {
		w := newWorld(t)
		w.bucket(t)
		w.quiet().decide = func(cmd command.Command) event.Problem {
			if problem == event.NotFound { // the bucket is deleted while the body arrives
				w.plane.Decide(w.at, &storage.DeleteBucket{Header: *cmd.Head(), Bucket: storage.Bucket(bucketName)}, &frame{w: w}, &event.Reply{})
			}
			return problem
		}
		got := w.send(t, http.MethodPut, "/"+bucketName+"/a", nil, "abc")
		if fmt.Sprint(got.status, " ", got.xml.Code) != want.code || got.header.Get("Retry-After") != want.retry {
			t.Errorf("%v: %d %s, retry after %q", problem, got.status, got.xml.Code, got.header.Get("Retry-After"))
		}
		if kept := w.contents.Uploads() == 1; kept != want.kept {
			t.Errorf("%v: %d uploads are kept", problem, w.contents.Uploads())
		}
	}
}

// TestProblems: every problem of the node has an answer that S3 knows.
func TestProblems(t *testing.T) {
	for p := event.Problem(1); p.Known(); p++ {
		var e *s3.Error
		if err := s3.Problem(p, "some detail"); !errors.As(err, &e) || e.Code == "" || e.Status < 400 || e.Message != "some detail" {
			t.Errorf("%v: %v", p, err)
		}
		if e.Status >= 500 != (p.Status() >= 500 && p != event.QuotaExceeded || e.RetryAfter > 0 || e.Code == "InternalError") {
			t.Errorf("%v with status %d: %d %s", p, p.Status(), e.Status, e.Code)
		}
		if p.Status() == http.StatusForbidden && e.Status != http.StatusForbidden || p.Status() == http.StatusTooManyRequests && e.RetryAfter == 0 {
			t.Errorf("%v with status %d: %d %s", p, p.Status(), e.Status, e.Code)
		}
		if usual := s3.Problem(p, ""); usual.Error() == "" {
			t.Errorf("%v: %v", p, usual)
		}
	}
}

func TestQuotas(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.bucket(t), context.Background()
	for i := range 5 { // 5 objects with one content: the quotas count each
		put(t, c, fmt.Sprint(i), content(19*mib, 1))
	}
	// The client of the SDK does not wait for 100 Continue, so a refusal before the body may end its connection.
	refused := func(target string) {
		t.Helper()
		decided := w.quiet().decided
		if got := w.send(t, http.MethodPut, "/"+bucketName+target, nil, string(content(6*mib, 2))); got.xml.Code != "QuotaExceeded" || got.status != 403 || !strings.HasPrefix(got.xml.Message, "storage.bucket_bytes limits the bytes of the objects and parts of the bucket: needed 6291456, left ") || w.quiet().decided != decided {
			t.Errorf("%s: %+v", target, got)
		}
	}
	refused("/new")
	put(t, c, "0", content(20*mib, 3)) // replaces one
	_, err := c.PutObject(ctx, &sdk.PutObjectInput{Bucket: aws.String(bucketName), Key: aws.String("0"), Body: reader(content(30*mib, 4))})
	if codeOf(err) != "403 QuotaExceeded" {
		t.Errorf("a larger object: %v", err)
	}
	if _, err := c.CopyObject(ctx, &sdk.CopyObjectInput{Bucket: aws.String(bucketName), Key: aws.String("copy"), CopySource: aws.String(bucketName + "/1")}); codeOf(err) != "403 QuotaExceeded" {
		t.Errorf("a copy: %v", err)
	}
	u := begin(t, c, "parts")
	refused("/parts?partNumber=1&uploadId=" + *u.id)
}

func TestUploadsAreRefusedBeforeTheBody(t *testing.T) {
	w := newWorld(t)
	w.bucket(t)
	target := "/" + bucketName + "/a"
	for name, want := range map[string]struct {
		length int64
		code   string
	}{"no length": {-1, "MissingContentLength"}, "too long": {5<<30 + 1, "EntityTooLarge"}, "more than the quota": {1 << 30, "QuotaExceeded"}} {
		r, err := http.NewRequest(http.MethodPut, "http://localhost"+target, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = want.length
		if got := w.sendSigned(t, "ALL", r, "x"); got.xml.Code != want.code {
			t.Errorf("%s: %d %s", name, got.status, got.xml.Code)
		}
	}
	var all []interface{ Done() }
	for n := range 8 {
		up, err := w.contents.Begin(types.Tenant(n + 10))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, up)
	}
	if got := w.send(t, http.MethodPut, target, nil, "x"); got.xml.Code != "SlowDown" || got.header.Get("Retry-After") == "" {
		t.Errorf("too many uploads: %+v", got)
	}
	for _, up := range all {
		up.Done()
	}
	if got := w.send(t, http.MethodPut, target, nil, "x"); got.status != 200 {
		t.Errorf("%+v", got)
	}
}

// TestRefusedBodiesLeaveNoObject: what fails at the end of the body is not visible and leaves no file.
func TestRefusedBodiesLeaveNoObject(t *testing.T) {
	w := newWorld(t)
	w.bucket(t)
	target := "/" + bucketName + "/a"
	big := strings.Repeat("x", 100_000)
	for name, header := range map[string]map[string]string{
		"MD5":       {"Content-Md5": "kAFQmDzST7DWlj99KOF/cg=="},
		"CRC32":     {"X-Amz-Checksum-Crc32": "AAAAAA=="},
		"CRC32C":    {"X-Amz-Checksum-Crc32c": "AAAAAA=="},
		"CRC64NVME": {"X-Amz-Checksum-Crc64nvme": "AAAAAAAAAAA="},
		"SHA1":      {"X-Amz-Checksum-Sha1": "AAAAAAAAAAAAAAAAAAAAAAAAAAA="},
		"SHA256":    {"X-Amz-Checksum-Sha256": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="},
	} {
		if got := w.send(t, http.MethodPut, target, header, big); got.status != 400 || got.xml.Code != "BadDigest" {
			t.Errorf("%s: %d %s", name, got.status, got.xml.Code)
		}
	}
	r, err := http.NewRequest(http.MethodPut, "http://localhost"+target, strings.NewReader(big))
	if err != nil {
		t.Fatal(err)
	}
	w.sendSigned(t, "ALL", r, big)
	if got := w.serveDirectly(t, r, big[1:]+"y"); got.xml.Code != "XAmzContentSHA256Mismatch" {
		t.Errorf("another body: %d %s", got.status, got.xml.Code)
	}
	if got := w.serveDirectly(t, r, big[1:]); got.xml.Code != "IncompleteBody" {
		t.Errorf("a short body: %d %s", got.status, got.xml.Code)
	}
	if n := len(w.files(t)); n != 1 || w.contents.Uploads() != 0 {
		t.Errorf("%d files, %d uploads", n, w.contents.Uploads())
	}
}

// TestPaymentIsRequiredBeforeTheBody: if the tenant cannot pay for an object, the request is rejected with 402, and its body is not read.
func TestPaymentIsRequiredBeforeTheBody(t *testing.T) {
	w := newWorld(t)
	w.bucket(t)
	w.reserve = event.PaymentRequired
	big := strings.Repeat("x", 100_000)
	r, err := http.NewRequest(http.MethodPut, "http://localhost/"+bucketName+"/a", strings.NewReader(big))
	if err != nil {
		t.Fatal(err)
	}
	if got := w.sendSigned(t, "ALL", r, big); got.status != 402 || got.xml.Code != "PaymentRequired" {
		t.Errorf("%d %s", got.status, got.xml.Code)
	}
	if got := w.serveDirectly(t, r, ""); got.status != 402 || got.xml.Code != "PaymentRequired" {
		t.Errorf("without the body: %d %s", got.status, got.xml.Code)
	}
	if n := len(w.files(t)); n != 0 || w.contents.Uploads() != 0 {
		t.Errorf("%d files, %d uploads", n, w.contents.Uploads())
	}
}

// TestResponseIsReservedBeforeItBegins: the size of a GET is reserved, that of a HEAD is not. If the tenant cannot pay for it, nothing of
// the object is sent.
func TestResponseIsReservedBeforeItBegins(t *testing.T) {
	w := newWorld(t)
	w.bucket(t)
	at := "/" + bucketName + "/a"
	w.send(t, http.MethodPut, at, nil, "0123456789")
	w.send(t, http.MethodHead, at, nil, "")
	w.send(t, http.MethodGet, at, nil, "")
	w.send(t, http.MethodGet, at, map[string]string{"Range": "bytes=2-4"}, "")
	if want := []uint64{10, 3}; !slices.Equal(w.sizes, want) {
		t.Errorf("reserved %v, want %v", w.sizes, want)
	}
	w.unpaid = s3.Problem(event.PrepaidExceeded, "It lacks 7.")
	if got := w.send(t, http.MethodGet, at, nil, ""); got.status != 402 || got.xml.Code != "PaymentRequired" || got.xml.Message != "It lacks 7." || got.header.Get("ETag") != "" {
		t.Errorf("%d %+v %v", got.status, got.xml, got.header)
	}
	if got := w.send(t, http.MethodHead, at, nil, ""); got.status != 200 {
		t.Errorf("HEAD: %d", got.status)
	}
}

// TestRefuse: errors before Serve are documents of S3 as well.
func TestRefuse(t *testing.T) {
	w := newWorld(t)
	r, err := http.NewRequest(http.MethodGet, "http://localhost/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.serveDirectly(t, r, ""); got.status != 403 || got.xml.Code != "AccessDenied" || w.quiet().code != "AccessDenied" || got.header.Get("X-Amz-Request-Id") == "" {
		t.Errorf("not signed: %+v", got)
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=ALL/20200101/mars/s3/aws4_request, SignedHeaders=host, Signature="+strings.Repeat("0", 64))
	if got := w.serveDirectly(t, r, ""); got.status != 400 || got.xml.Code != "AuthorizationHeaderMalformed" || got.xml.Region != region {
		t.Errorf("another region: %+v", got)
	}
	if _, err := w.handler.Authenticate(r, w.now(), secretOf); func() bool { var e *sigv4.Error; return !errors.As(err, &e) }() {
		t.Errorf("%v", err)
	}
	bad := w.client("ALL", func(o *sdk.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "ALL", SecretAccessKey: "wrong"}, nil
		})
	})
	if _, err := bad.ListBuckets(context.Background(), &sdk.ListBucketsInput{}); codeOf(err) != "403 SignatureDoesNotMatch" {
		t.Error(err)
	}
}

// temporary is an error of the names that passes.
type temporary struct{ bool }

func (temporary) Error() string       { return "not ready" }
func (t temporary) Unavailable() bool { return t.bool }

type brokenNames struct {
	s3.Names
	err error
}

func (b brokenNames) Await(context.Context) error { return b.err }

func (b brokenNames) Objects(context.Context, types.Tenant, types.NameHash, string, string, func(s3.Listed) bool) error {
	return b.err
}

func (b brokenNames) Buckets(context.Context, types.Tenant) ([]s3.ListedBucket, error) {
	return nil, b.err
}

func (b brokenNames) Uploads(context.Context, types.Tenant, types.NameHash) ([]s3.ListedUpload, error) {
	return nil, b.err
}

func TestNamesFail(t *testing.T) {
	for code, err := range map[string]error{"503 ServiceUnavailable": fmt.Errorf("index: %w", temporary{true}), "500 InternalError": temporary{false}} {
		w := newWorld(t)
		w.bucket(t)
		w.quiet().handler.Names = brokenNames{err: err}
		for _, target := range []string{"/", "/" + bucketName, "/" + bucketName + "?list-type=2", "/" + bucketName + "?uploads"} {
			if got := w.send(t, http.MethodGet, target, nil, ""); fmt.Sprint(got.status, " ", got.xml.Code) != code {
				t.Errorf("%s: %d %s, want %s", target, got.status, got.xml.Code, code)
			}
		}
	}
}

// shortDisk is a directory whose files cannot be opened or made while the process has too many open files.
type shortDisk struct {
	fs.FS
	short atomic.Bool
}

func (d *shortDisk) Create(name string) (fs.File, error) {
	if d.short.Load() {
		return nil, syscall.EMFILE
	}
	return d.FS.Create(name)
}

func (d *shortDisk) Open(name string) (fs.File, error) {
	if d.short.Load() {
		return nil, syscall.EMFILE
	}
	return d.FS.Open(name)
}

// TestTooManyOpenFiles: a request for an object gets 503 while the node has too many open files, and succeeds later.
func TestTooManyOpenFiles(t *testing.T) {
	w := newWorld(t)
	disk := &shortDisk{FS: w.disk}
	w.handler = s3.New(s3.Config{Rows: w, Names: w, Contents: objectstore.New(disk, objectstore.Limits{Uploads: 8, Object: 1 << 20}), Transfers: w, Log: slog.New(slog.DiscardHandler), Region: region})
	c := w.bucket(t)
	put(t, c, "a", content(5, 1))
	disk.short.Store(true)
	get := func() error {
		out, err := c.GetObject(context.Background(), &sdk.GetObjectInput{Bucket: aws.String(bucketName), Key: aws.String("a")})
		if err == nil {
			err = out.Body.Close()
		}
		return err
	}
	_, err := c.PutObject(context.Background(), &sdk.PutObjectInput{Bucket: aws.String(bucketName), Key: aws.String("b"), Body: reader(content(5, 2))})
	for what, err := range map[string]error{"put": err, "get": get()} {
		if codeOf(err) != "503 ServiceUnavailable" || !strings.Contains(err.Error(), "too many open files") {
			t.Errorf("%s: %v", what, err)
		}
	}
	disk.short.Store(false)
	if err := get(); err != nil || w.quiet().sent.damaged > 0 {
		t.Errorf("later: %v, %d are reported", err, w.sent.damaged)
	}
}
