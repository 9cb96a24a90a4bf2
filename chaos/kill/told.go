package kill

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"macronode/core/receipt"
	"macronode/core/words"
)

const balancePath = "/v1/balance"

// ask is what a client asks: of a read, the body is the account.
type ask struct{ path, body string }

// told is what matters of a receipt or of a refusal that was kept.
type told struct {
	Op, From, To, Asset, Ref string
	Amount                   string `json:"amount_minor"`
	Nonce                    uint64
	Seq                      words.Seq
	Hold                     string `json:"hold_id"`
	Expires                  string `json:"expires_at"`
	TxID                     string

	Code     string // of a refusal
	Decision string `json:"decision_id"`
	Expected uint64 `json:"expected_nonce"`

	at words.Place
}

func (t told) String() string {
	if t.Code != "" {
		return fmt.Sprintf("%v %s %d", t.at, t.Code, t.Expected)
	}
	return fmt.Sprintf("%v #%d %s %s>%s %s %s nonce %d ref %s %s %s", t.at, t.Seq, t.Op, t.From, t.To, t.Amount, t.Asset, t.Nonce, t.Ref, t.Hold, t.Expires)
}

// place is what the txid, or the decision, says.
func (t *told) place() error {
	id := t.TxID
	if t.Code != "" {
		id = strings.Replace(t.Decision, "d_", "tx_", 1) // a record's are of the same digits
	}
	tx, err := receipt.ParseTxID(id)
	t.at = tx.Place()
	return err
}

// gist is what matters of an answer, and where it says that it stands: a batch stands
// before its items.
func gist(answer []byte) (what string, at words.Place, err error) {
	var said struct {
		told
		Receipts []told
		Results  []struct{ Receipt, Problem *told }
	}
	if err := json.Unmarshal(answer, &said); err != nil {
		return "", words.Place{}, err
	}
	all := said.Receipts
	for _, r := range said.Results {
		if r.Problem != nil {
			r.Receipt = r.Problem
		}
		all = append(all, *r.Receipt)
	}
	if len(all) == 0 {
		err := said.place()
		return said.told.String(), said.at, err
	}
	var lines []string
	for i := range all {
		if err := all[i].place(); err != nil {
			return "", words.Place{}, err
		}
		lines = append(lines, all[i].String())
	}
	return strings.Join(lines, "; "), words.Place{LSN: all[0].at.LSN, Index: all[0].at.Index - 1}, nil
}

// balance is what matters of a balance.
type balance struct {
	Amount    string    `json:"amount_minor"`
	Held      string    `json:"held_minor"`
	Available string    `json:"available_minor"`
	Seq       words.Seq `json:"as_of_seq"`
	Next      uint64    `json:"next_nonce"`
}

func readBalance(answer []byte) (b balance, err error) {
	if err = json.Unmarshal(answer, &b); err == nil && b.Next == 0 {
		err = errors.New("no balance")
	}
	return b, err
}

func (b balance) String() string {
	return fmt.Sprintf("#%d has %s, held %s, available %s, next nonce %d", b.Seq, b.Amount, b.Held, b.Available, b.Next)
}
