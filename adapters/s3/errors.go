package s3

import (
	"encoding/xml"
	"errors"
	"net/http"
	"strconv"

	"macronode/adapters/checksum"
	"macronode/adapters/sigv4"
	"macronode/core/event"
)

// An Error is an answer with an error code of S3.
type Error struct {
	Code       string
	Status     int // of HTTP
	Message    string
	RetryAfter int     // seconds; 0: not said
	Fields     []Field // further elements of the XML document
}

// A Field is a further element of an error.
type Field struct {
	XMLName xml.Name
	Value   string `xml:",chardata"`
}

func (e *Error) Error() string { return "s3: " + e.Code + ": " + e.Message }

// Is reports whether target has the code and the status of e: the elements and the message may differ.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Status == e.Status
}

// with returns e with a further element.
func (e *Error) with(name, value string) *Error {
	c := *e
	c.Fields = append(c.Fields[:len(c.Fields):len(c.Fields)], Field{xml.Name{Local: name}, value})
	return &c
}

// saying returns e with another message.
func (e *Error) saying(message string) *Error {
	c := *e
	c.Message = message
	return &c
}

func failure(code string, status int, message string) *Error {
	return &Error{Code: code, Status: status, Message: message}
}

// The errors of the protocol.
var (
	errAccessDenied       = failure("AccessDenied", http.StatusForbidden, "Access Denied")
	errUnknownKey         = failure("InvalidAccessKeyId", http.StatusForbidden, "The access key does not exist.")
	errNoBucket           = failure("NoSuchBucket", http.StatusNotFound, "The bucket does not exist.")
	errNoKey              = failure("NoSuchKey", http.StatusNotFound, "The object does not exist.")
	errNoUpload           = failure("NoSuchUpload", http.StatusNotFound, "The upload does not exist. It may have been aborted or completed.")
	errBucketName         = failure("InvalidBucketName", http.StatusBadRequest, "A bucket has 3..63 of a-z 0-9 . - and begins and ends with a letter or a digit.")
	errBucketExists       = failure("BucketAlreadyOwnedByYou", http.StatusConflict, "The bucket exists already. It belongs to you.")
	errBucketNotEmpty     = failure("BucketNotEmpty", http.StatusConflict, "The bucket is not empty, or an upload to it is in progress.")
	errTooManyBuckets     = failure("TooManyBuckets", http.StatusBadRequest, "The limit of buckets is reached.")
	errLocation           = failure("IllegalLocationConstraintException", http.StatusBadRequest, "The location constraint is not the region of this node.")
	errKeyTooLong         = failure("KeyTooLongError", http.StatusBadRequest, "The key has more than 1024 bytes.")
	errURI                = failure("InvalidURI", http.StatusBadRequest, "The URI is malformed, or the key is not UTF-8.")
	errMethod             = failure("MethodNotAllowed", http.StatusMethodNotAllowed, "The resource does not support this method.")
	errNotImplemented     = failure("NotImplemented", http.StatusNotImplemented, "The request asks for something that is not implemented.")
	errForm               = errNotImplemented.saying("Uploads with a form are not implemented. Use a presigned URL with PUT.")
	errMalformedXML       = failure("MalformedXML", http.StatusBadRequest, "The XML document is malformed, or it is not of the expected form.")
	errXMLTooLong         = failure("MaxMessageLengthExceeded", http.StatusBadRequest, "The XML document is too long.")
	errTooLarge           = failure("EntityTooLarge", http.StatusBadRequest, "The object is larger than 5 GiB.")
	errTooSmall           = failure("EntityTooSmall", http.StatusBadRequest, "Each part but the last must have at least 5 MiB.")
	errNoLength           = failure("MissingContentLength", http.StatusLengthRequired, "The header Content-Length is required.")
	errMetadata           = failure("MetadataTooLarge", http.StatusBadRequest, "The metadata is larger than 2 KiB, or 4 KiB with all headers that are stored.")
	errDigest             = failure("BadDigest", http.StatusBadRequest, "The Content-MD5 or the checksum does not match the content.")
	errNoDigest           = failure("InvalidRequest", http.StatusBadRequest, "The request requires Content-MD5 or a header x-amz-checksum-*.")
	errRange              = failure("InvalidRange", http.StatusRequestedRangeNotSatisfiable, "The range begins behind the end of the object.")
	errPrecondition       = failure("PreconditionFailed", http.StatusPreconditionFailed, "A condition of the request does not hold.")
	errNotModified        = failure("NotModified", http.StatusNotModified, "")
	errPart               = failure("InvalidPart", http.StatusBadRequest, "A part was not uploaded, or its ETag or checksum is another.")
	errPartOrder          = failure("InvalidPartOrder", http.StatusBadRequest, "The parts must be listed in the order of their numbers, each once.")
	errPartNumber         = failure("InvalidArgument", http.StatusBadRequest, "The number of a part is 1..10000.")
	errNoPart             = failure("InvalidPartNumber", http.StatusRequestedRangeNotSatisfiable, "The object does not have this part.")
	errArgument           = failure("InvalidArgument", http.StatusBadRequest, "An argument is invalid.")
	errRequest            = failure("InvalidRequest", http.StatusBadRequest, "The request is invalid.")
	errStorageClass       = failure("InvalidStorageClass", http.StatusBadRequest, "The storage class is STANDARD.")
	errCopySelf           = failure("InvalidRequest", http.StatusBadRequest, "A copy of an object to itself must replace its metadata.")
	errPayment            = failure("PaymentRequired", http.StatusPaymentRequired, "The available balance of the account that pays is less than the price of the object.")
	errPaymentExpired     = failure("PaymentExpired", http.StatusPaymentRequired, event.PaymentExpired.Detail())
	errQuota              = failure("QuotaExceeded", http.StatusForbidden, "The storage quota of the tenant or of the bucket would be exceeded.")
	errInternal           = failure("InternalError", http.StatusInternalServerError, "An internal error occurred. Retry the request.")
	errUnreadable         = failure("InternalError", http.StatusInternalServerError, "The object is lost or damaged on the disk.")
	errUnavailable        = &Error{Code: "ServiceUnavailable", Status: http.StatusServiceUnavailable, Message: "The node cannot process this request now.", RetryAfter: 1}
	errSlowDown           = &Error{Code: "SlowDown", Status: http.StatusServiceUnavailable, Message: "Reduce the rate of requests.", RetryAfter: 1}
	errIncompleteBody     = failure("IncompleteBody", http.StatusBadRequest, "The body ended before the announced length, or did not arrive in time.")
	errChanging           = failure("OperationAborted", http.StatusConflict, "Other requests changed the upload meanwhile. Retry the request.")
	errGone               = failure("ClientDisconnected", http.StatusBadRequest, "The client has left.")
	errContinuation       = failure("InvalidArgument", http.StatusBadRequest, "The continuation token is invalid.")
	errDisk               = errUnavailable.saying("The object could not be written to the disk.")
	errShortage           = errUnavailable.saying("The node has too many open files or too little memory. Try again later.")
	errAbsent             = errUnavailable.saying("The directory of the objects is not there.")
	errSpace              = errUnavailable.saying("The free space of the disk is reserved. The object was not stored.")
	errTooManyUploads     = errSlowDown.saying("As many objects are uploaded as storage.uploads permits, or as the tenant leaves to others. Retry the request.")
	errMalformedChecksums = failure("InvalidRequest", http.StatusBadRequest, "The headers of the checksum are invalid.")
)

// Problem returns the error of S3 for a problem of the node. An empty detail means the usual one.
func Problem(p event.Problem, detail string) error {
	e := problemError(p)
	if detail != "" {
		e = e.saying(detail)
	}
	return e
}

func problemError(p event.Problem) *Error {
	switch p.General() {
	case event.Busy, event.RateLimited, event.InProgress, event.IdempotencyCapacity:
		return errSlowDown
	case event.Unavailable, event.Timeout, event.StaleIndexRead:
		return errUnavailable
	case event.QuotaExceeded, event.CapacityExceeded:
		return errQuota.saying(p.Detail())
	case event.PaymentRequired, event.PrepaidExceeded:
		return errPayment
	case event.PaymentExpired:
		return errPaymentExpired
	case event.Unauthorized, event.Forbidden:
		return errAccessDenied
	case event.PayloadTooLarge:
		return errTooLarge
	case event.MethodNotAllowed:
		return errMethod
	case event.NotFound:
		return errNoKey
	case event.PreconditionFailed:
		return errPrecondition
	case event.RangeNotSatisfiable:
		return errRange
	case event.ObjectUnreadable:
		return errUnreadable
	case event.OutcomeUnknown: // clients repeat a request after 500
		return errInternal.saying("The outcome is not known yet. Retry the request.")
	case event.DigestMismatch:
		return errDigest
	case event.BadRequest, event.UnsupportedMedia:
		return errRequest
	default: // problems of the wallet and faults
		switch p.Status() {
		case http.StatusForbidden:
			return errAccessDenied.saying(p.Detail())
		case http.StatusTooManyRequests:
			return errSlowDown.saying(p.Detail())
		}
		return errInternal
	}
}

// asError returns err as an answer. Errors of other packages that are not known are internal.
func asError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if s, ok := errors.AsType[*sigv4.Error](err); ok {
		e := failure(s.Code, s.Status, s.Message)
		if s.Region != "" {
			e = e.with("Region", s.Region)
		}
		return e
	}
	if s, ok := errors.AsType[*checksum.Error](err); ok {
		return failure(s.Code, s.Status, s.Message)
	}
	if errors.Is(err, sigv4.ErrMissing) {
		return errAccessDenied.saying("The request must be signed with AWS Signature Version 4.")
	}
	if isTemporary(err) {
		return errUnavailable
	}
	return errInternal
}

// isTemporary reports whether an error has a method Unavailable that returns true.
func isTemporary(err error) bool {
	var u interface{ Unavailable() bool }
	return errors.As(err, &u) && u.Unavailable()
}

// An errorDocument is the body of an error.
type errorDocument struct {
	XMLName   xml.Name `xml:"Error"`
	Code      string
	Message   string
	Resource  string
	RequestID string `xml:"RequestId"`
	Fields    []Field
}

// document returns the body of e for a request.
func (e *Error) document(resource, requestID string) errorDocument {
	return errorDocument{Code: e.Code, Message: e.Message, Resource: resource, RequestID: requestID, Fields: e.Fields}
}

// Refuse answers with the error of an authentication or of an admission.
func (h *Handler) Refuse(s Session, err error) {
	s.Header()["X-Amz-Request-Id"] = []string{s.RequestID()}
	writeError(s, asError(err))
}

// writeError answers with an error. HEAD has no body. That an object was not modified is an answer like any other.
func writeError(s Session, e *Error) {
	if e.Status != http.StatusNotModified {
		s.SetError(e.Code)
	}
	h := s.Header()
	if e.RetryAfter > 0 {
		h["Retry-After"] = []string{strconv.Itoa(e.RetryAfter)}
	}
	r := s.Request()
	if r.Method == http.MethodHead || e.Status == http.StatusNotModified {
		s.WriteHeader(e.Status)
		return
	}
	_ = writeXML(s, e.Status, e.document(r.URL.Path, s.RequestID())) // the client has left
}
