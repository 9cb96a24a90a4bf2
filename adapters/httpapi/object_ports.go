package httpapi

import (
	"macronode/core/event"
	"macronode/core/storage"
	"macronode/core/types"
)

// Rows are the durable rows of objects.
type Rows interface {
	// Object returns an object that a bucket holds.
	Object(t types.Tenant, bucket types.NameHash, a storage.Address) (storage.Object, bool)
	// StoredAs returns an object that any bucket holds.
	StoredAs(a storage.Address) (storage.Object, bool)
	// HasBucket reports whether a bucket exists.
	HasBucket(t types.Tenant, bucket types.NameHash) bool
	// Upload returns an upload in progress, and Parts up to limit of its parts with higher numbers than after.
	Upload(t types.Tenant, bucket, name types.NameHash, id storage.UploadID) (storage.Upload, bool)
	Parts(id storage.UploadID, after uint16, limit int) []storage.NumberedPart
	// Usage returns what a bucket holds, and how many bytes the quotas leave to it.
	Usage(t types.Tenant, bucket types.NameHash) (used storage.Usage, left uint64)
	// QuotaShortage returns the first quota that leaves less to a bucket than is needed.
	QuotaShortage(t types.Tenant, bucket types.NameHash, needed storage.Usage) event.Shortage
}

// A Transfers counts bytes of objects. Nothing it does may block.
type Transfers interface {
	Stored(bytes uint64)
	Sent(bytes uint64)
	Damaged() // an object could not be read
}
