package s3_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"pgregory.net/rapid"

	"macronode/core/storage"
)

// modelObject is an object of the reference model.
type modelObject struct {
	content []byte
	kind    string // content type
}

func (o *modelObject) etag() string {
	sum := md5.Sum(o.content)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

// machine is a bucket and its reference model.
type machine struct {
	*world
	c       *sdk.Client
	objects map[string]*modelObject
}

var (
	modelKeys   = rapid.SampledFrom([]string{"a", "b", "a/b", "a/b/c", "ü ?", "+%&<"})
	modelSizes  = rapid.SampledFrom([]int{0, 1, 65_536, 65_537})
	ctx         = context.Background()
	modelBucket = aws.String(bucketName)
)

func (m *machine) put(t *rapid.T) {
	key, o := modelKeys.Draw(t, "key"), &modelObject{content(modelSizes.Draw(t, "size"), rapid.Byte().Draw(t, "seed")), rapid.SampledFrom([]string{"text/a", "text/b"}).Draw(t, "kind")}
	in := &sdk.PutObjectInput{Bucket: modelBucket, Key: &key, Body: reader(o.content), ContentType: &o.kind}
	old, want := m.objects[key], ""
	switch rapid.IntRange(0, 3).Draw(t, "condition") {
	case 0:
		in.IfNoneMatch = aws.String("*")
		if old != nil {
			want = "412 PreconditionFailed"
		}
	case 1:
		in.IfMatch = aws.String((&modelObject{}).etag())
		if old == nil {
			want = "404 NoSuchKey"
		} else if len(old.content) > 0 {
			want = "412 PreconditionFailed"
		}
	}
	out, err := m.c.PutObject(ctx, in)
	if codeOf(err) != want || err == nil && aws.ToString(out.ETag) != o.etag() {
		t.Fatalf("put %q: %v, want %q", key, err, want)
	}
	if err == nil {
		m.objects[key] = o
	}
}

func (m *machine) copy(t *rapid.T) {
	from, to := modelKeys.Draw(t, "from"), modelKeys.Draw(t, "to")
	in := &sdk.CopyObjectInput{Bucket: modelBucket, Key: &to, CopySource: aws.String(bucketName + "/" + url.PathEscape(from))}
	o, want := m.objects[from], ""
	if rapid.Bool().Draw(t, "replace") {
		in.MetadataDirective, in.ContentType = types.MetadataDirectiveReplace, aws.String("text/c")
	}
	switch {
	case from == to && in.MetadataDirective == "":
		want = "400 InvalidRequest"
	case o == nil:
		want = "404 NoSuchKey"
	}
	out, err := m.c.CopyObject(ctx, in)
	if codeOf(err) != want || err == nil && aws.ToString(out.CopyObjectResult.ETag) != o.etag() {
		t.Fatalf("copy %q to %q: %v, want %q", from, to, err, want)
	}
	if err == nil {
		copied := *o
		if in.ContentType != nil {
			copied.kind = "text/c"
		}
		m.objects[to] = &copied
	}
}

func (m *machine) deleteOne(t *rapid.T) {
	key := modelKeys.Draw(t, "key")
	if _, err := m.c.DeleteObject(ctx, &sdk.DeleteObjectInput{Bucket: modelBucket, Key: &key}); err != nil {
		t.Fatal(err)
	}
	delete(m.objects, key)
}

func (m *machine) deleteSome(t *rapid.T) {
	var list []types.ObjectIdentifier
	for _, key := range rapid.SliceOfN(modelKeys, 1, 3).Draw(t, "keys") {
		list = append(list, types.ObjectIdentifier{Key: aws.String(key)})
		delete(m.objects, key)
	}
	out, err := m.c.DeleteObjects(ctx, &sdk.DeleteObjectsInput{Bucket: modelBucket, Delete: &types.Delete{Objects: list}})
	if err != nil || len(out.Deleted) != len(list) {
		t.Fatal(out, err)
	}
}

// join makes an object of one part, which has the form of all uploads in parts.
func (m *machine) join(t *rapid.T) {
	key, o := modelKeys.Draw(t, "key"), &modelObject{content: content(modelSizes.Draw(t, "size"), 9), kind: "text/d"}
	begun, err := m.c.CreateMultipartUpload(ctx, &sdk.CreateMultipartUploadInput{Bucket: modelBucket, Key: &key, ContentType: &o.kind})
	if err != nil {
		t.Fatal(err)
	}
	part, err := m.c.UploadPart(ctx, &sdk.UploadPartInput{Bucket: modelBucket, Key: &key, UploadId: begun.UploadId, PartNumber: aws.Int32(3), Body: reader(o.content)})
	if err != nil {
		t.Fatal(err)
	}
	if rapid.Bool().Draw(t, "abort") {
		if _, err := m.c.AbortMultipartUpload(ctx, &sdk.AbortMultipartUploadInput{Bucket: modelBucket, Key: &key, UploadId: begun.UploadId}); err != nil {
			t.Fatal(err)
		}
		return
	}
	list := &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{PartNumber: aws.Int32(3), ETag: part.ETag}}}
	if _, err = m.c.CompleteMultipartUpload(ctx, &sdk.CompleteMultipartUploadInput{Bucket: modelBucket, Key: &key, UploadId: begun.UploadId, MultipartUpload: list}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.c.CopyObject(ctx, &sdk.CopyObjectInput{Bucket: modelBucket, Key: aws.String("ü ?"), CopySource: aws.String(bucketName + "/" + url.PathEscape(key)), MetadataDirective: types.MetadataDirectiveReplace}); err != nil {
		t.Fatal(err)
	}
	for _, key := range slices.Compact([]string{key, "ü ?"}) { // both have the entity tag of an upload in parts
		if got, err := m.c.HeadObject(ctx, &sdk.HeadObjectInput{Bucket: modelBucket, Key: &key}); err != nil || aws.ToString(got.ETag) != etagOf(o.content) {
			t.Fatalf("%q: %+v, %v", key, got, err)
		}
		delete(m.objects, key)
		if _, err := m.c.DeleteObject(ctx, &sdk.DeleteObjectInput{Bucket: modelBucket, Key: &key}); err != nil {
			t.Fatal(err)
		}
	}
}

// compare lists everything that the model has and reads one object.
func (m *machine) compare(t *rapid.T) {
	read := modelKeys.Draw(t, "read")
	list, err := m.c.ListObjectsV2(ctx, &sdk.ListObjectsV2Input{Bucket: modelBucket})
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, o := range list.Contents {
		got = append(got, fmt.Sprint(aws.ToString(o.Key), *o.Size, aws.ToString(o.ETag)))
	}
	bytesHeld := 0
	for _, key := range slices.Sorted(maps.Keys(m.objects)) {
		o := m.objects[key]
		want = append(want, fmt.Sprint(key, len(o.content), o.etag()))
		bytesHeld += len(o.content)
		if key != read {
			continue
		}
		out, err := m.c.GetObject(ctx, &sdk.GetObjectInput{Bucket: modelBucket, Key: &key})
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(out.Body)
		out.Body.Close()
		if err != nil || !bytes.Equal(b, o.content) || aws.ToString(out.ContentType) != o.kind {
			t.Fatalf("%q: %d bytes of %s, %v; want %d of %s", key, len(b), aws.ToString(out.ContentType), err, len(o.content), o.kind)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
	if used, _ := m.Usage(1, storage.Bucket(bucketName).ID); used != (storage.Usage{Bytes: uint64(bytesHeld), Objects: uint64(len(m.objects))}) {
		t.Fatalf("%+v is used, want %d bytes", used, bytesHeld)
	}
	if n := m.contents.Uploads(); n != 0 {
		t.Fatalf("%d uploads have not ended", n)
	}
}

// TestObjectsAgreeWithModel puts, copies, joins and deletes at random.
func TestObjectsAgreeWithModel(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	rapid.Check(t, func(t *rapid.T) {
		w.clear()
		m := &machine{w, c, map[string]*modelObject{}}
		t.Repeat(map[string]func(*rapid.T){"put": m.put, "copy": m.copy, "delete": m.deleteOne, "delete some": m.deleteSome, "join": m.join, "": m.compare})
	})
}
