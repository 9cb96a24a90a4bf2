package httpapi

import (
	"macronode/core/storage"
	"macronode/core/types"
)

// Rows are the rows of objects, as far as they are durable.
type Rows interface {
	// Object returns an object that a bucket holds.
	Object(t types.Tenant, bucket types.NameHash, a storage.Address) (storage.Object, bool)
	// StoredAs returns an object that any bucket holds.
	StoredAs(a storage.Address) (storage.Object, bool)
	// Usage returns what a bucket holds, and how many bytes the quotas leave to it.
	Usage(t types.Tenant, bucket types.NameHash) (used storage.Usage, left uint64)
	// Held lists objects of a bucket from a place on, at most limit, and the place where the list goes on.
	Held(t types.Tenant, bucket types.NameHash, from uint32, limit int) (list []storage.Stored, next uint32, done bool)
}

// A Transfers counts bytes of objects. Nothing it does may block.
type Transfers interface {
	Stored(bytes uint64)
	Sent(bytes uint64)
	Damaged() // an object could not be read
}
