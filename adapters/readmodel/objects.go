package readmodel

import (
	"macronode/core/storage"
	"macronode/core/types"
)

// storage returns the storage plane, or nil if the program does not have it.
func (f *Follower) storage() *storage.Plane {
	p, _ := f.state.Plane(types.PlaneStorage).(*storage.Plane)
	return p
}

// Object returns an object that a bucket holds.
func (f *Follower) Object(t types.Tenant, bucket types.NameHash, a storage.Address) (storage.Object, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	p := f.storage()
	if !p.Holds(t, bucket, a) {
		return storage.Object{}, false
	}
	return p.Find(a)
}

// StoredAs returns an object that any bucket holds.
func (f *Follower) StoredAs(a storage.Address) (storage.Object, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.storage().Find(a)
}

// Usage returns what a bucket holds, and how many bytes the quotas leave to it.
func (f *Follower) Usage(t types.Tenant, bucket types.NameHash) (used storage.Usage, left uint64) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.storage().Usage(t, bucket), f.storage().Left(t, bucket)
}

// Held lists objects of a bucket from a place on, and the place where the list goes on.
func (f *Follower) Held(t types.Tenant, bucket types.NameHash, from uint32, limit int) (list []storage.Stored, next uint32, done bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.storage().Held(t, bucket, from, limit)
}

// HasFile reports whether the row of an object names a file.
func (f *Follower) HasFile(a storage.Address, file storage.File) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	o, ok := f.storage().Find(a)
	return ok && o.File == file
}

// Stored returns what all tenants hold, and what is stored for it.
func (f *Follower) Stored() (logical, physical storage.Usage) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.storage().Totals()
}

// Objects lists objects from a place on, at most limit, and the place where the list goes on.
func (f *Follower) Objects(from uint32, limit int) (list []storage.Stored, next uint32, done bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.storage().Objects(from, limit)
}
