package httpapi

import (
	"net/http"
	"strconv"

	"macronode/core/event"
)

// partialUpload is the media type of a body that continues an upload.
const partialUpload = "application/partial-upload"

var (
	errCompleteField = problemDetail(event.BadRequest, "Upload-Complete must be ?0 or ?1.")
	errOffsetField   = problemDetail(event.BadRequest, "Upload-Offset must be 1..15 digits.")
	errLengthField   = problemDetail(event.BadRequest, "Upload-Length must be 1..15 digits.")
)

// uploadFields are the header fields of a resumable upload. A pointer is nil if there is no such field.
type uploadFields struct {
	complete *bool   // the body ends the content
	offset   *uint64 // of the body in the content
	length   *uint64 // of the content
}

// readUploadFields reads the header fields of a resumable upload: a boolean and two integers of RFC 9651 without
// parameters.
func readUploadFields(h http.Header) (f uploadFields, err error) {
	switch v := h["Upload-Complete"]; {
	case len(v) == 0:
	case len(v) > 1 || v[0] != "?0" && v[0] != "?1":
		return f, errCompleteField
	default:
		complete := v[0] == "?1"
		f.complete = &complete
	}
	if f.offset, err = uploadInteger(h["Upload-Offset"], errOffsetField); err != nil {
		return f, err
	}
	f.length, err = uploadInteger(h["Upload-Length"], errLengthField)
	return f, err
}

// uploadInteger reads an integer that is not negative.
func uploadInteger(values []string, invalid error) (*uint64, error) {
	if len(values) == 0 {
		return nil, nil
	}
	if len(values) > 1 || len(values[0]) > 15 {
		return nil, invalid
	}
	n, err := strconv.ParseUint(values[0], 10, 64)
	if err != nil {
		return nil, invalid
	}
	return &n, nil
}

// fits reports whether a body that begins at an offset agrees with the announced length of the content. size is
// negative if it is not known.
func (f *uploadFields) fits(offset uint64, size int64) bool {
	if f.length == nil || size < 0 {
		return true
	}
	if *f.complete {
		return offset+uint64(size) == *f.length
	}
	return offset+uint64(size) <= *f.length
}
