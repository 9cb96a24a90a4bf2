package storage_test

import (
	"testing"

	"pgregory.net/rapid"

	"macronode/core/event"
	"macronode/core/storage"
)

// TestQuotaIsNamed: the rejection names the quota that would be exceeded, what it leaves, and by how much the object needs more.
func TestQuotaIsNamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, c := range []struct {
			tenant, bucket storage.Usage
			want           string
		}{
			{storage.Usage{Bytes: 20, Objects: 9}, storage.Usage{Bytes: 99, Objects: 9}, "storage.tenant_bytes limits the bytes of the objects and parts of the tenant: needed 9, left 2. The request changed nothing."},
			{storage.Usage{Bytes: 99, Objects: 2}, storage.Usage{Bytes: 99, Objects: 9}, "storage.tenant_objects limits the objects of the tenant in all its buckets: needed 1, left 0. The request changed nothing."},
			{storage.Usage{Bytes: 99, Objects: 9}, storage.Usage{Bytes: 20, Objects: 9}, "storage.bucket_bytes limits the bytes of the objects and parts of the bucket: needed 9, left 2. The request changed nothing."},
			{storage.Usage{Bytes: 99, Objects: 9}, storage.Usage{Bytes: 99, Objects: 2}, "storage.bucket_objects limits the objects of the bucket: needed 1, left 0. The request changed nothing."},
		} {
			s := newNames(t, map[string]bool{})
			s.plane = storage.New(storage.Limits{Objects: 12, Holdings: 12, Buckets: 4, Uploads: 4, Parts: 4, TenantBuckets: 3, TenantUploads: 3, TenantParts: 3,
				TenantQuota: c.tenant, BucketQuota: c.bucket}, 1)
			s.view = storage.New(withoutTenantRoom(storage.Limits{Objects: 12, Holdings: 12, Buckets: 4, Uploads: 4, Parts: 4}), 2)
			n := tenant{s, 2}
			n.want("", n.bucket(0))
			n.want("", n.named(0, 0))
			n.want("", n.named(1, 0))
			n.want("", n.named(1, 0)) // needs no more
			third := n.named(2, 0)
			var reply event.Reply
			s.plane.Decide(s.time, third, s, &reply)
			if got := reply.Shortage.Detail(); reply.Problem != event.QuotaExceeded || got != c.want {
				t.Fatalf("%v, %q, want %q", reply.Problem.Code(), got, c.want)
			}
		}
	})
}
