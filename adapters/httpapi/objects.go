package httpapi

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"macronode/adapters/inflate"
	"macronode/adapters/objectstore"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/storage"
	"macronode/core/types"
)

// defaultBucket holds the objects of requests that name no bucket.
const defaultBucket = "default"

var (
	errAddress = because(event.BadRequest, storage.ErrAddress.Error())
	errSpace   = because(event.Unavailable, "The free space of the disk is reserved. The object was not stored.")
)

// bucketParam is the parameter bucket.
func bucketParam(to *types.Name) param {
	*to = storage.Bucket(defaultBucket)
	return param{"bucket", false, func(s string) error { *to = storage.Bucket(s); return storage.CheckBucket(s) }}
}

// An objectCall is a request for one object.
type objectCall struct {
	*call
	bucket  types.Name
	address storage.Address // zero: the content decides
}

// enterStorage refuses a key without the scope, and one with patterns: they are for accounts and assets.
func (k *call) enterStorage(scope event.Scopes) error {
	if err := k.enter(scope); err != nil {
		return err
	}
	if k.Rows == nil { // a node without objects
		return problem(event.NotFound)
	}
	return k.all()
}

// object reads what a request for an object names.
func (k *call) object(scope event.Scopes) (o objectCall, err error) {
	o.call = k
	if err = k.enterStorage(scope); err != nil {
		return o, err
	}
	if err = k.query(bucketParam(&o.bucket)); err != nil || len(k.params) == 0 {
		return o, err
	}
	if o.address, err = storage.ParseAddress(k.params[0]); err != nil {
		return o, errAddress
	}
	return o, nil
}

// putObject stores an object whose address the path names, or the content decides.
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
	if s := k.Node.Status(); !s.Writes {
		return problem(event.Unavailable)
	}
	body, left, err := o.body(held)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // it has none
	up, err := k.Contents.Begin()
	if err != nil {
		return k.crowded("uploads", "As many objects are uploaded as may be.")
	}
	known := true
	defer func() {
		if known {
			up.Done()
		} else {
			up.Keep()
		}
	}()
	if err := o.receive(up, body, left); err != nil {
		return err
	}
	if err := o.store(up); err != nil {
		return err
	}
	put := &storage.Put{Header: head, Bucket: o.bucket, Address: o.address, Size: up.Size(), File: up.File()}
	if row, stored := k.Rows.StoredAs(o.address); stored {
		put.Replace = !o.intact(row)
	}
	put.Seal()
	known = false // a client that leaves does not cancel it: the file would be kept until the next start
	h := k.Header()
	h["Etag"] = []string{etag(o.address)}
	h["Location"] = []string{location(o.address, o.bucket)}
	err = k.decide(context.WithoutCancel(k.r.Context()), func(ctx context.Context) (event.Reply, bool) { return k.Node.Execute(ctx, put) })
	known = isKnown(err)
	if err != nil {
		delete(h, "Etag")
		delete(h, "Location")
	}
	return err
}

// isKnown reports whether an error of decide leaves no doubt about what was recorded.
func isKnown(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return err == nil || ok && r.problem != event.OutcomeUnknown
}

// optionalKey returns the header of a command. A request for an object needs no idempotency key.
func (k *call) optionalKey() (h command.Header, err error) {
	h = command.Header{Caller: k.key.ID, Tenant: k.key.Tenant}
	keys := k.r.Header["Idempotency-Key"]
	switch {
	case len(keys) > 1:
		return h, because(event.BadRequest, "This operation accepts at most one Idempotency-Key.")
	case len(keys) == 1 && types.CheckKey(keys[0]) != nil:
		return h, wrong(types.ErrKey)
	case len(keys) == 1:
		h.Key.Text = []byte(keys[0])
	}
	return h, nil
}

// body returns the content of a request, decompressed, and how many bytes it may have. What is known to be
// too large is refused before any of it is read.
func (o *objectCall) body(held bool) (body io.ReadCloser, left uint64, err error) {
	left = storage.MaxObject
	if !held { // what the bucket holds already takes no quota
		_, left = o.Rows.Usage(o.key.Tenant, o.bucket.ID)
	}
	of, err := inflate.Of(o.r.Header["Content-Encoding"])
	if err != nil {
		return nil, 0, because(event.UnsupportedMedia, "The body must be uncompressed, gzip or zstd.")
	}
	if n := o.r.ContentLength; n > 0 && of == inflate.Plain {
		if uint64(n) > storage.MaxObject {
			return nil, 0, problem(event.PayloadTooLarge)
		}
		if uint64(n) > left {
			return nil, 0, problem(event.QuotaExceeded)
		}
	}
	wire := &patient{metered{o.call}, http.NewResponseController(o.ResponseWriter)}
	if of == inflate.Plain {
		return io.NopCloser(wire), left, nil
	}
	select { // for the memory that decompression takes
	case o.large <- struct{}{}:
		o.lent = true
	default:
		return nil, 0, o.crowded("large_bodies", "As many compressed bodies are read as may be.")
	}
	return inflate.New(wire, of, inflate.Limits{Most: storage.MaxObject, Window: MaxWindow}), left, nil
}

// MaxWindow is how far a compressed body may look back, in bytes.
const MaxWindow = 8 << 20

// patient reads a body for as long as it makes progress.
type patient struct {
	metered
	conn *http.ResponseController
}

func (p *patient) Read(to []byte) (int, error) {
	_ = p.conn.SetReadDeadline(time.Now().Add(p.Patience)) // where there is none, the connection bounds it
	return p.metered.Read(to)
}

// receive reads the body into an upload. What exceeds the quotas is refused while it arrives.
func (o *objectCall) receive(up *objectstore.Upload, body io.Reader, left uint64) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if up.Size()+uint64(n) > left {
				return problem(event.QuotaExceeded)
			}
			if _, err := up.Write(buf[:n]); err != nil {
				return o.diskError(err)
			}
		}
		no, refused := errors.AsType[*refusal](err)
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, inflate.ErrLarge):
			return problem(event.PayloadTooLarge)
		case errors.Is(err, inflate.ErrBroken):
			return errPacked
		case refused:
			return no
		default:
			return errBody
		}
	}
}

// store makes an upload durable under its address.
func (o *objectCall) store(up *objectstore.Upload) error {
	_ = http.NewResponseController(o.ResponseWriter).SetWriteDeadline(time.Now().Add(o.Deadline + o.Patience)) // the upload took its time
	a, err := up.Sum()
	if err != nil {
		return o.diskError(err)
	}
	if o.address != (storage.Address{}) && o.address != a {
		return because(event.DigestMismatch, "The address of the content is "+a.String()+".")
	}
	o.address = a
	if err := up.Store(a); err != nil {
		return o.diskError(err)
	}
	o.Transfers.Stored(up.Size())
	return nil
}

// intact reports whether the file of an object can be read and has its content. What is uploaded again replaces a file that
// is not intact.
func (o *objectCall) intact(row storage.Object) bool {
	content, err := o.Contents.Get(o.address, row)
	if err == nil {
		defer content.Close()
		err = content.WriteRange(0, row.Size, func([]byte) error { return o.r.Context().Err() })
	}
	if err != nil {
		o.Transfers.Damaged()
		o.Log.Warn("file of an object is replaced by an upload", "address", o.address.String(), "err", err)
	}
	return err == nil
}

// diskError is what a client is told of an upload that could not be written.
func (o *objectCall) diskError(err error) error {
	switch {
	case errors.Is(err, objectstore.ErrTooLong):
		return problem(event.PayloadTooLarge)
	case errors.Is(err, objectstore.ErrNoSpace), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return errSpace
	}
	o.Log.Error("object not written", "address", o.address.String(), "err", err)
	return because(event.Unavailable, "The object could not be written to the disk.")
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
	return k.decide(k.r.Context(), func(ctx context.Context) (event.Reply, bool) { return k.Node.Execute(ctx, c) })
}

// listObjects lists what a bucket holds. Its order is arbitrary; an object that is put meanwhile may be missing.
func listObjects(k *call) error {
	if err := k.enterStorage(event.ScopeRead); err != nil {
		return err
	}
	var bucket types.Name
	var limit int
	var cursor []byte
	if err := k.query(bucketParam(&bucket), limitParam(&limit), k.cursorParam(&cursor, ofObjects, func(b []byte) bool { return len(b) == 4+8 && binary.BigEndian.Uint64(b[4:]) == k.Boot })); err != nil {
		return err
	}
	from := uint32(0)
	if cursor != nil {
		from = binary.BigEndian.Uint32(cursor)
	}
	list, next, done := k.Rows.Held(k.key.Tenant, bucket.ID, from, limit)
	used, _ := k.Rows.Usage(k.key.Tenant, bucket.ID)
	out := takeBuffer()
	defer giveBuffer(out)
	o := object(append((*out)[:0], '{'))
	o.text("bucket", string(bucket.Text))
	o.text("bytes", strconv.FormatUint(used.Bytes, 10))
	o.number("objects", used.Objects)
	o.list("items")
	for _, s := range list {
		o.open()
		o.text("address", s.Address.String())
		o.text("size", strconv.FormatUint(s.Size, 10))
		o.close('}')
	}
	o.close(']')
	if !done {
		o.text("next_cursor", k.cursor(ofObjects, binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, next), k.Boot)))
	}
	*out = o
	return k.send(o)
}

func etag(a storage.Address) string { return `"` + a.String() + `"` }

// location is where an object is read.
func location(a storage.Address, bucket types.Name) string {
	l := "/o/" + a.String()
	if string(bucket.Text) != defaultBucket {
		l += "?bucket=" + string(bucket.Text)
	}
	return l
}
