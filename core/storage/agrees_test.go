package storage_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/storage"
	"macronode/core/types"
	reference "macronode/models/storage"
)

// modelLimits returns the limits of a plane and of its model. Shared ones have none of a tenant, so that tenants leave room.
func modelLimits(shared bool) (storage.Limits, reference.Limits) {
	m := reference.Limits{Objects: 5, Entries: 6, Buckets: 3, Uploads: 3, Parts: 7, TenantBuckets: 2, TenantUploads: 2, TenantParts: 4, TenantBytes: 150, TenantObjects: 5, BucketBytes: 90, BucketObjects: 4}
	if shared {
		m.TenantBuckets, m.TenantUploads, m.TenantParts, m.TenantObjects = 0, 0, 0, 0
	}
	return storage.Limits{Objects: m.Objects, Holdings: m.Entries, Buckets: m.Buckets, Uploads: m.Uploads, Parts: m.Parts, UploadTTL: ttl,
		TenantBuckets: m.TenantBuckets, TenantUploads: m.TenantUploads, TenantParts: m.TenantParts,
		TenantQuota: storage.Usage{Bytes: m.TenantBytes, Objects: m.TenantObjects}, BucketQuota: storage.Usage{Bytes: m.BucketBytes, Objects: m.BucketObjects}}, m
}

// withoutTenantRoom returns limits under which tenants have no bytes, and leave room for others. They reject no record and no row.
func withoutTenantRoom(l storage.Limits) storage.Limits {
	l.TenantBuckets, l.TenantUploads, l.TenantParts = 0, 0, 0
	l.TenantQuota, l.BucketQuota = storage.Usage{}, storage.Usage{}
	return l
}

const ttl = 500 * time.Millisecond

// names drives a plane and the reference model.
type names struct {
	*rapid.T
	plane *storage.Plane // decides
	view  *storage.Plane // folds the records
	model *reference.Store

	at      types.Position
	time    types.Time
	rec     record.Record
	added   bool
	entries map[reference.Name]types.Position
	uploads map[int]storage.UploadID
	file    storage.File
	seen    map[string]bool
}

func newNames(t *rapid.T, seen map[string]bool) *names {
	l, m := modelLimits(rapid.Bool().Draw(t, "shared"))
	return &names{T: t, plane: storage.New(l, 1), view: storage.New(withoutTenantRoom(l), 2), time: 1000, entries: map[reference.Name]types.Position{}, uploads: map[int]storage.UploadID{}, seen: seen,
		model: reference.New(m, func(content string) uint64 { return size(object(content)) })}
}

// object returns the number of a content; its text is the address.
func object(content string) (n int) {
	for n = range 6 {
		if address(n).String() == content {
			return n
		}
	}
	panic("no such content")
}

func (s *names) Record() *record.Record { return &s.rec }
func (s *names) Savepoint()             {}
func (s *names) Undo()                  {}
func (s *names) Commit()                {}
func (s *names) FindRef(types.Tenant, types.NameHash, command.PriorOutcome) (command.PriorOutcome, bool) {
	return command.PriorOutcome{}, false
}

var _ plane.Frame = (*names)(nil)

// Add applies the record twice on the plane, once of which is undone, and once on the view.
func (s *names) Add() types.Position {
	id := types.NewTxID(1, s.at)
	before := s.plane.Hash()
	for _, p := range [...]*storage.Plane{s.plane, s.view} {
		if !p.Fits(&s.rec) {
			s.Fatalf("%v does not fit", s.rec.Kind)
		}
	}
	s.plane.Savepoint()
	s.plane.Apply(s.time, id, &s.rec)
	s.plane.Undo()
	if err := s.plane.Check(); s.plane.Hash() != before || err != nil {
		s.Fatalf("%v leaves a trace: %v", s.rec.Kind, err)
	}
	s.plane.Apply(s.time, id, &s.rec)
	s.view.Apply(s.time, id, &s.rec)
	if s.plane.Hash() != s.view.Hash() {
		s.Fatalf("%v: the fold is another state", s.rec.Kind)
	}
	s.added = true
	return s.at
}

// decide lets the plane decide c and compares the outcome.
func (s *names) decide(c command.Command, want reference.Outcome) {
	s.Helper()
	s.seen[fmt.Sprintf("%T %s", c, want)] = true
	if err := c.ValidateFields(); err != nil {
		s.Fatalf("%+v: %v", c, err)
	}
	s.added = false
	var reply event.Reply
	s.plane.Decide(s.time, c, s, &reply)
	problem := map[reference.Outcome]event.Problem{reference.NotFound: event.NotFound, reference.Precondition: event.PreconditionFailed, reference.Stale: event.InProgress, reference.Moved: event.UploadMoved,
		reference.Quota: event.QuotaExceeded, reference.Capacity: event.CapacityExceeded}[want]
	if reply.Problem != problem || s.added != (problem == event.None) {
		s.Fatalf("%T %+v: %v, recorded %v; the model has %s", c, c, reply.Problem.Code(), s.added, want)
	}
	if problem == event.QuotaExceeded && (reply.Shortage.Limit < event.QuotaTenantBytes || reply.Shortage.Needed <= reply.Shortage.Left) {
		s.Fatalf("%T %+v exceeds no quota: %+v", c, c, reply.Shortage)
	}
	s.compare()
}

// next begins a command: its position and its time.
func (s *names) next(tenant types.Tenant) command.Header {
	s.at.LSN++
	s.time += types.Time(rapid.IntRange(0, 40).Draw(s.T, "time"))
	s.file++
	return command.Header{Tenant: tenant}
}

func (s *names) bucket() reference.Bucket {
	return reference.Bucket{Tenant: types.Tenant(rapid.IntRange(1, 2).Draw(s.T, "tenant")), Name: rapid.SampledFrom([]string{"photos", "books", "films"}).Draw(s.T, "bucket")}
}

func (s *names) name() reference.Name {
	name := rapid.SampledFrom([]string{"a", "b", ""}).Draw(s.T, "name")
	b := s.bucket()
	if name == "" {
		name = s.content()
	}
	return reference.Name{Bucket: b, Object: name}
}

func (s *names) content() string { return address(rapid.IntRange(0, 5).Draw(s.T, "content")).String() }

func (s *names) draw(what string) bool { return rapid.IntRange(0, 3).Draw(s.T, what) == 0 }

// put stores an object under its address.
func (s *names) put(*rapid.T) {
	n := reference.Name{Bucket: s.bucket(), Object: s.content()}
	head := s.next(n.Tenant)
	o := object(n.Object)
	want := s.model.Put(n, int(s.at.LSN))
	if want == reference.Done {
		s.entries[n] = s.at
	}
	s.decide(&storage.Put{Header: head, Bucket: storage.Bucket(n.Bucket.Name), Address: address(o), Size: size(o), File: s.file, Replace: s.draw("replace")}, want)
}

// putNamed stores an object under a name, copies one, or completes an upload.
func (s *names) putNamed(*rapid.T) {
	n := s.name()
	content := n.Object
	if len(content) < storage.AddressLen {
		content = s.content()
	}
	o := object(content)
	head := s.next(n.Tenant)
	c := &storage.Put{Header: head, Bucket: storage.Bucket(n.Bucket.Name), Name: storage.ObjectName(n.Object), Address: address(o), Size: size(o), File: s.file,
		Replace: s.draw("replace"), Meta: []byte("meta"), ETag: storage.ETag{MD5: [16]byte{1}}}
	m := reference.Match{Absent: s.draw("absent")}
	if e, held := s.model.Entry(n); !m.Absent && s.draw("match") {
		m.Put = 1 << 30 // of no entry
		c.Match.At = types.Position{LSN: 1 << 30}
		if held && s.draw("match the entry") {
			m.Put, c.Match.At = e.Put, s.entries[n]
		}
	}
	c.Match.Absent = m.Absent
	copied := s.draw("copy")
	if copied {
		c.File = 0
	}
	upload, revision := 0, 0
	if id, u := s.anUpload(); u != nil && s.draw("complete") {
		upload, revision = id, u.Revision
		if s.draw("stale") {
			revision++
		}
		if !s.draw("another name") && n.Object != u.Name.Object {
			n = u.Name
			if len(n.Object) == storage.AddressLen { // it becomes only that object
				content, o = n.Object, object(n.Object)
				c.Address, c.Size = address(o), size(o)
			}
			c.Tenant, c.Bucket, c.Name = n.Tenant, storage.Bucket(n.Bucket.Name), storage.ObjectName(n.Object)
			c.Match, m = storage.Match{}, reference.Match{}
		}
		c.Upload, c.Revision = s.uploads[id], uint32(revision)
	}
	want := s.model.PutNamed(n, content, int(s.at.LSN), m, copied, upload, revision)
	if upload > 0 {
		s.seen["complete "+string(want)] = true
	}
	if want == reference.Done {
		s.entries[n] = s.at
	}
	s.decide(c, want)
}

// anUpload returns an upload that there is, if any.
func (s *names) anUpload() (id int, u *reference.Upload) {
	if len(s.model.Uploads) == 0 {
		return 0, nil
	}
	id = rapid.SampledFrom(s.model.Uploads).Draw(s.T, "upload").ID
	return id, s.model.Upload(id)
}

func (s *names) delete(*rapid.T) {
	n := s.name()
	head := s.next(n.Tenant)
	c := &storage.Delete{Header: head, Bucket: storage.Bucket(n.Bucket.Name), Name: storage.ObjectName(n.Object)}
	if len(n.Object) == storage.AddressLen && s.draw("by address") {
		c.Name, c.Address = types.Name{}, address(object(n.Object))
	}
	want := s.model.Delete(n)
	if want == reference.Done {
		delete(s.entries, n)
	}
	s.decide(c, want)
}

func (s *names) createBucket(*rapid.T) {
	b := s.bucket()
	s.decide(&storage.CreateBucket{Header: s.next(b.Tenant), Bucket: storage.Bucket(b.Name)}, s.model.CreateBucket(b))
}

func (s *names) deleteBucket(*rapid.T) {
	b := s.bucket()
	s.decide(&storage.DeleteBucket{Header: s.next(b.Tenant), Bucket: storage.Bucket(b.Name)}, s.model.DeleteBucket(b))
}

func (s *names) begin(*rapid.T) {
	n := s.name()
	head := s.next(n.Tenant)
	id := int(s.at.LSN)
	s.uploads[id] = storage.UploadID(s.at)
	s.decide(&storage.BeginUpload{Header: head, Bucket: storage.Bucket(n.Bucket.Name), Name: storage.ObjectName(n.Object)}, s.model.Begin(id, n, s.time))
}

func (s *names) putPart(*rapid.T) {
	id, u := s.anUpload()
	if u == nil {
		return
	}
	n, content := u.Name, s.content()
	if s.draw("another name") {
		n = s.name()
	}
	o, number := object(content), rapid.SampledFrom([]int{1, 2, 63, 64, 65, 130}).Draw(s.T, "number")
	c := &storage.PutPart{Header: s.next(n.Tenant), Bucket: storage.Bucket(n.Bucket.Name), Name: storage.ObjectName(n.Object), Upload: s.uploads[id], Number: uint16(number),
		Address: address(o), Size: size(o), File: s.file}
	copied := s.draw("copy")
	if copied {
		c.File = 0
	}
	s.decide(c, s.model.PutPart(id, n, number, content, copied))
}

// appendPart continues an upload, often at a wrong offset.
func (s *names) appendPart(*rapid.T) {
	id, u := s.anUpload()
	if u == nil {
		return
	}
	n, content, number, offset := u.Name, s.content(), 1, uint64(0)
	for _, p := range u.Parts {
		number = max(number, p.Number+1)
		offset += s.model.Size(p.Content)
	}
	if s.draw("another number") {
		number = rapid.SampledFrom([]int{1, 2, 64, 131}).Draw(s.T, "number")
	}
	if s.draw("another offset") {
		offset = uint64(rapid.IntRange(0, 90).Draw(s.T, "offset"))
	}
	o := object(content)
	s.decide(&storage.PutPart{Header: s.next(n.Tenant), Bucket: storage.Bucket(n.Bucket.Name), Name: storage.ObjectName(n.Object), Upload: s.uploads[id], Number: uint16(number),
		Address: address(o), Size: size(o), File: s.file, Append: true, Offset: offset}, s.model.AppendPart(id, n, number, content, offset))
}

func (s *names) abort(*rapid.T) {
	id, u := s.anUpload()
	if u == nil {
		return
	}
	n := u.Name
	if s.draw("another name") {
		n = s.name()
	}
	s.decide(&storage.AbortUpload{Header: s.next(n.Tenant), Bucket: storage.Bucket(n.Bucket.Name), Name: storage.ObjectName(n.Object), Upload: s.uploads[id]}, s.model.Abort(id, n))
}

// expire lets time pass and sweeps until nothing is due.
func (s *names) expire(*rapid.T) {
	s.time += types.Time(rapid.IntRange(0, 600).Draw(s.T, "sleep"))
	s.sweep()
	s.model.Expire(s.time, types.Time(ttl.Milliseconds()))
	s.compare()
}

// sweep applies expiries until nothing is due.
func (s *names) sweep() {
	for {
		s.at.LSN++
		s.rec = record.Record{}
		if !s.plane.Expire(s.time, &s.rec) {
			return
		}
		if !s.view.Fits(&s.rec) {
			s.Fatal("an expiry that does not fit")
		}
		for _, p := range [...]*storage.Plane{s.plane, s.view} {
			p.Apply(s.time, types.NewTxID(1, s.at), &s.rec)
		}
		s.seen["expire"] = true
	}
}

// reload replaces the view by one that is loaded from the rows of the plane.
func (s *names) reload(*rapid.T) {
	l, _ := modelLimits(false)
	s.view = storage.New(withoutTenantRoom(l), 3)
	s.plane.Dump(func(kind uint8, b []byte) {
		if err := s.view.Load(kind, b); err != nil {
			s.Fatalf("row %d: %v", kind, err)
		}
	})
	if s.view.Hash() != s.plane.Hash() {
		s.Fatal("the rows make another state")
	}
	s.compare()
}

// compare holds the plane and the view against the model.
func (s *names) compare() {
	for _, p := range [...]*storage.Plane{s.plane, s.view} {
		if err := p.Check(); err != nil {
			s.Fatal(err)
		}
		contents := s.model.Contents()
		for o := range 6 {
			row, stored := p.Find(address(o))
			if stored != slices.Contains(contents, address(o).String()) || stored && row.Size != size(o) {
				s.Fatalf("object %d: %+v, stored %v", o, row, stored)
			}
		}
		for t := range types.Tenant(2) {
			for _, name := range [...]string{"", "photos", "books"} {
				b, id := reference.Bucket{Tenant: t + 1, Name: name}, types.NameHash{}
				if name != "" {
					id = storage.Bucket(name).ID
				}
				bytes, objects := s.model.Usage(b)
				if got := p.Usage(b.Tenant, id); got != (storage.Usage{Bytes: bytes, Objects: objects}) {
					s.Fatalf("%+v uses %+v, want %d bytes and %d objects", b, got, bytes, objects)
				}
				if name != "" && p.HasBucket(b.Tenant, id) != s.model.HasBucket(b) {
					s.Fatalf("%+v exists: %v", b, p.HasBucket(b.Tenant, id))
				}
				s.compareEntries(p, b, id)
			}
		}
		s.compareUploads(p)
	}
}

func (s *names) compareEntries(p *storage.Plane, b reference.Bucket, id types.NameHash) {
	all := []string{"a", "b"}
	for o := range 6 {
		all = append(all, address(o).String())
	}
	for _, name := range all {
		n := reference.Name{Bucket: b, Object: name}
		want, held := s.model.Entry(n)
		got, ok := p.Entry(b.Tenant, id, storage.ObjectName(name).ID)
		if ok != held || held && (got.Address.String() != want.Content || got.At != s.entries[n]) {
			s.Fatalf("%+v: %+v, %v; want %+v, %v", n, got, ok, want, held)
		}
	}
}

func (s *names) compareUploads(p *storage.Plane) {
	for id, at := range s.uploads {
		u := s.model.Upload(id)
		live := u != nil && !u.Ended
		var n reference.Name
		if u != nil {
			n = u.Name
		}
		got, ok := p.Upload(n.Tenant, storage.Bucket(n.Bucket.Name).ID, storage.ObjectName(n.Object).ID, at)
		if ok != live || live && int(got.Revision) != u.Revision {
			s.Fatalf("upload %d: %+v, %v; want %+v", id, got, ok, u)
		}
		parts := p.Parts(at, 0, 100)
		count := 0
		for _, part := range parts {
			if u == nil || !slices.Contains(u.Parts, reference.Part{Number: int(part.Number), Content: part.Address.String()}) {
				s.Fatalf("upload %d has part %d", id, part.Number)
			}
			count++
		}
		if u != nil && count != len(u.Parts) {
			s.Fatalf("upload %d has %d parts, want %d", id, count, len(u.Parts))
		}
	}
}

// TestNamesAgreeWithModel compares buckets, names, copies and uploads in parts with the model. Every record is
// also undone, folded a second time, and loaded from the rows of a snapshot.
func TestNamesAgreeWithModel(t *testing.T) {
	seen := map[string]bool{}
	wanted := [...]string{"*storage.Put done", "*storage.Put kept", "*storage.Put not found", "*storage.Put precondition failed", "*storage.Put quota exceeded",
		"*storage.Put capacity exceeded", "complete done", "complete stale", "complete not found", "*storage.Delete done", "*storage.Delete not found",
		"*storage.CreateBucket done", "*storage.CreateBucket precondition failed", "*storage.DeleteBucket done", "*storage.DeleteBucket not found",
		"*storage.DeleteBucket precondition failed", "*storage.BeginUpload done", "*storage.BeginUpload not found", "*storage.BeginUpload capacity exceeded",
		"*storage.PutPart done", "*storage.PutPart moved", "*storage.PutPart not found", "*storage.PutPart quota exceeded", "*storage.PutPart capacity exceeded",
		"*storage.AbortUpload done", "*storage.AbortUpload not found", "expire"}
	for round := 0; round == 0 || len(missing(seen, wanted[:])) > 0; round++ { // rare outcomes take some rounds
		if round == 50 {
			t.Fatalf("never seen: %v", missing(seen, wanted[:]))
		}
		rapid.Check(t, func(t *rapid.T) {
			s := newNames(t, seen)
			t.Repeat(map[string]func(*rapid.T){"put": s.put, "put named": s.putNamed, "put named again": s.putNamed, "delete": s.delete, "create bucket": s.createBucket,
				"delete bucket": s.deleteBucket, "begin": s.begin, "put part": s.putPart, "another part": s.putPart, "append part": s.appendPart, "abort": s.abort, "expire": s.expire, "reload": s.reload})
		})
	}
}

// missing returns the outcomes that were not seen.
func missing(seen map[string]bool, wanted []string) (list []string) {
	for _, w := range wanted {
		if !seen[w] {
			list = append(list, w)
		}
	}
	return list
}
