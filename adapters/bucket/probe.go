package bucket

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"macronode/adapters/provider"
)

// Probe asks for the bucket. A thorough one also writes a file, reads it and removes it, and requires that a put with the condition
// If-None-Match: * is refused if the name exists.
func (b *Bucket) Probe(e provider.Effort) (unreadable, unwritable error) {
	if e == provider.Routine {
		_, err := b.call(opProbe, "bucket", firstByte, func(ctx context.Context) error {
			_, err := b.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &b.Bucket})
			return err
		})
		return err, err
	}
	text := []byte(rand.Text())
	if err := b.upload(section(text), provider.ProbeName, nil); err != nil {
		return nil, err
	}
	unreadable = b.readProbe(text)
	err := b.probeCondition()
	if removed := b.Remove(provider.ProbeName); err == nil {
		err = removed
	}
	return unreadable, errors.Join(unreadable, err)
}

func section(text []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(text), 0, int64(len(text)))
}

// probeCondition puts a file again that exists.
func (b *Bucket) probeCondition() error {
	condition := onlyNew
	err := b.upload(section([]byte(rand.Text())), provider.ProbeName, &condition)
	f := (*failure)(nil)
	switch {
	case errors.Is(err, os.ErrExist):
		return nil
	case err == nil:
		return fmt.Errorf("bucket %s at %s ignores the header If-None-Match of a put, so one writer could overwrite a file of another: use a server that supports conditional writes: %w", b.Bucket, b.Endpoint, provider.ErrUnsuitable)
	case errors.As(err, &f) && (f.status == http.StatusNotImplemented || f.status == http.StatusBadRequest):
		return fmt.Errorf("bucket %s at %s does not support the header If-None-Match of a put (%w): use a server that supports conditional writes: %w", b.Bucket, b.Endpoint, err, provider.ErrUnsuitable)
	}
	return err
}

func (b *Bucket) readProbe(want []byte) error {
	f, err := b.Open(provider.ProbeName)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	got := make([]byte, len(want))
	if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
		return fmt.Errorf("probe bucket %s: %w", b.Bucket, errors.Join(provider.ErrProbe, err))
	}
	return nil
}
