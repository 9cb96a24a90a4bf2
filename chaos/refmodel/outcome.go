package refmodel

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"macronode/core/types"
)

// Outcome has the relevant fields of a receipt or a stored rejection.
type Outcome struct {
	At types.Position

	Op, From, To, Asset, Ref string
	Amount                   string
	Nonce                    uint64
	Seq                      types.Seq
	Hold                     types.TxID
	Expires                  string

	Code     string // of a rejection
	Expected uint64
	Used     types.TxID // the record that has the ref
	Index    uint16     // of a batch: the item with the problem
}

func (t Outcome) String() string {
	if t.Code != "" {
		return fmt.Sprintf("%v %s %d used %x of item %d", t.At, t.Code, t.Expected, t.Used, t.Index)
	}
	return fmt.Sprintf("%v #%d %s %s>%s %s %s nonce %d ref %s %x %s", t.At, t.Seq, t.Op, t.From, t.To, t.Amount, t.Asset, t.Nonce, t.Ref, t.Hold, t.Expires)
}

// wire is the JSON of a receipt or a problem.
type wire struct {
	Op, From, To, Asset, Ref string
	Amount                   string `json:"amount_minor"`
	Nonce                    uint64
	Seq                      types.Seq
	Hold                     string `json:"hold_id"`
	Expires                  string `json:"expires_at"`
	TxID                     string

	Code     string
	Decision string `json:"decision_id"`
	Expected uint64 `json:"expected_nonce"`
	Index    uint16
}

// outcome parses the IDs of w.
func (w *wire) outcome() (t Outcome, err error) {
	if w.Code == "" {
		id, err := parse(w.TxID, "tx_")
		if err != nil {
			return t, err
		}
		t = Outcome{At: id.Position(), Op: w.Op, From: w.From, To: w.To, Asset: w.Asset, Ref: w.Ref, Amount: w.Amount, Nonce: w.Nonce, Seq: w.Seq, Expires: w.Expires}
		if w.Hold != "" {
			t.Hold, err = parse(w.Hold, "hold_")
		}
		return t, err
	}
	id, err := parse(w.Decision, "d_")
	if err != nil {
		return t, err
	}
	t = Outcome{At: id.Position(), Code: w.Code, Expected: w.Expected, Index: w.Index}
	if w.TxID != "" {
		t.Used, err = parse(w.TxID, "tx_")
	}
	return t, err
}

// ErrID reports an invalid ID.
var ErrID = errors.New("refmodel: invalid ID")

func parse(text, prefix string) (id types.TxID, err error) {
	digits, ok := strings.CutPrefix(text, prefix)
	if n, err := hex.Decode(id[:], []byte(digits[:min(len(digits), 2*len(id))])); !ok || err != nil || n != len(id) || len(digits) != 2*n {
		return id, fmt.Errorf("%w: %q", ErrID, text)
	}
	return id, nil
}

// ParseHold parses the ID of a hold.
func ParseHold(text string) (types.TxID, error) { return parse(text, "hold_") }

// Gist returns the relevant part of an answer, and its position: a batch is before its items.
func Gist(answer []byte) (what string, at types.Position, err error) {
	var fields struct {
		wire
		Receipts []wire
		Results  []struct{ Receipt, Problem *wire }
	}
	if err := json.Unmarshal(answer, &fields); err != nil {
		return "", types.Position{}, err
	}
	all := fields.Receipts
	for _, r := range fields.Results {
		if r.Problem != nil {
			r.Receipt = r.Problem
		}
		all = append(all, *r.Receipt)
	}
	if len(all) == 0 {
		t, err := fields.outcome()
		return t.String(), t.At, err
	}
	var lines []string
	for i := range all {
		t, err := all[i].outcome()
		if err != nil {
			return "", types.Position{}, err
		}
		if lines = append(lines, t.String()); i == 0 {
			at = types.Position{LSN: t.At.LSN, Index: t.At.Index - 1}
		}
	}
	return strings.Join(lines, "; "), at, nil
}

// Balance has the relevant fields of a balance.
type Balance struct {
	Amount    string    `json:"amount_minor"`
	Held      string    `json:"held_minor"`
	Available string    `json:"available_minor"`
	Seq       types.Seq `json:"as_of_seq"`
	Next      uint64    `json:"next_nonce"`
}

// ReadBalance parses a balance.
func ReadBalance(answer []byte) (b Balance, err error) {
	if err = json.Unmarshal(answer, &b); err == nil && b.Next == 0 {
		err = errors.New("no balance")
	}
	return b, err
}

func (b Balance) String() string {
	return fmt.Sprintf("#%d has %s, held %s, available %s, next nonce %d", b.Seq, b.Amount, b.Held, b.Available, b.Next)
}
