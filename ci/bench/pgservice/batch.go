package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"macronode/core/event"
)

const callBatch = "select (x).outcome, (x).replayed, (x).at, (x).seqs from batch($1,$2,$3,$4,$5,$6,$7,$8) x"

// batch handles an atomic batch of transfers. It does not report which transfer was rejected, or
// why.
func (d *desk) batch(w http.ResponseWriter, r *http.Request) {
	raw, ok := d.body(w, r)
	if !ok {
		return
	}
	in, err := parseBatch(raw, r.Header.Get("Idempotency-Key"))
	if err != nil {
		refuse(w, event.BadRequest, 0)
		return
	}
	ctx, stop := context.WithTimeout(r.Context(), patience)
	defer stop()
	b, err := d.bundle(ctx, in)
	switch {
	case is(err, refused):
		refuse(w, event.InsufficientFunds, 0)
	case err != nil:
		refuse(w, event.OutcomeUnknown, 0)
	case b.outcome != bundled:
		refuse(w, event.IdempotencyConflict, 0)
	default:
		answerBatch(w, in, b)
	}
}

func parseBatch(raw []byte, key string) (*event.Request, error) {
	var body struct {
		Atomic bool `json:"atomic"`
		Items  []struct {
			Op string `json:"op"`
			order
		} `json:"items"`
	}
	if err := strictly(raw, &body); err != nil {
		return nil, err
	}
	if !body.Atomic {
		return nil, errors.New("accepts atomic batches only")
	}
	in := &event.Request{Item: event.Item{Op: event.Batch}, Atomic: true}
	for i := range body.Items {
		item, err := body.Items[i].item()
		if err != nil || body.Items[i].Op != "transfer" || large(item.Amount) {
			return nil, errors.Join(err, errors.New("takes transfers alone, of 63 bits"))
		}
		in.Items = append(in.Items, item)
	}
	in.Key.Text = []byte(key)
	in.Seal(nil)
	return in, in.Validate()
}

// bundle is a row of the type batched.
type bundle struct {
	outcome  int16
	replayed bool
	at       time.Time
	seqs     []int64
}

// bundle runs a batch in one round trip and one transaction.
func (d *desk) bundle(ctx context.Context, in *event.Request) (b bundle, err error) {
	var from, to, asset, memo []string
	var amount, nonce []int64
	for i := range in.Items {
		item := &in.Items[i]
		from, to, asset = append(from, string(item.From.Text)), append(to, string(item.To.Text)), append(asset, string(item.Asset.Text))
		amount, nonce, memo = append(amount, int64(item.Amount.Lo)), append(nonce, int64(item.Nonce)), append(memo, string(item.Memo))
	}
	for range tries {
		row := d.pool.QueryRow(ctx, callBatch, string(in.Key.Text), in.Hash[:], from, to, asset, amount, nonce, memo)
		if err = row.Scan(&b.outcome, &b.replayed, &b.at, &b.seqs); !is(err, deadlocked) {
			return b, err
		}
	}
	return b, err
}

func answerBatch(w http.ResponseWriter, in *event.Request, b bundle) {
	body := append(make([]byte, 0, 512*len(in.Items)), `{"receipts":[`...)
	for i := range in.Items {
		if i > 0 {
			body = append(body, ',')
		}
		body = receipt(body, in.Key.Text, &in.Items[i], b.seqs[i], b.at)
	}
	if b.replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	w.Header().Set("Content-Type", jsonType)
	_, _ = w.Write(append(body, "]}"...)) // the client may be gone; the transfers are done
}
