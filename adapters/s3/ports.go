package s3

import (
	"context"
	"io"
	"net/http"
	"time"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/storage"
	"macronode/core/types"
)

// Rows are the durable rows of the storage plane.
type Rows interface {
	// HasBucket reports whether a bucket exists.
	HasBucket(t types.Tenant, bucket types.NameHash) bool
	// Entry returns the object with a name in a bucket.
	Entry(t types.Tenant, bucket, name types.NameHash) (storage.Entry, bool)
	// StoredAs returns an object of any bucket: its size and its file.
	StoredAs(a storage.Address) (storage.Object, bool)
	// Details reads the record at a position, which is that of an entry or of an upload. The texts are
	// copies. Its error is ErrNoAnswer of core/wallet/receipt if there is no such record.
	Details(at types.Position) (storage.Details, error)
	// Upload returns an upload in progress, and Parts up to limit of its parts with higher numbers than after.
	Upload(t types.Tenant, bucket, name types.NameHash, id storage.UploadID) (storage.Upload, bool)
	Parts(id storage.UploadID, after uint16, limit int) []storage.NumberedPart
	// Usage returns what a bucket holds, and how many bytes the quotas leave to it.
	Usage(t types.Tenant, bucket types.NameHash) (used storage.Usage, left uint64)
	// QuotaShortage returns the first quota that leaves less to a bucket than is needed.
	QuotaShortage(t types.Tenant, bucket types.NameHash, needed storage.Usage) event.Shortage
}

// A Listed is an object in a list.
type Listed struct {
	Name    string
	Address storage.Address
	Size    uint64
	ETag    storage.ETag // zero if the object was stored under its address
	At      types.Time
}

// A ListedBucket is a bucket in a list.
type ListedBucket struct {
	Name string
	At   types.Time // of its creation
}

// A ListedUpload is an upload in progress in a list.
type ListedUpload struct {
	Name string
	ID   storage.UploadID
	At   types.Time // of its begin
}

// Names lists names in the order of their bytes. A list contains everything that was acknowledged
// before it began. Errors with a method Unavailable() bool that returns true are temporary.
type Names interface {
	// Await waits until Objects has everything that was acknowledged.
	Await(ctx context.Context) error
	// Objects passes the objects of a bucket to yield whose names begin with prefix and are not before
	// from, until yield returns false.
	Objects(ctx context.Context, t types.Tenant, bucket types.NameHash, prefix, from string, yield func(Listed) bool) error
	// Buckets lists the buckets of a tenant.
	Buckets(ctx context.Context, t types.Tenant) ([]ListedBucket, error)
	// Uploads lists the uploads in progress of a bucket by name, then by ID.
	Uploads(ctx context.Context, t types.Tenant, bucket types.NameHash) ([]ListedUpload, error)
}

// A Session is one request that was authenticated and admitted.
type Session interface {
	http.ResponseWriter // its Write paces the response by the quotas, and fails if the client does not read

	Request() *http.Request
	// Body is the body as it arrives. It is paced by the quotas, and fails if the client does not send.
	Body() io.Reader
	// Head has the caller and the tenant.
	Head() command.Header
	// Allows reports whether the API key has the scopes.
	Allows(s event.Scopes) bool
	// Now is the current time of the node.
	Now() time.Time
	RequestID() string
	// Reserve reserves the price of an object with a size. It returns None if writes are free; the request releases
	// what no Put uses. Its problem is PaymentRequired if the account that pays lacks the price.
	Reserve(size uint64) event.Problem
	// ReserveResponse reserves the price of a response with a size, before it begins. It fails with the error of S3 if the tenant is
	// prepaid and lacks the price.
	ReserveResponse(size uint64) error
	// Execute lets the node decide and waits until the outcome is durable. It ends with the problem
	// Busy, Timeout, Unavailable or OutcomeUnknown if there is none. A client that leaves does not end it.
	Execute(c command.Command) event.Reply
	// ReadPage calls f, which reads and renders at most rows rows of a list and sends nothing. Many rows wait for their turn. It returns
	// the error of f, or the error of S3 if the turn does not come in time.
	ReadPage(rows int, f func() error) error
	// SetError names the S3 error code for the logs and the metrics.
	SetError(code string)
}
