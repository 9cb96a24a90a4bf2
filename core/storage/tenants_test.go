package storage_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/storage"
	"macronode/core/types"
)

// TestTenantsShareTables: a tenant that takes all that its limits permit leaves room for the first bucket, object,
// upload and part of another one. Each rejection names the limit.
func TestTenantsShareTables(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newNames(t, map[string]bool{})
		quota := storage.Usage{Bytes: 1 << 20, Objects: 99}
		s.plane = storage.New(storage.Limits{Objects: 12, Holdings: 12, Buckets: 4, Uploads: 4, Parts: 4, TenantBuckets: 3, TenantUploads: 3, TenantParts: 3,
			TenantQuota: quota, BucketQuota: quota}, 1)
		s.view = storage.New(withoutTenantRoom(storage.Limits{Objects: 12, Holdings: 12, Buckets: 4, Uploads: 4, Parts: 4}), 2)
		greedy, other := tenant{s, 2}, tenant{s, 3}

		for n := range 3 {
			greedy.want("", greedy.bucket(n))
		}
		greedy.want("storage.tenant_buckets", greedy.bucket(3))
		greedy.want("storage.tenant_buckets", greedy.object(3, 0))
		other.want("", other.object(0, 0))
		other.want("storage.buckets", other.bucket(1))
		greedy.want("", greedy.object(0, 0))

		var uploads []storage.UploadID
		for range 3 {
			greedy.want("", greedy.begin())
			uploads = append(uploads, storage.UploadID(s.at))
		}
		greedy.want("storage.multipart.tenant_uploads", greedy.begin())
		other.want("", other.begin())
		of := storage.UploadID(s.at)
		other.want("storage.multipart.uploads", other.begin())

		for n := range 3 {
			greedy.want("", greedy.part(uploads[0], n+1))
		}
		greedy.want("storage.multipart.tenant_parts", greedy.part(uploads[1], 1))
		greedy.want("", greedy.part(uploads[0], 1)) // replaces one
		other.want("", other.part(of, 1))
		other.want("storage.multipart.parts", other.part(of, 2))

		// What has ended counts until its parts are removed.
		greedy.want("", &storage.AbortUpload{Header: s.next(2), Bucket: storage.Bucket("bucket-0"), Name: storage.ObjectName("a"), Upload: uploads[0]})
		greedy.want("storage.multipart.tenant_uploads", greedy.begin())
		s.sweep()
		greedy.want("", greedy.begin())
		greedy.want("", greedy.part(storage.UploadID(s.at), 1))
	})
}

// TestTenantsLeaveRoom: without limits of its own, a tenant has half of each table and the next one a quarter, so that another one
// begins. What a tenant replaces takes nothing from others.
func TestTenantsLeaveRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newNames(t, map[string]bool{})
		quota := storage.Usage{Bytes: 1 << 20}
		limits := storage.Limits{Objects: 14, Holdings: 20, Buckets: 4, Uploads: 4, Parts: 6, TenantQuota: quota, BucketQuota: storage.Usage{Bytes: 1 << 20, Objects: 99}}
		s.plane, s.view = storage.New(limits, 1), storage.New(limits, 2)
		first, second, third := tenant{s, 2}, tenant{s, 3}, tenant{s, 4}

		for n := range 2 {
			first.want("", first.bucket(n))
		}
		first.want("storage.tenant_buckets", first.bucket(2))
		second.want("", second.bucket(0))
		second.want("storage.tenant_buckets", second.bucket(1))
		third.want("", third.bucket(0))
		third.want("storage.buckets", third.bucket(1))

		for range 2 {
			first.want("", first.begin())
		}
		upload := storage.UploadID(s.at)
		first.want("storage.multipart.tenant_uploads", first.begin())
		second.want("", second.begin())

		for n := range 3 {
			first.want("", first.partOf(upload, n+1, n))
		}
		first.want("storage.multipart.tenant_parts", first.partOf(upload, 4, 3))
		for n := range 4 { // with the parts, seven of fourteen objects
			first.want("", first.named(n, 3+n))
		}
		first.want("storage.tenant_objects", first.named(4, 7))
		first.want("", first.named(0, 7))          // the object before it ends
		first.want("", first.named(1, 0))          // a part has it
		first.want("", first.partOf(upload, 2, 8)) // the object before it ends

		for n := range 4 {
			second.want("", second.named(n, 20+n))
		}
		second.want("storage.tenant_objects", second.named(4, 24))
		first.want("storage.tenant_objects", first.partOf(upload, 1, 9)) // an entry keeps the object before it
		second.want("", second.named(4, 23))                             // the same object has no second row
		third.want("", third.named(0, 30))
		first.want("", first.named(0, 31)) // what it replaces is its own

		first.want("", &storage.Delete{Header: s.next(2), Bucket: storage.Bucket("bucket-0"), Name: storage.ObjectName("name-0")})
		third.want("", third.named(1, 32))
	})
}

// tenant sends commands of a tenant to a plane.
type tenant struct {
	*names
	id types.Tenant
}

func (n tenant) bucket(number int) command.Command {
	return &storage.CreateBucket{Header: n.next(n.id), Bucket: storage.Bucket(fmt.Sprintf("bucket-%d", number))}
}

func (n tenant) object(bucket, number int) command.Command {
	return &storage.Put{Header: n.next(n.id), Bucket: storage.Bucket(fmt.Sprintf("bucket-%d", bucket)), Address: address(number), Size: size(number), File: n.file}
}

func (n tenant) begin() command.Command {
	return &storage.BeginUpload{Header: n.next(n.id), Bucket: storage.Bucket("bucket-0"), Name: storage.ObjectName("a")}
}

func (n tenant) part(of storage.UploadID, number int) command.Command {
	return &storage.PutPart{Header: n.next(n.id), Bucket: storage.Bucket("bucket-0"), Name: storage.ObjectName("a"), Upload: of, Number: uint16(number),
		Address: address(1), Size: size(1), File: n.file}
}

func (n tenant) partOf(of storage.UploadID, number, content int) command.Command {
	return &storage.PutPart{Header: n.next(n.id), Bucket: storage.Bucket("bucket-0"), Name: storage.ObjectName("a"), Upload: of, Number: uint16(number),
		Address: address(content), Size: 9, File: n.file}
}

func (n tenant) named(name, content int) command.Command {
	return &storage.Put{Header: n.next(n.id), Bucket: storage.Bucket("bucket-0"), Name: storage.ObjectName(fmt.Sprintf("name-%d", name)), Address: address(content), Size: 9, File: n.file}
}

// want decides a command and compares the key of the limit that rejects it. An empty key means that none does.
func (n tenant) want(key string, c command.Command) {
	n.Helper()
	if err := c.ValidateFields(); err != nil {
		n.Fatal(err)
	}
	var reply event.Reply
	n.plane.Decide(n.time, c, n.names, &reply)
	switch {
	case key == "" && reply.Problem == event.None && reply.Shortage == event.Shortage{}:
	case key != "" && reply.Problem == event.CapacityExceeded && reply.Shortage == event.Shortage{Limit: reply.Shortage.Limit, Needed: 1, Shared: reply.Shortage.Shared} && reply.Shortage.Limit.Key() == key:
	default:
		n.Fatalf("%T of tenant %d: %v, %+v (%s), want %q", c, n.id, reply.Problem.Code(), reply.Shortage, reply.Shortage.Detail(), key)
	}
	if err := n.plane.Check(); err != nil {
		n.Fatal(err)
	}
}
