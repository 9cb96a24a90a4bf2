package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"
)

// order is the body of what moves money.
type order struct {
	From   string `json:"from,omitzero"`
	To     string `json:"to,omitzero"`
	Asset  string `json:"asset"`
	Amount string `json:"amount_minor"`
	Nonce  uint64 `json:"nonce,omitzero"`
	Memo   string `json:"memo,omitzero"`
}

// receipt is what a person is told of one.
type receipt struct {
	TxID   string `json:"txid"`
	Op     string `json:"op"`
	From   string `json:"from"`
	To     string `json:"to"`
	Asset  string `json:"asset"`
	Amount string `json:"amount_minor"`
	Seq    uint64 `json:"seq"`
}

// balance is what a person is told of one, and what an order needs to know.
type balance struct {
	Account   string `json:"account"`
	Asset     string `json:"asset"`
	Amount    string `json:"amount_minor"`
	Available string `json:"available_minor"`
	NextNonce uint64 `json:"next_nonce"`
}

// Run issues.
func (v *issueCmd) Run(c *console) error {
	return c.move("issue", v.paid, order{To: v.To})
}

// Run transfers.
func (v *transferCmd) Run(c *console) error {
	return c.move("transfer", v.paid, order{From: v.From, To: v.To, Nonce: v.Nonce})
}

// Run burns.
func (v *burnCmd) Run(c *console) error {
	return c.move("burn", v.paid, order{From: v.From, Nonce: v.Nonce})
}

// move sends an order, always under one key and with one nonce.
func (c *console) move(op string, p paid, o order) error {
	k, err := c.client(p.reach)
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	o.Asset, o.Amount, o.Memo = p.Asset, p.Amount, p.Memo
	if o.From != "" && o.Nonce == 0 {
		has, got, err := k.balance(ctx, o.From, o.Asset)
		if err != nil {
			return errors.Join(k.refusal(got), err)
		}
		o.Nonce = has.NextNonce
	}
	body, err := json.Marshal(o)
	if err != nil {
		return cannot(fmt.Errorf("write the order: %w", err))
	}
	idem := p.Key
	if idem == "" {
		idem = c.draw()
	}
	got := k.ask(ctx, request{method: http.MethodPost, path: "/v1/" + op, idem: idem, body: body})
	switch {
	case got.ok():
		return k.receipt(got)
	case got.doubt:
		return k.doubtful(got, idem, o.Nonce)
	}
	return errors.Join(k.refusal(got), got.why())
}

// doubtful says how to ask again, for only that tells whether it was done.
func (k *client) doubtful(got outcome, idem string, nonce uint64) error {
	again := "--key " + quote(idem)
	if nonce > 0 {
		again += fmt.Sprintf(" --nonce %d", nonce)
	}
	err := &ending{unknown, fmt.Errorf("nobody knows yet whether it was done (%w): ask again with %s", got.why(), again)}
	if !k.tree.JSON {
		return err
	}
	return errors.Join(err, k.print(struct {
		Outcome string `json:"outcome"`
		Key     string `json:"idempotency_key"`
		Nonce   uint64 `json:"nonce,omitzero"`
	}{"unknown", idem, nonce}))
}

// refusal prints the answer as it came, for those who want JSON.
func (k *client) refusal(got outcome) error {
	if !k.tree.JSON || got.problem.Code == "" {
		return nil
	}
	return k.say("%s", got.body)
}

func (k *client) receipt(got outcome) error {
	if k.tree.JSON {
		return k.say("%s", got.body)
	}
	var r receipt
	if err := json.Unmarshal(got.body, &r); err != nil {
		return fmt.Errorf("read the receipt: %w", err)
	}
	text := map[string]string{"issue": "issued", "transfer": "moved", "burn": "burned"}[r.Op] + " " + r.Amount + " " + r.Asset
	if r.From != "" {
		text += " from " + r.From
	}
	if r.To != "" {
		text += " to " + r.To
	}
	if got.replayed {
		text += ", done before under this key"
	}
	return k.say("%s: %s, seq %d", r.TxID, text, r.Seq)
}

func (k *client) balance(ctx context.Context, account, asset string) (b balance, got outcome, err error) {
	query := url.Values{"account": {account}, "asset": {asset}}
	got = k.ask(ctx, request{method: http.MethodGet, path: "/v1/balance?" + query.Encode()})
	if !got.ok() {
		return b, got, got.why()
	}
	if err := json.Unmarshal(got.body, &b); err != nil {
		return b, got, fmt.Errorf("read the balance: %w", err)
	}
	return b, got, nil
}

// Run says what an account has.
func (v *balanceCmd) Run(c *console) error {
	k, err := c.client(v.reach)
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	b, got, err := k.balance(ctx, v.Account, v.Asset)
	if err != nil {
		return errors.Join(k.refusal(got), err)
	}
	if c.tree.JSON {
		return k.say("%s", got.body)
	}
	return k.say("%s has %s %s, %s of it available; its next nonce is %d", b.Account, b.Amount, b.Asset, b.Available, b.NextNonce)
}

// Run shows a receipt.
func (v *txCmd) Run(c *console) error {
	k, err := c.client(v.reach)
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	got := k.ask(ctx, request{method: http.MethodGet, path: "/v1/tx/" + url.PathEscape(v.TxID)})
	if !got.ok() {
		return errors.Join(k.refusal(got), got.why())
	}
	return k.receipt(got)
}
