package server

import (
	"context"
	"time"

	"macronode/adapters/index"
	"macronode/adapters/readmodel"
	"macronode/adapters/s3"
	"macronode/core/storage"
	"macronode/core/types"
)

// names are the index as the S3 interface and lists of objects read it.
type names struct {
	index    *index.Indexer
	rows     *readmodel.Follower
	deadline time.Duration
}

// errLists is unavailable, not wrong: the index does not follow the journal yet.
var errLists error = listsError{}

type listsError struct{}

func (listsError) Error() string     { return "lists of objects: the index is behind" }
func (listsError) Unavailable() bool { return true }

// Await waits until the index has everything that was acknowledged.
func (n names) Await(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, n.deadline)
	defer stop()
	if !n.index.AwaitFrame(ctx, n.rows.Mark()) {
		return errLists
	}
	return nil
}

// namesPerPage is how many names one look at the index returns.
const namesPerPage = 256

func (n names) Objects(ctx context.Context, t types.Tenant, bucket types.NameHash, prefix, from string, yield func(s3.Listed) bool) error {
	next, more := []byte(from), true
	for more {
		var page []index.ObjectName
		var err error
		if page, next, more, err = n.index.Objects(t, bucket, []byte(prefix), next, namesPerPage); err != nil {
			return err
		}
		for _, o := range page {
			if !yield(s3.Listed{Name: string(o.Name), Address: o.Address, Size: o.Size, ETag: o.ETag, At: o.At}) {
				return nil
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (n names) Buckets(ctx context.Context, t types.Tenant) (list []s3.ListedBucket, err error) {
	if err := n.Await(ctx); err != nil {
		return nil, err
	}
	all, err := n.index.Buckets(t)
	for _, b := range all {
		if n.rows.HasBucket(t, storage.Bucket(string(b.Name)).ID) {
			list = append(list, s3.ListedBucket{Name: string(b.Name), At: b.At})
		}
	}
	return list, err
}

func (n names) Uploads(ctx context.Context, t types.Tenant, bucket types.NameHash) (list []s3.ListedUpload, err error) {
	if err := n.Await(ctx); err != nil {
		return nil, err
	}
	all, err := n.index.Uploads(t, bucket)
	for _, u := range all {
		list = append(list, s3.ListedUpload{Name: string(u.Name), ID: u.ID, At: u.At})
	}
	return list, err
}
