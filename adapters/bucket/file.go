package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"macronode/adapters/fs"
)

// head asks for the size and the mark of a file.
func (b *Bucket) head(name string) (out *s3.HeadObjectOutput, err error) {
	_, err = b.call(opStat, name, firstByte, func(ctx context.Context) (err error) {
		out, err = b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.Bucket, Key: b.key(name)})
		return err
	})
	if err == nil && (out.ContentLength == nil || *out.ContentLength < 0) {
		err = &failure{op: opStat, name: name, bucket: b.Bucket, cause: errors.New("the response has no length")}
	}
	return out, err
}

// Stat returns the size of a file.
func (b *Bucket) Stat(name string) (int64, error) {
	head, err := b.head(name)
	if err != nil {
		return 0, err
	}
	return *head.ContentLength, nil
}

// Open opens a file.
func (b *Bucket) Open(name string) (fs.File, error) {
	head, err := b.head(name)
	if err != nil {
		return nil, err
	}
	return &file{bucket: b, name: name, size: *head.ContentLength, tag: head.ETag}, nil
}

// file is an open file. It is not safe for concurrent use.
type file struct {
	bucket *Bucket
	name   string
	size   int64
	tag    *string // of the content: another one is another file
	closed bool

	expected [2]int64 // the range that will be read in order
	stream   *stream  // of the expected range; nil: it was not begun, or has ended
}

// Expect announces that the bytes from off up to end will be read in order: they come with one request.
func (f *file) Expect(off, end uint64) {
	f.stop()
	f.expected = [2]int64{int64(off), min(int64(end), f.size)}
}

// ReadAt reads from the stream of the expected range, or with a request of its own.
func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	switch {
	case f.closed:
		return 0, os.ErrClosed
	case off < 0:
		return 0, os.ErrInvalid
	case off >= f.size && len(p) > 0:
		return 0, io.EOF
	}
	want := p[:min(int64(len(p)), f.size-off)]
	if len(want) == 0 {
		return 0, nil
	}
	if err := f.read(want, off); err != nil {
		return 0, err
	}
	if len(want) < len(p) {
		return len(want), io.EOF
	}
	return len(want), nil
}

func (f *file) read(p []byte, off int64) error {
	end := off + int64(len(p))
	if f.stream == nil && off == f.expected[0] && end <= f.expected[1] {
		s, err := f.open(off, f.expected[1])
		if err != nil {
			return err
		}
		f.stream = s
	}
	if s := f.stream; s != nil && s.at == off && end <= s.end {
		err := s.fill(p)
		if err != nil && off > s.from && !errors.Is(err, errTimeout) { // a server may end a response that its client reads slowly
			err = f.resume(p, off, s.end)
		}
		if err != nil || f.stream.at == f.stream.end {
			f.stop()
		}
		return err
	}
	s, err := f.open(off, end)
	if err != nil {
		return err
	}
	defer s.close()
	return s.fill(p)
}

// resume reads from another response than the one that ended.
func (f *file) resume(p []byte, off, end int64) error {
	f.stream.close()
	s, err := f.open(off, end)
	if err != nil {
		f.stream = nil
		return err
	}
	f.stream = s
	return s.fill(p)
}

// stop ends the stream.
func (f *file) stop() {
	if f.stream != nil {
		f.stream.close()
		f.stream = nil
	}
	f.expected = [2]int64{}
}

// open begins to read a range.
func (f *file) open(off, end int64) (*stream, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &stream{file: f, from: off, at: off, end: end, cancel: cancel, timer: time.AfterFunc(firstByte, func() { cancel(errTimeout) }), ctx: ctx}
	if err := f.bucket.begin(ctx); err != nil {
		s.timer.Stop()
		cancel(nil)
		return nil, err
	}
	span := fmt.Sprintf("bytes=%d-%d", off, end-1)
	_, err := f.bucket.attempt(ctx, opGet, f.name, func(ctx context.Context) error {
		out, err := f.bucket.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &f.bucket.Bucket, Key: f.bucket.key(f.name), Range: &span, IfMatch: f.tag})
		if err != nil {
			return err
		}
		s.body = out.Body
		if want := fmt.Sprintf("bytes %d-%d/", off, end-1); out.ContentRange == nil || !strings.HasPrefix(*out.ContentRange, want) {
			_ = s.body.Close() // its content is of no use
			return errors.New("the response has another range")
		}
		return nil
	})
	if err != nil {
		f.bucket.end()
		s.timer.Stop()
		cancel(nil)
		if errors.Is(err, os.ErrNotExist) {
			err = errChanged
		}
		return nil, err
	}
	return s, nil
}

// A stream is the body of a response with a range.
type stream struct {
	file          *file
	from, at, end int64
	body          io.ReadCloser
	ctx           context.Context //nolint:containedctx // it lives as long as the body
	cancel        context.CancelCauseFunc
	timer         *time.Timer // cancels a read without progress
}

// fill reads the next bytes. A body that ends early or that does not come is an error.
func (s *stream) fill(p []byte) error {
	s.timer.Reset(progress + timeOf(int64(len(p)), readRate))
	for n := 0; n < len(p); {
		part, err := s.body.Read(p[n:])
		n, s.at = n+part, s.at+int64(part)
		if n == len(p) {
			break
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			if s.ctx.Err() != nil {
				err = context.Cause(s.ctx)
			}
			return s.file.bucket.translate(opGet, s.file.name, err)
		}
	}
	s.timer.Stop()
	return nil
}

func (s *stream) close() {
	if s.at == s.end { // the connection can be used again after the end of the body
		s.timer.Reset(progress)
		_, _ = io.CopyN(io.Discard, s.body, 1)
	}
	s.timer.Stop()
	s.cancel(nil)
	_ = s.body.Close() // it was only read
	s.file.bucket.end()
}

// Size returns the size of the file.
func (f *file) Size() (int64, error) {
	if f.closed {
		return 0, os.ErrClosed
	}
	return f.size, nil
}

// Close ends reads.
func (f *file) Close() error {
	if f.closed {
		return os.ErrClosed
	}
	f.stop()
	f.closed = true
	return nil
}

// WriteAt fails: a file is only read.
func (f *file) WriteAt([]byte, int64) (int, error) { return 0, os.ErrPermission }

// Sync does nothing: a file is durable.
func (f *file) Sync() error { return nil }
