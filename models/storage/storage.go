// Package storage is the reference model of the storage plane: maps that are searched from the
// beginning. It shares no code with the plane, so that both cannot have the same bug.
package storage

import (
	"cmp"
	"math"
	"slices"

	"macronode/core/types"
)

// An Outcome is what becomes of a command.
type Outcome string

const (
	Done         Outcome = "done"
	Kept         Outcome = "kept" // the bucket holds the object already
	NotFound     Outcome = "not found"
	Precondition Outcome = "precondition failed"
	Stale        Outcome = "stale"
	Moved        Outcome = "moved" // the upload does not end at the offset
	Quota        Outcome = "quota exceeded"
	Capacity     Outcome = "capacity exceeded"
)

// Limits of a Store.
type Limits struct {
	Objects, Entries, Buckets, Uploads, Parts int

	TenantBuckets, TenantUploads, TenantParts int // for what is new; 0: as many as it leaves to others

	TenantBytes, TenantObjects uint64 // without TenantObjects, a tenant leaves as many objects to others as it has
	BucketBytes, BucketObjects uint64
}

// A Bucket is the name of a bucket of a tenant.
type Bucket struct {
	Tenant types.Tenant
	Name   string
}

// A Name is the name of an object.
type Name struct {
	Bucket
	Object string
}

// An Entry is what a name refers to: a content, and the number of the put that stored it.
type Entry struct {
	Name    Name
	Content string
	Put     int
}

// A Part is a part of an upload.
type Part struct {
	Number  int
	Content string
}

// An Upload is an upload in parts.
type Upload struct {
	ID       int
	Name     Name
	Ended    bool
	Parts    []Part
	Revision int
	Begun    types.Time
}

// A Store is the state of the storage plane.
type Store struct {
	Limits  Limits
	Size    func(content string) uint64
	Entries []Entry
	Made    []Bucket
	Uploads []Upload
}

// New returns an empty store.
func New(l Limits, size func(string) uint64) *Store { return &Store{Limits: l, Size: size} }

// Clone returns a copy.
func (s *Store) Clone() *Store {
	c := &Store{s.Limits, s.Size, slices.Clone(s.Entries), slices.Clone(s.Made), slices.Clone(s.Uploads)}
	for i := range c.Uploads {
		c.Uploads[i].Parts = slices.Clone(c.Uploads[i].Parts)
	}
	return c
}

// Entry returns the entry with a name.
func (s *Store) Entry(n Name) (Entry, bool) {
	i := slices.IndexFunc(s.Entries, func(e Entry) bool { return e.Name == n })
	if i < 0 {
		return Entry{}, false
	}
	return s.Entries[i], true
}

// set replaces the entry with the name of e.
func (s *Store) set(e Entry) {
	s.remove(e.Name)
	s.Entries = append(s.Entries, e)
}

func (s *Store) remove(n Name) {
	s.Entries = slices.DeleteFunc(s.Entries, func(e Entry) bool { return e.Name == n })
}

// Upload returns the upload with an ID, or nil.
func (s *Store) Upload(id int) *Upload {
	for i := range s.Uploads {
		if s.Uploads[i].ID == id {
			return &s.Uploads[i]
		}
	}
	return nil
}

// Usage sums what a bucket holds; that of the tenant if the bucket has no name.
func (s *Store) Usage(b Bucket) (bytes, objects uint64) {
	of := func(n Name) bool { return n.Tenant == b.Tenant && (b.Name == "" || b.Name == n.Bucket.Name) }
	for _, e := range s.Entries {
		if of(e.Name) {
			bytes += s.Size(e.Content)
			objects++
		}
	}
	for _, u := range s.Uploads {
		for _, p := range u.Parts {
			if !u.Ended && of(u.Name) {
				bytes += s.Size(p.Content)
			}
		}
	}
	return bytes, objects
}

// HasBucket reports whether a bucket exists.
func (s *Store) HasBucket(b Bucket) bool {
	holds := slices.ContainsFunc(s.Entries, func(e Entry) bool { return e.Name.Bucket == b })
	return holds || slices.Contains(s.Made, b) || s.uploads(b)
}

func (s *Store) uploads(b Bucket) bool {
	return slices.ContainsFunc(s.Uploads, func(u Upload) bool { return !u.Ended && u.Name.Bucket == b })
}

// Contents are the contents that entries and parts refer to, each once.
func (s *Store) Contents() (all []string) {
	for _, e := range s.Entries {
		all = append(all, e.Content)
	}
	for _, u := range s.Uploads {
		for _, p := range u.Parts {
			all = append(all, p.Content)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Rows are how many buckets, uploads and parts there are.
type Rows struct{ Buckets, Uploads, Parts int }

// Rows counts those of the tenants that of accepts.
func (s *Store) Rows(of func(types.Tenant) bool) (n Rows) {
	buckets := slices.DeleteFunc(slices.Clone(s.Made), func(b Bucket) bool { return !of(b.Tenant) })
	for _, e := range s.Entries {
		if of(e.Name.Tenant) {
			buckets = append(buckets, e.Name.Bucket)
		}
	}
	for _, u := range s.Uploads {
		if !of(u.Name.Tenant) {
			continue
		}
		n.Uploads++
		n.Parts += len(u.Parts)
		if !u.Ended {
			buckets = append(buckets, u.Name.Bucket)
		}
	}
	slices.SortFunc(buckets, func(a, b Bucket) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Name, b.Name))
	})
	n.Buckets = len(slices.Compact(buckets))
	return n
}

// full reports whether the store has more rows than its tables.
func (s *Store) full() bool {
	n, l := s.Rows(func(types.Tenant) bool { return true }), s.Limits
	return len(s.Entries) > l.Entries || n.Buckets > l.Buckets || n.Uploads > l.Uploads || n.Parts > l.Parts
}

// exceeds reports whether a tenant has more rows than before, and than it may have.
func (s *Store) exceeds(before *Store, t types.Tenant) bool {
	of := func(u types.Tenant) bool { return u == t }
	n, was, all, l := s.Rows(of), before.Rows(of), before.Rows(func(types.Tenant) bool { return true }), s.Limits
	if exhausted(l.TenantBuckets, was.Buckets, n.Buckets, l.Buckets-all.Buckets) || exhausted(l.TenantUploads, was.Uploads, n.Uploads, l.Uploads-all.Uploads) ||
		exhausted(l.TenantParts, was.Parts, n.Parts, l.Parts-all.Parts) {
		return true
	}
	if l.TenantObjects > 0 {
		return false
	}
	_, had := before.Usage(Bucket{Tenant: t})
	_, has := s.Usage(Bucket{Tenant: t})
	objects, wanted := len(before.Contents()), len(s.Contents())
	return exhausted(0, int(had), int(has), l.Entries-len(before.Entries)) || wanted > objects && int(had)+was.Parts >= l.Objects-objects
}

// exhausted reports whether a tenant gets more rows than it had, and than it may have: as many as its limit, or without one, only while
// it has fewer than are left.
func exhausted(limit, had, has, left int) bool {
	if limit == 0 {
		return has > had && had >= left
	}
	return has > max(had, limit)
}

// try makes a change that touches a bucket, or leaves everything as it was.
func (s *Store) try(b Bucket, change func(*Store)) Outcome {
	after := s.Clone()
	change(after)
	for _, w := range []struct {
		of             Bucket
		bytes, objects uint64
	}{{Bucket{Tenant: b.Tenant}, s.Limits.TenantBytes, cmp.Or(s.Limits.TenantObjects, math.MaxUint64)}, {b, s.Limits.BucketBytes, s.Limits.BucketObjects}} {
		bytes, objects := after.Usage(w.of)
		was, had := s.Usage(w.of)
		if (bytes > was || objects > had) && (bytes > w.bytes || objects > w.objects) {
			return Quota
		}
	}
	// A content that is replaced keeps its row until the new one has one.
	contents := append(after.Contents(), s.Contents()...)
	slices.Sort(contents)
	if after.full() || after.exceeds(s, b.Tenant) || len(slices.Compact(contents)) > s.Limits.Objects {
		return Capacity
	}
	*s = *after
	return Done
}

// Put stores a content under its own name. The bucket need not exist.
func (s *Store) Put(n Name, put int) Outcome {
	if _, held := s.Entry(n); held {
		return Kept
	}
	return s.try(n.Bucket, func(s *Store) { s.set(Entry{n, n.Object, put}) })
}

// A Match is a condition of PutNamed: Absent, or the put that stored the entry (0: any).
type Match struct {
	Absent bool
	Put    int
}

// PutNamed stores a content under a name. A content that is copied must exist. With an upload, it ends
// that upload.
func (s *Store) PutNamed(n Name, content string, put int, m Match, copied bool, upload, revision int) Outcome {
	old, held := s.Entry(n)
	switch {
	case !s.HasBucket(n.Bucket):
		return NotFound
	case m.Absent && held, m.Put > 0 && (!held || old.Put != m.Put):
		return Precondition
	}
	if upload > 0 {
		switch u := s.Upload(upload); {
		case u == nil, u.Ended, u.Name != n:
			return NotFound
		case u.Revision != revision:
			return Stale
		}
	}
	if copied && !slices.Contains(s.Contents(), content) {
		return NotFound
	}
	return s.try(n.Bucket, func(s *Store) {
		s.set(Entry{n, content, put})
		if upload > 0 {
			s.end(upload)
		}
	})
}

// Delete removes an entry.
func (s *Store) Delete(n Name) Outcome {
	if _, held := s.Entry(n); !held {
		return NotFound
	}
	s.remove(n)
	return Done
}

// CreateBucket makes a bucket.
func (s *Store) CreateBucket(b Bucket) Outcome {
	if slices.Contains(s.Made, b) {
		return Precondition
	}
	return s.try(b, func(s *Store) { s.Made = append(s.Made, b) })
}

// DeleteBucket removes an empty bucket.
func (s *Store) DeleteBucket(b Bucket) Outcome {
	_, objects := s.Usage(b)
	switch {
	case !s.HasBucket(b):
		return NotFound
	case objects > 0 || s.uploads(b):
		return Precondition
	}
	s.Made = slices.DeleteFunc(s.Made, func(m Bucket) bool { return m == b })
	return Done
}

// Begin begins an upload.
func (s *Store) Begin(id int, n Name, at types.Time) Outcome {
	if !s.HasBucket(n.Bucket) {
		return NotFound
	}
	return s.try(n.Bucket, func(s *Store) { s.Uploads = append(s.Uploads, Upload{ID: id, Name: n, Begun: at}) })
}

// AppendPart stores a part that continues an upload at an offset.
func (s *Store) AppendPart(id int, n Name, number int, content string, offset uint64) Outcome {
	u := s.Upload(id)
	if u == nil || u.Ended || u.Name != n {
		return NotFound
	}
	for _, p := range u.Parts {
		if p.Number >= number {
			return Moved
		}
		offset -= s.Size(p.Content)
	}
	if offset != 0 {
		return Moved
	}
	return s.PutPart(id, n, number, content, false)
}

// PutPart stores a part.
func (s *Store) PutPart(id int, n Name, number int, content string, copied bool) Outcome {
	if u := s.Upload(id); u == nil || u.Ended || u.Name != n {
		return NotFound
	}
	if copied && !slices.Contains(s.Contents(), content) {
		return NotFound
	}
	return s.try(n.Bucket, func(s *Store) {
		u := s.Upload(id)
		u.Parts = append(slices.DeleteFunc(u.Parts, func(p Part) bool { return p.Number == number }), Part{number, content})
		u.Revision++
	})
}

// Abort ends an upload.
func (s *Store) Abort(id int, n Name) Outcome {
	if u := s.Upload(id); u == nil || u.Ended || u.Name != n {
		return NotFound
	}
	s.end(id)
	return Done
}

// end ends an upload. Its parts remain until Expire.
func (s *Store) end(id int) {
	s.Upload(id).Ended = true
	s.Uploads = slices.DeleteFunc(s.Uploads, func(u Upload) bool { return u.Ended && len(u.Parts) == 0 })
}

// Expire ends the uploads that began at least ttl before a time, and removes the parts of all uploads
// that have ended.
func (s *Store) Expire(at, ttl types.Time) {
	s.Uploads = slices.DeleteFunc(s.Uploads, func(u Upload) bool { return u.Ended || at >= u.Begun+ttl })
}
