package readmodel

import (
	"bytes"

	"macronode/core/event"
	"macronode/core/storage"
	"macronode/core/types"
)

// storage returns the storage plane, or nil if the program does not have it.
func (f *Follower) storage() *storage.Plane {
	p, _ := f.state.Plane(types.PlaneStorage).(*storage.Plane)
	return p
}

// Object returns an object of a bucket.
func (f *Follower) Object(t types.Tenant, bucket types.NameHash, a storage.Address) (storage.Object, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	p := f.storage()
	if !p.Holds(t, bucket, a) {
		return storage.Object{}, false
	}
	return p.Find(a)
}

// StoredAs returns an object of any bucket.
func (f *Follower) StoredAs(a storage.Address) (storage.Object, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.storage().Find(a)
}

// Usage returns the usage of a bucket, and the bytes that the quotas leave to it.
func (f *Follower) Usage(t types.Tenant, bucket types.NameHash) (used storage.Usage, left uint64) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.storage().Usage(t, bucket), f.storage().Left(t, bucket)
}

// QuotaShortage returns the first quota that leaves less to a bucket than is needed.
func (f *Follower) QuotaShortage(t types.Tenant, bucket types.NameHash, needed storage.Usage) event.Shortage {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.storage().QuotaShortage(t, bucket, needed)
}

// HasBucket reports whether a bucket exists.
func (f *Follower) HasBucket(t types.Tenant, bucket types.NameHash) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.storage().HasBucket(t, bucket)
}

// Entry returns the object with a name in a bucket.
func (f *Follower) Entry(t types.Tenant, bucket, name types.NameHash) (storage.Entry, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.storage().Entry(t, bucket, name)
}

// Upload returns an upload in progress.
func (f *Follower) Upload(t types.Tenant, bucket, name types.NameHash, id storage.UploadID) (storage.Upload, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.storage().Upload(t, bucket, name, id)
}

// Parts returns up to limit parts of an upload with higher numbers than after.
func (f *Follower) Parts(id storage.UploadID, after uint16, limit int) []storage.NumberedPart {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.storage().Parts(id, after, limit)
}

// Details reads the record of an entry or an upload. The texts are copies.
func (f *Follower) Details(at types.Position) (storage.Details, error) {
	s, err := f.frame(at.LSN)
	if err != nil {
		return storage.Details{}, err
	}
	d, err := storage.ReadDetails(s.Body, at.Index)
	d.Bucket, d.Name, d.Meta = bytes.Clone(d.Bucket), bytes.Clone(d.Name), bytes.Clone(d.Meta)
	return d, err
}

// HasFile reports whether the row of an object names a file.
func (f *Follower) HasFile(a storage.Address, file storage.File) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	o, ok := f.storage().Find(a)
	return ok && o.File == file
}

// HasObjects reports whether there is an object.
func (f *Follower) HasObjects() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	_, physical := f.storage().Totals()
	return physical.Objects > 0
}

// Objects lists at most limit objects from a position on, and returns the next position.
func (f *Follower) Objects(from uint32, limit int) (list []storage.Stored, next uint32, done bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.storage().Objects(from, limit)
}
