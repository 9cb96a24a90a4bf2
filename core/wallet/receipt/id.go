package receipt

import (
	"encoding/binary"
	"encoding/hex"
	"errors"

	"macronode/core/types"
)

// Why a text names nothing.
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
	// TxText is a words.TxID as callers know it: tx_ and its hexadecimal digits.
	TxText [len(txPrefix) + idSize]byte
	// HoldText is that of the record that opened a hold, as the hold's name.
	HoldText [len(holdPrefix) + idSize]byte
	// DecisionText is a decision id: d_ and 32 hexadecimal digits. Where the
	// decision is a record these are its txid's.
	DecisionText [2 + idSize]byte
)

// TxID writes the name of a record, HoldID that of a hold.
func TxID(id types.TxID) (t TxText) {
	hex.Encode(t[copy(t[:], txPrefix):], id[:])
	return t
}

func HoldID(id types.TxID) (t HoldText) {
	hex.Encode(t[copy(t[:], holdPrefix):], id[:])
	return t
}

// DecisionID names a decision: of a record by its journal and place, of none by a
// number that is random each boot and a count.
func DecisionID(whose, which uint64) (d DecisionText) {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:], whose)
	binary.BigEndian.PutUint64(raw[8:], which)
	hex.Encode(d[copy(d[:], "d_"):], raw[:])
	return d
}

// RecordID is the decision id of the record at a place.
func RecordID(journal types.JournalID, p types.Position) DecisionText {
	id := types.NewTxID(journal, p)
	return DecisionID(binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:]))
}

// ParseTxID reads what TxID wrote, ParseHoldID what HoldID did: there is one way to
// write each, and none of them names LSN 0.
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
