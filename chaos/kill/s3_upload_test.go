package kill_test

import (
	"bytes"
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// upload stores an object in one or two parts. Without an answer it is resumed later.
func (c *s3Client) upload(ctx context.Context, key string) error {
	begun, err := c.sdk.CreateMultipartUpload(ctx, &sdk.CreateMultipartUploadInput{Bucket: aws.String(s3Bucket), Key: &key})
	if o, err := outcomeOf(err); err != nil || o.state != acknowledged {
		return err
	}
	contents := [][]byte{c.fresh()}
	if c.dice.Uint64n(4) == 0 {
		first := append(c.fresh(), make([]byte, minPartSize)...)[:minPartSize]
		contents = [][]byte{first, contents[0]}
	}
	c.pending = &pendingUpload{key: key, id: aws.ToString(begun.UploadId)}
	for i, content := range contents {
		number := aws.Int32(int32(i + 1))
		out, err := c.sdk.UploadPart(ctx, &sdk.UploadPartInput{Bucket: aws.String(s3Bucket), Key: &key, UploadId: &c.pending.id, PartNumber: number, Body: bytes.NewReader(content)})
		if o, err := outcomeOf(err); err != nil || o.state != acknowledged {
			return err // it is aborted
		}
		c.pending.parts = append(c.pending.parts, s3types.CompletedPart{PartNumber: number, ETag: out.ETag})
	}
	if c.dice.Uint64n(8) == 0 {
		return c.abort(ctx)
	}
	c.pending.complete = c.history.open(keyWrite{key: key, etag: c.history.learnUpload(contents)})
	return c.complete(ctx)
}

// resume completes or aborts an upload whose end was not answered.
func (c *s3Client) resume(ctx context.Context) error {
	if c.pending.complete == nil || c.dice.Uint64n(2) == 0 {
		return c.abort(ctx)
	}
	c.history.reopen(c.pending.complete)
	return c.complete(ctx)
}

func (c *s3Client) complete(ctx context.Context) error {
	p, w := c.pending, c.pending.complete
	again := p.tried
	p.tried = true
	out, err := c.sdk.CompleteMultipartUpload(ctx, &sdk.CompleteMultipartUploadInput{Bucket: aws.String(s3Bucket), Key: &p.key, UploadId: &p.id,
		MultipartUpload: &s3types.CompletedMultipartUpload{Parts: p.parts}})
	var etag *string
	if out != nil {
		etag = out.ETag
	}
	o, bad := outcomeOf(err)
	switch {
	case !o.sent && again: // as before
		return bad
	case o.code == "NoSuchUpload" && again: // an earlier attempt completed it, and the object was replaced
		c.pending = nil
		c.history.finish(w, acknowledged, w.etag)
		return nil
	}
	if o, bad = c.end(w, true, etag, err); o.state == acknowledged {
		c.pending = nil
	}
	if o.state == refused {
		p.complete = nil // it is aborted
	}
	return bad
}

// abort ends an upload without an object. If the node does not have it any more, an earlier attempt to complete it
// succeeded.
func (c *s3Client) abort(ctx context.Context) error {
	p := c.pending
	_, err := c.sdk.AbortMultipartUpload(ctx, &sdk.AbortMultipartUploadInput{Bucket: aws.String(s3Bucket), Key: &p.key, UploadId: &p.id})
	o, err := outcomeOf(err)
	switch {
	case err != nil || o.state == unanswered:
		p.aborted = p.aborted || o.sent
		return err
	case p.complete != nil && !p.aborted && o.code == "NoSuchUpload":
		c.history.finish(p.complete, acknowledged, p.complete.etag)
	case p.complete != nil && o.state == acknowledged:
		c.history.finish(p.complete, refused, "")
	case !p.aborted && o.code != "":
		return errors.New("the upload " + p.id + " that was not completed is gone")
	}
	c.pending = nil
	return nil
}
