package httpapi_test

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"macronode/adapters/objectstore"
	"macronode/adapters/s3"
	"macronode/chaos/world"
	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/storage"
	"macronode/core/types"
)

// addressOf returns the address of a text.
func addressOf(text string) string { return storage.Address(digest.Sum([]byte(text))).String() }

// objects are the storage plane and the files of a backend.
type objects struct {
	backend *backend
	mu      sync.Mutex
	plane   *storage.Plane
	disk    *world.Disk
	store   *objectstore.Store
	names   map[string]storage.Change // by bucket and name
}

// The quotas of every tenant in a backend.
const (
	tenantBytes  = 1 << 20
	bucketBytes  = 700 << 10
	bucketNumber = 20
)

func (h *backend) objects() *objects {
	if h.store == nil {
		o := &objects{backend: h, names: map[string]storage.Change{}, disk: world.NewDisk(), plane: storage.New(storage.Limits{Objects: 100, Holdings: 100, Buckets: 10, TenantBuckets: 5, Uploads: 4, TenantUploads: 3, Parts: 200, TenantParts: 100,
			TenantQuota: storage.Usage{Bytes: tenantBytes, Objects: 50}, BucketQuota: storage.Usage{Bytes: bucketBytes, Objects: bucketNumber}}, 1)}
		o.store = objectstore.New(o.disk, objectstore.Limits{Uploads: 3, Object: 2 << 20})
		h.store = o
	}
	return h.store
}

// put stores a text in the default bucket.
func (o *objects) put(t types.Tenant, text string) {
	up, err := o.store.Begin(1)
	if err != nil {
		o.backend.t.Fatal(err)
	}
	defer up.Done()
	_, _ = up.Write([]byte(text))
	a, _ := up.Sum()
	if err := up.Store(a); err != nil {
		o.backend.t.Fatal(err)
	}
	c := &storage.Put{Header: command.Header{Tenant: t}, Bucket: storage.Bucket("default"), Address: a, Size: up.Size(), File: up.File()}
	c.Seal()
	if r := o.execute(c); r.Problem != event.None {
		o.backend.t.Fatal(r.Problem)
	}
}

// A stepFrame is the frame of one command.
type stepFrame struct {
	objects *objects
	record  record.Record
}

func (f *stepFrame) Record() *record.Record { return &f.record }
func (f *stepFrame) Add() types.Position {
	p := f.objects.backend.seal(&f.record)
	f.objects.plane.Apply(now, types.NewTxID(journal, p), &f.record)
	c := storage.ReadChange(p, &f.record)
	key := string(c.Bucket) + "/" + string(c.Name)
	switch c.Bucket, c.Name = bytes.Clone(c.Bucket), bytes.Clone(c.Name); c.Kind {
	case storage.EntryPut:
		f.objects.names[key] = c
	case storage.EntryRemoved:
		delete(f.objects.names, key)
	}
	return p
}
func (f *stepFrame) Savepoint() {}
func (f *stepFrame) Undo()      {}
func (f *stepFrame) Commit()    {}
func (f *stepFrame) FindRef(types.Tenant, types.NameHash, command.PriorOutcome) (command.PriorOutcome, bool) {
	return command.PriorOutcome{}, false
}

func (o *objects) execute(c command.Command) (r event.Reply) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.backend.mu.Lock()
	defer o.backend.mu.Unlock()
	o.plane.Decide(now, c, &stepFrame{objects: o}, &r)
	return r
}

// Execute decides without idempotency, which is tested with the node.
func (n node) Execute(ctx context.Context, c command.Command) (event.Reply, bool) {
	n.hasPermit(c.Head().Permit)
	switch {
	case n.full:
		return event.Reply{}, false
	case n.silent:
		<-ctx.Done()
		return event.Reply{Problem: event.OutcomeUnknown}, true
	case n.reply != nil:
		return *n.reply, true
	}
	if err := c.ValidateFields(); err != nil {
		n.t.Errorf("the node got an invalid command: %v", err)
	}
	if c.Plane() == types.PlaneAccounting {
		return n.usage().execute(c), true
	}
	return n.objects().execute(c), true
}

func (o *objects) Object(t types.Tenant, bucket types.NameHash, a storage.Address) (storage.Object, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.plane.Holds(t, bucket, a) {
		return storage.Object{}, false
	}
	return o.plane.Find(a)
}

func (o *objects) StoredAs(a storage.Address) (storage.Object, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.plane.Find(a)
}

func (o *objects) HasBucket(t types.Tenant, bucket types.NameHash) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.plane.HasBucket(t, bucket)
}

func (o *objects) Upload(t types.Tenant, bucket, name types.NameHash, id storage.UploadID) (storage.Upload, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.plane.Upload(t, bucket, name, id)
}

func (o *objects) Parts(id storage.UploadID, after uint16, limit int) []storage.NumberedPart {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.plane.Parts(id, after, limit)
}

func (o *objects) Usage(t types.Tenant, bucket types.NameHash) (storage.Usage, uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.plane.Usage(t, bucket), o.plane.Left(t, bucket)
}

func (o *objects) QuotaShortage(t types.Tenant, bucket types.NameHash, needed storage.Usage) event.Shortage {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.plane.QuotaShortage(t, bucket, needed)
}

// Objects lists the names of the records.
func (o *objects) Objects(_ context.Context, t types.Tenant, bucket types.NameHash, prefix, from string, yield func(s3.Listed) bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(o.names)) {
		c := o.names[name]
		if c.Tenant != t || digest.Name(c.Bucket) != bucket || !strings.HasPrefix(string(c.Name), prefix) || string(c.Name) < from {
			continue
		}
		if !yield(s3.Listed{Name: string(c.Name), Address: c.Address, Size: c.Size}) {
			break
		}
	}
	return nil
}

func (*objects) Await(context.Context) error { return nil }

func (*objects) Buckets(context.Context, types.Tenant) ([]s3.ListedBucket, error) { return nil, nil }
func (*objects) Uploads(context.Context, types.Tenant, types.NameHash) ([]s3.ListedUpload, error) {
	return nil, nil
}

func (c *count) Stored(uint64) { c.add("stored") }
func (c *count) Sent(uint64)   { c.add("sent") }
func (c *count) Damaged()      { c.add("damaged") }

func (noMeter) Stored(uint64) {}
func (noMeter) Sent(uint64)   {}
func (noMeter) Damaged()      {}
