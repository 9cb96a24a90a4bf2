package audit

import (
	"bytes"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"macronode/core/types"
)

// A Line records one use of a key. Empty fields are omitted.
type Line struct {
	Decision string       // the decision id
	Key      types.KeyID  // the public part; 0: the request had no key
	Tenant   types.Tenant // the tenant of the key; 0: none
	Route    string       // the endpoint or the operation
	Peer     string       // the address of the client, as far as the connection shows it
	Status   int          // HTTP status
	Code     string       // problem code
	TxID     string       // transaction id of the record

	at      time.Time
	omitted uint64 // rejected requests of the tenant before this one that have no line
}

// Maximum lengths of the fields, in bytes. A line has at most maxLine bytes for any content.
const (
	maxDecision = 64
	maxRoute    = 128
	maxPeer     = 64
	maxCode     = 32
	maxTxID     = 64

	maxLine = 6*(maxDecision+maxRoute+maxPeer+maxCode+maxTxID) + 256
)

// chunk is the maximum number of bytes of one write. A longer single line is still written whole.
const chunk = 64 << 10

// cut truncates long fields of l and marks them with an ellipsis.
func (l *Line) cut() {
	cut(&l.Decision, maxDecision)
	cut(&l.Route, maxRoute)
	cut(&l.Peer, maxPeer)
	cut(&l.Code, maxCode)
	cut(&l.TxID, maxTxID)
}

func cut(text *string, most int) {
	const sign = "…"
	if len(*text) > most {
		*text = (*text)[:most-len(sign)] + sign
	}
}

// append appends l as JSON, without a newline.
func (l *Line) append(b []byte) []byte {
	b = appendTime(b, l.at)
	b = appendText(b, `,"decision_id":"`, l.Decision)
	if l.Key != 0 {
		b = append(b, `,"key":"mk_`...)
		for shift := 60; shift >= 0; shift -= 4 {
			b = append(b, hexadecimal[l.Key>>shift&15])
		}
		b = append(b, '"')
	}
	b = appendNumber(b, `,"tenant":`, uint64(l.Tenant))
	b = appendText(b, `,"route":"`, l.Route)
	b = appendText(b, `,"peer":"`, l.Peer)
	b = appendNumber(b, `,"status":`, uint64(max(l.Status, 0)))
	b = appendText(b, `,"code":"`, l.Code)
	b = appendText(b, `,"txid":"`, l.TxID)
	b = appendNumber(b, `,"omitted":`, l.omitted)
	return append(b, '}')
}

func appendTime(b []byte, at time.Time) []byte {
	b = append(b, `{"ts":"`...)
	return append(at.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z"), '"')
}

func appendNumber(b []byte, name string, n uint64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendUint(append(b, name...), n, 10)
}

const hexadecimal = "0123456789abcdef"

// appendText appends a JSON string in printable ASCII. All other characters are escaped, so that
// the file can be displayed safely on a terminal.
func appendText(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	b = append(b, name...)
	for _, r := range text { // each byte of invalid UTF-8 becomes U+FFFD
		switch {
		case r == '"', r == '\\':
			b = append(b, '\\', byte(r))
		case r >= ' ' && r <= '~':
			b = append(b, byte(r))
		default:
			for _, unit := range utf16.AppendRune(make([]uint16, 0, utf8.UTFMax), r) {
				b = append(b, '\\', 'u', hexadecimal[unit>>12], hexadecimal[unit>>8&15], hexadecimal[unit>>4&15], hexadecimal[unit&15])
			}
		}
	}
	return append(b, '"')
}

// batch has the lines taken from the queue.
type batch struct {
	lines []Line
	done  int    // number of lines that are in the file
	over  uint64 // lines lost after the last one, not yet recorded in the file
	text  []byte // content of the current write
}

func (b *batch) left() int   { return len(b.lines) - b.done }
func (b *batch) empty() bool { return b.left() == 0 && b.over == 0 }

// write returns the text of the next lines: at least one, and further ones up to most bytes.
func (b *batch) write(most int64) []byte {
	b.text = b.text[:0]
	for i := b.done; i < len(b.lines); i++ {
		was := len(b.text)
		if b.text = append(b.lines[i].append(b.text), '\n'); int64(len(b.text)) > most && was > 0 {
			b.text = b.text[:was]
			return b.text
		}
	}
	if b.over > 0 && (len(b.text) == 0 || int64(len(b.text))+maxLine <= most) {
		b.text = append(appendNumber(appendTime(b.text, time.Now()), `,"lost":`, b.over), '}', '\n')
	}
	return b.text
}

// wrote records that n bytes of the text are in the file, and returns the number of lines. A line
// without its newline counts, because the newline is written first after the error.
func (b *batch) wrote(n int) (lines uint64) {
	got := bytes.Count(b.text[:min(n+1, len(b.text))], []byte{'\n'})
	if got > b.left() {
		b.over, got = 0, b.left()
	}
	b.done += got
	return uint64(got)
}
