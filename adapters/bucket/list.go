package bucket

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"macronode/adapters/provider"
)

// List returns the names of all files and drafts, sorted.
func (b *Bucket) List() ([]string, error) {
	names, err := b.Spool.List()
	if err != nil {
		return nil, err
	}
	in := &s3.ListObjectsV2Input{Bucket: &b.Bucket, MaxKeys: new(int32)}
	*in.MaxKeys = pageKeys
	prefix, delimiter := *b.key(""), "/"
	in.Delimiter = &delimiter
	if prefix != "" {
		in.Prefix = &prefix
	}
	for {
		var page *s3.ListObjectsV2Output
		if _, err := b.call(opList, "names", answer, func(ctx context.Context) (err error) {
			page, err = b.client.ListObjectsV2(ctx, in)
			return err
		}); err != nil {
			return nil, err
		}
		names = appendNames(names, page.Contents, prefix)
		if page.IsTruncated == nil || !*page.IsTruncated {
			slices.Sort(names)
			return slices.Compact(names), nil
		}
		next, last := page.NextContinuationToken, in.ContinuationToken
		if next == nil || last != nil && *next == *last || len(page.Contents)+len(page.CommonPrefixes) == 0 {
			return nil, &failure{op: opList, name: "names", bucket: b.Bucket, cause: errors.New("the list does not go on, and has no end")}
		}
		in.ContinuationToken = next
	}
}

// appendNames adds the names of a page.
func appendNames(to []string, page []types.Object, prefix string) []string {
	for i := range page {
		if page[i].Key == nil {
			continue
		}
		if name, ok := strings.CutPrefix(*page[i].Key, prefix); ok && name != "" && !strings.HasSuffix(name, provider.DraftSuffix) {
			to = append(to, name)
		}
	}
	return to
}
