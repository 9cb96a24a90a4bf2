package httpserver

import (
	"errors"
	"strings"
)

// Where a client and a server, or two servers, may part about where a request ends, one
// request is smuggled behind another. net/http takes several forms that can be read in two
// ways, and keeps nothing to tell them by; so the bytes are looked at as it reads them.
var (
	errTwice   = errors.New("it has both Content-Length and Transfer-Encoding, or one of them twice")
	errLength  = errors.New("its Content-Length is no number")
	errCoding  = errors.New("its Transfer-Encoding is not chunked, or its version has none")
	errVersion = errors.New("its version is neither HTTP/1.1 nor HTTP/1.0")
	errLine    = errors.New("a line of its header is no field")
	errEnd     = errors.New("a line of it ends otherwise than by CR and LF, or has a byte that no line has")
	errChunk   = errors.New("its chunks are none")
	errFields  = errors.New("it has too many fields")
	errShort   = errors.New("it has no body, and a Content-Length")
	errLong    = errors.New("it has a body, and a Content-Length of 0")
	errHost    = errors.New("it has several hosts")
)

// Limits of what is followed. They are those of one line, but for the fields.
const (
	mostFields = 128 // of a header, or of a trailer
	mostDigits = 18  // of a length
	mostHex    = 15  // digits of a chunk's
	mostChunk  = 256 // bytes of a line that begins a chunk, with what it says beside
)

// A framing follows the requests of one connection of HTTP/1, byte by byte, as the strictest
// reader of RFC 9112 would. When it meets what is not so it says of which request, and follows
// no further: that request is refused, and its connection ends with it. So wherever it has
// followed, every reader of the same bytes agrees with it.
//
//	line ─► fields ─┬─► line
//	                ├─► body of a length ─► line
//	                └─► chunk ─► chunk … ─► last ─► fields of the trailer ─► line
type framing struct {
	at       step
	requests uint64 // begun
	wrong    error  // with the last of them

	left     uint64 // bytes of a body, or of a chunk
	digits   int    // of a number that is being read, or bytes of a line of a chunk
	tail     uint64 // the last eight bytes of a request's line
	fields   int
	name     [17]byte // of a field, in small letters, as far as one may matter
	letters  int      // of it
	kind     meaning
	value    [mostDigits]byte // of one that matters, in small letters, without blanks around it
	length   int              // of it; more than fits: it is none that is known
	blank    bool             // behind it
	trailing bool             // the fields are a trailer's
	old      bool             // HTTP/1.0
	lengths  int              // lines of Content-Length
	codings  int              // of Transfer-Encoding
}

// A step is what the next byte is of.
type step uint8

const (
	ofLine step = iota // the first of a request, or of none
	inLine
	endsLine
	ofField
	inName
	inValue
	endsValue
	endsFields
	inBody
	ofSize
	inSize
	inExtension
	endsSize
	inChunk
	closesChunk
	endsChunk
	nowhere // it is not followed any further
)

// follow looks at bytes in their order. It says how many of them may be read: all, but for
// those behind one field too many, which cost more than they weigh.
func (f *framing) follow(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch f.at {
		case nowhere:
			if errors.Is(f.wrong, errFields) {
				return i
			}
			return len(b)
		case inBody, inChunk:
			i += f.skip(len(b)-i) - 1
		case inLine:
			n := text(b[i:])
			f.keep(b[i : i+n])
			if i += n; i < len(b) {
				f.take(b[i])
			}
		case inName:
			if i += f.spell(b[i:]); i < len(b) {
				f.take(b[i])
			}
		case inValue:
			if f.kind == plain {
				i += text(b[i:])
			}
			if i < len(b) {
				f.take(b[i])
			}
		default:
			f.take(b[i])
		}
	}
	return len(b)
}

// text is how many bytes there are before one that ends a line, or that no line has.
func text(b []byte) int {
	for i, c := range b {
		if c < ' ' || c == 0x7f {
			return i
		}
	}
	return len(b)
}

// keep remembers the end of a request's line.
func (f *framing) keep(part []byte) {
	for _, c := range part[max(0, len(part)-8):] {
		f.tail = f.tail<<8 | uint64(c)
	}
}

// skip passes over a part of what has a length.
func (f *framing) skip(most int) int {
	n := uint64(most)
	if n < f.left {
		f.left -= n
		return most
	}
	n, f.left = f.left, 0
	if f.at == inChunk {
		f.at = closesChunk
	} else {
		f.at = ofLine
	}
	return int(n)
}

func (f *framing) bad(why error) { f.wrong, f.at = why, nowhere }

func (f *framing) take(c byte) {
	switch f.at {
	case ofLine:
		f.begin(c)
	case inLine:
		if f.at = endsLine; c != '\r' {
			f.bad(errEnd)
		}
	case endsLine, endsValue, endsFields:
		f.ends(c)
	case ofField, inName:
		f.named(c)
	case inValue:
		f.valued(c)
	default:
		f.chunked(c)
	}
}

const v10, v11 = 0x485454502f312e30, 0x485454502f312e31 // HTTP/1.0, HTTP/1.1

// begin is the first byte of a request.
func (f *framing) begin(c byte) {
	f.requests++
	f.tail, f.fields, f.lengths, f.codings, f.trailing = uint64(c), 0, 0, 0, false
	if f.at = inLine; c <= ' ' || c == 0x7f {
		f.bad(errEnd)
	}
}

// ends is what must be the LF of a line.
func (f *framing) ends(c byte) {
	switch {
	case c != '\n':
		f.bad(errEnd)
	case f.at == endsValue:
		f.field()
	case f.at == endsFields:
		f.header()
	case f.tail == v10 || f.tail == v11:
		f.at, f.old = ofField, f.tail == v10
	default:
		f.bad(errVersion)
	}
}

// named is a byte of a field's name, or of none.
func (f *framing) named(c byte) {
	switch {
	case f.at == ofField && c == '\r':
		f.at = endsFields
	case f.at == ofField && f.fields == mostFields:
		f.bad(errFields)
	case f.at == inName && c == ':':
		f.at, f.kind, f.length, f.blank = inValue, f.matters(), 0, false
	case !tokens[c]:
		f.bad(errLine) // a blank before the colon, a line that is folded, no name
	default:
		f.at, f.letters = inName, 0 // of ofField: what follows the first is spelled
		f.fields++
		f.spell([]byte{c})
	}
}

// spell takes the bytes of a name, and says how many there are.
func (f *framing) spell(b []byte) int {
	for i, c := range b {
		if !tokens[c] {
			return i
		}
		if f.letters < len(f.name) {
			f.name[f.letters] = small(c)
		}
		f.letters++
	}
	return len(b)
}

// A meaning is what a field says of the framing.
type meaning uint8

const (
	plain meaning = iota
	aLength
	aCoding
)

func (f *framing) matters() meaning {
	switch {
	case f.letters == len("content-length") && string(f.name[:f.letters]) == "content-length":
		return aLength
	case f.letters == len("transfer-encoding") && string(f.name[:]) == "transfer-encoding":
		return aCoding
	}
	return plain
}

// valued is a byte of a field's value.
func (f *framing) valued(c byte) {
	switch {
	case c == '\r':
		f.at = endsValue
	case c < ' ' && c != '\t' || c == 0x7f:
		f.bad(errEnd)
	case c == ' ' || c == '\t':
		f.blank = f.length > 0
	case f.blank || f.length >= len(f.value): // a second word, or too long
		f.length = len(f.value) + 1
	default:
		f.value[f.length] = small(c)
		f.length++
	}
}

// field is the end of a field.
func (f *framing) field() {
	f.at = ofField
	value := f.value[:min(f.length, len(f.value))]
	switch {
	case f.kind == plain:
	case f.trailing, f.lengths+f.codings > 0:
		f.bad(errTwice)
	case f.kind == aCoding && (f.old || string(value) != "chunked"):
		f.bad(errCoding)
	case f.kind == aCoding:
		f.codings++
	case f.length == 0 || f.length > mostDigits:
		f.bad(errLength)
	default:
		f.lengths, f.left = 1, 0
		for _, c := range value {
			if c < '0' || c > '9' {
				f.bad(errLength)
				return
			}
			f.left = 10*f.left + uint64(c-'0')
		}
	}
}

// header is the end of a header, or of a trailer.
func (f *framing) header() {
	switch {
	case f.trailing:
		f.at = ofLine
	case f.codings > 0:
		f.at, f.left, f.digits = ofSize, 0, 0
	case f.lengths > 0 && f.left > 0:
		f.at = inBody
	default:
		f.at = ofLine
	}
}

func small(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// tokens are the bytes that names are made of.
var tokens = func() (is [256]bool) {
	for c := byte('!'); c < 0x7f; c++ {
		is[c] = !strings.ContainsRune(`"(),/:;<=>?@[\]{}`, rune(c))
	}
	return is
}()
