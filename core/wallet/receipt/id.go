package receipt

import (
	"encoding/binary"
	"encoding/hex"
	"errors"

	"macronode/core/types"
)

// Why a text is not an ID.
var (
	ErrTxID   = errors.New("txid: must be tx_ and 32 hexadecimal digits")
	ErrHoldID = errors.New("hold: must be hold_ and 32 hexadecimal digits")
)

const (
	idSize     = 32
	txPrefix   = "tx_"
	holdPrefix = "hold_"
)

type (
	// TxText is the text of a types.TxID: tx_ and its hexadecimal digits.
	TxText [len(txPrefix) + idSize]byte
	// HoldText is the text of a hold's ID, which is the TxID of the record that opened it.
	HoldText [len(holdPrefix) + idSize]byte
	// DecisionText is a decision ID: d_ and 32 hexadecimal digits. If the decision is a record,
	// they are those of its TxID.
	DecisionText [2 + idSize]byte
)

// TxID returns the text of a record's ID, HoldID that of a hold.
func TxID(id types.TxID) (t TxText) {
	hex.Encode(t[copy(t[:], txPrefix):], id[:])
	return t
}

func HoldID(id types.TxID) (t HoldText) {
	hex.Encode(t[copy(t[:], holdPrefix):], id[:])
	return t
}

// DecisionID returns a decision ID: of a record from its journal and position; otherwise from a
// number that is random per start and a counter.
func DecisionID(whose, which uint64) (d DecisionText) {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:], whose)
	binary.BigEndian.PutUint64(raw[8:], which)
	hex.Encode(d[copy(d[:], "d_"):], raw[:])
	return d
}

// RecordID returns the decision ID of the record at a position.
func RecordID(journal types.JournalID, p types.Position) DecisionText {
	id := types.NewTxID(journal, p)
	return DecisionID(binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:]))
}

// ParseTxID parses the result of TxID, ParseHoldID that of HoldID. Each ID has one text. LSN 0 is
// rejected.
func ParseTxID(s string) (types.TxID, error)   { return parse(s, txPrefix, ErrTxID) }
func ParseHoldID(s string) (types.TxID, error) { return parse(s, holdPrefix, ErrHoldID) }

func parse(s, prefix string, not error) (id types.TxID, err error) {
	if len(s) != len(prefix)+idSize || s[:len(prefix)] != prefix {
		return types.TxID{}, not
	}
	for _, c := range []byte(s[len(prefix):]) {
		if 'A' <= c && c <= 'F' {
			return types.TxID{}, not
		}
	}
	if _, err := hex.Decode(id[:], []byte(s[len(prefix):])); err != nil || id.Position().LSN == 0 {
		return types.TxID{}, not
	}
	return id, nil
}
