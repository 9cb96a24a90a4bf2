package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"macronode/adapters/client/wire"
)

// PartSize is the number of bytes of a part of a resumable upload. If the connection breaks, at most that much is sent
// again.
const PartSize = 16 << 20

const partType = "application/partial-upload"

// An ObjectUpload is the state of a resumable upload.
type ObjectUpload struct {
	wire.ObjectUpload
	RawResponse
}

// parseUpload parses the state of an upload.
func parseUpload(raw []byte) (*ObjectUpload, uint64, error) {
	u := &ObjectUpload{RawResponse: RawResponse{raw}}
	if err := parse(raw, &u.ObjectUpload); err != nil {
		return nil, 0, err
	}
	offset, err := strconv.ParseUint(u.Offset, 10, 64)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrWrongNode, err)
	}
	return u, offset, nil
}

// BeginUpload begins a resumable upload of an object with a size. An upload that is not completed ends by itself.
func (c *Client) BeginUpload(ctx context.Context, address, bucket string, size uint64) (*ObjectUpload, error) {
	key, begins, length := c.options.Environment.NewIdempotencyKey(), wire.PutObjectParamsUploadComplete("?0"), strconv.FormatUint(size, 10)
	q := request{effect: idempotentEffect, key: key, newRequest: func(io.Reader) (*http.Request, error) {
		return wire.NewPutObjectRequestWithBody(c.base, address, &wire.PutObjectParams{Bucket: optional(bucket), IdempotencyKey: &key,
			UploadComplete: &begins, UploadLength: &length}, bytesType, http.NoBody)
	}}
	got, err := c.do(ctx, q)
	if err != nil {
		return nil, err
	}
	u, _, err := parseUpload(got.body)
	if err != nil {
		return nil, q.result(true, 1, err)
	}
	return u, nil
}

// GetUpload returns the state of a resumable upload. The error is NotFound if there is none, and the bucket does not
// hold its object.
func (c *Client) GetUpload(ctx context.Context, address, bucket, id string) (*ObjectUpload, error) {
	body, err := c.get(ctx, func() (*http.Request, error) {
		return wire.NewGetObjectUploadRequest(c.base, address, id, &wire.GetObjectUploadParams{Bucket: optional(bucket)})
	})
	if err != nil {
		return nil, err
	}
	u, _, err := parseUpload(body)
	return u, err
}

// CancelUpload ends a resumable upload without an object. If an earlier attempt has ended it, the error is NotFound.
func (c *Client) CancelUpload(ctx context.Context, address, bucket, id string) error {
	q := request{effect: idempotentEffect, newRequest: func(io.Reader) (*http.Request, error) {
		return wire.NewCancelObjectUploadRequest(c.base, address, id, &wire.CancelObjectUploadParams{Bucket: optional(bucket)})
	}}
	_, err := c.do(ctx, q)
	return err
}

// SendUpload sends what an upload lacks, in parts, and completes it. After a broken connection, or while the node does
// not answer, it asks the node for the offset and goes on there, for as long as Options.RetryTimeout since the last
// progress. at is called with the offset that was reached; it becomes lower if bytes are sent again. After ErrUnknown, a part may
// have been stored, and with the last one the object: GetUpload, or StatObject, finds it out.
func (c *Client) SendUpload(ctx context.Context, u *ObjectUpload, size uint64, content io.ReaderAt, at func(offset uint64)) (*StoredObject, error) {
	_, offset, err := parseUpload(u.Raw)
	if err != nil {
		return nil, err
	}
	s := &sender{Client: c, upload: u, offset: offset, size: size, content: content, at: at}
	o, tries, err := s.sendAll(ctx)
	if err != nil && s.inDoubt {
		return nil, &UnknownOutcome{Attempts: tries, Err: err}
	}
	return o, err
}

// sendAll sends parts until the upload is complete, or attempts or time are used up.
func (s *sender) sendAll(ctx context.Context) (o *StoredObject, tries int, err error) {
	c := s.Client
	began := c.options.Environment.Now()
	for n := 0; ; n++ {
		before := s.offset
		o, after, err := s.send(ctx)
		tries++
		if err == nil && o == nil {
			n, began = -1, c.options.Environment.Now()
			continue
		}
		retry := err != nil && canRetryPart(err)
		if err != nil && needsState(err) {
			state := s.resync(ctx)
			switch {
			case state == nil && s.upload.Complete:
				o, err = s.stored(), nil
			case state != nil && !canRetryPart(state): // there is no such upload
				return nil, tries, err
			}
		}
		if err == nil {
			return o, tries, nil
		}
		if s.offset > before {
			n, began, retry = 0, c.options.Environment.Now(), true
		}
		wait := retryDelay(n, after, c.options.Environment.Rand())
		if !retry || n+1 == c.options.MaxAttempts || !c.hasTimeFor(ctx, began, wait) || c.options.Environment.Sleep(ctx, wait) != nil {
			return nil, tries, err
		}
	}
}

// needsState reports whether the node may have more of the content than the response says.
func needsState(err error) bool {
	p, rejected := errors.AsType[*Problem](err)
	return canRetryPart(err) || rejected && (p.Code == BadRequest || p.Code == NotFound)
}

// canRetryPart reports whether the same part may be accepted later, or another one now.
func canRetryPart(err error) bool {
	if _, own := errors.AsType[*ReadError](err); own || errors.Is(err, ErrWrongNode) {
		return false
	}
	p, rejected := errors.AsType[*Problem](err)
	return !rejected || p.Retryable || p.Code == UploadMoved
}

// A sender sends the content of an upload.
type sender struct {
	*Client
	upload  *ObjectUpload
	offset  uint64 // of the next part
	size    uint64 // of the content
	content io.ReaderAt
	at      func(uint64)
	inDoubt bool // a part was sent that may have been stored, and nothing since then says whether it was
}

// send sends one part. It returns the object if the part was the last one.
func (s *sender) send(ctx context.Context) (o *StoredObject, after time.Duration, err error) {
	s.at(s.offset)
	if s.offset > s.size {
		return nil, 0, fmt.Errorf("the upload has %d bytes, the content only %d", s.offset, s.size)
	}
	n := min(PartSize, s.size-s.offset)
	complete, length := wire.AppendObjectUploadParamsUploadComplete("?0"), strconv.FormatUint(s.size, 10)
	if s.offset+n == s.size {
		complete = "?1"
	}
	body := &partReader{from: io.NewSectionReader(s.content, int64(s.offset), int64(n)), left: n, offset: s.offset, at: s.at}
	q := request{effect: idempotentEffect, newRequest: func(io.Reader) (*http.Request, error) {
		r, err := wire.NewAppendObjectUploadRequestWithBody(s.base, s.upload.Address, s.upload.UploadID, &wire.AppendObjectUploadParams{Bucket: optional(s.upload.Bucket),
			UploadOffset: strconv.FormatUint(s.offset, 10), UploadComplete: complete, UploadLength: &length}, partType, body)
		if err == nil {
			r.ContentLength = int64(n)
		}
		if err == nil && n == 0 {
			r.Body = http.NoBody
		}
		return r, err
	}}
	a, got, err := s.attempt(ctx, q, maxTransfer)
	if own := body.stop(); own != nil {
		return nil, 0, own
	}
	_, s.inDoubt = decideRetry(a, s.inDoubt, false)
	if errors.Is(err, DigestMismatch) { // of the whole, so no earlier attempt has stored it
		s.inDoubt = false
	}
	if err != nil {
		return nil, a.after, err
	}
	s.offset += n
	s.at(s.offset)
	if complete == "?0" {
		return nil, 0, nil
	}
	o = &StoredObject{RawResponse: RawResponse{got.body}}
	if err := parse(got.body, &o.StoredObject); err != nil {
		return nil, 0, q.result(true, 1, err)
	}
	return o, 0, nil
}

// resync asks for the state of the upload, once.
func (s *sender) resync(ctx context.Context) error {
	_, got, err := s.attempt(ctx, request{newRequest: func(io.Reader) (*http.Request, error) {
		return wire.NewGetObjectUploadRequest(s.base, s.upload.Address, s.upload.UploadID, &wire.GetObjectUploadParams{Bucket: optional(s.upload.Bucket)})
	}}, s.options.AttemptTimeout)
	if err != nil {
		return err
	}
	u, offset, err := parseUpload(got.body)
	if err == nil {
		isLast := s.size-s.offset <= PartSize
		s.upload, s.offset, s.inDoubt = u, offset, s.inDoubt && isLast // the last part may complete the upload yet
	}
	return err
}

// stored is the answer for an upload that is complete, but whose response was lost.
func (s *sender) stored() *StoredObject {
	s.at(s.size)
	return KeptObject(&ObjectStat{Address: s.upload.Address, Bucket: s.upload.Bucket, Size: s.offset})
}

// A ReadError is why the content of an upload could not be read. The node is not the cause.
type ReadError struct{ Err error }

func (e *ReadError) Error() string { return "read the content: " + e.Err.Error() }

// Unwrap returns the error of the content.
func (e *ReadError) Unwrap() error { return e.Err }

// A partReader reads a part, and reports the offset in the content. A request may read it after it has failed.
type partReader struct {
	from   io.Reader
	at     func(uint64)
	mu     sync.Mutex
	left   uint64
	offset uint64
	ended  bool // the request has ended
	err    error
}

func (p *partReader) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return 0, io.ErrClosedPipe
	}
	n, err := p.from.Read(b)
	p.left -= uint64(n)
	p.offset += uint64(n)
	p.at(p.offset)
	switch {
	case errors.Is(err, io.EOF) && p.left > 0:
		p.err = io.ErrUnexpectedEOF // it became shorter
		err = p.err
	case err != nil && !errors.Is(err, io.EOF):
		p.err = err
	}
	return n, err
}

// stop ends the reads, and returns why the content could not be read.
func (p *partReader) stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.err == nil {
		return nil
	}
	return &ReadError{p.err}
}
