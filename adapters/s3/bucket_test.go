package s3_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

func TestBuckets(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.client("ALL"), context.Background()
	create := func(name, location string) string {
		in := &sdk.CreateBucketInput{Bucket: aws.String(name)}
		if location != "" {
			in.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(location)}
		}
		_, err := c.CreateBucket(ctx, in)
		return codeOf(err)
	}
	for name, pair := range map[string][2]string{
		"no location":      {create("bbb", ""), ""},
		"the location":     {create("aaa", region), ""},
		"another location": {create("ccc", "mars-1"), "400 IllegalLocationConstraintException"},
		"a bad name":       {create("A_b", ""), "400 InvalidBucketName"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %s, want %s", name, pair[0], pair[1])
		}
	}
	if got := create("bbb", ""); got != "409 BucketAlreadyOwnedByYou" {
		t.Errorf("again: %s", got)
	}
	list, err := c.ListBuckets(ctx, &sdk.ListBucketsInput{})
	if err != nil || len(list.Buckets) != 2 || aws.ToString(list.Buckets[0].Name) != "aaa" || aws.ToString(list.Owner.ID) != "1" || list.Buckets[0].CreationDate == nil {
		t.Errorf("%+v, %v", list, err)
	}
	if other, err := w.client("OTHER").ListBuckets(ctx, &sdk.ListBucketsInput{}); err != nil || len(other.Buckets) != 0 {
		t.Errorf("another tenant: %+v, %v", other, err)
	}
	head, err := c.HeadBucket(ctx, &sdk.HeadBucketInput{Bucket: aws.String("aaa")})
	if err != nil || aws.ToString(head.BucketRegion) != region {
		t.Errorf("%+v, %v", head, err)
	}
	if _, err := c.HeadBucket(ctx, &sdk.HeadBucketInput{Bucket: aws.String("missing")}); codeOf(err) != "404 NotFound" {
		t.Error(err)
	}
	if _, err := w.client("OTHER").HeadBucket(ctx, &sdk.HeadBucketInput{Bucket: aws.String("aaa")}); codeOf(err) != "404 NotFound" {
		t.Errorf("another tenant: %v", err)
	}
	location, err := c.GetBucketLocation(ctx, &sdk.GetBucketLocationInput{Bucket: aws.String("aaa")})
	if err != nil || location.LocationConstraint != region {
		t.Errorf("%+v, %v", location, err)
	}
	versions, err := c.GetBucketVersioning(ctx, &sdk.GetBucketVersioningInput{Bucket: aws.String("aaa")})
	if err != nil || versions.Status != "" {
		t.Errorf("%+v, %v", versions, err)
	}
	acl, err := c.GetBucketAcl(ctx, &sdk.GetBucketAclInput{Bucket: aws.String("aaa")})
	if err != nil || aws.ToString(acl.Owner.ID) != "1" || len(acl.Grants) != 1 || acl.Grants[0].Permission != types.PermissionFullControl ||
		acl.Grants[0].Grantee.Type != types.TypeCanonicalUser || aws.ToString(acl.Grants[0].Grantee.ID) != "1" {
		t.Errorf("%+v, %v", acl, err)
	}
	for _, name := range []string{"missing", "aaa"} {
		_, errs := c.GetBucketLocation(ctx, &sdk.GetBucketLocationInput{Bucket: aws.String("missing")})
		if codeOf(errs) != "404 NoSuchBucket" {
			t.Errorf("%s: %v", name, errs)
		}
	}
}

func TestDeleteBucket(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.bucket(t), context.Background()
	remove := func(name string) string {
		_, err := c.DeleteBucket(ctx, &sdk.DeleteBucketInput{Bucket: aws.String(name)})
		return codeOf(err)
	}
	put(t, c, "a", []byte("x"))
	if got := remove(bucketName); got != "409 BucketNotEmpty" {
		t.Errorf("with an object: %s", got)
	}
	if _, err := c.DeleteObject(ctx, &sdk.DeleteObjectInput{Bucket: aws.String(bucketName), Key: aws.String("a")}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"", "404 NoSuchBucket"} {
		if got := remove(bucketName); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestBucketsArePaged(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.client("ALL"), context.Background()
	var want []string
	for i := range 7 {
		name := fmt.Sprintf("bucket-%d", i)
		if _, err := c.CreateBucket(ctx, &sdk.CreateBucketInput{Bucket: aws.String(name)}); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			want = append(want, name)
		}
	}
	if _, err := c.CreateBucket(ctx, &sdk.CreateBucketInput{Bucket: aws.String("another")}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.DeleteBucket(ctx, &sdk.DeleteBucketInput{Bucket: aws.String("bucket-0")}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for p := sdk.NewListBucketsPaginator(c, &sdk.ListBucketsInput{MaxBuckets: aws.Int32(2), Prefix: aws.String("bucket-")}); p.HasMorePages(); {
		page, err := p.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range page.Buckets {
			got = append(got, aws.ToString(b.Name))
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	if _, err := c.ListBuckets(ctx, &sdk.ListBucketsInput{ContinuationToken: aws.String("%%")}); codeOf(err) != "400 InvalidArgument" {
		t.Error(err)
	}
}

// TestImplicitBucket: the native API makes a bucket with its first object. It exists, and it can still be created.
func TestImplicitBucket(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.client("ALL"), context.Background()
	w.storeNative(t, bucketName, []byte("abc"))
	if _, err := c.HeadBucket(ctx, &sdk.HeadBucketInput{Bucket: aws.String(bucketName)}); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"", "409 BucketAlreadyOwnedByYou"} {
		if _, err := c.CreateBucket(ctx, &sdk.CreateBucketInput{Bucket: aws.String(bucketName)}); codeOf(err) != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestLimitsOfTenantAreNamed: a request that exceeds a limit of the tenant names its key, and another tenant is not
// concerned.
func TestLimitsOfTenantAreNamed(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.client("ALL"), context.Background()
	create := func(i int) error {
		_, err := c.CreateBucket(ctx, &sdk.CreateBucketInput{Bucket: aws.String(fmt.Sprintf("bucket-%d", i))})
		return err
	}
	for i := range planeLimits.TenantBuckets {
		if err := create(i); err != nil {
			t.Fatal(err)
		}
	}
	err := create(99)
	if codeOf(err) != "400 TooManyBuckets" || !strings.Contains(err.Error(), "storage.tenant_buckets limits the buckets of the tenant: needed 1, left 0.") {
		t.Error(err)
	}
	begin := func() error {
		_, err := c.CreateMultipartUpload(ctx, &sdk.CreateMultipartUploadInput{Bucket: aws.String("bucket-0"), Key: aws.String("a")})
		return err
	}
	for range planeLimits.TenantUploads {
		if err := begin(); err != nil {
			t.Fatal(err)
		}
	}
	err = begin()
	if codeOf(err) != "403 QuotaExceeded" || !strings.Contains(err.Error(), "storage.multipart.tenant_uploads limits the uploads in parts of the tenant: needed 1, left 0,") {
		t.Error(err)
	}
	if _, err := w.client("OTHER").CreateBucket(ctx, &sdk.CreateBucketInput{Bucket: aws.String("others")}); err != nil {
		t.Error(err)
	}
}

// TestScopes: a key without the scope is refused, and another tenant sees no bucket.
func TestScopes(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.bucket(t), context.Background()
	put(t, c, "a", []byte("x"))
	bucket, key := aws.String(bucketName), aws.String("a")
	readers, writers := map[string]func(*sdk.Client) error{
		"ListBuckets": func(c *sdk.Client) error { _, err := c.ListBuckets(ctx, &sdk.ListBucketsInput{}); return err },
		"ListObjectsV2": func(c *sdk.Client) error {
			_, err := c.ListObjectsV2(ctx, &sdk.ListObjectsV2Input{Bucket: bucket})
			return err
		},
		"HeadObject": func(c *sdk.Client) error {
			_, err := c.HeadObject(ctx, &sdk.HeadObjectInput{Bucket: bucket, Key: key})
			return err
		},
	}, map[string]func(*sdk.Client) error{
		"PutObject": func(c *sdk.Client) error {
			_, err := c.PutObject(ctx, &sdk.PutObjectInput{Bucket: bucket, Key: aws.String("new"), Body: strings.NewReader("x")})
			return err
		},
		"CreateMultipartUpload": func(c *sdk.Client) error {
			_, err := c.CreateMultipartUpload(ctx, &sdk.CreateMultipartUploadInput{Bucket: bucket, Key: key})
			return err
		},
		"DeleteObject": func(c *sdk.Client) error {
			_, err := c.DeleteObject(ctx, &sdk.DeleteObjectInput{Bucket: bucket, Key: aws.String("new")})
			return err
		},
	}
	for name, call := range readers {
		if err := call(w.client("READ")); err != nil {
			t.Errorf("%s of a reader: %v", name, err)
		}
		if err := call(w.client("STORE")); !strings.HasPrefix(codeOf(err), "403") {
			t.Errorf("%s of a writer: %v", name, err)
		}
	}
	for name, call := range writers {
		if err := call(w.client("STORE")); err != nil {
			t.Errorf("%s of a writer: %v", name, err)
		}
		if err := call(w.client("READ")); codeOf(err) != "403 AccessDenied" {
			t.Errorf("%s of a reader: %v", name, err)
		}
	}
	_, err := w.client("STORE").CopyObject(ctx, &sdk.CopyObjectInput{Bucket: bucket, Key: aws.String("b"), CopySource: aws.String(bucketName + "/a")})
	if codeOf(err) != "403 AccessDenied" {
		t.Errorf("a copy reads: %v", err)
	}
	_, err = w.client("OTHER").HeadObject(ctx, &sdk.HeadObjectInput{Bucket: bucket, Key: key})
	if codeOf(err) != "404 NotFound" {
		t.Errorf("another tenant: %v", err)
	}
	for name, call := range map[string]string{"an unknown key": "UNKNOWN", "": ""} {
		if name == "" {
			continue
		}
		if _, err := w.client(call).ListBuckets(ctx, &sdk.ListBucketsInput{}); codeOf(err) != "403 InvalidAccessKeyId" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
