package s3_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	tmtypes "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/storage"
)

const mib = 1 << 20

// An upload is one in parts, as a client sees it.
type upload struct {
	ctx   context.Context // of its completion
	t     testing.TB
	c     *sdk.Client
	key   string
	id    *string
	parts []types.CompletedPart
}

func begin(t testing.TB, c *sdk.Client, key string, options ...func(*sdk.CreateMultipartUploadInput)) *upload {
	t.Helper()
	in := &sdk.CreateMultipartUploadInput{Bucket: aws.String(bucketName), Key: aws.String(key)}
	for _, o := range options {
		o(in)
	}
	out, err := c.CreateMultipartUpload(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	return &upload{ctx: context.Background(), t: t, c: c, key: key, id: out.UploadId}
}

// part uploads a part and adds it to the list of the upload.
func (u *upload) part(number int32, b []byte, options ...func(*sdk.UploadPartInput)) types.CompletedPart {
	u.t.Helper()
	in := &sdk.UploadPartInput{Bucket: aws.String(bucketName), Key: &u.key, UploadId: u.id, PartNumber: &number, Body: reader(b)}
	for _, o := range options {
		o(in)
	}
	out, err := u.c.UploadPart(context.Background(), in)
	if err != nil {
		u.t.Fatal(err)
	}
	p := types.CompletedPart{PartNumber: &number, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32, ChecksumSHA256: out.ChecksumSHA256, ChecksumCRC64NVME: out.ChecksumCRC64NVME, ChecksumCRC32C: out.ChecksumCRC32C}
	u.parts = append(u.parts, p)
	return p
}

func (u *upload) complete(parts []types.CompletedPart, options ...func(*sdk.CompleteMultipartUploadInput)) (*sdk.CompleteMultipartUploadOutput, error) {
	in := &sdk.CompleteMultipartUploadInput{Bucket: aws.String(bucketName), Key: &u.key, UploadId: u.id, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts}}
	for _, o := range options {
		o(in)
	}
	return u.c.CompleteMultipartUpload(u.ctx, in)
}

// etagOf is the entity tag of an object in parts.
func etagOf(parts ...[]byte) string {
	var sums []byte
	for _, p := range parts {
		sum := md5.Sum(p)
		sums = append(sums, sum[:]...)
	}
	sum := md5.Sum(sums)
	return fmt.Sprintf(`"%s-%d"`, hex.EncodeToString(sum[:]), len(parts))
}

func TestMultipartUpload(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	one, two, three := content(5*mib, 1), content(5*mib, 2), content(70_001, 3)
	u := begin(t, c, "a/ü", func(in *sdk.CreateMultipartUploadInput) {
		in.ContentType, in.Metadata = aws.String("text/plain"), map[string]string{"k": "v"}
	})
	u.part(9, three)
	u.part(2, content(6*mib, 7))
	u.part(1, one)
	u.part(2, two) // replaces the one before
	u.part(4, []byte("is not listed"))
	list := []types.CompletedPart{u.parts[2], u.parts[3], u.parts[0]}
	out, err := u.complete(list)
	if err != nil || aws.ToString(out.ETag) != etagOf(one, two, three) || aws.ToString(out.Key) != "a/ü" || !strings.HasSuffix(aws.ToString(out.Location), "/photos/a/%C3%BC") {
		t.Fatalf("%+v, %v", out, err)
	}
	want := bytes.Join([][]byte{one, two, three}, nil)
	got, b := get(t, c, "a/ü")
	if !bytes.Equal(b, want) || aws.ToString(got.ETag) != aws.ToString(out.ETag) || aws.ToString(got.ContentType) != "text/plain" || got.Metadata["k"] != "v" {
		t.Errorf("%d bytes, %+v", len(b), got)
	}
	// A repeated request has the same answer.
	again, err := u.complete(list)
	if err != nil || aws.ToString(again.ETag) != aws.ToString(out.ETag) {
		t.Errorf("again: %+v, %v", again, err)
	}
	if _, err := u.complete(list[:1]); codeOf(err) != "404 NoSuchUpload" {
		t.Errorf("another list: %v", err)
	}
	for number, size := range map[int32]int64{1: 5 * mib, 2: 5 * mib, 3: 70_001} {
		head, err := c.HeadObject(context.Background(), &sdk.HeadObjectInput{Bucket: aws.String(bucketName), Key: &u.key, PartNumber: &number})
		if err != nil || *head.ContentLength != size || *head.PartsCount != 3 {
			t.Errorf("part %d: %+v, %v", number, head, err)
		}
	}
	if _, b := get(t, c, u.key, func(in *sdk.GetObjectInput) { in.PartNumber = aws.Int32(3) }); !bytes.Equal(b, three) {
		t.Errorf("part 3 has %d bytes", len(b))
	}
}

// TestCompletionIsNotRepeatedAfterAChange: a completion that is repeated after its object was overwritten or deleted
// finds no upload, and changes nothing.
func TestCompletionIsNotRepeatedAfterAChange(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	u := begin(t, c, "a")
	u.part(1, []byte("first"))
	if _, err := u.complete(u.parts); err != nil {
		t.Fatal(err)
	}
	if _, err := u.complete(u.parts); err != nil {
		t.Errorf("before the change: %v", err)
	}
	if _, err := c.PutObject(context.Background(), &sdk.PutObjectInput{Bucket: aws.String(bucketName), Key: &u.key, Body: strings.NewReader("second")}); err != nil {
		t.Fatal(err)
	}
	if _, err := u.complete(u.parts); codeOf(err) != "404 NoSuchUpload" {
		t.Errorf("after the object was overwritten: %v", err)
	}
	if _, b := get(t, c, u.key); string(b) != "second" {
		t.Errorf("the object is %q", b)
	}
	if _, err := c.DeleteObject(context.Background(), &sdk.DeleteObjectInput{Bucket: aws.String(bucketName), Key: &u.key}); err != nil {
		t.Fatal(err)
	}
	if _, err := u.complete(u.parts); codeOf(err) != "404 NoSuchUpload" {
		t.Errorf("after the object was deleted: %v", err)
	}
}

func TestUnevenPartsHaveNoNumbers(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	u := begin(t, c, "a")
	u.part(1, content(5*mib, 1))
	u.part(2, content(5*mib+1, 2))
	u.part(3, content(10, 3))
	if _, err := u.complete(u.parts); err != nil {
		t.Fatal(err)
	}
	for number, want := range map[string]string{"1": "NotImplemented", "4": "InvalidPartNumber"} {
		if got := w.send(t, http.MethodGet, "/"+bucketName+"/a?partNumber="+number, nil, ""); got.xml.Code != want {
			t.Errorf("part %s: %d %s, want %s", number, got.status, got.xml.Code, want)
		}
	}
}

func TestCompleteRefusesLists(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	u := begin(t, c, "a")
	small := u.part(1, []byte("small"))
	large := u.part(2, content(5*mib, 1))
	last := u.part(3, []byte("last"))
	absent, other := large, large
	absent.PartNumber = aws.Int32(4)
	other.ETag = last.ETag
	for name, want := range map[string]struct {
		list []types.CompletedPart
		code string
	}{
		"the order":          {[]types.CompletedPart{last, large}, "400 InvalidPartOrder"},
		"one twice":          {[]types.CompletedPart{large, large}, "400 InvalidPartOrder"},
		"one that is absent": {[]types.CompletedPart{large, absent}, "400 InvalidPart"},
		"another ETag":       {[]types.CompletedPart{other, last}, "400 InvalidPart"},
		"a small part":       {[]types.CompletedPart{small, large}, "400 EntityTooSmall"},
		"none":               {nil, "400 MalformedXML"},
	} {
		if _, err := u.complete(want.list); codeOf(err) != want.code {
			t.Errorf("%s: %v, want %s", name, err, want.code)
		}
	}
	if _, err := u.complete([]types.CompletedPart{large, last}, func(in *sdk.CompleteMultipartUploadInput) { in.MpuObjectSize = aws.Int64(1) }); codeOf(err) != "400 InvalidRequest" {
		t.Errorf("another size: %v", err)
	}
	put(t, c, "a", []byte("x"))
	if _, err := u.complete([]types.CompletedPart{large, last}, func(in *sdk.CompleteMultipartUploadInput) { in.IfNoneMatch = aws.String("*") }); codeOf(err) != "412 PreconditionFailed" {
		t.Errorf("an object exists: %v", err)
	}
	if _, err := u.complete([]types.CompletedPart{large, last}, func(in *sdk.CompleteMultipartUploadInput) {
		in.IfMatch = aws.String(`"9dd4e461268c8034f5c8564e155c67a6"`)
	}); err != nil {
		t.Errorf("the object is replaced: %v", err)
	}
}

// TestMultipartChecksums: the checksums of the parts and of the object are verified, stored and shown.
func TestMultipartChecksums(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	one, two := content(5*mib, 1), content(1000, 2)
	for _, want := range []struct {
		algorithm types.ChecksumAlgorithm
		kind      types.ChecksumType
	}{{types.ChecksumAlgorithmCrc32, types.ChecksumTypeComposite}, {types.ChecksumAlgorithmCrc32, types.ChecksumTypeFullObject}, {types.ChecksumAlgorithmCrc64nvme, types.ChecksumTypeFullObject},
		{types.ChecksumAlgorithmSha256, types.ChecksumTypeComposite}} {
		u := begin(t, c, "a", func(in *sdk.CreateMultipartUploadInput) {
			in.ChecksumAlgorithm, in.ChecksumType = want.algorithm, want.kind
		})
		with := func(in *sdk.UploadPartInput) { in.ChecksumAlgorithm = want.algorithm }
		u.part(1, one, with)
		u.part(2, two, with)
		swapped := []types.CompletedPart{u.parts[0], u.parts[1]}
		swapped[0].ChecksumCRC32, swapped[0].ChecksumSHA256, swapped[0].ChecksumCRC64NVME = u.parts[1].ChecksumCRC32, u.parts[1].ChecksumSHA256, u.parts[1].ChecksumCRC64NVME
		if _, err := u.complete(swapped); codeOf(err) != "400 InvalidPart" {
			t.Errorf("%s %s: another checksum of a part: %v", want.algorithm, want.kind, err)
		}
		out, err := u.complete(u.parts)
		if err != nil {
			t.Fatalf("%s %s: %v", want.algorithm, want.kind, err)
		}
		head, err := c.HeadObject(context.Background(), &sdk.HeadObjectInput{Bucket: aws.String(bucketName), Key: aws.String("a"), ChecksumMode: types.ChecksumModeEnabled})
		if err != nil || head.ChecksumType != want.kind || out.ChecksumType != want.kind {
			t.Errorf("%s %s: %s, %s, %v", want.algorithm, want.kind, head.ChecksumType, out.ChecksumType, err)
		}
		for _, pair := range [][2]*string{{head.ChecksumCRC32, out.ChecksumCRC32}, {head.ChecksumCRC64NVME, out.ChecksumCRC64NVME}, {head.ChecksumSHA256, out.ChecksumSHA256}} {
			if aws.ToString(pair[0]) != aws.ToString(pair[1]) {
				t.Errorf("%s %s: %v, %v", want.algorithm, want.kind, aws.ToString(pair[0]), aws.ToString(pair[1]))
			}
		}
		sum := aws.ToString(out.ChecksumCRC32) + aws.ToString(out.ChecksumCRC64NVME) + aws.ToString(out.ChecksumSHA256)
		if sum == "" || strings.HasSuffix(sum, "-2") != (want.kind == types.ChecksumTypeComposite) {
			t.Errorf("%s %s: %q", want.algorithm, want.kind, sum)
		}
		if want.kind == types.ChecksumTypeFullObject { // the client verifies it
			if _, b := get(t, c, "a", func(in *sdk.GetObjectInput) { in.ChecksumMode = types.ChecksumModeEnabled }); len(b) != 5*mib+1000 {
				t.Errorf("%d bytes", len(b))
			}
		}
	}
}

func TestCompleteVerifiesChecksumOfObject(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	u := begin(t, c, "a", func(in *sdk.CreateMultipartUploadInput) {
		in.ChecksumAlgorithm, in.ChecksumType = types.ChecksumAlgorithmCrc32, types.ChecksumTypeFullObject
	})
	u.part(1, []byte("123456789"))
	for sum, want := range map[string]string{"AAAAAA==": "400 BadDigest", "y/Q5Jg==": ""} {
		if sum == "AAAAAA==" {
			if _, err := u.complete(u.parts, func(in *sdk.CompleteMultipartUploadInput) { in.ChecksumCRC32 = &sum }); codeOf(err) != want {
				t.Errorf("%s: %v, want %q", sum, err, want)
			}
		}
	}
	if _, err := u.complete(u.parts, func(in *sdk.CompleteMultipartUploadInput) { in.ChecksumCRC32 = aws.String("y/Q5Jg==") }); err != nil {
		t.Error(err)
	}
}

func TestUploadPartCopy(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	source := content(6*mib, 1)
	put(t, c, "source", source)
	native := w.storeNative(t, bucketName, source[:5*mib])
	u := begin(t, c, "a")
	copyPart := func(number int32, from, bytes string) (*types.CopyPartResult, error) {
		in := &sdk.UploadPartCopyInput{Bucket: aws.String(bucketName), Key: &u.key, UploadId: u.id, PartNumber: &number, CopySource: aws.String(bucketName + "/" + from)}
		if bytes != "" {
			in.CopySourceRange = &bytes
		}
		out, err := c.UploadPartCopy(context.Background(), in)
		if err != nil {
			return nil, err
		}
		return out.CopyPartResult, nil
	}
	var list []types.CompletedPart
	stored := w.quiet().sent.stored
	for i, want := range []struct {
		from, bytes string
		b           []byte
	}{{"source", "", source}, {native.String(), "", source[:5*mib]}, {"source", "bytes=5-5242884", source[5 : 5*mib+5]}, {"source", "bytes=0-6291455", source}} {
		out, err := copyPart(int32(i+1), want.from, want.bytes)
		sum := md5.Sum(want.b)
		if err != nil || aws.ToString(out.ETag) != `"`+hex.EncodeToString(sum[:])+`"` || out.LastModified == nil {
			t.Fatalf("%s %s: %+v, %v", want.from, want.bytes, out, err)
		}
		list = append(list, types.CompletedPart{PartNumber: aws.Int32(int32(i + 1)), ETag: out.ETag})
	}
	if w.quiet().sent.stored != stored+5*mib {
		t.Errorf("%d bytes were written, want those of the range", w.quiet().sent.stored-stored)
	}
	if _, err := u.complete(list); err != nil {
		t.Fatal(err)
	}
	if _, b := get(t, c, "a"); !bytes.Equal(b, bytes.Join([][]byte{source, source[:5*mib], source[5 : 5*mib+5], source}, nil)) {
		t.Errorf("%d bytes", len(b))
	}
	u = begin(t, c, "a")
	for name, want := range map[string][3]string{
		"no source":   {"missing", "", "404 NoSuchKey"},
		"behind":      {"source", "bytes=0-6291456", "400 InvalidArgument"},
		"open":        {"source", "bytes=5-", "400 InvalidArgument"},
		"not a range": {"source", "5-6", "400 InvalidArgument"},
	} {
		if _, err := copyPart(1, want[0], want[1]); codeOf(err) != want[2] {
			t.Errorf("%s: %v, want %s", name, err, want[2])
		}
	}
}

func TestListParts(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	u := begin(t, c, "a/ü", func(in *sdk.CreateMultipartUploadInput) { in.ChecksumAlgorithm = types.ChecksumAlgorithmCrc32 })
	for _, n := range []int32{7, 3, 10_000, 1} {
		u.part(n, content(int(n), 1))
	}
	var got []string
	in := &sdk.ListPartsInput{Bucket: aws.String(bucketName), Key: &u.key, UploadId: u.id, MaxParts: aws.Int32(3)}
	for p := sdk.NewListPartsPaginator(c, in); p.HasMorePages(); {
		page, err := p.NextPage(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if page.ChecksumAlgorithm != types.ChecksumAlgorithmCrc32 || page.ChecksumType != types.ChecksumTypeComposite || aws.ToString(page.Key) != "a/ü" {
			t.Errorf("%+v", page)
		}
		for _, part := range page.Parts {
			sum := md5.Sum(content(int(*part.Size), 1))
			if aws.ToString(part.ETag) != `"`+hex.EncodeToString(sum[:])+`"` || part.LastModified == nil {
				t.Errorf("%+v", part)
			}
			got = append(got, fmt.Sprintf("%d:%d", *part.PartNumber, *part.Size))
		}
		got = append(got, "page")
	}
	if want := "[1:1 3:3 7:7 page 10000:10000 page]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

func TestListUploadsAndAbort(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.bucket(t), context.Background()
	var uploads []*upload
	for _, key := range []string{"b", "a/1", "a/2", "c", "b"} {
		uploads = append(uploads, begin(t, c, key))
	}
	uploads[0].part(1, content(1000, 1))
	list := func(max int32, delimiter string) (got []string) {
		in := &sdk.ListMultipartUploadsInput{Bucket: aws.String(bucketName), MaxUploads: &max, Delimiter: &delimiter}
		for p := sdk.NewListMultipartUploadsPaginator(c, in); p.HasMorePages(); {
			page, err := p.NextPage(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, prefix := range page.CommonPrefixes {
				got = append(got, aws.ToString(prefix.Prefix))
			}
			for _, u := range page.Uploads {
				got = append(got, aws.ToString(u.Key))
			}
		}
		return got
	}
	for _, want := range []struct {
		max       int32
		delimiter string
		list      string
	}{{10, "", "[a/1 a/2 b b c]"}, {1, "", "[a/1 a/2 b b c]"}, {2, "", "[a/1 a/2 b b c]"}, {10, "/", "[a/ b b c]"}, {1, "/", "[a/ b b c]"}} {
		if got := list(want.max, want.delimiter); fmt.Sprint(got) != want.list {
			t.Errorf("%d %q: %v, want %s", want.max, want.delimiter, got, want.list)
		}
	}
	if _, err := c.DeleteBucket(ctx, &sdk.DeleteBucketInput{Bucket: aws.String(bucketName)}); codeOf(err) != "409 BucketNotEmpty" {
		t.Error(err)
	}
	for _, u := range uploads {
		in := &sdk.AbortMultipartUploadInput{Bucket: aws.String(bucketName), Key: &u.key, UploadId: u.id}
		if _, err := c.AbortMultipartUpload(ctx, in); err != nil {
			t.Error(err)
		}
		if _, err := c.AbortMultipartUpload(ctx, in); codeOf(err) != "404 NoSuchUpload" {
			t.Error(err)
		}
	}
	if got := list(10, ""); got != nil {
		t.Errorf("%v", got)
	}
	if used, _ := w.Usage(1, storage.Bucket(bucketName).ID); used != (storage.Usage{}) {
		t.Errorf("%+v is used", used)
	}
}

// TestCompleteReadsPartsAgain: parts that are put while the object is joined are seen by the node.
func TestCompleteReadsPartsAgain(t *testing.T) {
	for name, want := range map[string]struct {
		number uint16 // of the part that is put meanwhile
		same   bool   // its MD5 digest is that of part 1
		always bool
		code   string
	}{
		"a part that is not listed":          {7, false, false, ""},
		"a listed part":                      {1, false, false, "400 InvalidPart"},
		"another content, which has no file": {1, true, false, "500 InternalError"},
		"again and again":                    {7, false, true, "409 OperationAborted"},
	} {
		w := newWorld(t)
		c := w.bucket(t)
		u := begin(t, c, "a")
		u.part(1, content(5*mib, 1))
		u.part(2, []byte("last"))
		id, err := storage.ParseUploadID(*u.id)
		if err != nil {
			t.Fatal(err)
		}
		left := 1
		w.quiet().decide = func(cmd command.Command) event.Problem {
			if p, ok := cmd.(*storage.Put); ok && (left > 0 || want.always) {
				left--
				part := &storage.PutPart{Header: p.Header, Bucket: p.Bucket, Name: p.Name, Upload: id, Number: want.number, Address: storage.Address{byte(left)}, Size: 5 * mib, File: 77}
				if want.same {
					part.ETag.MD5 = md5.Sum(content(5*mib, 1))
				}
				w.plane.Decide(w.at, part, &frame{w: w}, &event.Reply{})
			}
			return event.None
		}
		stored := w.quiet().sent.stored
		if _, err := u.complete(u.parts); codeOf(err) != want.code {
			t.Errorf("%s: %v, want %s", name, err, want.code)
		}
		if w.quiet().sent.stored-stored != 5*mib+4 {
			t.Errorf("%s: %d bytes were written", name, w.quiet().sent.stored-stored)
		}
	}
}

// TestOverlappingCompletions: a completion that finds the upload completed meanwhile answers like the one that did it.
func TestOverlappingCompletions(t *testing.T) {
	for name, want := range map[string]struct {
		other bool // another object has taken the name since
		code  string
	}{"the same parts": {false, ""}, "another object": {true, "404 NoSuchUpload"}} {
		w := newWorld(t)
		c := w.bucket(t)
		u := begin(t, c, "a")
		u.part(1, content(5*mib, 1))
		u.part(2, []byte("last"))
		decided := false
		w.quiet().decide = func(cmd command.Command) event.Problem {
			p, ok := cmd.(*storage.Put)
			if !ok || decided {
				return event.None
			}
			decided = true
			first := *p
			w.plane.Decide(w.at, &first, &frame{w: w}, &event.Reply{})
			if want.other {
				second := *p
				second.Upload, second.ETag = storage.UploadID{}, storage.ETag{MD5: md5.Sum(nil)}
				w.plane.Decide(w.at, &second, &frame{w: w}, &event.Reply{})
			}
			return event.None
		}
		done, err := u.complete(u.parts)
		if codeOf(err) != want.code {
			t.Errorf("%s: %v, want %s", name, err, want.code)
		}
		if err == nil && *done.ETag == "" {
			t.Errorf("%s: no ETag", name)
		}
	}
}

// TestSlowCompletionKeepsConnection: a response that takes long begins with blanks, and its document says how it ended.
func TestSlowCompletionKeepsConnection(t *testing.T) {
	for _, problem := range []event.Problem{event.None, event.QuotaExceeded} {
		w := newWorld(t)
		c := w.bucket(t)
		u := begin(t, c, "a")
		p := u.part(1, content(1*mib, 1))
		wrote := make(chan struct{}) // before it is closed no time passes: a client closes what it is still sending
		u.ctx = httptrace.WithClientTrace(u.ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(wrote) }})
		w.quiet().wrote = wrote
		w.tick = time.Second
		w.quiet().decide = func(command.Command) event.Problem { return problem }
		out, err := u.complete(u.parts)
		if problem == event.None && (err != nil || aws.ToString(out.ETag) == "") || problem != event.None && !strings.HasSuffix(codeOf(err), "QuotaExceeded") {
			t.Errorf("%v: %+v, %v", problem, out, err)
		}
		w.quiet().waited, w.tick, w.decide = 0, 0, nil
		if problem == event.None {
			continue
		}
		w.quiet().tick = time.Second
		got := w.send(t, http.MethodPost, "/"+bucketName+"/a?uploadId="+*u.id, nil, "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"+*p.ETag+"</ETag></Part></CompleteMultipartUpload>")
		if got.status != 200 || !strings.HasPrefix(got.body, "<?xml") || !strings.Contains(got.body, "?>\n  ") || !strings.Contains(got.body, "<CompleteMultipartUploadResult") {
			t.Errorf("%d %q", got.status, got.body)
		}
	}
}

// TestTransferManager moves a large object in concurrent parts.
func TestTransferManager(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.bucket(t), context.Background()
	want := content(17*mib+11, 4)
	for _, kind := range []tmtypes.GetObjectType{tmtypes.GetObjectParts, tmtypes.GetObjectRanges} {
		m := transfermanager.New(c, func(o *transfermanager.Options) {
			o.PartSizeBytes, o.MultipartUploadThreshold, o.Concurrency, o.GetObjectType = 5*mib, 5*mib, 3, kind
		})
		if _, err := m.UploadObject(ctx, &transfermanager.UploadObjectInput{Bucket: aws.String(bucketName), Key: aws.String("large"), Body: reader(want)}); err != nil {
			t.Fatal(err)
		}
		to := make(buffer, len(want))
		if _, err := m.DownloadObject(ctx, &transfermanager.DownloadObjectInput{Bucket: aws.String(bucketName), Key: aws.String("large"), WriterAt: to}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(to, want) {
			t.Errorf("%v: the content differs", kind)
		}
	}
}

type buffer []byte

func (b buffer) WriteAt(p []byte, off int64) (int, error) { return copy(b[off:], p), nil }

// TestCopyOfDeletedSource: if the source of a part is deleted before the node decides, the key does not exist. If it was replaced, the client may
// retry.
func TestCopyOfDeletedSource(t *testing.T) {
	for what, want := range map[string]string{"deleted": "404 NoSuchKey", "replaced": "503 ServiceUnavailable", "deleted with its bucket": "404 NoSuchBucket"} {
		w := newWorld(t)
		c := w.bucket(t)
		if _, err := c.CreateBucket(t.Context(), &sdk.CreateBucketInput{Bucket: aws.String("other")}); err != nil {
			t.Fatal(err)
		}
		in := &sdk.PutObjectInput{Bucket: aws.String("other"), Key: aws.String("source"), Body: reader(content(5*mib, 1))}
		if _, err := c.PutObject(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		u := begin(t, c, "a")
		w.quiet().decide = func(cmd command.Command) event.Problem {
			part, ok := cmd.(*storage.PutPart)
			if !ok {
				return event.None
			}
			other, name := storage.Bucket("other"), storage.ObjectName("source")
			decide := func(c command.Command) {
				var r event.Reply
				if w.plane.Decide(w.at, c, &frame{w: w}, &r); r.Problem != event.None {
					t.Error(r.Problem)
				}
			}
			decide(&storage.Delete{Header: part.Header, Bucket: other, Name: name})
			if what == "replaced" {
				put := &storage.Put{Header: part.Header, Bucket: other, Name: name, Address: storage.Address{1}, Size: 1, File: 1 << 20}
				put.Seal()
				decide(put)
			}
			if what == "deleted with its bucket" {
				decide(&storage.DeleteBucket{Header: part.Header, Bucket: other})
			}
			return event.None
		}
		number := int32(1)
		_, err := c.UploadPartCopy(t.Context(), &sdk.UploadPartCopyInput{Bucket: aws.String(bucketName), Key: &u.key, UploadId: u.id, PartNumber: &number, CopySource: aws.String("other/source")},
			func(o *sdk.Options) { o.RetryMaxAttempts = 1 })
		if codeOf(err) != want {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
}
