package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"macronode/adapters/objectio"
	"macronode/adapters/objectstore"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/storage"
	"macronode/core/types"
)

// A resumable upload is an upload in parts that is named by the address of its content:
//
//	PUT /o/{address}, Upload-Complete: ?0  ──► BeginUpload ──► 201, Location
//	PATCH, Upload-Offset, Upload-Complete  ──► file, durable ──► PutPart ──► 204
//	PATCH, Upload-Complete: ?1             ──► … ──► the parts are joined and verified ──► Put ──► 201
//	HEAD ──► Upload-Offset: the bytes of the durable parts

var (
	errUploadGone    = problemDetail(event.NotFound, "There is no such upload. It may have been completed or canceled, or it was too old.")
	errUploadFields  = problemDetail(event.BadRequest, "A part needs Upload-Offset and Upload-Complete.")
	errUploadQuery   = problemDetail(event.BadRequest, "This request has no Upload-Complete, Upload-Offset and Upload-Length.")
	errUploadBegin   = problemDetail(event.BadRequest, "The begin of an upload has no Upload-Offset.")
	errUploadUnknown = problemDetail(event.BadRequest, "A resumable upload begins with PUT /o/{address}: the address of the content must be known.")
	errUploadLength  = problemDetail(event.BadRequest, "Upload-Length is not the length of the content.")
	errUploadType    = problemDetail(event.UnsupportedMedia, "A part has the media type "+partialUpload+" and no Content-Encoding.")
	errUploadPrice   = problemDetail(event.BadRequest, "Uploads have a price, so the last part needs a Content-Length.")
	errUploadParts   = problemDetail(event.PayloadTooLarge, "The upload has as many parts as an upload may have.")
)

// errNoContent means that a part has no bytes. It is not stored.
var errNoContent = errors.New("httpapi: a part without content")

// minAppend is the smallest part of an upload in bytes, but for the last one. With it the largest object has fewer
// parts than an upload may have.
const (
	minAppend = 1 << 20
	_         = uint(storage.MaxPart*minAppend - storage.MaxObject)
)

// partsPage is how many parts are read at once.
const partsPage = 1000

// An uploadCall is a request for an upload of an object.
type uploadCall struct {
	objectCall
	fields uploadFields
	name   types.Name // of the object: the text of its address
	id     storage.UploadID
	row    storage.Upload
	held   bool // there is such an upload
}

// upload reads the address, the bucket, the upload and the header fields of a request.
func (k *call) upload() (u uploadCall, err error) {
	if u.objectCall, err = k.object(event.ScopeStore); err != nil {
		return u, err
	}
	if u.fields, err = readUploadFields(k.r.Header); err != nil {
		return u, err
	}
	if u.id, err = storage.ParseUploadID(k.params[1]); err != nil {
		return u, invalid(err)
	}
	u.name = storage.ObjectName(u.address.String())
	u.read()
	return u, nil
}

// read reads the row of the upload.
func (u *uploadCall) read() {
	u.row, u.held = u.Rows.Upload(u.key.Tenant, u.bucket.ID, u.name.ID, u.id)
}

// run lets the node decide a command that has no answer of its own. A client that disconnects does not cancel it.
func (u *uploadCall) run(c command.Command) (event.Reply, error) {
	if err := c.ValidateFields(); err != nil {
		return event.Reply{}, invalid(err)
	}
	u.extendDeadline()
	reply, err := u.outcome(context.WithoutCancel(u.r.Context()), func(ctx context.Context) (event.Reply, bool) { return u.execute(ctx, c) })
	if err == nil {
		u.txID = types.NewTxID(u.Node.Journal(), reply.Position)
	}
	return reply, err
}

// beginsUpload begins an upload if the request asks for that. Otherwise the body is the content.
func (o *objectCall) beginsUpload(head command.Header) (isBegin bool, err error) {
	f, err := readUploadFields(o.r.Header)
	switch {
	case err != nil:
		return false, err
	case f.offset != nil:
		return false, errUploadBegin
	case f.complete == nil && f.length != nil:
		return false, errCompleteField
	case f.complete == nil:
		return false, nil
	case !f.fits(0, o.r.ContentLength):
		return false, errUploadLength
	case *f.complete:
		o.announced = f.length
		return false, nil
	case o.address == (storage.Address{}):
		return true, errUploadUnknown
	}
	u := &uploadCall{objectCall: *o, fields: f, name: storage.ObjectName(o.address.String())}
	return true, u.begin(head)
}

// checkAnnounced rejects a content that has not the length which Upload-Length announced. A body with a Content-Encoding has
// another one.
func (o *objectCall) checkAnnounced(size uint64) error {
	if o.announced != nil && *o.announced != size && len(o.r.Header["Content-Encoding"]) == 0 {
		return errUploadLength
	}
	return nil
}

// begin begins an upload. A body is its first part.
func (u *uploadCall) begin(head command.Header) error {
	if err := u.checkLength(); err != nil {
		return err
	}
	if err := u.checkPart(0); err != nil && u.r.ContentLength != 0 {
		return err
	}
	if !u.Rows.HasBucket(u.key.Tenant, u.bucket.ID) {
		_, err := u.run(&storage.CreateBucket{Header: u.commandHeader(), Bucket: u.bucket})
		if r, ok := errors.AsType[*refusal](err); err != nil && (!ok || r.problem != event.PreconditionFailed) {
			return err
		}
	}
	c := &storage.BeginUpload{Header: head, Bucket: u.bucket, Name: u.name}
	c.Seal()
	reply, err := u.run(c)
	if err != nil {
		return err
	}
	u.id = storage.UploadID(reply.Position)
	if reply.Replayed {
		u.Header()["Idempotency-Replayed"] = isTrue
	}
	u.read()
	size := u.row.Bytes
	if u.r.ContentLength != 0 && size == 0 {
		n, err := u.appendPart(0)
		if err != nil && !errors.Is(err, errNoContent) { // the client does not know the upload
			_, _ = u.run(&storage.AbortUpload{Header: u.commandHeader(), Bucket: u.bucket, Name: u.name, Upload: u.id})
			return err
		}
		size = n
	}
	u.Header()["Location"] = []string{u.location()}
	return u.answerState(http.StatusCreated, size, false)
}

// checkLength rejects a content whose announced length is too large, or whose price the caller cannot pay. The price
// is reserved again at the end of the upload.
func (u *uploadCall) checkLength() error {
	if u.fields.length == nil {
		return nil
	}
	_, left := u.Rows.Usage(u.key.Tenant, u.bucket.ID)
	switch n := *u.fields.length; {
	case n > storage.MaxObject:
		return problem(event.PayloadTooLarge)
	case n > left:
		return u.quotaExceeded(n)
	default:
		return u.reserve(n)
	}
}

// location returns the path of the upload.
func (u *uploadCall) location() string {
	l := "/o/" + u.address.String() + "/uploads/" + u.id.String()
	if string(u.bucket.Text) != defaultBucket {
		l += "?bucket=" + string(u.bucket.Text)
	}
	return l
}

// appendUpload adds a part to an upload, and completes it if the part is the last one.
func appendUpload(k *call) error {
	u, err := k.upload()
	switch {
	case err != nil:
		return err
	case u.fields.offset == nil || u.fields.complete == nil:
		return errUploadFields
	case len(k.r.Header["Content-Type"]) != 1 || k.r.Header["Content-Type"][0] != partialUpload || len(k.r.Header["Content-Encoding"]) > 0:
		return errUploadType
	case !k.Node.Status().AdmittedWrites:
		return problem(event.Unavailable)
	case !u.held:
		return u.answerCompleted()
	case u.row.Bytes != *u.fields.offset:
		return u.moved()
	}
	if err := u.checkPart(u.row.Bytes); err != nil {
		return err
	}
	if k.Paid && *u.fields.complete {
		if k.r.ContentLength < 0 {
			return errUploadPrice
		}
		if err := u.reserve(u.row.Bytes + uint64(k.r.ContentLength)); err != nil {
			return err
		}
	}
	size := u.row.Bytes
	if k.r.ContentLength != 0 {
		n, err := u.appendPart(size)
		switch isEmpty := errors.Is(err, errNoContent); {
		case isEmpty && !*u.fields.complete:
			return u.tooSmall()
		case err != nil && !isEmpty:
			return err
		}
		size += n
	}
	if *u.fields.complete {
		return u.complete(size)
	}
	u.stateHeaders(size, false)
	k.identify()
	k.begin(http.StatusNoContent, nil)
	return nil
}

// answerCompleted answers a part that ends a content which the bucket has: the client repeats it, because the response was lost. The body is
// not read, and nothing is stored.
func (u *uploadCall) answerCompleted() error {
	stored, ok := u.Rows.Object(u.key.Tenant, u.bucket.ID, u.address)
	from, size := *u.fields.offset, u.r.ContentLength
	if !ok || !*u.fields.complete || from > stored.Size || size >= 0 && uint64(size) != stored.Size-from {
		return errUploadGone
	}
	h := u.Header()
	h["Etag"] = []string{etag(u.address)}
	h["Location"] = []string{location(u.address, u.bucket)}
	o := jsonObject{'{'}
	o.text("address", u.address.String())
	o.text("bucket", string(u.bucket.Text))
	o.text("size", strconv.FormatUint(stored.Size, 10))
	o.boolean("created", false)
	o = append(o, "}\n"...)
	u.identify()
	u.answer(http.StatusOK, jsonType, o)
	return nil
}

// checkPart rejects a part before its body is read.
func (u *uploadCall) checkPart(offset uint64) error {
	size := u.r.ContentLength
	switch {
	case size > 0 && uint64(size) > storage.MaxObject-min(offset, storage.MaxObject):
		return problem(event.PayloadTooLarge)
	case !u.fields.fits(offset, size):
		return errUploadLength
	case size >= 0 && !*u.fields.complete && uint64(size) < u.MinAppend:
		return u.tooSmall()
	case u.row.NextPart() > storage.MaxPart && size != 0:
		return errUploadParts
	}
	return nil
}

func (u *uploadCall) tooSmall() error {
	return problemDetail(event.BadRequest, "A part that does not complete the upload has at least "+strconv.FormatUint(u.MinAppend, 10)+" bytes.")
}

// moved is the problem of a part at another offset than the end of the upload. The header has the right one.
func (u *uploadCall) moved() error {
	if u.read(); !u.held {
		return errUploadGone
	}
	u.stateHeaders(u.row.Bytes, false)
	return problem(event.UploadMoved)
}

// appendPart stores the body as the next part. Of a body that ends too early, what was received is stored if it is
// large enough for a part, so that the client need not send it again; the error is then still that of the body.
func (u *uploadCall) appendPart(offset uint64) (size uint64, err error) {
	body, left, err := u.body(false)
	if err != nil {
		return 0, err
	}
	defer body.Close() //nolint:errcheck // Close never fails
	var truncated error
	err = u.keep(storage.Address{}, func(up *objectstore.Upload) error {
		err := u.receive(up, body, min(left, storage.MaxObject-offset))
		isLarge := up.Size() >= u.MinAppend
		switch {
		case errors.Is(err, errBody) && isLarge:
			truncated = err
			return nil
		case err != nil:
			return err
		case up.Size() == 0:
			return errNoContent
		case !isLarge && !*u.fields.complete:
			return u.tooSmall()
		case u.fields.length != nil && !u.fields.fits(offset, int64(up.Size())):
			return errUploadLength
		}
		return nil
	}, func(c content) error {
		size = c.size
		_, err := u.run(&storage.PutPart{Header: u.commandHeader(), Bucket: u.bucket, Name: u.name, Upload: u.id, Number: u.row.NextPart(), Address: c.address,
			Size: c.size, File: c.file, Replace: c.replace, Append: true, Offset: offset})
		return u.ended(err)
	})
	return size, errors.Join(err, truncated)
}

// ended returns the error of a command for an upload that changed meanwhile.
func (u *uploadCall) ended(err error) error {
	r, ok := errors.AsType[*refusal](err)
	switch {
	case ok && (r.problem == event.UploadMoved || r.problem == event.InProgress):
		return u.moved()
	case ok && r.problem == event.NotFound:
		return errUploadGone
	}
	return err
}

// complete joins the parts into one object, if that has the address.
func (u *uploadCall) complete(size uint64) error {
	if err := u.reserve(size); err != nil {
		return err
	}
	_ = http.NewResponseController(u.ResponseWriter).SetReadDeadline(time.Time{}) // the body was read; to join the parts may take long
	if u.read(); !u.held {
		return errUploadGone
	}
	revision := u.row.Revision // read before the parts: the node compares it
	if u.row.Bytes != size {
		return u.moved()
	}
	return u.keep(u.address, u.join, func(c content) error {
		put := &storage.Put{Header: u.commandHeader(), Bucket: u.bucket, Name: u.name, Address: c.address, Size: c.size, File: c.file, Replace: c.replace,
			Upload: u.id, Revision: revision}
		err := u.put(put)
		r, ok := errors.AsType[*refusal](err)
		if _, stored := u.Rows.Object(u.key.Tenant, u.bucket.ID, u.address); ok && r.problem == event.NotFound && stored { // another request was faster
			put.Name, put.Upload, put.Revision = types.Name{}, storage.UploadID{}, 0
			return u.put(put)
		}
		return u.ended(err)
	})
}

// join writes the parts into one object.
func (u *uploadCall) join(up *objectstore.Upload) error {
	defer u.suspendDeadline()()
	up.Expect(u.row.Bytes)
	for after, more := uint16(0), true; more; {
		parts := u.Rows.Parts(u.id, after, partsPage)
		for _, p := range parts {
			if err := u.joinPart(up, p); err != nil {
				return err
			}
			after = p.Number
		}
		more = len(parts) == partsPage
	}
	return nil
}

func (u *uploadCall) joinPart(up *objectstore.Upload, p storage.NumberedPart) error {
	row, ok := u.Rows.StoredAs(p.Address)
	if !ok {
		return u.moved() // the upload has ended
	}
	from, err := objectio.Open(u.Contents, p.Address, row, func() (storage.Object, bool) { return u.Rows.StoredAs(p.Address) })
	if errors.Is(err, objectio.ErrNoObject) {
		return u.moved()
	}
	if err != nil {
		return u.partUnreadable(p, err)
	}
	defer from.Close()
	var written error
	err = from.WriteRange(0, p.Size, func(b []byte) error {
		_, written = up.Write(b)
		return written
	})
	switch {
	case written != nil:
		return u.diskError(written)
	case err != nil:
		return u.partUnreadable(p, err)
	}
	return nil
}

// partUnreadable is the problem of a part whose file is lost or damaged, so that the upload cannot be completed, or cannot be reached now.
func (u *uploadCall) partUnreadable(p storage.NumberedPart, err error) error {
	if errors.Is(err, objectstore.ErrAbsent) {
		return errAbsent
	}
	u.Log.Error("part of an upload cannot be read", "address", p.Address.String(), "upload", u.id.String(), "part", p.Number, "err", err)
	if objectstore.IsShortage(err) {
		return errShortage
	}
	if is := objectio.ReadProblem(err); is != event.ObjectUnreadable {
		return problem(is)
	}
	u.Transfers.Damaged()
	return problemDetail(event.ObjectUnreadable, "A part of the upload is lost or damaged on the disk. Cancel the upload and begin another one.")
}

// cancelUpload ends an upload without an object.
func cancelUpload(k *call) error {
	u, err := k.upload()
	switch {
	case err != nil:
		return err
	case u.fields != (uploadFields{}):
		return errUploadQuery
	case !u.held:
		return errUploadGone
	}
	if _, err := u.run(&storage.AbortUpload{Header: u.commandHeader(), Bucket: u.bucket, Name: u.name, Upload: u.id}); err != nil {
		return u.ended(err)
	}
	k.identify()
	k.begin(http.StatusNoContent, nil)
	return nil
}
