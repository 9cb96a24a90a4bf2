package bucket

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"macronode/adapters/fs"
	"macronode/adapters/provider"
)

// onlyNew is the condition of a put whose name must be new.
const onlyNew = "*"

// putMark is the metadata of a file that names its put.
const putMark = "macronode-put"

// draft is a file in the spool directory.
type draft struct{ fs.File }

// Sync does nothing: a draft that a crash leaves is removed, and the bucket makes its content durable.
func (draft) Sync() error { return nil }

// Create begins a draft in the spool directory.
func (b *Bucket) Create(name string) (fs.File, error) {
	f, err := b.Spool.Create(name)
	if err != nil {
		return nil, err
	}
	return draft{f}, nil
}

// Put uploads a draft under a new name.
func (b *Bucket) Put(draft, name string) error {
	condition := onlyNew
	return b.publish(draft, name, &condition)
}

// Replace uploads a draft.
func (b *Bucket) Replace(draft, name string) error { return b.publish(draft, name, nil) }

// publish uploads a draft and removes it.
func (b *Bucket) publish(draft, name string, condition *string) error {
	f, err := b.Spool.Open(draft)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	size, err := f.Size()
	if err != nil {
		return err
	}
	if err := b.upload(io.NewSectionReader(f, 0, size), name, condition); err != nil {
		return err
	}
	return b.Spool.Remove(draft)
}

// upload does a put. If an attempt that seemed to fail had stored the file, a later one finds the name: the mark tells whose it is.
func (b *Bucket) upload(content *io.SectionReader, name string, condition *string) error {
	mark := rand.Text()
	uncertain, err := b.call(opPut, name, answer+timeOf(content.Size(), putRate), func(ctx context.Context) error {
		return b.send(ctx, content, &s3.PutObjectInput{Bucket: &b.Bucket, Key: b.key(name), IfNoneMatch: condition, Metadata: map[string]string{putMark: mark}})
	})
	if uncertain && errors.Is(err, os.ErrExist) {
		if head, headErr := b.head(name); headErr == nil && head.Metadata[putMark] == mark {
			return nil
		}
	}
	return err
}

// send does one attempt of a put.
func (b *Bucket) send(ctx context.Context, content *io.SectionReader, in *s3.PutObjectInput) error {
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	size := content.Size()
	body := &sending{SectionReader: content, stall: time.AfterFunc(putProgress, func() { cancel(errTimeout) })}
	defer body.stall.Stop()
	in.Body, in.ContentLength = body, &size
	_, err := b.client.PutObject(ctx, in)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// sending is a body that ends its request if the server does not take it.
type sending struct {
	*io.SectionReader
	stall *time.Timer
}

// Read returns the next part. After the last one the server stores the content.
func (s *sending) Read(p []byte) (int, error) {
	n, err := s.SectionReader.Read(p)
	within := putProgress
	if at, _ := s.Seek(0, io.SeekCurrent); at == s.Size() {
		within = answer + timeOf(at, settleRate)
	}
	s.stall.Reset(within)
	return n, err
}

// timeOf returns the time of some bytes at a rate in bytes per second.
func timeOf(bytes, rate int64) time.Duration {
	return time.Duration(bytes) * time.Second / time.Duration(rate)
}

// Remove removes a file or a draft.
func (b *Bucket) Remove(name string) error {
	if strings.HasSuffix(name, provider.DraftSuffix) {
		return b.Spool.Remove(name)
	}
	_, err := b.call(opRemove, name, answer, func(ctx context.Context) error {
		_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.Bucket, Key: b.key(name)})
		return err
	})
	return err
}
