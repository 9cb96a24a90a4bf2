package cli

import (
	"context"
	"errors"
	"fmt"

	"macronode/adapters/client"
	"macronode/cmd/macronode/internal/exit"
	"macronode/core/invoice"
	"macronode/core/types"
)

// charger transfers the charges of a bill. Each transfer has the ref of its charge, which can be used once for ever.
//
//	look up all refs ─► a transfer with another amount, account or asset, or an amount that is too large: stop, nothing is transferred
//	      └─► transfer each that is missing, in order
type charger struct {
	*billing
	from, to string          // accounts
	nonces   map[payer]int64 // the next ones
}

type payer struct{ account, asset string }

// A chargeLine is a charge as it is printed.
type chargeLine struct {
	Dimension string `json:"dimension"`
	Seq       uint64 `json:"seq"`
	Digest    string `json:"digest"`
	Prices    string `json:"prices"` // digest of the prices of the dimension
	From      string `json:"from"`
	To        string `json:"to"`
	Asset     string `json:"asset"`
	Amount    string `json:"amount_minor"`
	Ref       string `json:"ref"`
	State     string `json:"state"` // due, charged, or charged_before
	Txid      string `json:"txid,omitzero"`
}

// maxNonceRetries is how often a transfer is sent again because another operation took its nonce.
const maxNonceRetries = 10

// Run charges the usage of a period.
func (v *chargeUsageCmd) Run(c *Console) error {
	for _, a := range [...]struct{ flag, account string }{{"--account-from", v.AccountFrom}, {"--account-to", v.AccountTo}} {
		if err := types.CheckUserAccount(a.account); err != nil {
			return exit.Unable(fmt.Errorf("%s %s: %w", a.flag, a.account, err))
		}
	}
	if v.AccountFrom == v.AccountTo {
		return exit.Unable(errors.New("--account-from and --account-to must be two accounts"))
	}
	return v.withBilling(c, func(ctx context.Context, b *billing) error {
		of, err := b.bill(ctx)
		if err != nil {
			return err
		}
		if !of.isComplete() {
			return fmt.Errorf("windows that begin at %s or later are not sealed, so nothing was charged: charge when they are, or with --to %s", of.text.SealedTo, of.text.SealedTo)
		}
		g := &charger{billing: b, from: v.AccountFrom, to: v.AccountTo, nonces: map[payer]int64{}}
		return g.charge(ctx, &of.Invoice, v.Preview)
	})
}

// charge makes the transfers that are missing.
func (g *charger) charge(ctx context.Context, of *invoice.Invoice, preview bool) error {
	lines, err := g.check(ctx, of)
	if err != nil {
		return fmt.Errorf("%w; nothing was charged now", err)
	}
	made, before := 0, 0
	for i := range lines {
		l := &lines[i]
		if l.State == "due" && !preview {
			if err := g.transfer(ctx, l); err != nil {
				return fmt.Errorf("%w; charges made: %d: the same command continues", err, made+before)
			}
		}
		switch l.State { // another run may have charged it just now
		case "charged":
			made++
		case "charged_before":
			before++
		}
		if err := g.print(l); err != nil {
			return err
		}
	}
	if g.tree.JSON {
		return nil
	}
	if preview {
		return g.printLine("charges due: %d, made before: %d; nothing was transferred", len(lines)-before, before)
	}
	return g.printLine("charges made: %d, made before: %d", made, before)
}

// check returns each charge with its state. It fails if one was made in another way, or is more than one transfer can move.
func (g *charger) check(ctx context.Context, of *invoice.Invoice) ([]chargeLine, error) {
	all := of.Charges
	lines := make([]chargeLine, len(all))
	for i := range all {
		l := &lines[i]
		*l = g.line(&all[i])
		if err := g.lookUp(ctx, l); err != nil {
			return nil, err
		}
		if l.State == "due" && g.maxAmount.Less(all[i].Amount) {
			return nil, fmt.Errorf("slice %d of %s costs %s %s, which is more than wallet.limits.max_amount (%s)", l.Seq, l.Dimension, l.Amount, l.Asset, g.maxAmount)
		}
	}
	return lines, g.lookUpOthers(ctx, of)
}

// line returns a charge that is due.
func (g *charger) line(c *invoice.Charge) chargeLine {
	l := chargeLine{Dimension: c.Dimension, Seq: c.Seq, Digest: c.Digest.String(), From: g.from, To: g.to, Asset: c.Asset, Amount: c.Amount.String(),
		Ref: c.Ref(g.tenant), Prices: g.prices.Of(c.Dimension).Digest().String(), State: "due"}
	if c.Refund {
		l.From, l.To = g.to, g.from
	}
	return l
}

// memo returns the memo of the transfer: it binds the ledger to the content of the slice, and to the prices.
func (l *chargeLine) memo() string {
	return fmt.Sprintf("usage %s %d %s prices %s", l.Dimension, l.Seq, l.Digest, l.Prices)
}

// lookUp sets the state of l. It fails if the slice was charged in another way.
func (g *charger) lookUp(ctx context.Context, l *chargeLine) error {
	got, err := g.node.TxByRef(ctx, l.Ref)
	switch {
	case errors.Is(err, client.NotFound):
		return nil
	case err != nil:
		return err
	case got.Receipt == nil:
		return fmt.Errorf("%w: the ref %s is no transfer", client.ErrWrongNode, l.Ref)
	}
	r := got.Receipt
	if r.From != l.From || r.To != l.To || r.Asset != l.Asset || r.AmountMinor != l.Amount {
		return fmt.Errorf("slice %d of %s was charged with %s %s from %s to %s (%s), and would be now with %s %s from %s to %s: it was another period, price list or account",
			l.Seq, l.Dimension, r.AmountMinor, r.Asset, r.From, r.To, r.Txid, l.Amount, l.Asset, l.From, l.To)
	}
	switch memo, err := g.memo(ctx, r); {
	case err != nil:
		return err
	case memo != l.memo(): // the amount is the same, but that of other slices can differ, also of those that cost nothing
		return fmt.Errorf("slice %d of %s was charged by other prices or content (%s): the memo is %q, and would be %q now", l.Seq, l.Dimension, r.Txid, memo, l.memo())
	}
	l.State, l.Txid = "charged_before", r.Txid
	return nil
}

// memo returns the memo of a transfer.
func (g *charger) memo(ctx context.Context, r *client.Receipt) (string, error) {
	for e, err := range g.node.Entries(ctx, r.From, r.Seq-1, client.ListOptions{Limit: 1, MinSeq: r.Seq}) {
		if err != nil {
			return "", err
		}
		if e.Seq == r.Seq {
			return e.Memo, nil
		}
	}
	return "", fmt.Errorf("%w: the statement of %s has no entry of %s", client.ErrWrongNode, r.From, r.Txid)
}

// lookUpOthers fails if a slice was charged in an asset in which it costs nothing now: the price list was another one.
func (g *charger) lookUpOthers(ctx context.Context, of *invoice.Invoice) error {
	var assets []string
	for a, err := range g.node.Assets(ctx, "", client.ListOptions{}) {
		if err != nil {
			return err
		}
		assets = append(assets, a.Asset)
	}
	due := make(map[string]bool, len(of.Charges))
	for i := range of.Charges {
		due[of.Charges[i].Ref(g.tenant)] = true
	}
	for _, s := range of.Postpaid {
		for _, asset := range assets {
			ref := s.Ref(g.tenant, asset)
			if due[ref] {
				continue
			}
			switch got, err := g.node.TxByRef(ctx, ref); {
			case errors.Is(err, client.NotFound):
			case err != nil:
				return err
			case got.Receipt == nil:
				return fmt.Errorf("%w: the ref %s is no transfer", client.ErrWrongNode, ref)
			default:
				return fmt.Errorf("slice %d of %s was charged with %s %s (%s), and costs nothing in %s now: it was another price list",
					s.Seq, s.Dimension, got.Receipt.AmountMinor, asset, got.Receipt.Txid, asset)
			}
		}
	}
	return nil
}

// transfer makes the transfer of l.
func (g *charger) transfer(ctx context.Context, l *chargeLine) error {
	by := payer{l.From, l.Asset}
	for range maxNonceRetries {
		if g.nonces[by] == 0 {
			b, err := g.node.Balance(ctx, l.From, l.Asset, 0)
			if err != nil {
				return err
			}
			g.nonces[by] = b.NextNonce
		}
		r, err := g.node.Transfer(ctx, client.TransferRequest{From: l.From, To: l.To, Asset: l.Asset, AmountMinor: l.Amount, Nonce: g.nonces[by], Memo: l.memo(), Ref: l.Ref})
		switch {
		case err == nil:
			g.nonces[by]++
			l.State, l.Txid = "charged", r.Txid
			return nil
		case errors.Is(err, client.ErrUnknown):
			return exit.New(exit.CodeUnknown, fmt.Errorf("slice %d of %s: outcome unknown (%w): run the same command again", l.Seq, l.Dimension, errors.Unwrap(err)))
		case errors.Is(err, client.RefUsed): // by another run of this command
			return g.lookUp(ctx, l)
		case errors.Is(err, client.NonceConflict):
			g.nonces[by] = 0
		default:
			return fmt.Errorf("slice %d of %s, %s %s from %s: %w", l.Seq, l.Dimension, l.Amount, l.Asset, l.From, err)
		}
	}
	return fmt.Errorf("slice %d of %s: other operations of %s took each nonce", l.Seq, l.Dimension, l.From)
}

func (g *charger) print(l *chargeLine) error {
	if g.tree.JSON {
		return g.printJSON(l)
	}
	tx := ""
	if l.Txid != "" {
		tx = ", " + l.Txid
	}
	return g.printLine("slice %d of %s: %s %s from %s to %s, %s%s", l.Seq, l.Dimension, l.Amount, l.Asset, l.From, l.To, l.State, tx)
}
