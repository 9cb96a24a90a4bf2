package index_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"macronode/adapters/index"
	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/types"
	model "macronode/models/views"
)

type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

// same compares the answers of x with the model at x's mark, for some accounts completely.
func same(t tb, w *world, x *index.Indexer) {
	t.Helper()
	m := x.Mark()
	s := w.reference(m.LSN)
	c := comparing{tb: t, world: w, x: x, reference: s, mark: m}
	for tenant := types.Tenant(1); tenant <= 3; tenant++ {
		c.tenant = tenant
		if c.keys(); tenant == 3 { // a tenant without records
			c.changes()
			break
		}
		c.statements()
		c.lists()
		c.holds()
		c.changes()
	}
}

type comparing struct {
	tb
	*world
	x         *index.Indexer
	reference *model.State
	mark      event.Watermark
	tenant    types.Tenant
}

// ok fails on an error, and on an answer that is not as of the mark.
func (c *comparing) ok(what string, m event.Watermark, err error) {
	c.Helper()
	if err != nil || m != c.mark {
		c.Fatalf("%s: as of %v, want %v: %v", what, m, c.mark, err)
	}
}

func (c *comparing) keys() {
	for n := range c.n + 2 {
		key := "k" + itoa(n)
		want, lives := c.reference.Key(c.tenant, key, ttl*time.Millisecond, c.mark.At)
		got, found, err := c.x.Key(c.tenant, digest.Name([]byte(key)))
		if err != nil || found != lives || lives && got != (command.PriorOutcome{Hash: want.Asked, ID: want.ID, At: want.At}) {
			c.Fatalf("%v: tenant %d, key %s: %+v, %v, %v, want %v of %+v", c.mark, c.tenant, key, got, found, err, lives, want)
		}
	}
	for n := range c.n*8 + 8 {
		ref := "r" + itoa(n)
		want := c.reference.Ref(c.tenant, ref)
		if c.refs[ref] || n%16 == 0 {
			got, found, err := c.x.Ref(c.tenant, digest.Name([]byte(ref)))
			if err != nil || found != (want != types.TxID{}) || got != want {
				c.Fatalf("%v: tenant %d, ref %s: %x, %v, %v, want %x", c.mark, c.tenant, ref, got, found, err, want)
			}
		}
	}
}

func itoa(n int) string { return types.MinorUnits(uint64(n)).String() }

// differ returns where two lists differ.
func differ[T comparable](got, want []T) string {
	n := 0
	for n < min(len(got), len(want)) && got[n] == want[n] {
		n++
	}
	return fmt.Sprintf("from %d on\n%+v, want\n%+v", n, got[n:min(n+1, len(got))], want[n:min(n+1, len(want))])
}

func lineOf(e *event.Entry) model.Line {
	op := ""
	if e.Op > 0 {
		op = e.Op.String()
	}
	return model.Line{Seq: e.Seq, ID: e.ID, At: e.At, Op: op, Asset: string(e.Asset), Other: string(e.Counterparty), Amount: e.Amount,
		Credit: e.Credit, Balance: e.Balance, Held: e.Held, Hold: e.Hold, Nonce: e.Nonce, Ref: string(e.Ref), Memo: string(e.Memo)}
}

func (c *comparing) statements() {
	last := c.reference.Last(c.tenant, c.mark.At)
	accounts := c.accounts()
	for range 4 {
		account := accounts[c.pick(len(accounts))]
		for after := types.Seq(0); ; {
			limit := 1 + c.pick(12)
			want := c.reference.Entries(c.tenant, account, after, limit)
			var got []model.Line
			m, err := c.x.Entries(c.tenant, []byte(account), after, limit, func(e *event.Entry) bool {
				got = append(got, lineOf(e))
				return true
			})
			c.ok("entries", m, err)
			if !slices.Equal(got, want) {
				c.Fatalf("%v: tenant %d, %s after %d, %d lines: %s", c.mark, c.tenant, account, after, limit, differ(got, want))
			}
			if len(want) < limit {
				break
			}
			after = want[len(want)-1].Seq
		}
		for _, asset := range []string{"EUR/2", "X"}[c.pick(2):] {
			c.balance(account, asset, types.Seq(c.pick(int(last)+2)))
			c.balanceAtTime(account, asset, 1_000_000+types.Time(c.pick(int(c.mark.At-1_000_000+2))))
		}
	}
}

func (c *comparing) balance(account, asset string, seq types.Seq) {
	last := c.reference.Last(c.tenant, c.mark.At)
	b, found, err := c.x.BalanceAt(c.tenant, []byte(account), []byte(asset), seq)
	balance, held := c.reference.BalanceAt(c.tenant, account, asset, seq)
	if err != nil || found != (seq <= last) || found && (b.Amount != balance || b.Held != held || b.AsOf != seq) {
		c.Fatalf("%v: tenant %d, %s has at %d of %s %+v, %v, %v, want %v, %v held", c.mark, c.tenant, account, seq, asset, b, found, err, balance, held)
	}
}

func (c *comparing) balanceAtTime(account, asset string, at types.Time) {
	b, found, err := c.x.BalanceAtTime(c.tenant, []byte(account), []byte(asset), at)
	seq := c.reference.Last(c.tenant, at)
	balance, held := c.reference.BalanceAt(c.tenant, account, asset, seq)
	if err != nil || found != (at <= c.mark.At) || found && (b.Amount != balance || b.Held != held || b.AsOf != seq || b.At != at) {
		c.Fatalf("%v: tenant %d, %s has then, %d, of %s %+v, %v, %v, want at %d %v, %v held", c.mark, c.tenant, account, at, asset, b, found, err, seq, balance, held)
	}
}

func (c *comparing) lists() {
	for _, prefix := range []string{"", "an", "issuance:", "q"}[c.pick(3):] {
		limit := 1 + c.pick(4)
		for after := []byte(nil); ; {
			want := c.reference.Accounts(c.tenant, prefix, string(after), limit)
			list, m, err := c.x.Accounts(c.tenant, []byte(prefix), after, limit)
			c.ok("accounts", m, err)
			var got []string
			for i := range list {
				got = append(got, string(list[i].Cursor()))
			}
			if !slices.Equal(got, want) {
				c.Fatalf("%v: tenant %d, accounts like %q after %q: %q, want %q", c.mark, c.tenant, prefix, after, got, want)
			}
			if len(want) < limit {
				break
			}
			after = []byte(want[len(want)-1])
		}
	}
	list, m, err := c.x.Assets(c.tenant, nil, []byte("F"), 2)
	c.ok("assets", m, err)
	want := c.reference.Assets(c.tenant, "", "F", 2)
	if !slices.EqualFunc(list, want, func(a []byte, b string) bool { return string(a) == b }) {
		c.Fatalf("%v: tenant %d, assets %q, want %q", c.mark, c.tenant, list, want)
	}
}

func holdOf(h event.HoldView) model.Hold {
	return model.Hold{ID: h.ID, From: string(h.From), To: string(h.To), Asset: string(h.Asset), Amount: h.Amount,
		Opened: h.Opened, Until: h.ExpiresAt, State: h.State.String(), Ended: h.EndedBy, Captured: h.Captured}
}

func (c *comparing) holds() {
	now := c.mark.At + types.Time(c.pick(2)*c.pick(2000))
	if all := c.reference.Listed(c.tenant, "", "active", 0); len(all) > 0 && c.pick(2) == 0 {
		now = max(now, all[c.pick(len(all))].Until) // it has expired
	}
	for _, account := range []string{"", "ann", "nobody"} {
		for _, state := range []string{"", "active", "expired", "captured"}[c.pick(4):] {
			states := map[string]index.States{"": 0, "active": index.In(event.HoldActive), "expired": index.In(event.HoldExpired), "captured": index.In(event.HoldCaptured)}
			want := c.reference.Listed(c.tenant, account, state, now)
			var got []model.Hold
			limit := 1 + c.pick(5)
			for after := (types.TxID{}); ; {
				list, next, m, err := c.x.Holds(c.tenant, []byte(account), states[state], after, limit, now)
				c.ok("holds", m, err)
				if len(list) > limit {
					c.Fatalf("%d holds, want at most %d", len(list), limit)
				}
				for _, h := range list {
					got = append(got, holdOf(h))
				}
				if (next == types.TxID{}) {
					break
				}
				if bytes.Compare(next[:], after[:]) <= 0 {
					c.Fatalf("the list of holds continues at %x after %x", next, after)
				}
				after = next
			}
			if !slices.Equal(got, want) {
				c.Fatalf("%v: tenant %d, %s's %s holds: %s", c.mark, c.tenant, account, state, differ(got, want))
			}
		}
	}
	for _, want := range c.reference.Listed(c.tenant, "", "", now) {
		if h, found, err := c.x.Hold(c.tenant, want.ID, now); err != nil || !found || holdOf(h) != want {
			c.Fatalf("%v: hold %x: %+v, %v, %v, want %+v", c.mark, want.ID, h, found, err, want)
		}
		if h, found, err := c.x.Hold(c.tenant+1, want.ID, now); err != nil || found {
			c.Fatalf("%v: another tenant's hold: %+v, %v", c.mark, h, err)
		}
	}
}

func (c *comparing) changes() {
	limit := 1 + c.pick(9)
	for after := types.Seq(0); ; {
		want := c.reference.Changes(c.tenant, after, limit)
		got, m, err := c.x.Changes(c.tenant, after, limit)
		c.ok("changes", m, err)
		if !slices.EqualFunc(got, want, func(a event.Change, b model.Fact) bool { return a.Seq == b.Seq && a.ID == b.ID && a.At == b.At }) {
			c.Fatalf("%v: tenant %d, changes after %d: %+v, want %+v", c.mark, c.tenant, after, got, want)
		}
		if len(want) < limit {
			break
		}
		after = want[len(want)-1].Seq
	}
}

// TestWorldCoversEveryKind: the journals of these tests have every kind of record.
func TestWorldCoversEveryKind(t *testing.T) {
	dice := types.NewRand(3)
	w := newWorld(func(n int) int { return int(dice.Uint64n(uint64(n))) })
	w.frames(400)
	for _, kind := range []string{"posted", "rejected", "batched", "hold_opened", "hold_captured", "hold_released", "hold_expired", "freeze_changed", "keys_forgotten", "restored", "key used anew"} {
		if w.saw[kind] == 0 {
			t.Errorf("400 frames without %s", kind)
		}
	}
}
