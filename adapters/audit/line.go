package audit

import (
	"bytes"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"macronode/core/types"
)

// A Line is one use of a key. What is empty is left out.
type Line struct {
	Decision string       // its id
	Key      types.KeyID  // the public part; 0: none was shown
	Tenant   types.Tenant // the key's; 0: it is nobody's
	Route    string       // the endpoint or the operation
	Peer     string       // who asked, as far as the connection tells
	Status   int          // of HTTP
	Code     string       // of the problem
	TxID     string       // of the record

	at time.Time
}

// What is kept of texts, in bytes. A line is no longer than maxLine, whatever is in it.
const (
	maxDecision = 64
	maxRoute    = 128
	maxPeer     = 64
	maxCode     = 32
	maxTxID     = 64

	maxLine = 6*(maxDecision+maxRoute+maxPeer+maxCode+maxTxID) + 256
)

// chunk is how much is written at a time, and a line more.
const chunk = 64 << 10

// cut bounds the texts of l, and says in them that it did.
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

// append writes l as JSON, without its line's end.
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

// appendText writes a text of JSON in visible ASCII alone: whatever is in it, whoever
// shows the file on a terminal is safe from it.
func appendText(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	b = append(b, name...)
	for _, r := range text { // of what is no UTF-8, each byte is U+FFFD
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

// batch is what was taken of the queue.
type batch struct {
	lines []Line
	done  int    // so many of them are in the file
	over  uint64 // were lost after the last of them, and the file does not say so yet
	text  []byte // of the try at hand
}

func (b *batch) left() int   { return len(b.lines) - b.done }
func (b *batch) empty() bool { return b.left() == 0 && b.over == 0 }

// write is the text of what is left, at least a line and at most so many bytes.
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

// wrote notes that n bytes of the text are in the file, and says how many lines that
// is: one is there when all of it is but its end, which will be written first.
func (b *batch) wrote(n int) (lines uint64) {
	got := bytes.Count(b.text[:min(n+1, len(b.text))], []byte{'\n'})
	if got > b.left() {
		b.over, got = 0, b.left()
	}
	b.done += got
	return uint64(got)
}
