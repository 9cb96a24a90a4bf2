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
	case key != "" && reply.Problem == event.CapacityExceeded && reply.Shortage == event.Shortage{Limit: reply.Shortage.Limit, Needed: 1} && reply.Shortage.Limit.Key() == key:
	default:
		n.Fatalf("%T of tenant %d: %v, %+v (%s), want %q", c, n.id, reply.Problem.Code(), reply.Shortage, reply.Shortage.Detail(), key)
	}
	if err := n.plane.Check(); err != nil {
		n.Fatal(err)
	}
}
