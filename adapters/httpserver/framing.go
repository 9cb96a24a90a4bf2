package httpserver

import (
	"errors"
	"fmt"
	"strings"
)

// Request smuggling needs two parsers that disagree about the end of a request. net/http accepts
// several ambiguous forms and keeps no trace of them, so a framing inspects the bytes as net/http
// reads them.
var (
	errTwice   = errors.New("it has both Content-Length and Transfer-Encoding, or one of them twice")
	errLength  = fmt.Errorf("its Content-Length is not a number of at most %d digits", maxLengthDigits)
	errCoding  = errors.New("its Transfer-Encoding is not chunked, or its version has none")
	errVersion = errors.New("its version is neither HTTP/1.1 nor HTTP/1.0")
	errLine    = errors.New("a line of its header is not a field")
	errEnd     = errors.New("a line does not end with CR and LF, or has an invalid byte")
	errChunk   = errors.New("its chunks are not valid")
	errFields  = errors.New("it has too many fields")
	errShort   = errors.New("it has no body, and a Content-Length")
	errLong    = errors.New("it has a body, and a Content-Length of 0")
	errHost    = errors.New("it has several hosts")
	errExpect  = errors.New("its Expect is not 100-continue")
)

// Limits of the inspection; all but maxFields concern one line.
const (
	maxFields       = 128 // of a header or a trailer
	maxLengthDigits = 18  // of Content-Length
	maxChunkDigits  = 15  // of the size of a chunk
	maxChunkLine    = 256 // bytes of the line before a chunk, including extensions
)

// A framing follows the requests of one HTTP/1 connection byte by byte, by the strictest reading
// of RFC 9112. At a violation it records the request and stops: this request is rejected, and its
// connection is closed. So all parsers agree on everything that was followed.
//
//	line ─► fields ─┬─► line
//	                ├─► body with a length ─► line
//	                └─► chunk ─► chunk … ─► last ─► fields of the trailer ─► line
type framing struct {
	state    framingState
	requests uint64 // begun
	failure  error  // of the last request

	left            uint64 // bytes of a body or chunk
	digits          int    // of the number that is read, or bytes of a chunk's line
	tail            uint64 // the last eight bytes of a request line
	fields          int
	name            [17]byte // of a field, in lower case, as far as it can matter
	nameLen         int      // of the whole name
	kind            fieldMeaning
	value           [maxLengthDigits]byte // of a field that matters, in lower case, without surrounding blanks
	valueLen        int                   // a larger value than the array's length: not valid
	hasBlank        bool                  // after the value
	isTrailer       bool                  // the fields belong to a trailer
	isHTTP10        bool                  // the version is HTTP/1.0
	contentLengths  int                   // Content-Length fields
	transferCodings int                   // Transfer-Encoding fields
}

// A framingState is the position of the next byte.
type framingState uint8

const (
	beforeLine framingState = iota // the first byte of a request
	inLine
	endsLine
	beforeField
	inName
	inValue
	endsValue
	endsFields
	inBody
	beforeSize
	inSize
	inExtension
	endsSize
	inChunk
	closesChunk
	endsChunk
	stopped // nothing is followed any further
)

// follow inspects bytes in order. It returns how many may be read: all, except those after one
// field too many, which would use much memory.
func (f *framing) follow(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch f.state {
		case stopped:
			if errors.Is(f.failure, errFields) {
				return i
			}
			return len(b)
		case inBody, inChunk:
			i += f.skip(len(b)-i) - 1
		case inLine:
			n := textLen(b[i:])
			f.keepLineTail(b[i : i+n])
			if i += n; i < len(b) {
				f.next(b[i])
			}
		case inName:
			if i += f.takeName(b[i:]); i < len(b) {
				f.next(b[i])
			}
		case inValue:
			if f.kind == otherField {
				i += textLen(b[i:])
			}
			if i < len(b) {
				f.next(b[i])
			}
		default:
			f.next(b[i])
		}
	}
	return len(b)
}

// textLen returns the number of bytes before a control character.
func textLen(b []byte) int {
	for i, c := range b {
		if c < ' ' || c == 0x7f {
			return i
		}
	}
	return len(b)
}

// keepLineTail stores the end of a request line.
func (f *framing) keepLineTail(part []byte) {
	for _, c := range part[max(0, len(part)-8):] {
		f.tail = f.tail<<8 | uint64(c)
	}
}

// skip passes over a part of a body or chunk.
func (f *framing) skip(most int) int {
	n := uint64(most)
	if n < f.left {
		f.left -= n
		return most
	}
	n, f.left = f.left, 0
	if f.state == inChunk {
		f.state = closesChunk
	} else {
		f.state = beforeLine
	}
	return int(n)
}

func (f *framing) fail(why error) { f.failure, f.state = why, stopped }

func (f *framing) next(c byte) {
	switch f.state {
	case beforeLine:
		f.requestByte(c)
	case inLine:
		if f.state = endsLine; c != '\r' {
			f.fail(errEnd)
		}
	case endsLine, endsValue, endsFields:
		f.lineEndByte(c)
	case beforeField, inName:
		f.fieldNameByte(c)
	case inValue:
		f.fieldValueByte(c)
	default:
		f.chunkByte(c)
	}
}

const http10, http11 = 0x485454502f312e30, 0x485454502f312e31 // HTTP/1.0, HTTP/1.1

// requestByte handles the first byte of a request.
func (f *framing) requestByte(c byte) {
	f.requests++
	f.tail, f.fields, f.contentLengths, f.transferCodings, f.isTrailer = uint64(c), 0, 0, 0, false
	if f.state = inLine; c <= ' ' || c == 0x7f {
		f.fail(errEnd)
	}
}

// lineEndByte handles the byte that must be the LF of a line.
func (f *framing) lineEndByte(c byte) {
	switch {
	case c != '\n':
		f.fail(errEnd)
	case f.state == endsValue:
		f.endField()
	case f.state == endsFields:
		f.endHeader()
	case f.tail == http10 || f.tail == http11:
		f.state, f.isHTTP10 = beforeField, f.tail == http10
	default:
		f.fail(errVersion)
	}
}

// fieldNameByte handles a byte of a field name.
func (f *framing) fieldNameByte(c byte) {
	switch {
	case f.state == beforeField && c == '\r':
		f.state = endsFields
	case f.state == beforeField && f.fields == maxFields:
		f.fail(errFields)
	case f.state == inName && c == ':':
		f.state, f.kind, f.valueLen, f.hasBlank = inValue, f.fieldKind(), 0, false
	case !isTokenChar[c]:
		f.fail(errLine) // a blank before the colon, a folded line, or no name
	default:
		f.state, f.nameLen = inName, 0 // takeName handles the bytes after the first
		f.fields++
		f.takeName([]byte{c})
	}
}

// takeName handles the bytes of a name and returns their number.
func (f *framing) takeName(b []byte) int {
	for i, c := range b {
		if !isTokenChar[c] {
			return i
		}
		if f.nameLen < len(f.name) {
			f.name[f.nameLen] = lower(c)
		}
		f.nameLen++
	}
	return len(b)
}

// A fieldMeaning is the effect of a field on the framing.
type fieldMeaning uint8

const (
	otherField fieldMeaning = iota
	contentLength
	transferEncoding
)

func (f *framing) fieldKind() fieldMeaning {
	switch {
	case f.nameLen == len("content-length") && string(f.name[:f.nameLen]) == "content-length":
		return contentLength
	case f.nameLen == len("transfer-encoding") && string(f.name[:]) == "transfer-encoding":
		return transferEncoding
	}
	return otherField
}

// fieldValueByte handles a byte of a field value.
func (f *framing) fieldValueByte(c byte) {
	switch {
	case c == '\r':
		f.state = endsValue
	case c < ' ' && c != '\t' || c == 0x7f:
		f.fail(errEnd)
	case c == ' ' || c == '\t':
		f.hasBlank = f.valueLen > 0
	case f.hasBlank || f.valueLen >= len(f.value): // a second word, or too long
		f.valueLen = len(f.value) + 1
	default:
		f.value[f.valueLen] = lower(c)
		f.valueLen++
	}
}

// endField handles the end of a field.
func (f *framing) endField() {
	f.state = beforeField
	value := f.value[:min(f.valueLen, len(f.value))]
	switch {
	case f.kind == otherField:
	case f.isTrailer, f.contentLengths+f.transferCodings > 0:
		f.fail(errTwice)
	case f.kind == transferEncoding && (f.isHTTP10 || string(value) != "chunked"):
		f.fail(errCoding)
	case f.kind == transferEncoding:
		f.transferCodings++
	case f.valueLen == 0 || f.valueLen > maxLengthDigits:
		f.fail(errLength)
	default:
		f.contentLengths, f.left = 1, 0
		for _, c := range value {
			if c < '0' || c > '9' {
				f.fail(errLength)
				return
			}
			f.left = 10*f.left + uint64(c-'0')
		}
	}
}

// endHeader handles the end of a header or trailer.
func (f *framing) endHeader() {
	switch {
	case f.isTrailer:
		f.state = beforeLine
	case f.transferCodings > 0:
		f.state, f.left, f.digits = beforeSize, 0, 0
	case f.contentLengths > 0 && f.left > 0:
		f.state = inBody
	default:
		f.state = beforeLine
	}
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// isTokenChar contains the characters of field names.
var isTokenChar = func() (is [256]bool) {
	for c := byte('!'); c < 0x7f; c++ {
		is[c] = !strings.ContainsRune(`"(),/:;<=>?@[\]{}`, rune(c))
	}
	return is
}()
