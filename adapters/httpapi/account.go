package httpapi

import (
	"macronode/core/event"
	"macronode/core/types"
)

// A listed is what a page of names is asked for.
type listed struct {
	prefix  string
	after   []byte
	limit   int
	atLeast types.Seq
}

func (k *call) listed(l listing, check func(string) error) (q listed, err error) {
	err = k.query(prefixParam(&q.prefix, check), limitParam(&q.limit), seqParam(&q.atLeast, "min_seq"),
		k.cursorParam(&q.after, l, func(b []byte) bool { return check(string(b)) == nil }))
	return q, err
}

// accounts lists accounts with what they have. The names come from the views, what
// they have from the books, which know no less.
func accounts(k *call) error {
	if err := k.enter(event.ScopeRead); err != nil {
		return err
	}
	q, err := k.listed(ofAccounts, types.CheckAccount[string])
	if err != nil {
		return err
	}
	seen, err := k.present(q.atLeast)
	if err != nil {
		return err
	}
	g := gathering{k: k, o: object{'{'}, limit: q.limit}
	g.o.list("accounts")
	mark, err := g.gather(q)
	if err != nil {
		return err
	}
	g.end()
	g.o.close(']')
	if g.more {
		g.o.text("next_cursor", k.cursor(ofAccounts, g.last))
	}
	g.o.asOf(seen, mark)
	return k.send(g.o)
}

// A gathering makes accounts of pairs of an account and an asset.
type gathering struct {
	k     *call
	o     object
	limit int
	n     int    // accounts, be they covered by the key or not
	last  []byte // the account at hand
	open  bool   // it is shown, and not at its end
	more  bool   // there is another account
}

// gather takes in whole accounts, as many as the page has room for.
func (g *gathering) gather(q listed) (mark event.Watermark, err error) {
	after := q.after
	if after != nil {
		after = append(after, 1) // behind all assets of that account, and before every other
	}
	for !g.more {
		got := 0
		mark, err = g.k.Views.Accounts(g.k.key.Tenant, []byte(q.prefix), after, MaxPage, func(account, asset []byte) bool {
			got++
			g.pair(account, asset)
			after = append(append(append(after[:0:0], account...), 0), asset...)
			return !g.more
		})
		if err != nil || got == 0 {
			return mark, err
		}
	}
	return mark, nil
}

func (g *gathering) pair(account, asset []byte) {
	k := g.k
	if g.n == 0 || string(account) != string(g.last) {
		if g.more = g.n == g.limit; g.more {
			return
		}
		g.end()
		g.n++
		g.last = append(g.last[:0], account...)
		if g.open = types.Covers(&k.key.Accounts, account); g.open {
			g.o.open()
			g.o.text("account", string(account))
			g.o.truth("frozen", k.Books.Frozen(k.key.Tenant, account))
			g.o.number("next_nonce", uint64(k.Books.Balance(k.key.Tenant, account, asset).NextNonce))
			g.o.list("balances")
		}
	}
	if g.open && types.Covers(&k.key.Assets, asset) {
		g.o.holding(asset, k.Books.Balance(k.key.Tenant, account, asset))
	}
}

// end ends the account at hand.
func (g *gathering) end() {
	if g.open {
		g.o.close(']', '}')
		g.open = false
	}
}

// holding adds what an account has of an asset.
func (o *object) holding(asset []byte, b event.Balance) {
	o.open()
	o.text("asset", string(asset))
	o.amount("amount_minor", b.Amount, b.Negative)
	o.amount("held_minor", b.Held, false)
	o.amount("available_minor", b.Available, b.Negative)
	o.close('}')
}

// assets lists assets with how much there is of them.
func assets(k *call) error {
	if err := k.enter(event.ScopeRead); err != nil {
		return err
	}
	q, err := k.listed(ofAssets, types.CheckAsset[string])
	if err != nil {
		return err
	}
	seen, err := k.present(q.atLeast)
	if err != nil {
		return err
	}
	list, mark, err := k.Views.Assets(k.key.Tenant, []byte(q.prefix), q.after, q.limit+1)
	if err != nil {
		return err
	}
	more := len(list) > q.limit
	list = list[:min(len(list), q.limit)]
	o := object{'{'}
	o.list("assets")
	for _, asset := range list {
		if types.Covers(&k.key.Assets, asset) {
			issued, burned, held := k.Books.Supply(k.key.Tenant, asset)
			left, _ := issued.Sub(burned)
			o.open()
			o.text("asset", string(asset))
			o.amount("issued_minor", issued, false)
			o.amount("burned_minor", burned, false)
			o.amount("outstanding_minor", left, false)
			o.amount("held_minor", held, false)
			o.close('}')
		}
	}
	o.close(']')
	if more {
		o.text("next_cursor", k.cursor(ofAssets, list[len(list)-1]))
	}
	o.asOf(seen, mark)
	return k.send(o)
}
