package index_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"macronode/adapters/index"
	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/storage"
	"macronode/core/types"
)

// objects makes frames of the storage plane, and knows what they leave.
type objects struct {
	*world
	plane   *storage.Plane
	rec     record.Record
	at      types.Time
	want    map[string]index.ObjectName // by bucket, "/" and name
	uploads map[storage.UploadID]string // the same
	made    map[string]types.Time
}

func newObjects(pick chance) *objects {
	all := storage.Usage{Bytes: 1 << 40, Objects: 1 << 20}
	return &objects{world: newWorld(pick), at: 1_000_000, want: map[string]index.ObjectName{}, uploads: map[storage.UploadID]string{}, made: map[string]types.Time{},
		plane: storage.New(storage.Limits{Objects: 200, Holdings: 200, Buckets: 9, Uploads: 99, Parts: 9, TenantBuckets: 9, TenantUploads: 99, TenantParts: 9, TenantQuota: all, BucketQuota: all}, 1)}
}

func (o *objects) Record() *record.Record { return &o.rec }
func (o *objects) Savepoint()             {}
func (o *objects) Undo()                  {}
func (o *objects) Commit()                {}
func (o *objects) FindRef(types.Tenant, types.NameHash, command.PriorOutcome) (command.PriorOutcome, bool) {
	return command.PriorOutcome{}, false
}

// Add makes a frame of the record.
func (o *objects) Add() types.Position {
	n := types.LSN(len(o.shelf.frames) + 1)
	p := types.Position{LSN: n}
	o.at += types.Time(o.pick(1000))
	o.plane.Apply(o.at, types.NewTxID(3, p), &o.rec)
	body, _ := record.Add(record.Begin(nil, n, o.at), 0, &o.rec)
	s := record.Sealed{Journal: 3, LSN: n, Body: body}
	if n > 1 {
		s.Prev = o.shelf.frames[n-2].Root
	}
	s.Root, _ = digest.Chain(nil, s.Prev, body)
	o.shelf.add(s)
	o.shelf.upto.Store(uint64(n))
	return p
}

func (o *objects) decide(c command.Command) (types.Position, bool) {
	c.Head().Tenant = 1
	var reply event.Reply
	o.plane.Decide(o.at, c, o, &reply)
	return reply.Position, reply.Problem == event.None
}

// change makes one more frame, unless the plane rejects what was drawn.
func (o *objects) change() {
	b := [...]string{"photos", "books"}[o.pick(2)]
	name := strings.Repeat("x", o.pick(6)) + [...]string{"a", "b", "a/b", "a/c", "\xff", "z"}[o.pick(6)]
	bucket, object := storage.Bucket(b), storage.ObjectName(name)
	a := storage.Address{byte(o.pick(9)), 1}
	size := uint64(a[0])
	switch o.pick(8) {
	case 0:
		if _, ok := o.decide(&storage.CreateBucket{Bucket: bucket}); ok {
			o.made[b] = o.at
		}
	case 1:
		if _, ok := o.decide(&storage.DeleteBucket{Bucket: bucket}); ok {
			delete(o.made, b)
		}
	case 2:
		if _, ok := o.decide(&storage.Put{Bucket: bucket, Address: a, Size: size, File: 1}); ok {
			key := b + "/" + a.String()
			if _, held := o.want[key]; !held {
				o.want[key] = index.ObjectName{Name: []byte(a.String()), Address: a, Size: size, At: o.at}
			}
		}
	case 3:
		if _, ok := o.decide(&storage.Delete{Bucket: bucket, Name: object}); ok {
			delete(o.want, b+"/"+name)
		}
	case 4:
		if p, ok := o.decide(&storage.BeginUpload{Bucket: bucket, Name: object}); ok {
			o.uploads[storage.UploadID(p)] = b + "/" + name
		}
	case 5:
		for id, key := range o.uploads {
			b, name, _ := strings.Cut(key, "/")
			if _, ok := o.decide(&storage.AbortUpload{Bucket: storage.Bucket(b), Name: storage.ObjectName(name), Upload: id}); ok {
				delete(o.uploads, id)
			}
			break
		}
	default:
		tag := storage.ETag{MD5: [16]byte{1, a[0]}, Parts: uint16(o.pick(2))}
		c := &storage.Put{Bucket: bucket, Name: object, Address: a, Size: size, File: 1, ETag: tag}
		for id, key := range o.uploads {
			if u, ok := o.plane.Upload(1, bucket.ID, object.ID, id); ok && key == b+"/"+name {
				c.Upload, c.Revision = id, u.Revision
			}
		}
		if _, ok := o.decide(c); ok {
			o.want[b+"/"+name] = index.ObjectName{Name: []byte(name), Address: a, Size: size, ETag: tag, At: o.at}
			delete(o.uploads, c.Upload)
		}
	}
}

// compare holds every list against what was made.
func (o *objects) compare(t tb, x *index.Indexer) {
	for _, b := range [...]string{"photos", "books"} {
		for _, prefix := range [...]string{"", "a", "a/", "x", "b3:", "zz"} {
			for _, from := range [...]string{"", "a/b", "xa", "~"} {
				got := ""
				next, more := []byte(from), true
				for more {
					var list []index.ObjectName
					var err error
					if list, next, more, err = x.Objects(1, storage.Bucket(b).ID, []byte(prefix), next, 1+o.pick(4)); err != nil {
						t.Fatalf("%v", err)
					}
					for _, n := range list {
						got += fmt.Sprintf("%q %v %d %v %d\n", n.Name, n.Address, n.Size, n.ETag, n.At)
					}
				}
				if want := o.list(b, prefix, from); got != want {
					t.Fatalf("%s with prefix %q from %q:\n%swant\n%s", b, prefix, from, got, want)
				}
			}
		}
		o.compareUploads(t, x, b)
	}
	buckets, err := x.Buckets(1)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for b, at := range o.made {
		if !slices.ContainsFunc(buckets, func(n index.BucketName) bool { return string(n.Name) == b && n.At == at }) {
			t.Fatalf("bucket %s of %d is not listed: %v", b, at, buckets)
		}
	}
	for n := range o.want {
		b, _, _ := strings.Cut(n, "/")
		if !slices.ContainsFunc(buckets, func(n index.BucketName) bool { return string(n.Name) == b }) {
			t.Fatalf("bucket %s is not listed: %v", b, buckets)
		}
	}
}

func (o *objects) list(bucket, prefix, from string) (want string) {
	var all []index.ObjectName
	for key, n := range o.want {
		b, name, _ := strings.Cut(key, "/")
		if b == bucket && strings.HasPrefix(name, prefix) && name >= from {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b index.ObjectName) int { return bytes.Compare(a.Name, b.Name) })
	for _, n := range all {
		want += fmt.Sprintf("%q %v %d %v %d\n", n.Name, n.Address, n.Size, n.ETag, n.At)
	}
	return want
}

func (o *objects) compareUploads(t tb, x *index.Indexer, bucket string) {
	list, err := x.Uploads(1, storage.Bucket(bucket).ID)
	if err != nil {
		t.Fatalf("%v", err)
	}
	count := 0
	for _, key := range o.uploads {
		if strings.HasPrefix(key, bucket+"/") {
			count++
		}
	}
	for i, u := range list {
		if o.uploads[u.ID] != bucket+"/"+string(u.Name) || i > 0 && bytes.Compare(list[i-1].Name, u.Name) > 0 {
			t.Fatalf("%d-th upload of %s: %v", i, bucket, u)
		}
	}
	if len(list) != count {
		t.Fatalf("%d uploads of %s, want %d", len(list), bucket, count)
	}
}

// TestNamesAreListed: lists of objects, buckets and uploads are complete and in order, whatever is in tails
// and in tables.
func TestNamesAreListed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newObjects(diced(rapid.Uint64().Draw(t, "seed")))
		limits := small(o.pick)
		limits.Frames = 1 + o.pick(90) // more than one look takes
		d := newDesk(t, o.world, vfs.NewMem(), limits).open()
		d.start()
		for range 1 + o.pick(6) {
			from := len(o.shelf.frames)
			for range 1 + o.pick(60) {
				o.change()
			}
			d.x.Offer(o.shelf.frames[from:])
			d.comes()
			o.compare(t, d.x)
			if o.pick(4) == 0 {
				if err := d.ends(); err != nil {
					t.Fatalf("it ends with %v", err)
				}
				d.start()
				d.comes()
				o.compare(t, d.x)
			}
		}
		if err := d.ends(); err != nil {
			t.Fatalf("it ends with %v", err)
		}
	})
}

// TestListGoesOnBehindEachPage lists more names than one page, and one look at a tail, has room for.
func TestListGoesOnBehindEachPage(t *testing.T) {
	o := newObjects(diced(1))
	d := newDesk(t, o.world, vfs.NewMem(), index.Limits{Frames: 1000, Cache: 1 << 20, Files: 64}).open()
	d.start()
	bucket := storage.Bucket("photos")
	o.decide(&storage.CreateBucket{Bucket: bucket})
	const count = 150
	for n := range count {
		o.decide(&storage.Put{Bucket: bucket, Name: storage.ObjectName(fmt.Sprintf("%03d", n*7%count)), Address: storage.Address{1}, Size: 1, File: 1})
	}
	const removed = 100 // more than one look takes: its page is empty
	for n := range removed {
		o.decide(&storage.Delete{Bucket: bucket, Name: storage.ObjectName(fmt.Sprintf("%03d", n))})
	}
	d.x.Offer(o.shelf.frames)
	d.comes()
	got, next, more := removed, []byte(nil), true
	for more {
		var list []index.ObjectName
		var err error
		if list, next, more, err = d.x.Objects(1, bucket.ID, nil, next, 3); err != nil || len(list) > 3 {
			t.Fatalf("a page of %d, %v", len(list), err)
		}
		for _, n := range list {
			if string(n.Name) != fmt.Sprintf("%03d", got) {
				t.Fatalf("%s is listed in place %d", n.Name, got)
			}
			got++
		}
	}
	if err := d.ends(); got != count || err != nil {
		t.Errorf("%d of %d names are listed, %v", got, count, err)
	}
}
