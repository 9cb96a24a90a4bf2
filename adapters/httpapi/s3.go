package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"macronode/adapters/httpcheck"
	"macronode/adapters/s3"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/storage"
	"macronode/core/types"
)

// accessKeyPrefix begins the access key ID of an API key: the prefix, and the ID in uppercase hexadecimal digits.
const accessKeyPrefix = "MK"

// accessKeyID returns the access key ID of an API key.
func accessKeyID(id types.KeyID) string { return accessKeyPrefix + strings.ToUpper(keyText(id)) }

// parseAccessKeyID returns the API key with an access key ID.
func parseAccessKeyID(s string) (types.KeyID, bool) {
	digits, ok := strings.CutPrefix(s, accessKeyPrefix)
	if !ok || digits != strings.ToUpper(digits) {
		return 0, false
	}
	return parseKeyID(strings.ToLower(digits))
}

// ServeS3 returns the handler of the S3 interface.
//
//	signature ─► turn ─► operation ─► Rows, Names, Contents, Node ─► XML
//	  403         503       501
//
// The signature is verified before the request is admitted, so that callers without a key cannot take the
// turns of those that have one.
func (a *API) ServeS3(h *s3.Handler) http.Handler {
	endpoints := make([]*endpoint, 0, len(s3.Ops()))
	for _, op := range s3.Ops() {
		name, method := S3Operation(op)
		d := &endpoint{name: name, usage: endpointUsage(serviceStorage, name), facet: types.FacetStorage, meanBytes: 1 << 10}
		switch {
		case op.Lists():
			d.facet, d.meanBytes = types.FacetQuery, 16<<10
		case op.Transfers():
			d.meanBytes = 64 << 10
		}
		a.meter(d, method)
		endpoints = append(endpoints, d)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		op := h.Operation(r)
		a.answer(w, r, endpoints[op], func(k *call) {
			k.s3 = &s3Call{call: k, handler: h, op: op, conn: http.NewResponseController(w)}
			k.s3.serve()
		})
	})
}

// S3Operation returns the name of an operation of S3 in metrics and logs, and its HTTP method.
func S3Operation(op s3.Op) (name, method string) {
	name = "s3"
	for i, c := range []byte(op.String()) {
		if 'A' <= c && c <= 'Z' {
			if i == 0 || op.String()[i-1] >= 'a' || op.String()[i-1] <= '9' {
				name += "_"
			}
			c += 'a' - 'A'
		}
		name += string(c)
	}
	switch op {
	case s3.CreateBucket, s3.PutObject, s3.CopyObject, s3.UploadPart, s3.UploadPartCopy:
		return name, http.MethodPut
	case s3.HeadBucket, s3.HeadObject:
		return name, http.MethodHead
	case s3.DeleteBucket, s3.DeleteObject, s3.AbortMultipartUpload:
		return name, http.MethodDelete
	case s3.DeleteObjects, s3.CreateMultipartUpload, s3.CompleteMultipartUpload:
		return name, http.MethodPost
	case s3.Unknown:
		return name, "other"
	default:
		return name, http.MethodGet
	}
}

// An s3Call is a call of the S3 interface, as its handler sees it.
type s3Call struct {
	*call
	handler *s3.Handler
	op      s3.Op
	auth    *s3.Auth
	err     error // of the authentication
	conn    *http.ResponseController
}

func (c *s3Call) serve() {
	s := c.Node.Status()
	c.at = s.At
	malformed := httpcheck.Request(c.r)
	err := error(nil)
	if isNotServing(&s) {
		c.isAdmitted = true
		err = c.rejectNotServing()
	} else {
		err = c.admit()
	}
	switch {
	case err != nil:
		c.fail(err)
	case malformed != nil:
		c.fail(problemDetail(event.BadRequest, malformed.Error()))
	case c.err != nil:
		c.handler.Refuse(c, c.err)
	case c.isBounded():
		c.fail(problem(event.Forbidden))
	default:
		if err := c.reserveUsage(); err != nil {
			c.fail(err)
			return
		}
		c.handler.Serve(c, c.auth)
	}
}

// authenticate verifies the signature, and sets the key of the call.
func (c *s3Call) authenticate() {
	var key event.Key
	c.auth, c.err = c.handler.Authenticate(c.r, time.UnixMilli(int64(c.at)).UTC(), func(accessKey string) (string, bool) {
		id, ok := parseAccessKeyID(accessKey)
		if !ok {
			return "", false
		}
		known, found := c.ReadModel.Find(id)
		if key = known; !found || expired(&known, c.at) {
			return "", false
		}
		return c.Secret(&known), true
	})
	if c.err == nil {
		c.key = key
	} else {
		c.detail = c.err.Error()
	}
}

// lasts returns how long the call may keep its permit; 0: until its deadline.
func (c *s3Call) permitDuration() time.Duration {
	if c.op.Transfers() {
		return maxPermitTime
	}
	return 0
}

// refuse answers with the error of S3 for a problem.
func (c *s3Call) refuse(r *refusal) { c.handler.Refuse(c, s3.Problem(r.problem, r.detail)) }

// WriteHeader adds the IDs of the request to the header.
func (c *s3Call) WriteHeader(status int) {
	c.identify()
	c.nameDecision(c.Header())
	c.call.WriteHeader(status)
}

// Write paces the response by the quotas.
func (c *s3Call) Write(p []byte) (int, error) {
	if c.status == 0 {
		c.WriteHeader(http.StatusOK)
	}
	if c.permit != 0 {
		return c.writeMetered(p)
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(c.StreamWriteTimeout)) // where there is none, the connection bounds it
	return c.call.Write(p)
}

func (c *s3Call) Request() *http.Request { return c.r }
func (c *s3Call) Body() io.Reader        { return s3Body{&progressReader{metered{c.call}, c.conn}} }

// An s3Body is the body of a call, with the errors of S3 if a quota holds it back.
type s3Body struct{ io.Reader }

func (b s3Body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	return n, s3Error(err)
}

// s3Error returns the error of S3 for a problem, and other errors as they are.
func s3Error(err error) error {
	if r, ok := errors.AsType[*refusal](err); ok {
		return s3.Problem(r.problem, r.detail)
	}
	return err
}

// Head has no idempotency key: a put of S3 stores the same object again.
func (c *s3Call) Head() command.Header {
	return c.commandHeader()
}

func (c *s3Call) Allows(s event.Scopes) bool { return c.key.Scopes&s == s }

// Now is the current time of the node: a completion of an upload may take long.
func (c *s3Call) Now() time.Time { return time.UnixMilli(int64(c.Node.Status().At)).UTC() }

func (c *s3Call) RequestID() string {
	c.identify()
	return string(c.id[:])
}

// Execute lets the node decide. A client that leaves does not cancel it.
func (c *s3Call) Execute(in command.Command) event.Reply {
	_ = c.conn.SetWriteDeadline(time.Now().Add(c.Deadline + c.StreamWriteTimeout)) // the upload took its time
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), c.Deadline)
	defer cancel()
	began := time.Now()
	put, stores := in.(*storage.Put)
	if stores {
		in = c.pay(put)
	}
	reply, taken := c.execute(ctx, in)
	if !taken {
		reply = event.Reply{Problem: event.Busy}
	}
	if stores {
		c.settle(&reply)
	}
	if !taken {
		return reply
	}
	c.Meter.Decided(time.Since(began))
	switch reply.Problem {
	case event.None:
		c.txID, c.isFirst = types.NewTxID(c.Node.Journal(), reply.Position), true
	case event.OutcomeUnknown, event.Unavailable:
		c.problem = reply.Problem
	default:
	}
	return reply
}

// Reserve reserves the price of an object.
func (c *s3Call) Reserve(size uint64) event.Problem {
	if err := c.reserve(size); err != nil {
		return refusalOf(err).problem
	}
	return event.None
}

// ReserveResponse reserves the price of the response.
func (c *s3Call) ReserveResponse(size uint64) error { return s3Error(c.reserveResponse(size)) }

// ReadPage reads a page of a list.
func (c *s3Call) ReadPage(rows int, f func() error) error { return s3Error(c.readPage(rows, f)) }

// SetError names the error for the logs.
func (c *s3Call) SetError(code string) {
	if c.code == "" {
		c.code = code
	}
}

// s3Credentials answers with the credentials of the API key of the request.
func s3Credentials(k *call) error {
	if err := k.requireScope(0); err != nil {
		return err
	}
	switch {
	case k.Secret == nil || k.Secret(&k.key) == "":
		return problemDetail(event.NotFound, "This node has no S3 interface.")
	case k.r.URL.RawQuery != "":
		return errNoQuery
	}
	o := jsonObject{'{'}
	o.text("access_key_id", accessKeyID(k.key.ID))
	o.text("secret_access_key", k.Secret(&k.key))
	o.text("region", k.Region)
	return k.send(o)
}

var _ s3.Session = (*s3Call)(nil)
