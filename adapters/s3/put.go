package s3

import (
	"context"
	"errors"
	"io"
	"net/http"

	"macronode/adapters/objectio"
	"macronode/adapters/objectstore"
	"macronode/adapters/sigv4"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/storage"
)

// putObject stores an object from the body.
func putObject(c *call) error {
	meta, err := readMeta(c.r.Header)
	if err != nil {
		return err
	}
	match, replaces, err := c.match()
	if err != nil {
		return err
	}
	in, err := c.incoming(replaces)
	if err != nil {
		return err
	}
	if _, err := encodeMeta(&meta); err != nil {
		return err
	}
	if size, ok := in.body.Length(); ok {
		if err := c.reserve(uint64(size)); err != nil {
			return err
		}
	}
	var tag storage.ETag
	reply, err := c.store(in.receive, func(s stored) (event.Reply, error) {
		tag.MD5 = in.check.digest()
		meta.checksum = in.check.stored()
		encoded, err := encodeMeta(&meta)
		if err != nil {
			return event.Reply{}, err
		}
		return c.execute(&storage.Put{Header: c.Head(), Bucket: c.bucket, Name: c.name, Address: s.address, Size: s.size, File: s.file,
			Replace: s.replace, ETag: tag, Meta: encoded, Match: match})
	})
	if err != nil {
		return err
	}
	if err := c.answer(reply, errInternal); err != nil {
		return err
	}
	h := c.Header()
	h["Etag"] = []string{quote(etagText(tag, storage.Address{}))}
	in.check.stored().setHeaders(h, 0)
	return c.empty(http.StatusOK)
}

// An incoming body is one that becomes an object or a part.
type incoming struct {
	c     *call
	body  *sigv4.Body
	check *bodyCheck
	limit uint64 // bytes that the quotas leave
}

// incoming refuses a body that is too large before it is read. What replaces an object or a part is checked against the
// quotas when the node decides.
func (c *call) incoming(replaces bool) (in incoming, err error) {
	if err := c.requireBucket(); err != nil {
		return in, err
	}
	in = incoming{c: c, limit: storage.MaxObject}
	if in.body, in.check, err = c.body(); err != nil {
		return in, err
	}
	n, ok := in.body.Length()
	switch {
	case !ok:
		return in, errNoLength
	case uint64(n) > c.MaxUploadBytes:
		return in, errTooLarge
	}
	if !replaces {
		if _, in.limit = c.Rows.Usage(c.tenant(), c.bucket.ID); uint64(n) > in.limit {
			return in, c.quotaExceeded(uint64(n))
		}
	}
	return in, nil
}

// reserve reserves the price of an object before its content is read or copied.
func (c *call) reserve(size uint64) error {
	if no := c.Reserve(size); no != event.None {
		return Problem(no, "")
	}
	return nil
}

// quotaExceeded returns the error of an object or a part with that many bytes. It names the quota.
func (c *call) quotaExceeded(bytes uint64) error {
	return Problem(event.QuotaExceeded, c.Rows.QuotaShortage(c.tenant(), c.bucket.ID, storage.Usage{Bytes: bytes, Objects: 1}).Detail())
}

// receive reads the body into an upload and verifies its signature and its digests.
func (in *incoming) receive(up *objectstore.Upload) error {
	if n, ok := in.body.Length(); ok {
		up.Expect(uint64(n))
	}
	err := objectio.Receive(up, in.body, in.limit, in.check)
	switch {
	case errors.Is(err, objectio.ErrLimit):
		return in.c.quotaExceeded(in.limit + 1) // at least
	case err != nil:
		return in.c.uploadError(err)
	}
	return in.check.finish(in.body.Trailer())
}

// uploadError returns the answer for an upload that failed.
func (c *call) uploadError(err error) error {
	w, ok := errors.AsType[*objectio.WriteError](err)
	if !ok {
		return bodyError(err)
	}
	problem, full := objectio.DiskProblem(w.Err)
	switch {
	case problem == event.PayloadTooLarge:
		return errTooLarge
	case full:
		return errSpace
	case errors.Is(w.Err, objectstore.ErrAbsent):
		return errAbsent
	}
	c.Log.Error("object not written", "request", c.RequestID(), "err", w.Err)
	if objectstore.IsShortage(w.Err) {
		return errShortage
	}
	return errDisk
}

// bodyError returns the answer for a body that could not be read.
func bodyError(err error) error {
	if _, ok := errors.AsType[*sigv4.Error](err); ok {
		return err
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return errIncompleteBody
}

// A stored content is one whose file is durable.
type stored struct {
	address storage.Address
	size    uint64
	file    storage.File
	replace bool // the file of the same content, which is damaged
}

// store fills an upload, makes its content durable and lets decide name it. The file is kept if the outcome is unknown.
func (c *call) store(fill func(*objectstore.Upload) error, decide func(stored) (event.Reply, error)) (reply event.Reply, err error) {
	up, err := c.Contents.Begin(c.Head().Tenant)
	if err != nil {
		return reply, errTooManyUploads
	}
	isKnown := true
	defer func() {
		if isKnown {
			up.Done()
		} else {
			up.Keep()
		}
	}()
	if err := fill(up); err != nil {
		return reply, err
	}
	a, err := up.Sum()
	if err == nil {
		err = up.Store(a)
	}
	if err != nil {
		return reply, c.uploadError(&objectio.WriteError{Err: err})
	}
	c.Transfers.Stored(up.Size())
	s := stored{address: a, size: up.Size(), file: up.File()}
	if row, known := c.Rows.StoredAs(a); known {
		s.replace = !c.isIntact(a, row)
	}
	isKnown = false // until the node has decided
	reply, err = decide(s)
	isKnown = reply.Problem != event.OutcomeUnknown
	return reply, err
}

// isIntact reports whether the file of an object has its content.
func (c *call) isIntact(a storage.Address, row storage.Object) bool {
	err := objectio.CheckIntact(context.WithoutCancel(c.r.Context()), c.Contents, a, row)
	if err != nil {
		c.Transfers.Damaged()
		c.Log.Warn("file of an object is replaced by an upload", "address", a.String(), "err", err)
	}
	return err == nil
}

// execute lets the node decide a command whose fields are valid.
func (c *call) execute(cmd command.Command) (event.Reply, error) {
	if err := cmd.ValidateFields(); err != nil {
		return event.Reply{}, errArgument.saying(err.Error())
	}
	if s, ok := cmd.(interface{ Seal() }); ok {
		s.Seal()
	}
	return c.Execute(cmd), nil
}

// body returns the body of the request, and what checks it against the digests of the client.
func (c *call) body() (*sigv4.Body, *bodyCheck, error) {
	check, err := newBodyCheck(c.r.Header)
	if err != nil {
		return nil, nil, err
	}
	return c.auth.signed.Body(c.Body()), check, nil
}

var _ io.Writer = (*bodyCheck)(nil)
