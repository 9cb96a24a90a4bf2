package receipt

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strconv"

	"macronode/core/event"
	"macronode/core/words"
)

// ErrTxID says that a text names no transaction.
var ErrTxID = errors.New("txid: wants tx_ and 32 hexadecimal digits")

const idSize = 32

type (
	// TxText is a txid: tx_, and in hexadecimal the journal's id (64 bits), the LSN
	// (48) and the index (16): unique across nodes and restores.
	TxText [3 + idSize]byte
	// DecisionText is a decision id: d_ and 32 hexadecimal digits. Where the
	// decision is a record these are its txid's.
	DecisionText [2 + idSize]byte
)

func number(l words.LSN, index uint16) uint64 { return uint64(l)<<16 | uint64(index) }

// TxID names the record at a place.
func TxID(journal words.JournalID, p words.Place) (t TxText) {
	copy(t[:], "tx_")
	write32(t[3:], uint64(journal), number(p.LSN, p.Index))
	return t
}

// DecisionID names a decision: of a record by its journal and place, of none by a
// number that is random each boot and a count.
func DecisionID(whose, which uint64) (d DecisionText) {
	copy(d[:], "d_")
	write32(d[2:], whose, which)
	return d
}

// RecordID is the decision id of the record at a place.
func RecordID(journal words.JournalID, p words.Place) DecisionText {
	return DecisionID(uint64(journal), number(p.LSN, p.Index))
}

func write32(to []byte, hi, lo uint64) {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:], hi)
	binary.BigEndian.PutUint64(raw[8:], lo)
	hex.Encode(to, raw[:])
}

// ParseTxID reads what TxID wrote.
func ParseTxID(s string) (journal words.JournalID, p words.Place, err error) {
	var raw [16]byte
	if len(s) != len(TxText{}) || s[:3] != "tx_" {
		return 0, p, ErrTxID
	}
	if _, err := hex.Decode(raw[:], []byte(s[3:])); err != nil {
		return 0, p, ErrTxID
	}
	journal = words.JournalID(binary.BigEndian.Uint64(raw[:]))
	lo := binary.BigEndian.Uint64(raw[8:])
	p = words.Place{LSN: words.LSN(lo >> 16), Index: uint16(lo)}
	if again := TxID(journal, p); string(again[:]) != s || p.LSN == 0 {
		return 0, p, ErrTxID
	}
	return journal, p, nil
}

// Facts are what a problem says beyond its kind.
type Facts struct {
	Decision []byte      // the decision id
	Nonce    words.Nonce // the one that the account must use next; 0: not said
	Detail   string      // in the place of the problem's own sentence; plain ASCII without quotes
}

// Problem appends p as application/problem+json (RFC 9457).
func Problem(to []byte, p event.Problem, f Facts) []byte {
	detail := p.Detail()
	if f.Detail != "" {
		detail = f.Detail
	}
	to = append(append(to, `{"type":"urn:macronode:problem:`...), p.Code()...)
	to = text(to, `","title":`, p.Code())
	to = strconv.AppendInt(append(to, `,"status":`...), int64(p.Status()), 10)
	to = text(append(to, ','), `"detail":`, detail)
	to = text(append(to, ','), `"code":`, p.Code())
	to = strconv.AppendBool(append(to, `,"retryable":`...), p.Retryable())
	to = text(append(to, ','), `"decision_id":`, f.Decision)
	if f.Nonce > 0 {
		to = strconv.AppendUint(append(to, `,"expected_nonce":`...), uint64(f.Nonce), 10)
	}
	return append(to, '}')
}
