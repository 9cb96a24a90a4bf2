package s3_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"pgregory.net/rapid"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/storage"
)

// add stores an empty object without the protocol.
func (w *world) add(t interface{ Fatal(...any) }, key string) {
	c := &storage.Put{Header: command.Header{Tenant: 1, Caller: 7}, Bucket: storage.Bucket(bucketName), Name: storage.ObjectName(key), File: 1, ETag: storage.ETag{MD5: [16]byte{1}}}
	if reply := w.execute(c); reply.Problem != event.None {
		t.Fatal(reply.Problem)
	}
}

func (w *world) remove(key string) {
	w.execute(&storage.Delete{Header: command.Header{Tenant: 1, Caller: 7}, Bucket: storage.Bucket(bucketName), Name: storage.ObjectName(key)})
}

// clear removes all objects and uploads of the bucket.
func (w *world) clear() {
	for _, u := range slices.Clone(w.uploads[bucketKey{1, storage.Bucket(bucketName).ID}]) {
		w.execute(&storage.AbortUpload{Header: command.Header{Tenant: 1, Caller: 7}, Bucket: storage.Bucket(bucketName), Name: storage.ObjectName(u.Name), Upload: u.ID})
	}
	for key := range maps.Clone(w.objects[bucketKey{1, storage.Bucket(bucketName).ID}]) {
		w.remove(key)
	}
}

// modelList returns what a list without pages contains.
func modelList(keys []string, prefix, delimiter, after string) (items []string) {
	keys = slices.Clone(keys)
	slices.Sort(keys)
	for _, k := range keys {
		if !strings.HasPrefix(k, prefix) || k <= after {
			continue
		}
		if at := strings.Index(k[len(prefix):], delimiter); delimiter != "" && at >= 0 {
			k = "prefix " + k[:len(prefix)+at+len(delimiter)]
		}
		if n := len(items); n == 0 || items[n-1] != k {
			items = append(items, k)
		}
	}
	return items
}

// itemsOf joins objects and common prefixes in their order.
func itemsOf(objects []types.Object, prefixes []types.CommonPrefix, encoding types.EncodingType) (items []string) {
	text := func(s *string) string {
		if encoding == "" {
			return *s
		}
		decoded, err := url.PathUnescape(*s)
		if err != nil {
			return err.Error()
		}
		return decoded
	}
	for _, o := range objects {
		items = append(items, text(o.Key))
	}
	for _, p := range prefixes {
		items = append(items, "prefix "+text(p.Prefix))
	}
	slices.SortFunc(items, func(a, b string) int {
		return strings.Compare(strings.TrimPrefix(a, "prefix "), strings.TrimPrefix(b, "prefix "))
	})
	return items
}

// TestListsAgreeWithModel lists random keys in pages, with both versions.
func TestListsAgreeWithModel(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.bucket(t), context.Background()
	part := rapid.StringOfN(rapid.RuneFrom([]rune("ab/-é日 +&<")), 1, 4, -1)
	rapid.Check(t, func(t *rapid.T) {
		w.clear()
		var keys []string
		for _, k := range rapid.SliceOfN(part, 1, 20).Draw(t, "keys") {
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
				w.add(t, k)
			}
		}
		for range rapid.IntRange(0, len(keys)-1).Draw(t, "deletes") {
			w.remove(keys[0])
			keys = keys[1:]
		}
		prefix := rapid.OneOf(rapid.Just(""), rapid.StringOfN(rapid.RuneFrom([]rune("ab/é")), 0, 2, -1)).Draw(t, "prefix")
		delimiter := rapid.SampledFrom([]string{"", "/", "/", "b", "日", "/b"}).Draw(t, "delimiter")
		after := rapid.OneOf(rapid.Just(""), part).Draw(t, "after")
		limit := rapid.Int32Range(1, 9).Draw(t, "limit")
		encoding := rapid.SampledFrom([]types.EncodingType{"", types.EncodingTypeUrl}).Draw(t, "encoding")
		want := modelList(keys, prefix, delimiter, after)
		var got []string
		in := &sdk.ListObjectsV2Input{Bucket: aws.String(bucketName), Prefix: &prefix, Delimiter: &delimiter, StartAfter: &after, MaxKeys: &limit, EncodingType: encoding}
		for p := sdk.NewListObjectsV2Paginator(c, in); p.HasMorePages(); {
			page, err := p.NextPage(ctx)
			if err != nil {
				t.Fatal(err)
			}
			items := itemsOf(page.Contents, page.CommonPrefixes, encoding)
			if int(*page.KeyCount) != len(items) || len(items) > int(limit) || *page.IsTruncated && len(items) < int(limit) {
				t.Fatalf("a page of %d with the count %d, limit %d", len(items), *page.KeyCount, limit)
			}
			got = append(got, items...)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("version 2, prefix %q, delimiter %q, after %q: %q, want %q", prefix, delimiter, after, got, want)
		}
		if got := listV1(t, c, prefix, delimiter, after, limit); !slices.Equal(got, modelList(keys, prefix, delimiter, behind(after, prefix, delimiter))) {
			t.Fatalf("version 1, prefix %q, delimiter %q, marker %q: %q, want %q", prefix, delimiter, after, got, want)
		}
	})
}

// behind returns the marker after which a list goes on: a marker that is a common prefix stands for its names.
func behind(marker, prefix, delimiter string) string {
	if rest, ok := strings.CutPrefix(marker, prefix); ok && delimiter != "" && strings.Index(rest, delimiter) == len(rest)-len(delimiter) && len(rest) >= len(delimiter) {
		return marker + strings.Repeat("\xff", 8)
	}
	return marker
}

// listV1 follows the markers of version 1.
func listV1(t *rapid.T, c *sdk.Client, prefix, delimiter, marker string, limit int32) (got []string) {
	for {
		page, err := c.ListObjects(context.Background(), &sdk.ListObjectsInput{Bucket: aws.String(bucketName), Prefix: &prefix, Delimiter: &delimiter, Marker: &marker, MaxKeys: &limit})
		if err != nil {
			t.Fatal(err)
		}
		items := itemsOf(page.Contents, page.CommonPrefixes, "")
		got = append(got, items...)
		if !*page.IsTruncated {
			return got
		}
		if (page.NextMarker != nil) != (delimiter != "") {
			t.Fatalf("next marker %v with the delimiter %q", page.NextMarker, delimiter)
		}
		if marker = strings.TrimPrefix(items[len(items)-1], "prefix "); page.NextMarker != nil && *page.NextMarker != marker {
			t.Fatalf("next marker %q, want %q", *page.NextMarker, marker)
		}
	}
}

// TestPagesEndWithCommonPrefixes: the next page begins behind a common prefix.
func TestPagesEndWithCommonPrefixes(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	for _, k := range []string{"a/1", "a/2", "b", "c/1", "c/2", "d"} {
		w.add(t, k)
	}
	var got []string
	for p := sdk.NewListObjectsV2Paginator(c, &sdk.ListObjectsV2Input{Bucket: aws.String(bucketName), Delimiter: aws.String("/"), MaxKeys: aws.Int32(1)}); p.HasMorePages() && len(got) < 9; {
		page, err := p.NextPage(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, itemsOf(page.Contents, page.CommonPrefixes, "")...)
	}
	if want := "[prefix a/ b prefix c/ d]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// TestListSkipsCommonPrefixes: a directory with many names costs a few of them.
func TestListSkipsCommonPrefixes(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	for i := range 400 {
		w.add(t, fmt.Sprintf("large/%03d", i))
	}
	w.add(t, "last")
	page, err := c.ListObjectsV2(context.Background(), &sdk.ListObjectsV2Input{Bucket: aws.String(bucketName), Delimiter: aws.String("/")})
	if err != nil || len(page.CommonPrefixes) != 1 || len(page.Contents) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	if w.quiet().reads > 50 {
		t.Errorf("%d names were read", w.quiet().reads)
	}
}

func TestListAnswers(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.bucket(t), context.Background()
	put(t, c, "a&b", []byte("abc"))
	page, err := c.ListObjectsV2(ctx, &sdk.ListObjectsV2Input{Bucket: aws.String(bucketName), FetchOwner: aws.Bool(true)})
	if err != nil || len(page.Contents) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	o := page.Contents[0]
	if aws.ToString(o.Key) != "a&b" || aws.ToString(o.ETag) != `"900150983cd24fb0d6963f7d28e17f72"` || *o.Size != 3 || o.StorageClass != "STANDARD" ||
		aws.ToString(o.Owner.ID) != "1" || o.LastModified.Unix() != 1_700_000_002 || *page.MaxKeys != 1000 || aws.ToString(page.Name) != bucketName {
		t.Errorf("%+v", o)
	}
	if page, err = c.ListObjectsV2(ctx, &sdk.ListObjectsV2Input{Bucket: aws.String(bucketName), MaxKeys: aws.Int32(5000)}); err != nil || *page.MaxKeys != 1000 || page.Contents[0].Owner != nil {
		t.Errorf("%+v, %v", page, err)
	}
	if page, err = c.ListObjectsV2(ctx, &sdk.ListObjectsV2Input{Bucket: aws.String(bucketName), MaxKeys: aws.Int32(0)}); err != nil || *page.IsTruncated || len(page.Contents) != 0 {
		t.Errorf("%+v, %v", page, err)
	}
	for name, in := range map[string]*sdk.ListObjectsV2Input{
		"400 InvalidArgument max-keys": {Bucket: aws.String(bucketName), MaxKeys: aws.Int32(-1)},
		"400 InvalidArgument token":    {Bucket: aws.String(bucketName), ContinuationToken: aws.String("?")},
		"400 InvalidArgument encoding": {Bucket: aws.String(bucketName), EncodingType: "base64"},
		"404 NoSuchBucket ":            {Bucket: aws.String("missing")},
	} {
		if _, err := c.ListObjectsV2(ctx, in); err == nil || !strings.HasPrefix(name, codeOf(err)+" ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestListReplacesControlCharacters(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.bucket(t), context.Background()
	w.add(t, "a\x01b")
	for encoding, want := range map[types.EncodingType]string{"": "a\ufffdb", types.EncodingTypeUrl: "a%01b"} {
		page, err := c.ListObjectsV2(ctx, &sdk.ListObjectsV2Input{Bucket: aws.String(bucketName), EncodingType: encoding})
		if err != nil || aws.ToString(page.Contents[0].Key) != want {
			t.Errorf("%q: %+v, %v", encoding, page, err)
		}
	}
}

// FuzzListQuery: every query of a list has an answer, and its items are in their order.
func FuzzListQuery(f *testing.F) {
	for _, q := range []string{"", "list-type=2&prefix=a&delimiter=/", "marker=a/&delimiter=/", "list-type=2&continuation-token=MWE&max-keys=1", "encoding-type=url&prefix=%ff",
		"list-type=2&start-after=%00&max-keys=-1", "max-keys=99999999999999999999", "delimiter=%ff&marker=%ff", "uploads&prefix=a&key-marker=b&upload-id-marker=c", "%zz"} {
		f.Add(q)
	}
	w := newWorld(f)
	w.bucket(f)
	for _, k := range []string{"a", "a/b", "a/c", "b", "é/日"} {
		w.add(f, k)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if !utf8.ValidString(query) || strings.ContainsFunc(query, func(r rune) bool { return r <= ' ' || r == '#' || r == 0x7f }) {
			return
		}
		answer := w.send(t, http.MethodGet, "/"+bucketName+"?"+query, nil, "")
		if answer.status >= 500 && answer.status != http.StatusNotImplemented {
			t.Fatalf("%q: %d %s", query, answer.status, answer.body)
		}
	})
}
