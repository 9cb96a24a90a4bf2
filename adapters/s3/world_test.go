package s3_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"go.uber.org/goleak"

	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/adapters/s3"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/storage"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	region     = "node-1"
	bucketName = "photos"
	journal    = types.JournalID(9)
)

// tenants are the access keys and what their tenants may do.
var tenants = map[string]struct {
	tenant types.Tenant
	scopes event.Scopes
}{
	"ALL":   {1, event.ScopeRead | event.ScopeStore},
	"READ":  {1, event.ScopeRead},
	"STORE": {1, event.ScopeStore},
	"OTHER": {2, event.ScopeRead | event.ScopeStore},
}

func secretOf(accessKey string) (string, bool) {
	_, ok := tenants[accessKey]
	return "secret of " + accessKey, ok
}

// A bucketKey is a bucket of a tenant.
type bucketKey struct {
	tenant types.Tenant
	id     types.NameHash
}

// A world is the storage plane, its journal in memory, its names and the files of its objects.
type world struct {
	mu      sync.Mutex
	idle    *sync.Cond // active is 0
	active  int        // requests
	plane   *storage.Plane
	bodies  map[types.LSN][]byte
	lsn     types.LSN
	at      types.Time
	objects map[bucketKey]map[string]s3.Listed
	buckets map[types.Tenant]map[string]types.Time
	uploads map[bucketKey][]s3.ListedUpload

	decide  func(command.Command) event.Problem // before the plane does
	reserve event.Problem                       // of each reservation
	unpaid  error                               // of each response with a size
	sizes   []uint64                            // of responses that were reserved
	decided int
	reads   int // names that a list read

	dir      string
	contents *objectstore.Store
	handler  *s3.Handler
	server   *httptest.Server
	sent     struct{ stored, sent, damaged uint64 }
	code     string // of the last error
	tick     time.Duration
	wrote    chan struct{} // closed when the client has sent its request; may be nil
	waited   time.Duration
	disk     fs.FS
}

var planeLimits = storage.Limits{Objects: 4096, Holdings: 4096, Buckets: 16, Uploads: 64, Parts: 256, TenantBuckets: 15, TenantUploads: 60, TenantParts: 200,
	TenantQuota: storage.Usage{Bytes: 200 << 20, Objects: 4000}, BucketQuota: storage.Usage{Bytes: 100 << 20, Objects: 3000}}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{plane: storage.New(planeLimits, 1), bodies: map[types.LSN][]byte{}, at: 1_700_000_000_000, objects: map[bucketKey]map[string]s3.Listed{},
		buckets: map[types.Tenant]map[string]types.Time{}, uploads: map[bucketKey][]s3.ListedUpload{}, dir: t.TempDir()}
	w.idle = sync.NewCond(&w.mu)
	dir, err := fs.Make(filepath.Join(w.dir, "objects"))
	if err != nil {
		t.Fatal(err)
	}
	w.disk = dir
	w.contents = objectstore.New(dir, objectstore.Limits{Uploads: 8, Object: 40 << 20})
	w.handler = s3.New(s3.Config{Rows: w, Names: w, Contents: w.contents, Transfers: w, Log: slog.New(slog.DiscardHandler), Region: region, Domain: "s3.test"})
	w.server = httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(func() {
		w.server.Close()
		if err := w.plane.Check(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// client returns a client of the SDK with an access key.
func (w *world) client(accessKey string, options ...func(*sdk.Options)) *sdk.Client {
	secret, _ := secretOf(accessKey)
	return sdk.New(sdk.Options{BaseEndpoint: aws.String(w.server.URL), Region: region, UsePathStyle: true, HTTPClient: w.server.Client(),
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, secret, ""), RetryMaxAttempts: 1}, options...)
}

func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.active++
	w.mu.Unlock()
	defer func() { // also if the handler aborts the connection
		w.mu.Lock()
		w.active--
		w.idle.Broadcast()
		w.mu.Unlock()
	}()
	session := &session{ResponseWriter: rw, world: w, r: r}
	auth, err := w.handler.Authenticate(r, w.now(), secretOf)
	if err != nil {
		w.handler.Refuse(session, err)
		return
	}
	session.key = auth.AccessKey
	w.handler.Serve(session, auth)
}

// quiet waits until every request has ended: a response arrives before its handler returns.
func (w *world) quiet() *world {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.active > 0 {
		w.idle.Wait()
	}
	return w
}

func (w *world) now() time.Time { return time.Now().Add(w.waited) }

func (w *world) Stored(n uint64) { w.mu.Lock(); w.sent.stored += n; w.mu.Unlock() }
func (w *world) Sent(n uint64)   { w.mu.Lock(); w.sent.sent += n; w.mu.Unlock() }
func (w *world) Damaged()        { w.mu.Lock(); w.sent.damaged++; w.mu.Unlock() }

// session is one request.
type session struct {
	http.ResponseWriter
	world *world
	r     *http.Request
	key   string
}

func (s *session) Unwrap() http.ResponseWriter { return s.ResponseWriter }
func (s *session) Request() *http.Request      { return s.r }
func (s *session) Body() io.Reader             { return s.r.Body }
func (s *session) Head() command.Header {
	return command.Header{Tenant: tenants[s.key].tenant, Caller: 7}
}
func (s *session) Allows(want event.Scopes) bool { return tenants[s.key].scopes&want == want }
func (s *session) Now() time.Time {
	if s.world.wrote != nil {
		<-s.world.wrote
	}
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	if s.world.tick > 0 {
		s.world.waited += s.world.tick
	}
	return s.world.now()
}
func (s *session) RequestID() string { return "request-1" }
func (s *session) SetError(code string) {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	s.world.code = code
}
func (s *session) Reserve(uint64) event.Problem       { return s.world.reserve }
func (*session) ReadPage(_ int, f func() error) error { return f() }

func (s *session) ReserveResponse(size uint64) error {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	s.world.sizes = append(s.world.sizes, size)
	return s.world.unpaid
}
func (s *session) Execute(c command.Command) event.Reply { return s.world.execute(c) }

// A frame has one record at most.
type frame struct {
	w *world
	r record.Record
}

func (f *frame) Record() *record.Record { return &f.r }
func (f *frame) Savepoint()             {}
func (f *frame) Undo()                  {}
func (f *frame) Commit()                {}
func (f *frame) FindRef(types.Tenant, types.NameHash, command.PriorOutcome) (command.PriorOutcome, bool) {
	return command.PriorOutcome{}, false
}

// Add makes the record durable and applies it.
func (f *frame) Add() types.Position {
	w := f.w
	w.lsn++
	w.at += 1000
	p := types.Position{LSN: w.lsn}
	w.bodies[w.lsn], _ = record.Add(record.Begin(nil, w.lsn, w.at), 0, &f.r)
	var r record.Record
	if _, err := record.Read(w.bodies[w.lsn], 0, &r); err != nil {
		panic(err)
	}
	if !w.plane.Fits(&r) {
		panic("the record does not fit")
	}
	w.plane.Apply(w.at, types.NewTxID(journal, p), &r)
	w.learn(storage.ReadChange(p, &r))
	return p
}

// learn updates the names.
func (w *world) learn(c storage.Change) {
	k := bucketKey{c.Tenant, storage.Bucket(string(c.Bucket)).ID}
	switch c.Kind {
	case storage.EntryPut:
		if w.objects[k] == nil {
			w.objects[k] = map[string]s3.Listed{}
		}
		w.objects[k][string(c.Name)] = s3.Listed{Name: string(c.Name), Address: c.Address, Size: c.Size, ETag: c.ETag, At: w.at}
		w.made(c.Tenant, string(c.Bucket))
	case storage.EntryRemoved:
		delete(w.objects[k], string(c.Name))
	case storage.BucketCreated:
		w.made(c.Tenant, string(c.Bucket))
	case storage.BucketDeleted:
		delete(w.buckets[c.Tenant], string(c.Bucket))
	case storage.UploadBegun:
		w.uploads[k] = append(w.uploads[k], s3.ListedUpload{Name: string(c.Name), ID: c.Upload, At: w.at})
	}
	if c.Kind == storage.UploadEnded || c.Kind == storage.EntryPut {
		w.uploads[k] = slices.DeleteFunc(w.uploads[k], func(u s3.ListedUpload) bool { return u.ID == c.Upload })
	}
}

func (w *world) made(t types.Tenant, bucket string) {
	if w.buckets[t] == nil {
		w.buckets[t] = map[string]types.Time{}
	}
	if _, is := w.buckets[t][bucket]; !is {
		w.buckets[t][bucket] = w.at
	}
}

// execute decides a command as the node does.
func (w *world) execute(c command.Command) (reply event.Reply) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.decided++
	if w.decide != nil {
		if p := w.decide(c); p != event.None {
			return event.Reply{Problem: p}
		}
	}
	if c.ValidateFields() != nil {
		return event.Reply{Problem: event.BadRequest}
	}
	w.plane.Decide(w.at, c, &frame{w: w}, &reply)
	w.expire()
	return reply
}

// expire removes the parts of uploads that have ended.
func (w *world) expire() {
	for {
		f := &frame{w: w}
		if !w.plane.Expire(w.at, &f.r) {
			return
		}
		f.Add()
	}
}

// The rows.

func (w *world) HasBucket(t types.Tenant, bucket types.NameHash) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.plane.HasBucket(t, bucket)
}

func (w *world) Entry(t types.Tenant, bucket, name types.NameHash) (storage.Entry, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.plane.Entry(t, bucket, name)
}

func (w *world) StoredAs(a storage.Address) (storage.Object, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.plane.Find(a)
}

func (w *world) Details(at types.Position) (storage.Details, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	body, ok := w.bodies[at.LSN]
	if !ok {
		return storage.Details{}, receipt.ErrNoAnswer
	}
	return storage.ReadDetails(body, at.Index)
}

func (w *world) Upload(t types.Tenant, bucket, name types.NameHash, id storage.UploadID) (storage.Upload, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.plane.Upload(t, bucket, name, id)
}

func (w *world) Parts(id storage.UploadID, after uint16, limit int) []storage.NumberedPart {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.plane.Parts(id, after, limit)
}

func (w *world) Usage(t types.Tenant, bucket types.NameHash) (storage.Usage, uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.plane.Usage(t, bucket), w.plane.Left(t, bucket)
}

func (w *world) QuotaShortage(t types.Tenant, bucket types.NameHash, needed storage.Usage) event.Shortage {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.plane.QuotaShortage(t, bucket, needed)
}

// The names.

func (w *world) Objects(_ context.Context, t types.Tenant, bucket types.NameHash, prefix, from string, yield func(s3.Listed) bool) error {
	w.mu.Lock()
	var list []s3.Listed
	for name, o := range w.objects[bucketKey{t, bucket}] {
		if strings.HasPrefix(name, prefix) && name >= from {
			list = append(list, o)
		}
	}
	w.mu.Unlock()
	slices.SortFunc(list, func(a, b s3.Listed) int { return strings.Compare(a.Name, b.Name) })
	for _, o := range list {
		w.reads++
		if !yield(o) {
			return nil
		}
	}
	return nil
}

func (*world) Await(context.Context) error { return nil }

func (w *world) Buckets(_ context.Context, t types.Tenant) (list []s3.ListedBucket, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, at := range w.buckets[t] {
		list = append(list, s3.ListedBucket{Name: name, At: at})
	}
	return list, nil
}

func (w *world) Uploads(_ context.Context, t types.Tenant, bucket types.NameHash) ([]s3.ListedUpload, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.uploads[bucketKey{t, bucket}]), nil
}

// storeNative stores an object under its address, as the native API does.
func (w *world) storeNative(t *testing.T, bucket string, content []byte) storage.Address {
	t.Helper()
	up, err := w.contents.Begin(1)
	if err != nil {
		t.Fatal(err)
	}
	defer up.Done()
	if _, err := up.Write(content); err != nil {
		t.Fatal(err)
	}
	a, err := up.Sum()
	if err = errors.Join(err, up.Store(a)); err != nil {
		t.Fatal(err)
	}
	reply := w.execute(&storage.Put{Header: command.Header{Tenant: 1, Caller: 7}, Bucket: storage.Bucket(bucket), Address: a, Size: up.Size(), File: up.File()})
	if reply.Problem != event.None {
		t.Fatal(reply.Problem)
	}
	return a
}

// content returns n bytes that depend on seed.
func content(n int, seed byte) []byte {
	b := make([]byte, n)
	x := uint32(seed) + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func reader(b []byte) *bytes.Reader { return bytes.NewReader(b) }

// codeOf returns the error code of an error of the SDK, and its status.
func codeOf(err error) string {
	if err == nil {
		return ""
	}
	code := "?"
	var api interface{ ErrorCode() string }
	if errors.As(err, &api) {
		code = api.ErrorCode()
	}
	var status interface{ HTTPStatusCode() int }
	if errors.As(err, &status) {
		code = strconv.Itoa(status.HTTPStatusCode()) + " " + code
	}
	return code
}
