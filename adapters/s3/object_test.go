package s3_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/storage"
)

// bucket makes the bucket of most tests.
func (w *world) bucket(t testing.TB) *sdk.Client {
	t.Helper()
	c := w.client("ALL")
	if _, err := c.CreateBucket(context.Background(), &sdk.CreateBucketInput{Bucket: aws.String(bucketName)}); err != nil {
		t.Fatal(err)
	}
	return c
}

func put(t testing.TB, c *sdk.Client, key string, b []byte, options ...func(*sdk.PutObjectInput)) *sdk.PutObjectOutput {
	t.Helper()
	in := &sdk.PutObjectInput{Bucket: aws.String(bucketName), Key: aws.String(key), Body: reader(b)}
	for _, o := range options {
		o(in)
	}
	out, err := c.PutObject(context.Background(), in)
	if err != nil {
		t.Fatalf("put %q: %v", key, err)
	}
	return out
}

func get(t testing.TB, c *sdk.Client, key string, options ...func(*sdk.GetObjectInput)) (*sdk.GetObjectOutput, []byte) {
	t.Helper()
	in := &sdk.GetObjectInput{Bucket: aws.String(bucketName), Key: aws.String(key)}
	for _, o := range options {
		o(in)
	}
	out, err := c.GetObject(context.Background(), in)
	if err != nil {
		t.Fatalf("get %q: %v", key, err)
	}
	b, err := io.ReadAll(out.Body)
	if err != nil {
		t.Fatalf("get %q: %v", key, err)
	}
	out.Body.Close()
	return out, b
}

func TestPutAndGet(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	for i, key := range []string{"a", "a/b c+d%20", "/", "//x//", "ü/日本語", "a?b=c&d#e", "..", "./x", "x\ty"} {
		want := content(i*40_000, byte(i))
		out := put(t, c, key, want)
		got, b := get(t, c, key)
		if !bytes.Equal(b, want) || aws.ToString(got.ETag) != aws.ToString(out.ETag) {
			t.Errorf("%q: %d bytes with ETag %s, want %d with %s", key, len(b), aws.ToString(got.ETag), len(want), aws.ToString(out.ETag))
		}
	}
}

func TestObjectHeadersAreKept(t *testing.T) {
	c := newWorld(t).bucket(t)
	expires := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	put(t, c, "a", []byte("abc"), func(in *sdk.PutObjectInput) {
		in.ContentType, in.ContentEncoding, in.ContentDisposition = aws.String("text/plain"), aws.String("gzip"), aws.String("attachment")
		in.ContentLanguage, in.CacheControl, in.Expires = aws.String("de"), aws.String("no-cache"), aws.Time(expires)
		in.Metadata = map[string]string{"Mtime": "17", "b": "", "a": "x y"}
	})
	got, err := c.HeadObject(context.Background(), &sdk.HeadObjectInput{Bucket: aws.String(bucketName), Key: aws.String("a")})
	if err != nil {
		t.Fatal(err)
	}
	for name, pair := range map[string][2]string{
		"type": {aws.ToString(got.ContentType), "text/plain"}, "encoding": {aws.ToString(got.ContentEncoding), "gzip"},
		"disposition": {aws.ToString(got.ContentDisposition), "attachment"}, "language": {aws.ToString(got.ContentLanguage), "de"},
		"cache": {aws.ToString(got.CacheControl), "no-cache"}, "expires": {aws.ToString(got.ExpiresString), expires.Format(http.TimeFormat)},
		"etag": {aws.ToString(got.ETag), `"900150983cd24fb0d6963f7d28e17f72"`}, "metadata": {fmt.Sprint(got.Metadata), "map[a:x y b: mtime:17]"},
		"length": {fmt.Sprint(*got.ContentLength), "3"}, "ranges": {aws.ToString(got.AcceptRanges), "bytes"},
		"modified": {got.LastModified.Format(time.RFC3339), "2023-11-14T22:13:22Z"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %s, want %s", name, pair[0], pair[1])
		}
	}
	put(t, c, "plain", nil)
	if got, _ := get(t, c, "plain"); aws.ToString(got.ContentType) != "application/octet-stream" || got.ContentEncoding != nil {
		t.Errorf("type %q, encoding %q", aws.ToString(got.ContentType), aws.ToString(got.ContentEncoding))
	}
}

func TestMetadataIsLimited(t *testing.T) {
	c := newWorld(t).bucket(t)
	for size, want := range map[int]string{2<<10 - 1: "", 2 << 10: "400 MetadataTooLarge"} {
		_, err := c.PutObject(context.Background(), &sdk.PutObjectInput{Bucket: aws.String(bucketName), Key: aws.String("a"), Metadata: map[string]string{"k": strings.Repeat("v", size)}})
		if codeOf(err) != want {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	_, err := c.PutObject(context.Background(), &sdk.PutObjectInput{Bucket: aws.String(bucketName), Key: aws.String("a"), CacheControl: aws.String(strings.Repeat("x", 5000))})
	if codeOf(err) != "400 MetadataTooLarge" {
		t.Errorf("a long header: %v", err)
	}
}

func TestResponseHeadersAreReplaced(t *testing.T) {
	c := newWorld(t).bucket(t)
	put(t, c, "a", []byte("abc"))
	got, _ := get(t, c, "a", func(in *sdk.GetObjectInput) {
		in.ResponseContentType, in.ResponseContentDisposition = aws.String("text/html"), aws.String(`attachment; filename="x"`)
	})
	if aws.ToString(got.ContentType) != "text/html" || aws.ToString(got.ContentDisposition) != `attachment; filename="x"` {
		t.Errorf("%s, %s", aws.ToString(got.ContentType), aws.ToString(got.ContentDisposition))
	}
	_, err := c.GetObject(context.Background(), &sdk.GetObjectInput{Bucket: aws.String(bucketName), Key: aws.String("a"), ResponseContentType: aws.String("a\r\nX-Evil: 1")})
	if codeOf(err) != "400 InvalidArgument" {
		t.Errorf("a header with a line end: %v", err)
	}
}

func TestRanges(t *testing.T) {
	c := newWorld(t).bucket(t)
	all := content(200_000, 1)
	put(t, c, "a", all)
	put(t, c, "empty", nil)
	for text, want := range map[string]struct {
		from, to int
		shown    string
	}{
		"bytes=0-0": {0, 1, "bytes 0-0/200000"}, "bytes=65535-65536": {65535, 65537, "bytes 65535-65536/200000"},
		"bytes=199999-": {199_999, 200_000, "bytes 199999-199999/200000"}, "bytes=-5": {199_995, 200_000, "bytes 199995-199999/200000"},
		"bytes=100-999999": {100, 200_000, "bytes 100-199999/200000"}, "bytes=5-1": {0, 200_000, ""}, "bytes=0-1,5-6": {0, 200_000, ""},
	} {
		got, b := get(t, c, "a", func(in *sdk.GetObjectInput) { in.Range = aws.String(text) })
		if !bytes.Equal(b, all[want.from:want.to]) || aws.ToString(got.ContentRange) != want.shown {
			t.Errorf("%s: %d bytes, %q", text, len(b), aws.ToString(got.ContentRange))
		}
	}
	for key, text := range map[string]string{"a": "bytes=200000-", "empty": "bytes=0-"} {
		_, err := c.GetObject(context.Background(), &sdk.GetObjectInput{Bucket: aws.String(bucketName), Key: aws.String(key), Range: aws.String(text)})
		if codeOf(err) != "416 InvalidRange" {
			t.Errorf("%s %s: %v", key, text, err)
		}
	}
	head, err := c.HeadObject(context.Background(), &sdk.HeadObjectInput{Bucket: aws.String(bucketName), Key: aws.String("a"), Range: aws.String("bytes=1-2")})
	if err != nil || *head.ContentLength != 2 {
		t.Errorf("HEAD of a range: %v, %v", head, err)
	}
}

func TestConditionalReads(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	put(t, c, "a", []byte("abc"))
	for tag, want := range map[string]string{`"900150983cd24fb0d6963f7d28e17f72"`: "c", `"other"`: "abc"} {
		if got := w.send(t, http.MethodGet, "/"+bucketName+"/a", map[string]string{"Range": "bytes=2-2", "If-Range": tag}, ""); got.body != want {
			t.Errorf("If-Range %s: %q", tag, got.body)
		}
	}
	tag, other := `"900150983cd24fb0d6963f7d28e17f72"`, `"00000000000000000000000000000000"`
	at := time.Date(2023, 11, 14, 22, 13, 22, 0, time.UTC)
	before, after := at.Add(-time.Second), at.Add(time.Second)
	for name, want := range map[string]struct {
		set  func(*sdk.HeadObjectInput)
		code string
	}{
		"match":                       {func(in *sdk.HeadObjectInput) { in.IfMatch = &tag }, ""},
		"match without quotes":        {func(in *sdk.HeadObjectInput) { in.IfMatch = aws.String(tag[1:33]) }, ""},
		"match any":                   {func(in *sdk.HeadObjectInput) { in.IfMatch = aws.String("*") }, ""},
		"match of a list":             {func(in *sdk.HeadObjectInput) { in.IfMatch = aws.String(other + ", " + tag) }, ""},
		"no match":                    {func(in *sdk.HeadObjectInput) { in.IfMatch = &other }, "412"},
		"a weak tag does not match":   {func(in *sdk.HeadObjectInput) { in.IfMatch = aws.String("W/" + tag) }, "412"},
		"none matches":                {func(in *sdk.HeadObjectInput) { in.IfNoneMatch = &other }, ""},
		"one matches":                 {func(in *sdk.HeadObjectInput) { in.IfNoneMatch = &tag }, "304"},
		"a weak one matches":          {func(in *sdk.HeadObjectInput) { in.IfNoneMatch = aws.String("W/" + tag) }, "304"},
		"modified since":              {func(in *sdk.HeadObjectInput) { in.IfModifiedSince = &before }, ""},
		"not modified since":          {func(in *sdk.HeadObjectInput) { in.IfModifiedSince = &at }, "304"},
		"unmodified since":            {func(in *sdk.HeadObjectInput) { in.IfUnmodifiedSince = &at }, ""},
		"not unmodified since":        {func(in *sdk.HeadObjectInput) { in.IfUnmodifiedSince = &before }, "412"},
		"match beats unmodified":      {func(in *sdk.HeadObjectInput) { in.IfMatch, in.IfUnmodifiedSince = &tag, &before }, ""},
		"none match beats modified":   {func(in *sdk.HeadObjectInput) { in.IfNoneMatch, in.IfModifiedSince = &other, &after }, ""},
		"precondition before the 304": {func(in *sdk.HeadObjectInput) { in.IfMatch, in.IfNoneMatch = &other, &tag }, "412"},
	} {
		in := &sdk.HeadObjectInput{Bucket: aws.String(bucketName), Key: aws.String("a")}
		want.set(in)
		_, err := c.HeadObject(context.Background(), in)
		if got, _, _ := strings.Cut(codeOf(err), " "); got != want.code {
			t.Errorf("HEAD %s: %v, want %s", name, err, want.code)
		}
		out, err := c.GetObject(context.Background(), &sdk.GetObjectInput{Bucket: in.Bucket, Key: in.Key, IfMatch: in.IfMatch, IfNoneMatch: in.IfNoneMatch,
			IfModifiedSince: in.IfModifiedSince, IfUnmodifiedSince: in.IfUnmodifiedSince})
		if got, _, _ := strings.Cut(codeOf(err), " "); got != want.code {
			t.Errorf("GET %s: %v, want %s", name, err, want.code)
		}
		if err == nil {
			out.Body.Close()
		}
	}
}

// TestNotModifiedIsNoError: a response 304 is an answer, so it is no failure in logs, and it counts as usage.
func TestNotModifiedIsNoError(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	put(t, c, "a", []byte("abc"))
	tag, other := aws.String(`"900150983cd24fb0d6963f7d28e17f72"`), aws.String(`"00000000000000000000000000000000"`)
	for _, want := range []struct {
		match, none *string
		code        string
	}{{none: tag}, {match: other, code: "PreconditionFailed"}} {
		_, err := c.GetObject(context.Background(), &sdk.GetObjectInput{Bucket: aws.String(bucketName), Key: aws.String("a"), IfMatch: want.match, IfNoneMatch: want.none})
		if got := w.quiet().code; err == nil || got != want.code {
			t.Errorf("%v: the error is %q, want %q", err, got, want.code)
		}
	}
}

func TestConditionalWrites(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	try := func(key string, match, none *string) string {
		_, err := c.PutObject(context.Background(), &sdk.PutObjectInput{Bucket: aws.String(bucketName), Key: aws.String(key), Body: strings.NewReader("new"), IfMatch: match, IfNoneMatch: none})
		return codeOf(err)
	}
	star := aws.String("*")
	put(t, c, "a", []byte("abc"))
	tag := aws.String(`"900150983cd24fb0d6963f7d28e17f72"`)
	for name, pair := range map[string][2]string{
		"create an object that exists":    {try("a", nil, star), "412 PreconditionFailed"},
		"create another":                  {try("b", nil, star), ""},
		"replace what does not exist":     {try("c", tag, nil), "404 NoSuchKey"},
		"replace another":                 {try("b", tag, nil), "412 PreconditionFailed"},
		"replace what is there":           {try("a", tag, nil), ""},
		"a condition that does not exist": {try("a", nil, tag), "501 NotImplemented"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %s, want %s", name, pair[0], pair[1])
		}
	}
	// Another request stores the object while the body arrives: the node decides.
	w.quiet().decide = func(cmd command.Command) event.Problem {
		if p, ok := cmd.(*storage.Put); ok && string(p.Name.Text) == "raced" {
			w.decide = nil
			q := *p
			q.Match = storage.Match{}
			w.plane.Decide(w.at, &q, &frame{w: w}, &event.Reply{})
		}
		return event.None
	}
	if got := try("raced", nil, star); got != "412 PreconditionFailed" {
		t.Errorf("the race was won: %s", got)
	}
	w.quiet().decide = func(cmd command.Command) event.Problem { // the object is stored again, with the same content
		w.decide = nil
		q := *cmd.(*storage.Put)
		q.Match = storage.Match{}
		w.plane.Decide(w.at, &q, &frame{w: w}, &event.Reply{})
		return event.None
	}
	if got := try("raced", aws.String(`"22af645d1859cb5ca6da0c484f1f37ea"`), nil); got != "412 PreconditionFailed" {
		t.Errorf("the race of two replacements was won: %s", got)
	}
}

func TestDeleteObject(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	put(t, c, "a", []byte("abc"))
	for range 2 { // the second time there is none
		if _, err := c.DeleteObject(context.Background(), &sdk.DeleteObjectInput{Bucket: aws.String(bucketName), Key: aws.String("a")}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.HeadObject(context.Background(), &sdk.HeadObjectInput{Bucket: aws.String(bucketName), Key: aws.String("a")}); codeOf(err) != "404 NotFound" {
			t.Fatal(err)
		}
	}
	_, err := c.DeleteObject(context.Background(), &sdk.DeleteObjectInput{Bucket: aws.String("missing"), Key: aws.String("a")})
	if codeOf(err) != "404 NoSuchBucket" {
		t.Error(err)
	}
	_, err = c.DeleteObject(context.Background(), &sdk.DeleteObjectInput{Bucket: aws.String(bucketName), Key: aws.String("a"), IfMatch: aws.String("*")})
	if codeOf(err) != "501 NotImplemented" {
		t.Error(err)
	}
}

func TestDeleteObjects(t *testing.T) {
	c := newWorld(t).bucket(t)
	put(t, c, "a", []byte("abc"))
	put(t, c, "b/ü&", []byte("abc"))
	put(t, c, "kept", []byte("abc"))
	id := func(keys ...string) (list []types.ObjectIdentifier) {
		for _, k := range keys {
			list = append(list, types.ObjectIdentifier{Key: aws.String(k)})
		}
		return list
	}
	remove := func(quiet bool, list []types.ObjectIdentifier) (*sdk.DeleteObjectsOutput, error) {
		return c.DeleteObjects(context.Background(), &sdk.DeleteObjectsInput{Bucket: aws.String(bucketName), Delete: &types.Delete{Objects: list, Quiet: aws.Bool(quiet)}})
	}
	out, err := remove(false, append(id("a", "b/ü&", "missing", strings.Repeat("x", 1025)), types.ObjectIdentifier{Key: aws.String("kept"), VersionId: aws.String("v1")}))
	if err != nil || len(out.Deleted) != 3 || len(out.Errors) != 2 || aws.ToString(out.Errors[0].Code) != "KeyTooLongError" || aws.ToString(out.Errors[1].Code) != "InvalidArgument" {
		t.Fatalf("%+v, %v", out, err)
	}
	if out, err = remove(true, id("kept")); err != nil || len(out.Deleted) != 0 || len(out.Errors) != 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	list, err := c.ListObjectsV2(context.Background(), &sdk.ListObjectsV2Input{Bucket: aws.String(bucketName)})
	if err != nil || *list.KeyCount != 0 {
		t.Fatalf("%+v, %v", list, err)
	}
	many := make([]string, 1001)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	if _, err = remove(true, id(many...)); codeOf(err) != "400 MalformedXML" {
		t.Error(err)
	}
	if _, err = remove(true, id(many[1:]...)); err != nil {
		t.Error(err)
	}
}

func TestCopyObject(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	want := content(70_000, 1)
	out := put(t, c, "a/ü +%", want, func(in *sdk.PutObjectInput) {
		in.ContentType, in.Metadata = aws.String("text/plain"), map[string]string{"k": "v"}
	})
	stored := w.quiet().sent.stored
	copied := func(key string, options ...func(*sdk.CopyObjectInput)) (*sdk.CopyObjectOutput, error) {
		in := &sdk.CopyObjectInput{Bucket: aws.String(bucketName), Key: aws.String(key), CopySource: aws.String(bucketName + "/" + url.PathEscape("a/ü +%"))}
		for _, o := range options {
			o(in)
		}
		return c.CopyObject(context.Background(), in)
	}
	got, err := copied("b")
	if err != nil || aws.ToString(got.CopyObjectResult.ETag) != aws.ToString(out.ETag) || got.CopyObjectResult.LastModified == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	if w.quiet().sent.stored != stored {
		t.Error("the content was written again")
	}
	if o, b := get(t, c, "b"); !bytes.Equal(b, want) || aws.ToString(o.ContentType) != "text/plain" || o.Metadata["k"] != "v" {
		t.Errorf("%+v", o)
	}
	replace := func(in *sdk.CopyObjectInput) {
		in.MetadataDirective, in.Metadata = types.MetadataDirectiveReplace, map[string]string{"new": "1"}
	}
	if _, err := copied("a/ü +%", replace); err != nil {
		t.Error(err)
	}
	if o, b := get(t, c, "a/ü +%"); !bytes.Equal(b, want) || aws.ToString(o.ContentType) == "text/plain" || fmt.Sprint(o.Metadata) != "map[new:1]" {
		t.Errorf("%+v", o)
	}
	other := aws.String(`"00000000000000000000000000000000"`)
	for name, try := range map[string]struct {
		set  func(*sdk.CopyObjectInput)
		code string
	}{
		"to itself":         {func(in *sdk.CopyObjectInput) { in.Key = aws.String("a/ü +%") }, "400 InvalidRequest"},
		"no source":         {func(in *sdk.CopyObjectInput) { in.CopySource = aws.String(bucketName + "/missing") }, "404 NoSuchKey"},
		"no source bucket":  {func(in *sdk.CopyObjectInput) { in.CopySource = aws.String("missing/a") }, "404 NoSuchBucket"},
		"no key":            {func(in *sdk.CopyObjectInput) { in.CopySource = aws.String(bucketName) }, "400 InvalidArgument"},
		"a version":         {func(in *sdk.CopyObjectInput) { in.CopySource = aws.String(bucketName + "/b?versionId=x") }, "400 InvalidArgument"},
		"no bucket":         {func(in *sdk.CopyObjectInput) { in.Bucket = aws.String("missing") }, "404 NoSuchBucket"},
		"another source":    {func(in *sdk.CopyObjectInput) { in.CopySourceIfMatch = other }, "412 PreconditionFailed"},
		"the same source":   {func(in *sdk.CopyObjectInput) { in.CopySourceIfNoneMatch = out.ETag }, "412 PreconditionFailed"},
		"a wrong directive": {func(in *sdk.CopyObjectInput) { in.MetadataDirective = "MOVE" }, "400 InvalidArgument"},
		"replaced tags":     {func(in *sdk.CopyObjectInput) { in.TaggingDirective = types.TaggingDirectiveReplace }, "501 NotImplemented"},
		"onto an object":    {func(in *sdk.CopyObjectInput) { in.Key, in.IfNoneMatch = aws.String("b"), aws.String("*") }, "412 PreconditionFailed"},
	} {
		if _, err := copied("c", try.set); codeOf(err) != try.code {
			t.Errorf("%s: %v, want %s", name, err, try.code)
		}
	}
}

// TestNativeObjects: an object that was stored under its address is read, listed, copied and deleted by its name.
func TestNativeObjects(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	a := w.storeNative(t, bucketName, []byte("native"))
	tag := `"` + a.String()[3:35] + `-0"`
	o, b := get(t, c, a.String())
	if string(b) != "native" || aws.ToString(o.ETag) != tag || aws.ToString(o.ContentType) != "binary/octet-stream" {
		t.Errorf("%q, %+v", b, o)
	}
	list, err := c.ListObjectsV2(context.Background(), &sdk.ListObjectsV2Input{Bucket: aws.String(bucketName)})
	if err != nil || len(list.Contents) != 1 || aws.ToString(list.Contents[0].ETag) != tag {
		t.Errorf("%+v, %v", list, err)
	}
	copied, err := c.CopyObject(context.Background(), &sdk.CopyObjectInput{Bucket: aws.String(bucketName), Key: aws.String("named"), CopySource: aws.String(bucketName + "/" + a.String())})
	if err != nil || aws.ToString(copied.CopyObjectResult.ETag) != tag {
		t.Errorf("%+v, %v", copied, err)
	}
	_, err = c.PutObject(context.Background(), &sdk.PutObjectInput{Bucket: aws.String(bucketName), Key: aws.String(a.String()), Body: strings.NewReader("other")})
	if codeOf(err) != "400 InvalidArgument" {
		t.Errorf("an address names another content: %v", err)
	}
	_, err = c.CreateMultipartUpload(context.Background(), &sdk.CreateMultipartUploadInput{Bucket: aws.String(bucketName), Key: aws.String(a.String())})
	if codeOf(err) != "400 InvalidArgument" {
		t.Errorf("an address names an upload: %v", err)
	}
	put(t, c, a.String(), []byte("native"))
	if o, _ := get(t, c, a.String()); aws.ToString(o.ETag) == tag {
		t.Error("the object has no MD5 digest")
	}
	if _, err := c.DeleteObject(context.Background(), &sdk.DeleteObjectInput{Bucket: aws.String(bucketName), Key: aws.String(a.String())}); err != nil {
		t.Error(err)
	}
	if _, b := get(t, c, "named"); string(b) != "native" {
		t.Errorf("the copy: %q", b)
	}
}
