package client

import (
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"macronode/adapters/client/wire"
	"macronode/core/digest"
)

// A Receipt is the durable proof of an operation. That of a freeze has no asset and no amount.
type Receipt struct {
	wire.Receipt
	RawResponse
	Replayed bool // the operation was executed before with the same key
}

// Verify computes the hash of the receipt from its received bytes. It returns ErrReceipt if it
// does not match.
func (r *Receipt) Verify() error { return verify(r.Raw) }

func verify(raw []byte) error {
	var all map[string]jsontext.Value
	if err := parse(raw, &all); err != nil {
		return err
	}
	var members string
	if json.Unmarshal(all["receipt_hash"], &members) != nil {
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
	if is := "b3:" + hex.EncodeToString(sum[:]); is != members {
		return fmt.Errorf("%w: it is %s", ErrReceipt, is)
	}
	return nil
}

func parseReceipt(raw []byte) (*Receipt, error) {
	r := &Receipt{RawResponse: RawResponse{raw}}
	if err := parse(raw, &r.Receipt); err != nil {
		return nil, err
	}
	if r.Txid == "" {
		return nil, fmt.Errorf("%w: a receipt without a txid", ErrWrongNode)
	}
	return r, nil
}

// A Batch is the response to a batch: receipts if it is atomic, otherwise a Result for each item,
// in order.
type Batch struct {
	RawResponse
	Receipts []*Receipt
	Results  []Result
	Replayed bool // it was decided before with the same key
}

// A Result is the result of an item: a receipt or a problem.
type Result struct {
	RawResponse
	Status  int // of HTTP, as if the item had been sent alone
	Receipt *Receipt
	Problem *Problem
}

func parseBatch(raw []byte) (*Batch, error) {
	var members struct {
		Receipts []jsontext.Value `json:"receipts"`
		Results  []jsontext.Value `json:"results"`
	}
	if err := parse(raw, &members); err != nil {
		return nil, err
	}
	if members.Receipts == nil && members.Results == nil {
		return nil, fmt.Errorf("%w: a batch without items", ErrWrongNode)
	}
	b := &Batch{RawResponse: RawResponse{raw}}
	for _, one := range members.Receipts {
		r, err := parseReceipt(one)
		if err != nil {
			return nil, err
		}
		b.Receipts = append(b.Receipts, r)
	}
	for _, one := range members.Results {
		r, err := parseResult(one)
		if err != nil {
			return nil, err
		}
		b.Results = append(b.Results, r)
	}
	return b, nil
}

func parseResult(raw []byte) (r Result, err error) {
	var members struct {
		Status  int            `json:"status"`
		Receipt jsontext.Value `json:"receipt"`
		Problem jsontext.Value `json:"problem"`
	}
	if err := parse(raw, &members); err != nil {
		return r, err
	}
	r = Result{RawResponse: RawResponse{raw}, Status: members.Status}
	if members.Receipt != nil {
		r.Receipt, err = parseReceipt(members.Receipt)
		return r, err
	}
	var ok bool
	if r.Problem, ok = ParseProblem(members.Problem); !ok {
		err = fmt.Errorf("%w: an item without an outcome", ErrWrongNode)
	}
	return r, err
}

// An Outcome is the stored response of an operation: one of three.
type Outcome struct {
	RawResponse
	Receipt *Receipt
	Batch   *Batch
	Problem *Problem // a rejection that is stored for its key
}

func parseOutcome(raw []byte) (*Outcome, error) {
	o := &Outcome{RawResponse: RawResponse{raw}}
	if b, err := parseBatch(raw); err == nil {
		o.Batch = b
		return o, nil
	}
	r, err := parseReceipt(raw)
	o.Receipt = r
	return o, err
}
