package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"macronode/adapters/client/wire"
	"macronode/core/digest"
)

// ErrContent reports that the bytes that were received are not the object.
var ErrContent = errors.New("client: the content does not have the address")

// maxTransfer is how long one attempt to transfer an object may take.
const maxTransfer = 24 * time.Hour

// transferTries is how often a transfer is attempted.
const transferTries = 5

// A StoredObject is the response to a put.
type StoredObject struct {
	wire.StoredObject
	RawResponse
}

// A DeletedObject is the response to a delete.
type DeletedObject struct {
	wire.DeletedObject
	RawResponse
}

// An ObjectItem is an object in a list.
type ObjectItem struct {
	wire.ObjectItem
	RawResponse
}

// ObjectStat is the content of the header of an object.
type ObjectStat struct {
	Address string `json:"address"`
	Bucket  string `json:"bucket"`
	Size    uint64 `json:"size,string"`
}

// A Content opens the bytes of an object from the start, once for each attempt.
type Content func() (io.ReadCloser, error)

// PutObject stores an object. Without an address the content decides. It is safe to repeat: an object is stored once.
func (c *Client) PutObject(ctx context.Context, address, bucket string, size int64, content Content) (*StoredObject, error) {
	q := request{effect: idempotentEffect, newRequest: func(io.Reader) (*http.Request, error) {
		body, err := content()
		if err != nil {
			return nil, err
		}
		var r *http.Request
		if address == "" {
			r, err = wire.NewPostObjectRequestWithBody(c.base, &wire.PostObjectParams{Bucket: optional(bucket)}, bytesType, body)
		} else {
			r, err = wire.NewPutObjectRequestWithBody(c.base, address, &wire.PutObjectParams{Bucket: optional(bucket)}, bytesType, body)
		}
		if err != nil {
			_ = body.Close() // it was only read
			return nil, err
		}
		if r.ContentLength = size; size == 0 {
			_ = body.Close()
			r.Body = http.NoBody
		}
		return r, nil
	}}
	got, err := c.transfers().do(ctx, q)
	if err != nil {
		return nil, err
	}
	o := &StoredObject{RawResponse: RawResponse{got.body}}
	if err := parse(got.body, &o.StoredObject); err != nil {
		return nil, q.result(true, 1, err)
	}
	return o, nil
}

const bytesType = "application/octet-stream"

// transfers returns c for requests that last.
func (c *Client) transfers() *Client {
	t := *c
	t.options.AttemptTimeout, t.options.RetryTimeout, t.options.MaxAttempts = maxTransfer, 0, transferTries
	return &t
}

// DeleteObject removes an object from a bucket. If an earlier attempt has removed it, the error
// is NotFound.
func (c *Client) DeleteObject(ctx context.Context, address, bucket string) (*DeletedObject, error) {
	q := request{effect: idempotentEffect, newRequest: func(io.Reader) (*http.Request, error) {
		return wire.NewDeleteObjectRequest(c.base, address, &wire.DeleteObjectParams{Bucket: optional(bucket)})
	}}
	got, err := c.do(ctx, q)
	if err != nil {
		return nil, err
	}
	o := &DeletedObject{RawResponse: RawResponse{got.body}}
	if err := parse(got.body, &o.DeletedObject); err != nil {
		return nil, q.result(true, 1, err)
	}
	return o, nil
}

// StatObject returns the size of an object.
func (c *Client) StatObject(ctx context.Context, address, bucket string) (*ObjectStat, error) {
	resp, _, err := c.send(ctx, request{newRequest: func(io.Reader) (*http.Request, error) {
		return wire.NewHeadObjectRequest(c.base, address, &wire.HeadObjectParams{Bucket: optional(bucket)})
	}})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()     //nolint:errcheck // it is empty
	if resp.StatusCode >= 400 { // a response to HEAD contains no problem: one to GET does
		one := "bytes=0-0"
		_, err := c.get(ctx, func() (*http.Request, error) {
			return wire.NewGetObjectRequest(c.base, address, &wire.GetObjectParams{Bucket: optional(bucket), Range: &one})
		})
		if err != nil {
			return nil, err
		}
	}
	if resp.StatusCode != http.StatusOK || resp.ContentLength < 0 {
		return nil, foreignResponse(resp.StatusCode)
	}
	return &ObjectStat{Address: address, Bucket: bucket, Size: uint64(resp.ContentLength)}, nil
}

// GetObject writes an object to to, from an offset on, which has the bytes before it. It continues where an attempt
// ended, and checks the content: have reads what is before the offset.
func (c *Client) GetObject(ctx context.Context, address, bucket string, offset uint64, have io.Reader, to io.Writer) (size uint64, err error) {
	sum := &hasher{}
	if offset > 0 {
		if _, err := io.CopyN(sum, have, int64(offset)); err != nil {
			return 0, fmt.Errorf("read what was received before: %w", err)
		}
	}
	for n := 1; ; n++ {
		size, err = c.receive(ctx, address, bucket, &offset, io.MultiWriter(to, sum))
		if err == nil {
			break
		}
		var p *Problem
		if own := (*WriteError)(nil); errors.As(err, &own) {
			return size, err
		}
		if refused := errors.As(err, &p); refused && !p.Retryable || n == transferTries || c.options.Environment.Sleep(ctx, retryDelay(n-1, 0, c.options.Environment.Rand())) != nil {
			return size, err
		}
	}
	if sum.address() != address {
		return size, ErrContent
	}
	return size, nil
}

// A WriteError is why what was received could not be written. The node is not the cause.
type WriteError struct{ Err error }

func (e *WriteError) Error() string { return "write the object: " + e.Err.Error() }

// Unwrap returns the error of the writer.
func (e *WriteError) Unwrap() error { return e.Err }

// receiver passes content on, and keeps the error of that.
type receiver struct {
	to  io.Writer
	err error
}

func (r *receiver) Write(p []byte) (n int, err error) {
	n, r.err = r.to.Write(p)
	return n, r.err
}

// receive makes one attempt, and moves the offset on.
func (c *Client) receive(ctx context.Context, address, bucket string, offset *uint64, to io.Writer) (size uint64, err error) {
	resp, _, err := c.send(ctx, request{newRequest: func(io.Reader) (*http.Request, error) {
		params := &wire.GetObjectParams{Bucket: optional(bucket)}
		if *offset > 0 {
			params.Range = optional("bytes=" + strconv.FormatUint(*offset, 10) + "-")
		}
		r, err := wire.NewGetObjectRequest(c.base, address, params)
		if err == nil {
			r.Header.Set("Accept", bytesType+", application/problem+json")
		}
		return r, err
	}})
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close() //nolint:errcheck // it has been read
	switch {
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable: // all of it is there
		return *offset, nil
	case resp.StatusCode >= 400:
		body, err := c.read(resp.Body)
		if err != nil {
			return 0, err
		}
		p, ok := ParseProblem(body)
		if !ok {
			return 0, foreignResponse(resp.StatusCode)
		}
		p.Status = resp.StatusCode
		return 0, p
	case *offset > 0 && resp.StatusCode != http.StatusPartialContent || *offset == 0 && resp.StatusCode != http.StatusOK || resp.ContentLength < 0:
		return 0, foreignResponse(resp.StatusCode)
	}
	size = *offset + uint64(resp.ContentLength)
	target := &receiver{to: to}
	n, err := io.Copy(target, resp.Body)
	*offset += uint64(n)
	if target.err != nil {
		return size, &WriteError{target.err}
	}
	if err != nil {
		return size, fmt.Errorf("the node does not answer: read: %w", err)
	}
	return size, nil
}

// Objects lists the objects of a bucket, in no order.
func (c *Client) Objects(ctx context.Context, bucket string, l ListOptions) func(yield func(ObjectItem, error) bool) {
	return pages(ctx, c, l, listing[ObjectItem]{items: "items", next: "next_cursor",
		read: func(raw []byte) (o ObjectItem, err error) { o.Raw = raw; return o, parse(raw, &o.ObjectItem) },
		ask: func(from string, n int) (*http.Request, error) {
			return wire.NewObjectsRequest(c.base, &wire.ObjectsParams{Bucket: optional(bucket), Cursor: optional(from), Limit: &n})
		}})
}

// Address returns the address of the bytes of r.
func Address(r io.Reader) (address string, size int64, err error) {
	sum := &hasher{}
	size, err = io.Copy(sum, r)
	return sum.address(), size, err
}

// A hasher computes the address of what is written to it.
type hasher struct {
	tree  digest.Tree
	group []byte
}

func (h *hasher) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if len(h.group) == digest.Group {
			h.flush()
		}
		part := p[:min(len(p), digest.Group-len(h.group))]
		h.group, p = append(h.group, part...), p[len(part):]
	}
	return n, nil
}

func (h *hasher) flush() {
	h.tree.Add(h.group, func([digest.NodeLen]byte) {})
	h.group = h.group[:0]
}

func (h *hasher) address() string {
	h.flush()
	return fmt.Sprintf("b3:%x", h.tree.Sum(func([digest.NodeLen]byte) {}))
}

// KeptObject is the answer to a put of an object that a bucket holds already.
func KeptObject(o *ObjectStat) *StoredObject {
	k := &StoredObject{StoredObject: wire.StoredObject{Address: o.Address, Bucket: o.Bucket, Size: strconv.FormatUint(o.Size, 10)}}
	k.Raw, _ = encode(k.StoredObject) // a struct of texts
	return k
}
