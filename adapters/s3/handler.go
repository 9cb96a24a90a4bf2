// Package s3 is the S3 protocol over the storage plane: its operations, documents and errors. It decides
// nothing about objects: it names what a request asks for, and the node decides.
//
//	request ──► Operation ──► admission ──► Authenticate ──► Serve ──► Rows, Names ──► response
//	                              └───────────┴──► Refuse      └─────► Contents, Execute
package s3

import (
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"macronode/adapters/objectstore"
	"macronode/adapters/sigv4"
	"macronode/core/event"
	"macronode/core/storage"
	"macronode/core/types"
)

// A Transfers counts bytes of objects. Nothing it does may block.
type Transfers interface {
	Stored(bytes uint64)
	Sent(bytes uint64)
	Damaged() // an object could not be read
}

// Config is what a Handler works with.
type Config struct {
	Rows      Rows
	Names     Names
	Contents  *objectstore.Store
	Transfers Transfers
	Log       *slog.Logger

	Region string // of the signatures, and of the buckets
	Domain string // BUCKET.Domain is the virtual host of a bucket; empty: buckets are named by the path alone

	MaxUploadBytes uint64 // of one body, at most storage.MaxObject; 0: storage.MaxObject
}

// Handler serves requests of S3. It is safe for concurrent use.
type Handler struct {
	Config
	policy sigv4.Policy
	keys   *sigv4.KeyCache
}

// New returns a Handler.
func New(c Config) *Handler {
	if c.MaxUploadBytes == 0 || c.MaxUploadBytes > storage.MaxObject {
		c.MaxUploadBytes = storage.MaxObject
	}
	return &Handler{c, sigv4.Policy{Region: c.Region, Service: "s3"}, sigv4.NewKeyCache()}
}

// Auth is the verified signature of a request.
type Auth struct {
	AccessKey string
	signed    *sigv4.Signed
}

// Authenticate verifies the signature of a request. secret returns the secret of an access key. The body is verified
// while it is read. Refuse answers with its error.
func (h *Handler) Authenticate(r *http.Request, now time.Time, secret func(accessKey string) (secret string, ok bool)) (*Auth, error) {
	s, err := sigv4.Parse(r, now, h.policy)
	if errors.Is(err, sigv4.ErrMissing) && isForm(r) {
		return nil, errForm
	}
	if err != nil {
		return nil, err
	}
	key, ok := secret(s.AccessKey())
	if !ok {
		return nil, errUnknownKey
	}
	if err := s.Verify(key, h.keys); err != nil {
		return nil, err
	}
	return &Auth{s.AccessKey(), s}, nil
}

// isForm reports whether a request uploads an object with a form, whose fields have the signature.
func isForm(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return r.Method == http.MethodPost && err == nil && kind == "multipart/form-data"
}

// A call is one request that is served.
type call struct {
	*Handler
	Session
	auth   *Auth
	r      *http.Request
	target target
	query  url.Values
	bucket types.Name
	name   types.Name // of the object
	begun  bool       // the response
}

// An operation is how a request is served, and the scope that it needs.
type operation struct {
	serve func(*call) error
	scope event.Scopes
}

// operations has what is implemented.
var operations = [numOps]operation{
	ListBuckets:             {listBuckets, event.ScopeRead},
	CreateBucket:            {createBucket, event.ScopeStore},
	HeadBucket:              {headBucket, event.ScopeRead},
	DeleteBucket:            {deleteBucket, event.ScopeStore},
	GetBucketLocation:       {getBucketLocation, event.ScopeRead},
	GetBucketVersioning:     {getBucketVersioning, event.ScopeRead},
	GetBucketAcl:            {getACL, event.ScopeRead},
	ListObjects:             {listObjects, event.ScopeRead},
	ListObjectsV2:           {listObjectsV2, event.ScopeRead},
	ListMultipartUploads:    {listUploads, event.ScopeRead},
	DeleteObjects:           {deleteObjects, event.ScopeStore},
	PutObject:               {putObject, event.ScopeStore},
	CopyObject:              {copyObject, event.ScopeStore | event.ScopeRead},
	GetObject:               {getObject, event.ScopeRead},
	HeadObject:              {getObject, event.ScopeRead},
	DeleteObject:            {deleteObject, event.ScopeStore},
	GetObjectAcl:            {getACL, event.ScopeRead},
	GetObjectTagging:        {getTagging, event.ScopeRead},
	CreateMultipartUpload:   {createUpload, event.ScopeStore},
	UploadPart:              {uploadPart, event.ScopeStore},
	UploadPartCopy:          {uploadPartCopy, event.ScopeStore | event.ScopeRead},
	ListParts:               {listParts, event.ScopeRead},
	CompleteMultipartUpload: {completeUpload, event.ScopeStore},
	AbortMultipartUpload:    {abortUpload, event.ScopeStore},
}

// Serve answers a request. If it fails after the response has begun, it aborts the connection with
// http.ErrAbortHandler.
func (h *Handler) Serve(s Session, a *Auth) {
	s.Header()["X-Amz-Request-Id"] = []string{s.RequestID()}
	c := &call{Handler: h, Session: s, auth: a, r: s.Request()}
	err := c.serve()
	if err == nil {
		return
	}
	e := asError(err)
	switch {
	case errors.Is(err, errLeft):
		e = errGone
	case e.Code == errInternal.Code:
		h.Log.Error("request of S3 failed", "request", s.RequestID(), "err", err)
	}
	if c.begun {
		if !errors.Is(err, errLeft) { // what the client got of a response is no error
			s.SetError(e.Code)
		}
		panic(http.ErrAbortHandler)
	}
	writeError(s, e)
}

func (c *call) serve() error {
	c.target = targetOf(c.r, c.Domain)
	op, allowed := operationOf(c.r, c.target)
	if !allowed {
		return errMethod
	}
	if err := c.checkTarget(); err != nil {
		return err
	}
	if op == Unknown {
		return errNotImplemented
	}
	var err error
	if c.query, err = url.ParseQuery(c.r.URL.RawQuery); err != nil {
		return errURI
	}
	if err := c.checkHeaders(); err != nil {
		return err
	}
	o := operations[op]
	if !c.Allows(o.scope) {
		return errAccessDenied
	}
	if awaitsContinue(c.r) {
		c.WriteHeader(http.StatusContinue)
	}
	return o.serve(c)
}

// awaitsContinue reports whether a request without a body awaits 100 Continue. The server sends that when a body is read, but some
// clients misread the next response if an empty one does not get it.
func awaitsContinue(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.ContentLength == 0 && strings.EqualFold(r.Header.Get("Expect"), "100-continue")
}

// checkTarget checks the names of a request.
func (c *call) checkTarget() error {
	t := c.target
	switch {
	case t.bucket == "":
		return nil
	case storage.CheckBucket(t.bucket) != nil:
		return errBucketName.with("BucketName", t.bucket)
	case !utf8.ValidString(t.key):
		return errURI
	case len(t.key) > storage.MaxName:
		return errKeyTooLong.with("Size", strconv.Itoa(len(t.key))).with("MaxSizeAllowed", strconv.Itoa(storage.MaxName))
	}
	c.bucket, c.name = storage.Bucket(t.bucket), storage.ObjectName(t.key)
	return nil
}

// param returns a parameter of the query; the first one if it is repeated.
func (c *call) param(name string) string { return c.query.Get(name) }

// tenant is that of the caller, whose buckets are the only ones it sees.
func (c *call) tenant() types.Tenant { return c.Head().Tenant }

// owner is the canonical ID of the tenant in documents.
func (c *call) owner() owner {
	id := strconv.FormatUint(uint64(c.tenant()), 10)
	return owner{ID: id, DisplayName: id}
}

// requireBucket returns an error if the bucket does not exist.
func (c *call) requireBucket() error {
	if !c.Rows.HasBucket(c.tenant(), c.bucket.ID) {
		return errNoBucket.with("BucketName", c.target.bucket)
	}
	return nil
}

// answer returns the error for a problem. absent is what NotFound means.
func (c *call) answer(reply event.Reply, absent error) error {
	switch reply.Problem {
	case event.None:
		return nil
	case event.NotFound:
		if err := c.requireBucket(); err != nil {
			return err
		}
		return absent
	default:
		return Problem(reply.Problem, reply.Shortage.Detail())
	}
}

// start begins a response.
func (c *call) start(status int) {
	c.begun = true
	c.WriteHeader(status)
}

// send answers with a document.
func (c *call) send(document any) error {
	c.begun = true
	return writeXML(c, http.StatusOK, document)
}

// sendPage answers with the document of a list of at most rows rows that read returns.
func (c *call) sendPage(rows int, read func() (document any, err error)) error {
	var text []byte
	err := c.ReadPage(rows, func() error {
		document, err := read()
		if err == nil {
			text, err = marshal(document)
		}
		return err
	})
	if err != nil {
		return err
	}
	c.begun = true
	return writeBody(c, http.StatusOK, text)
}

// empty answers without a body.
func (c *call) empty(status int) error {
	if status != http.StatusNoContent {
		c.Header()["Content-Length"] = []string{"0"}
	}
	c.start(status)
	return nil
}

func unix(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// stamp returns a time as documents have it.
func stamp(t types.Time) string { return unix(int64(t)).Format(xmlTime) }

var errLeft = errors.New("s3: the client has left")
