package cli

import (
	"context"
	"errors"
	"fmt"

	"macronode/adapters/client"
	"macronode/cmd/internal/usagefile"
	"macronode/cmd/macronode/internal/exit"
	"macronode/core/invoice"
	"macronode/core/types"
)

// charger transfers the charges of a period. Each transfer has the ref of its charge, which can be used once for ever.
//
//	look up all refs of the month ─► a transfer with another amount, account or asset, or an amount that is too large: stop, nothing is transferred
//	      └─► transfer each of the period that is missing, in order
type charger struct {
	*billing
	period   invoice.ChargePeriod
	from, to string          // accounts
	nonces   map[payer]int64 // the next ones
}

type payer struct{ account, asset string }

// A chargeLine is a charge as it is printed.
type chargeLine struct {
	Dimension string `json:"dimension"`
	Seq       uint64 `json:"seq"`
	Digest    string `json:"digest"`
	Prices    string `json:"prices"` // digest of the prices of the dimension, sorted
	From      string `json:"from"`
	To        string `json:"to"`
	Asset     string `json:"asset"`
	Amount    string `json:"amount_minor"`
	Ref       string `json:"ref"`
	State     string `json:"state"` // due, charged, or charged_before
	Txid      string `json:"txid,omitzero"`

	listed string // digest of the prices in the order of the list, which memos may have
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
	period, err := v.chargePeriod()
	if err != nil {
		return err
	}
	c.executions.again = "run the same command again, which makes no charge twice"
	return v.withBilling(c, func(ctx context.Context, b *billing) error {
		switch sealed, err := b.sealedTo(ctx); {
		case err != nil:
			return err
		case sealed <= period.Month.From:
			return errors.New("no window of the period is sealed, so nothing was charged: charge when they are")
		case sealed < period.To:
			return fmt.Errorf("windows that begin at %[1]s or later are not sealed, so nothing was charged: charge when they are, or with --from %[2]s --to %[1]s", usagefile.FormatTime(sealed), usagefile.FormatTime(period.Month.From))
		}
		of, _, err := b.read(ctx, period.Month)
		if err != nil {
			return err
		}
		g := &charger{billing: b, period: period, from: v.AccountFrom, to: v.AccountTo, nonces: map[payer]int64{}}
		return g.charge(ctx, &of, v.Preview)
	})
}

// chargePeriod returns the period that the flags select.
func (v *chargeUsageCmd) chargePeriod() (invoice.ChargePeriod, error) {
	asked, err := v.period()
	if err != nil {
		return invoice.ChargePeriod{}, err
	}
	p, err := invoice.NewChargePeriod(asked)
	if of, ok := errors.AsType[*invoice.PeriodError](err); ok {
		err = exit.Unable(fmt.Errorf("a period that is charged begins with a month (UTC) and ends within it or with it: --from must be %s, and --to a later time up to %s",
			usagefile.FormatTime(of.Month.From), usagefile.FormatTime(of.Month.To)))
	}
	return p, err
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

// check returns each charge of the period with its state. It fails if one of the month was made in another way, or one of the period is
// more than one transfer can move.
func (g *charger) check(ctx context.Context, of *invoice.Invoice) (lines []chargeLine, err error) {
	for i := range of.Charges {
		c := &of.Charges[i]
		l := g.line(c)
		if err := g.lookUp(ctx, &l); err != nil {
			return nil, err
		}
		if !g.period.Has(c) {
			continue
		}
		if l.State == "due" && g.maxAmount.Less(c.Amount) {
			return nil, fmt.Errorf("slice %d of %s costs %s %s, which is more than wallet.limits.max_amount (%s)", l.Seq, l.Dimension, l.Amount, l.Asset, g.maxAmount)
		}
		lines = append(lines, l)
	}
	return lines, g.lookUpOthers(ctx, of)
}

// line returns a charge that is due.
func (g *charger) line(c *invoice.Charge) chargeLine {
	prices := g.prices.Of(c.Dimension)
	l := chargeLine{Dimension: c.Dimension, Seq: c.Seq, Digest: c.Digest.String(), From: g.from, To: g.to, Asset: c.Asset, Amount: c.Amount.String(),
		Ref: c.Ref(g.tenant), Prices: prices.Sorted().Digest().String(), State: "due", listed: prices.Digest().String()}
	if c.Refund {
		l.From, l.To = g.to, g.from
	}
	return l
}

// memo returns the memo of the transfer: it binds the ledger to the content of the slice, and to the prices.
func (l *chargeLine) memo() string { return l.memoOf(l.Prices) }

func (l *chargeLine) memoOf(prices string) string {
	return fmt.Sprintf("usage %s %d %s prices %s", l.Dimension, l.Seq, l.Digest, prices)
}

// has reports whether a memo binds a transfer to the content of the slice and to the prices.
func (l *chargeLine) has(memo string) bool { return memo == l.memo() || memo == l.memoOf(l.listed) }

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
	memo, err := g.memo(ctx, r)
	switch isMade := r.From == l.From && r.To == l.To && r.Asset == l.Asset && r.AmountMinor == l.Amount; {
	case err != nil:
		return err
	case isMade && l.has(memo): // with another memo, the amount of other slices can differ, also of those that cost nothing
		l.State, l.Txid = "charged_before", r.Txid
		return nil
	}
	return fmt.Errorf("slice %d of %s was charged with %s %s from %s to %s (%s), and would be now with %s %s from %s to %s: %s",
		l.Seq, l.Dimension, r.AmountMinor, r.Asset, r.From, r.To, r.Txid, l.Amount, l.Asset, l.From, l.To, g.whyOther(r, memo, l))
}

// whyOther returns why a transfer is not the one that l would make now.
func (g *charger) whyOther(r *client.Receipt, memo string, l *chargeLine) string {
	isBetween := r.From == g.from && r.To == g.to || r.From == g.to && r.To == g.from // a refund goes back
	switch {
	case !l.has(memo):
		return fmt.Sprintf("it was another price list or content of the slice: the memo is %q, and would be %q now", memo, l.memo())
	case !isBetween:
		return "they were other accounts"
	}
	return "the prices are the same, and were counted in another period than the month"
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

// lookUpOthers fails if a slice of the month was charged in an asset in which it costs nothing now.
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
			l := g.line(&invoice.Charge{Dimension: s.Dimension, Asset: asset, Seq: s.Seq, Digest: s.Digest})
			if due[l.Ref] {
				continue
			}
			if err := g.lookUp(ctx, &l); err != nil {
				return err
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
			return fmt.Errorf("slice %d of %s: %w", l.Seq, l.Dimension, askAgain(err, "run the same command again"))
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
