package client

import (
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"macronode/adapters/client/wire"
	"macronode/core/digest"
)

// A Receipt is the durable proof that an operation was done. Of a freeze it has no
// asset and no amount.
type Receipt struct {
	wire.Receipt
	Told
	Replayed bool // it was done before, under the same key
}

// Verify computes the receipt's hash anew, over the bytes as they came: ErrReceipt
// where they are not what it says.
func (r *Receipt) Verify() error { return verify(r.Raw) }

func verify(raw []byte) error {
	var all map[string]jsontext.Value
	if err := parse(raw, &all); err != nil {
		return err
	}
	var said string
	if json.Unmarshal(all["receipt_hash"], &said) != nil {
		return fmt.Errorf("%w: it has none", ErrReceipt)
	}
	delete(all, "receipt_hash")
	canon, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrReceipt, err)
	}
	if err := (*jsontext.Value)(&canon).Canonicalize(); err != nil { // RFC 8785
		return fmt.Errorf("%w: %w", ErrReceipt, err)
	}
	sum := digest.Sum(canon)
	if is := "b3:" + hex.EncodeToString(sum[:]); is != said {
		return fmt.Errorf("%w: it is %s", ErrReceipt, is)
	}
	return nil
}

func parseReceipt(raw []byte) (*Receipt, error) {
	r := &Receipt{Told: Told{raw}}
	if err := parse(raw, &r.Receipt); err != nil {
		return nil, err
	}
	if r.Txid == "" {
		return nil, fmt.Errorf("%w: a receipt without a txid", ErrStranger)
	}
	return r, nil
}

// A Batch is what became of one: of an atomic one receipts, else a Result for each
// item, in their order.
type Batch struct {
	Told
	Receipts []*Receipt
	Results  []Result
	Replayed bool // it was decided before, under the same key
}

// A Result is what became of an item: a receipt, or a problem.
type Result struct {
	Told
	Status  int // of HTTP, as if it had been asked alone
	Receipt *Receipt
	Problem *Problem
}

func parseBatch(raw []byte) (*Batch, error) {
	var said struct {
		Receipts []jsontext.Value `json:"receipts"`
		Results  []jsontext.Value `json:"results"`
	}
	if err := parse(raw, &said); err != nil {
		return nil, err
	}
	if said.Receipts == nil && said.Results == nil {
		return nil, fmt.Errorf("%w: a batch without items", ErrStranger)
	}
	b := &Batch{Told: Told{raw}}
	for _, one := range said.Receipts {
		r, err := parseReceipt(one)
		if err != nil {
			return nil, err
		}
		b.Receipts = append(b.Receipts, r)
	}
	for _, one := range said.Results {
		r, err := parseResult(one)
		if err != nil {
			return nil, err
		}
		b.Results = append(b.Results, r)
	}
	return b, nil
}

func parseResult(raw []byte) (r Result, err error) {
	var said struct {
		Status  int            `json:"status"`
		Receipt jsontext.Value `json:"receipt"`
		Problem jsontext.Value `json:"problem"`
	}
	if err := parse(raw, &said); err != nil {
		return r, err
	}
	r = Result{Told: Told{raw}, Status: said.Status}
	if said.Receipt != nil {
		r.Receipt, err = parseReceipt(said.Receipt)
		return r, err
	}
	var ok bool
	if r.Problem, ok = ParseProblem(said.Problem); !ok {
		err = fmt.Errorf("%w: an item without an outcome", ErrStranger)
	}
	return r, err
}

// An Outcome is what an operation was answered with, shown again: one of three.
type Outcome struct {
	Told
	Receipt *Receipt
	Batch   *Batch
	Problem *Problem // a refusal that its key keeps
}

func parseOutcome(raw []byte) (*Outcome, error) {
	o := &Outcome{Told: Told{raw}}
	if b, err := parseBatch(raw); err == nil {
		o.Batch = b
		return o, nil
	}
	r, err := parseReceipt(raw)
	o.Receipt = r
	return o, err
}
