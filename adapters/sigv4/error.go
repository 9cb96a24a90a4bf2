package sigv4

import (
	"errors"
	"fmt"
	"net/http"
)

// ErrMissing reports a request without an AWS signature. The caller decides whether it is anonymous.
var ErrMissing = errors.New("sigv4: the request has no AWS signature")

// errUnverified reports a Body that was requested before Verify succeeded.
var errUnverified = errors.New("sigv4: the body is read before the signature was verified")

// Error is a rejection with the error code of S3.
type Error struct {
	Code    string // error code of S3, such as SignatureDoesNotMatch
	Status  int    // HTTP status
	Message string // text for people; contains no secret
	Region  string // the expected region if the region of the scope is wrong, otherwise empty
}

// Error returns the code and the message.
func (e *Error) Error() string { return "sigv4: " + e.Code + ": " + e.Message }

const (
	codeAccessDenied          = "AccessDenied"
	codeHeaderMalformed       = "AuthorizationHeaderMalformed"
	codeQueryParameters       = "AuthorizationQueryParametersError"
	codeIncompleteBody        = "IncompleteBody"
	codeInvalidArgument       = "InvalidArgument"
	codeInvalidRequest        = "InvalidRequest"
	codeInvalidURI            = "InvalidURI"
	codeMalformedTrailer      = "MalformedTrailerError"
	codeMissingContentLength  = "MissingContentLength"
	codeMissingSecurityHeader = "MissingSecurityHeader"
	codeRequestTimeTooSkewed  = "RequestTimeTooSkewed"
	codeSHA256Mismatch        = "XAmzContentSHA256Mismatch"
	codeSignatureDoesNotMatch = "SignatureDoesNotMatch"
)

func refuse(code string, status int, format string, args ...any) *Error {
	return &Error{Code: code, Status: status, Message: fmt.Sprintf(format, args...)}
}

// form is where a request carries its authorization. It decides the code of a syntax error.
type form struct{ code, prefix string }

var (
	headerForm = form{codeHeaderMalformed, "The authorization header is malformed; "}
	queryForm  = form{codeQueryParameters, "The query parameters of the authorization are malformed; "}
)

func (f form) malformed(format string, args ...any) *Error {
	return refuse(f.code, http.StatusBadRequest, f.prefix+format, args...)
}
