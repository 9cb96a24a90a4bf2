package httpapi

import (
	"macronode/core/event"
	"macronode/core/types"
)

// A pageRequest is the query of a listing of names.
type pageRequest struct {
	prefix  string
	after   []byte
	limit   int
	atLeast types.Seq
}

func (k *call) parsePageRequest(l listing, check func(string) error) (q pageRequest, err error) {
	err = k.query(prefixParam(&q.prefix, check), limitParam(&q.limit), seqParam(&q.atLeast, "min_seq"),
		k.cursorParam(&q.after, l, func(b []byte) bool { return check(string(b)) == nil }))
	return q, err
}

// accounts lists accounts with their balances. The names come from the index, the balances from the read model,
// which is never behind the index.
func accounts(k *call) error {
	if err := k.requireScope(event.ScopeRead); err != nil {
		return err
	}
	q, err := k.parsePageRequest(ofAccounts, types.CheckAccount[string])
	if err != nil {
		return err
	}
	seen, err := k.awaitCurrent(q.atLeast)
	if err != nil {
		return err
	}
	g := accountPage{k: k, o: jsonObject{'{'}, limit: q.limit}
	g.o.list("accounts")
	mark, err := g.addAccounts(q)
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

// An accountPage groups pairs of account and asset by account.
type accountPage struct {
	k     *call
	o     jsonObject
	limit int
	n     int    // accounts so far, including those that the key does not cover
	last  []byte // the current account
	open  bool   // its object has begun and not ended
	more  bool   // there is another account
}

// addAccounts adds whole accounts until the page is full.
func (g *accountPage) addAccounts(q pageRequest) (mark event.Watermark, err error) {
	after := q.after
	if after != nil {
		after = append(after, 1) // after all assets of that account, and before every other account
	}
	for read := 0; !g.more; {
		got, rows := 0, q.limit
		if read >= PartRows {
			rows = read // an account can have many assets
		}
		err = g.k.readPage(rows, func() (err error) {
			mark, err = g.k.Index.Accounts(g.k.key.Tenant, []byte(q.prefix), after, PartRows, func(account, asset []byte) bool {
				got++
				g.addBalance(account, asset)
				after = append(append(append(after[:0:0], account...), 0), asset...)
				return !g.more
			})
			return err
		})
		if err != nil || got == 0 {
			return mark, err
		}
		read += got
	}
	return mark, nil
}

func (g *accountPage) addBalance(account, asset []byte) {
	k := g.k
	if g.n == 0 || string(account) != string(g.last) {
		if g.more = g.n == g.limit; g.more {
			return
		}
		g.end()
		g.n++
		g.last = append(g.last[:0], account...)
		if g.open = k.mayList(account); g.open {
			g.o.open()
			g.o.text("account", string(account))
			g.o.boolean("frozen", k.ReadModel.Frozen(k.key.Tenant, account))
			g.o.number("next_nonce", uint64(k.ReadModel.Balance(k.key.Tenant, account, asset).NextNonce))
			g.o.list("balances")
		}
	}
	if g.open && types.Covers(&k.key.Assets, asset) {
		g.o.addBalance(asset, k.ReadModel.Balance(k.key.Tenant, account, asset))
	}
}

// mayList reports whether lists of the key have an account. The name of a reserved account tells that its asset exists.
func (k *call) mayList(account []byte) bool {
	of, isReserved := types.ReservedAsset(account)
	return types.Covers(&k.key.Accounts, account) && (!isReserved || types.Covers(&k.key.Assets, of))
}

// end ends the object of the current account.
func (g *accountPage) end() {
	if g.open {
		g.o.close(']', '}')
		g.open = false
	}
}

// addBalance adds the balance of an asset.
func (o *jsonObject) addBalance(asset []byte, b event.Balance) {
	o.open()
	o.text("asset", string(asset))
	o.amount("amount_minor", b.Amount, b.Negative)
	o.amount("held_minor", b.Held, false)
	o.amount("available_minor", b.Available, b.Negative)
	o.close('}')
}

// assets lists assets with their supply.
func assets(k *call) error {
	if err := k.requireScope(event.ScopeRead); err != nil {
		return err
	}
	q, err := k.parsePageRequest(ofAssets, types.CheckAsset[string])
	if err != nil {
		return err
	}
	seen, err := k.awaitCurrent(q.atLeast)
	if err != nil {
		return err
	}
	o := jsonObject{'{'}
	if err := k.readPage(q.limit, func() error { return k.listAssets(&o, &q, seen) }); err != nil {
		return err
	}
	return k.send(o)
}

func (k *call) listAssets(o *jsonObject, q *pageRequest, seen types.Seq) error {
	list, mark, err := k.Index.Assets(k.key.Tenant, []byte(q.prefix), q.after, q.limit+1)
	if err != nil {
		return err
	}
	more := len(list) > q.limit
	list = list[:min(len(list), q.limit)]
	o.list("assets")
	for _, asset := range list {
		if types.Covers(&k.key.Assets, asset) {
			k.addSupply(o, asset)
		}
	}
	o.close(']')
	if more {
		o.text("next_cursor", k.cursor(ofAssets, list[len(list)-1]))
	}
	o.asOf(seen, mark)
	return nil
}

// addSupply adds the supply of an asset.
func (k *call) addSupply(o *jsonObject, asset []byte) {
	issued, burned, held := k.ReadModel.Supply(k.key.Tenant, asset)
	left, _ := issued.Sub(burned)
	o.open()
	o.text("asset", string(asset))
	o.amount("issued_minor", issued, false)
	o.amount("burned_minor", burned, false)
	o.amount("outstanding_minor", left, false)
	o.amount("held_minor", held, false)
	o.close('}')
}
