package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"macronode/adapters/inflate"
	"macronode/adapters/objectio"
	"macronode/adapters/objectstore"
	"macronode/adapters/s3"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/storage"
	"macronode/core/types"
)

// defaultBucket holds the objects of requests that name no bucket.
const defaultBucket = "default"

var (
	errAddress     = problemDetail(event.BadRequest, storage.ErrAddress.Error())
	errZeroAddress = problemDetail(event.BadRequest, "address: no content has the address of zeros")
	errSpace       = problemDetail(event.Unavailable, "The free space of the disk is reserved. The object was not stored.")
	errShortage    = problemDetail(event.Unavailable, "The node has too many open files or too little memory. Try again later.")
	errAbsent      = problemDetail(event.Unavailable, "The directory of the objects is not there.")
)

// bucketParam is the parameter bucket.
func bucketParam(to *types.Name) param {
	*to = storage.Bucket(defaultBucket)
	return param{"bucket", false, func(s string) error { *to = storage.Bucket(s); return storage.CheckBucket(s) }}
}

// An objectCall is a request for one object.
type objectCall struct {
	*call
	bucket    types.Name
	address   storage.Address // zero: the address of the content
	announced *uint64         // the length of the content by Upload-Length; nil: there was none
}

// requireStorageScope returns an error unless the key has the scope and no patterns: patterns are for accounts and
// assets.
func (k *call) requireStorageScope(scope event.Scopes) error {
	if err := k.requireScope(scope); err != nil {
		return err
	}
	if k.Rows == nil { // a node without objects
		return problem(event.NotFound)
	}
	if err := k.requireUnboundedKey(); err != nil {
		return err
	}
	return k.reserveUsage()
}

// object reads the address and the bucket of a request.
func (k *call) object(scope event.Scopes) (o objectCall, err error) {
	o.call = k
	if err = k.requireStorageScope(scope); err != nil {
		return o, err
	}
	if err = k.query(bucketParam(&o.bucket)); err != nil || len(k.params) == 0 {
		return o, err
	}
	if o.address, err = storage.ParseAddress(k.params[0]); err != nil {
		return o, errAddress
	}
	if o.address == (storage.Address{}) { // it would stand for a request without an address
		return o, errZeroAddress
	}
	return o, nil
}

// putObject stores an object at the address of the path, or at the address of its content.
func putObject(k *call) error {
	o, err := k.object(event.ScopeStore)
	if err != nil {
		return err
	}
	head, err := k.optionalKey()
	if err != nil {
		return err
	}
	_, held := k.Rows.Object(k.key.Tenant, o.bucket.ID, o.address)
	if k.precondition(held, o.address) != satisfied {
		return problem(event.PreconditionFailed)
	}
	if s := k.Node.Status(); !s.AdmittedWrites {
		return problem(event.Unavailable)
	}
	if isBegin, err := o.beginsUpload(head); isBegin || err != nil {
		return err
	}
	body, left, err := o.body(held)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // Close never fails
	if err := o.reservePrice(held); err != nil {
		return err
	}
	return o.keep(o.address, func(up *objectstore.Upload) error {
		if err := o.receive(up, body, left); err != nil {
			return err
		}
		return o.checkAnnounced(up.Size())
	}, func(c content) error {
		return o.put(&storage.Put{Header: head, Bucket: o.bucket, Address: c.address, Size: c.size, File: c.file, Replace: c.replace})
	})
}

// put lets the node store an object, and answers with the outcome. A client that disconnects does not cancel it: the
// file would be kept until the next start.
func (o *objectCall) put(put *storage.Put) error {
	command := o.pay(put)
	h := o.Header()
	h["Etag"] = []string{etag(put.Address)}
	h["Location"] = []string{location(put.Address, o.bucket)}
	err := o.decide(context.WithoutCancel(o.r.Context()), func(ctx context.Context) (event.Reply, bool) {
		reply, taken := o.execute(ctx, command)
		o.settle(&reply)
		return reply, taken
	})
	if err != nil {
		delete(h, "Etag")
		delete(h, "Location")
	}
	return err
}

// A content is one whose file is durable.
type content struct {
	address storage.Address
	size    uint64
	file    storage.File
	replace bool // the file of the same content, which is damaged
}

// keep fills a new file, makes it durable, and lets decide name it. If want is not zero, the content must have that
// address. The file is kept if the outcome is unknown.
func (o *objectCall) keep(want storage.Address, fill func(*objectstore.Upload) error, decide func(content) error) error {
	up, err := o.Contents.Begin(o.key.Tenant)
	if err != nil {
		return o.rejectFull("uploads", "As many objects are uploaded as storage.uploads permits, or as the tenant leaves to others.")
	}
	known := true
	defer func() {
		if known {
			up.Done()
		} else {
			up.Keep()
		}
	}()
	if err := fill(up); err != nil {
		return err
	}
	c := content{size: up.Size(), file: up.File()}
	if c.address, err = o.store(up, want); err != nil {
		return err
	}
	if row, stored := o.Rows.StoredAs(c.address); stored {
		c.replace = !o.intact(c.address, row)
	}
	known = false
	err = decide(c)
	known = isKnown(err)
	return err
}

// reservePrice reserves the price of the object before its content is read. An object that the bucket already has
// is free.
func (o *objectCall) reservePrice(held bool) error {
	switch {
	case !o.Paid || held:
		return nil
	case o.r.ContentLength < 0 || len(o.r.Header["Content-Encoding"]) > 0:
		return problemDetail(event.BadRequest, "Uploads have a price, so this one needs a Content-Length and no Content-Encoding.")
	}
	return o.reserve(uint64(o.r.ContentLength))
}

// isKnown reports whether the outcome is known after an error of decide.
func isKnown(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return err == nil || ok && r.problem != event.OutcomeUnknown
}

// optionalKey returns the header of a command. The idempotency key is optional.
func (k *call) optionalKey() (h command.Header, err error) {
	h = k.commandHeader()
	keys := k.r.Header["Idempotency-Key"]
	switch {
	case len(keys) > 1:
		return h, problemDetail(event.BadRequest, "This operation accepts at most one Idempotency-Key.")
	case len(keys) == 1 && types.CheckKey(keys[0]) != nil:
		return h, invalid(types.ErrKey)
	case len(keys) == 1:
		h.Key.Text = []byte(keys[0])
	}
	return h, nil
}

// body returns the decompressed content of a request and its limit in bytes. If the announced length is too large,
// the request is rejected before the body is read.
func (o *objectCall) body(held bool) (body io.ReadCloser, left uint64, err error) {
	left = storage.MaxObject
	if !held { // an object that the bucket already has takes no quota
		_, left = o.Rows.Usage(o.key.Tenant, o.bucket.ID)
	}
	of, err := inflate.Of(o.r.Header["Content-Encoding"])
	if err != nil {
		return nil, 0, problemDetail(event.UnsupportedMedia, "The body must be uncompressed, gzip or zstd.")
	}
	if n := o.r.ContentLength; n > 0 && of == inflate.Plain {
		if uint64(n) > storage.MaxObject {
			return nil, 0, problem(event.PayloadTooLarge)
		}
		if uint64(n) > left {
			return nil, 0, o.quotaExceeded(uint64(n))
		}
	}
	wire := &progressReader{metered{o.call}, http.NewResponseController(o.ResponseWriter)}
	if of == inflate.Plain {
		return io.NopCloser(wire), left, nil
	}
	if err := o.takeLargeSlot("As many compressed bodies are read as may be."); err != nil { // for the memory of the decompressor
		return nil, 0, err
	}
	return inflate.New(wire, of, inflate.Limits{Most: storage.MaxObject, Window: MaxWindow}), left, nil
}

// quotaExceeded returns the problem of an object with that many bytes. It names the quota.
func (o *objectCall) quotaExceeded(bytes uint64) error {
	return problemDetail(event.QuotaExceeded, o.Rows.QuotaShortage(o.key.Tenant, o.bucket.ID, storage.Usage{Bytes: bytes, Objects: 1}).Detail())
}

// errExpanded is the problem of a compressed body that is larger than its limits.
var errExpanded = problemDetail(event.PayloadTooLarge, inflate.Describe(min(inflate.Most, storage.MaxObject))+" Send the content without Content-Encoding.")

// MaxWindow is the largest window of a compressed body, in bytes.
const MaxWindow = inflate.MaxWindow

// progressReader reads a body for as long as it makes progress.
type progressReader struct {
	metered
	conn *http.ResponseController
}

func (p *progressReader) Read(to []byte) (int, error) {
	_ = p.conn.SetReadDeadline(time.Now().Add(p.StreamWriteTimeout)) // without a deadline of its own, the connection has one
	return p.metered.Read(to)
}

// receive reads the body into an upload. If it exceeds a quota, it is rejected while it arrives.
func (o *objectCall) receive(up *objectstore.Upload, body io.Reader, left uint64) error {
	if n := o.r.ContentLength; n > 0 && len(o.r.Header["Content-Encoding"]) == 0 {
		up.Expect(uint64(n))
	}
	defer o.suspendDeadline()()
	err := objectio.Receive(up, body, left)
	rejected, refused := errors.AsType[*refusal](err)
	disk, failed := errors.AsType[*objectio.WriteError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, objectio.ErrLimit):
		return o.quotaExceeded(left + 1) // at least
	case failed:
		return o.diskError(disk.Err)
	case errors.Is(err, inflate.ErrLarge):
		return errExpanded
	case errors.Is(err, inflate.ErrBroken):
		return errPacked
	case refused:
		return rejected
	default:
		return errBody
	}
}

// store makes an upload durable under its address.
func (o *objectCall) store(up *objectstore.Upload, want storage.Address) (storage.Address, error) {
	_ = http.NewResponseController(o.ResponseWriter).SetReadDeadline(time.Time{}) // the body was read
	defer o.suspendDeadline()()
	a, err := up.Sum()
	if err != nil {
		return a, o.diskError(err)
	}
	if want != (storage.Address{}) && want != a {
		return a, problemDetail(event.DigestMismatch, "The address of the content is "+a.String()+".")
	}
	if err := up.Store(a); err != nil {
		return a, o.diskError(err)
	}
	o.Transfers.Stored(up.Size())
	return a, nil
}

// suspendDeadline lets the response come late: each part of a body has a time limit of its own, and so has a disk that hangs. The returned
// function ends that.
func (o *objectCall) suspendDeadline() (extend func()) {
	_ = http.NewResponseController(o.ResponseWriter).SetWriteDeadline(time.Time{})
	return o.extendDeadline
}

// extendDeadline gives the node the time of a request to decide and to answer.
func (o *objectCall) extendDeadline() {
	_ = http.NewResponseController(o.ResponseWriter).SetWriteDeadline(time.Now().Add(o.Deadline + o.StreamWriteTimeout))
}

// intact reports whether the file of an object is readable and has its content. An upload replaces a file that is
// not intact.
func (o *objectCall) intact(a storage.Address, row storage.Object) bool {
	err := objectio.CheckIntact(context.WithoutCancel(o.r.Context()), o.Contents, a, row)
	if err != nil {
		o.Transfers.Damaged()
		o.Log.Warn("file of an object is replaced by an upload", "address", a.String(), "err", err)
	}
	return err == nil
}

// diskError returns the problem of an upload that could not be written.
func (o *objectCall) diskError(err error) error {
	switch p, full := objectio.DiskProblem(err); {
	case p == event.PayloadTooLarge:
		return problem(p)
	case full:
		return errSpace
	case errors.Is(err, objectstore.ErrAbsent):
		return errAbsent
	}
	o.Log.Error("object not written", "address", o.address.String(), "err", err)
	if objectstore.IsShortage(err) {
		return errShortage
	}
	return problemDetail(event.Unavailable, "The object could not be written to the disk.")
}

// deleteObject removes an object from a bucket.
func deleteObject(k *call) error {
	o, err := k.object(event.ScopeStore)
	if err != nil {
		return err
	}
	head, err := k.optionalKey()
	if err != nil {
		return err
	}
	c := &storage.Delete{Header: head, Bucket: o.bucket, Address: o.address}
	c.Seal()
	return k.decide(k.r.Context(), func(ctx context.Context) (event.Reply, bool) { return k.execute(ctx, c) })
}

// isName reports whether b can be the position of a cursor of objects.
func isName(b []byte) bool { return len(b) <= storage.MaxName && utf8.Valid(b) }

// listObjects lists the objects of a bucket in the order of names.
func listObjects(k *call) error {
	if err := k.requireStorageScope(event.ScopeRead); err != nil {
		return err
	}
	var bucket types.Name
	var limit int
	var cursor []byte
	if err := k.query(bucketParam(&bucket), limitParam(&limit), k.cursorParam(&cursor, ofObjects, isName)); err != nil {
		return err
	}
	var list []s3.Listed
	if err := k.Names.Await(k.r.Context()); err != nil { // not with a slot
		return err
	}
	err := k.readPage(limit, func() error {
		return k.Names.Objects(k.r.Context(), k.key.Tenant, bucket.ID, "", string(cursor), func(entry s3.Listed) bool {
			list = append(list, entry)
			return len(list) <= limit
		})
	})
	if err != nil {
		return err
	}
	used, _ := k.Rows.Usage(k.key.Tenant, bucket.ID)
	out := takeBuffer()
	defer giveBuffer(out)
	o := jsonObject(append((*out)[:0], '{'))
	o.text("bucket", string(bucket.Text))
	o.text("bytes", strconv.FormatUint(used.Bytes, 10))
	o.number("objects", used.Objects)
	o.list("items")
	for _, entry := range list[:min(len(list), limit)] {
		o.open()
		o.optionalText("name", []byte(entry.Name))
		o.text("address", entry.Address.String())
		o.text("size", strconv.FormatUint(entry.Size, 10))
		o.close('}')
	}
	o.close(']')
	if len(list) > limit {
		o.text("next_cursor", k.cursor(ofObjects, []byte(list[limit].Name)))
	}
	*out = o
	return k.send(o)
}

func etag(a storage.Address) string { return `"` + a.String() + `"` }

// location returns the path of an object.
func location(a storage.Address, bucket types.Name) string {
	l := "/o/" + a.String()
	if string(bucket.Text) != defaultBucket {
		l += "?bucket=" + string(bucket.Text)
	}
	return l
}
