package httpapi_test

import (
	"context"
	"sync"

	"macronode/adapters/objectstore"
	"macronode/chaos/world"
	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/storage"
	"macronode/core/types"
)

// addressOf is the address of a text.
func addressOf(text string) string { return storage.Address(digest.Sum([]byte(text))).String() }

// objects are the storage plane and the files of a house.
type objects struct {
	house *house
	mu    sync.Mutex
	plane *storage.Plane
	disk  *world.Disk
	store *objectstore.Store
}

// The quotas of every tenant in a house.
const (
	tenantBytes  = 1 << 20
	bucketBytes  = 700 << 10
	bucketNumber = 20
)

func (h *house) objects() *objects {
	if h.store == nil {
		o := &objects{house: h, disk: world.NewDisk(), plane: storage.New(storage.Limits{Objects: 100, Holdings: 100, Buckets: 10,
			TenantQuota: storage.Usage{Bytes: tenantBytes, Objects: 50}, BucketQuota: storage.Usage{Bytes: bucketBytes, Objects: bucketNumber}}, 1)}
		o.store = objectstore.New(o.disk, objectstore.Limits{Uploads: 3, Object: 2 << 20})
		h.store = o
	}
	return h.store
}

// put stores a text in the default bucket.
func (o *objects) put(t types.Tenant, text string) {
	up, err := o.store.Begin()
	if err != nil {
		o.house.t.Fatal(err)
	}
	defer up.Done()
	_, _ = up.Write([]byte(text))
	a, _ := up.Sum()
	if err := up.Store(a); err != nil {
		o.house.t.Fatal(err)
	}
	c := &storage.Put{Header: command.Header{Tenant: t}, Bucket: storage.Bucket("default"), Address: a, Size: up.Size(), File: up.File()}
	c.Seal()
	if r := o.execute(c); r.Problem != event.None {
		o.house.t.Fatal(r.Problem)
	}
}

// A stepFrame is the frame of one command.
type stepFrame struct {
	objects *objects
	record  record.Record
}

func (f *stepFrame) Record() *record.Record { return &f.record }
func (f *stepFrame) Add() types.Position {
	f.objects.plane.Apply(now, types.TxID{}, &f.record)
	return f.objects.house.seal(&f.record)
}
func (f *stepFrame) Savepoint() {}
func (f *stepFrame) Undo()      {}
func (f *stepFrame) Commit()    {}
func (f *stepFrame) FindRef(types.Tenant, types.NameHash, types.TxID) (types.TxID, bool) {
	return types.TxID{}, false
}

func (o *objects) execute(c command.Command) (r event.Reply) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.house.mu.Lock()
	defer o.house.mu.Unlock()
	o.plane.Decide(now, c, &stepFrame{objects: o}, &r)
	return r
}

// Execute decides without idempotency: that is the node's.
func (n node) Execute(ctx context.Context, c command.Command) (event.Reply, bool) {
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
		n.t.Errorf("the node was asked for what is no command: %v", err)
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

func (o *objects) Usage(t types.Tenant, bucket types.NameHash) (storage.Usage, uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.plane.Usage(t, bucket), o.plane.Left(t, bucket)
}

func (o *objects) Held(t types.Tenant, bucket types.NameHash, from uint32, limit int) ([]storage.Stored, uint32, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.plane.Held(t, bucket, from, limit)
}

func (c *count) Stored(uint64) { c.add("stored") }
func (c *count) Sent(uint64)   { c.add("sent") }
func (c *count) Damaged()      { c.add("damaged") }

func (still) Stored(uint64) {}
func (still) Sent(uint64)   {}
func (still) Damaged()      {}
