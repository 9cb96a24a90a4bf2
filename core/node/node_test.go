package node_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"macronode/core/drain"
	"macronode/core/event"
	"macronode/core/idem"
	"macronode/core/ledger"
	"macronode/core/node"
	"macronode/core/quota"
	"macronode/core/state"
	"macronode/core/words"
)

// limits are a node's for n accounts and so many keys.
func limits(n, keys int) state.Limits {
	return state.Limits{
		Ledger: ledger.Limits{Accounts: n, Holdings: n, Assets: 4, Tenants: 4, TenantAccounts: n, TenantHoldings: n, TenantAssets: 4, Holds: n, TenantHolds: n,
			Amount: words.Units(1e18), Day: words.Amount{Hi: 1 << 40}, IssueDay: words.Amount{Hi: 1 << 40}},
		Idem: idem.Limits{Keys: keys, Share: keys, Tenants: 4, TTL: time.Minute, Trail: 5 * time.Second},
		Keys: 4,
	}
}

func config(l state.Limits) node.Config {
	return node.Config{State: l, Held: 512, Waiters: 64, Backlog: 8 << 20, Reserve: 1 << 20, Patience: 5 * time.Second,
		Stall: 200 * time.Millisecond, Fail: 5 * time.Second, Vouch: time.Second, Sweep: time.Second, Start: 30 * time.Second,
		Drain: drain.Times{Drain: 3 * time.Second, Abort: time.Second}, Calls: 4,
		Admit: house(), Subjects: quota.Limits{Peers: 16, Keys: 16, Tenants: 4}, Pace: time.Millisecond,
		Quotas: []quota.Rule{{Scope: words.OfInstance, Rate: 1e6, Every: time.Second, Burst: 1000, Classes: quota.All},
			{Scope: words.OfPeer, Rate: 1e6, Every: time.Second, Burst: 1000, Classes: quota.All},
			{Scope: words.OfTenant, Rate: 1e6, Every: time.Second, Burst: 1000, Classes: quota.Of(words.Authed)}}}
}

// rich is a node whose accounts have money, and what it takes to step it.
type rich struct {
	node    *node.Node
	names   []words.Name
	nonce   []words.Nonce
	out     event.Effects
	now     words.Now
	req     event.Request
	dice    words.Dice
	keys    uint64
	key     [12]byte
	scratch []byte
	asset   []byte
	bytes   uint64
}

const boss words.KeyID = 7

func newRich(accounts, keys int) *rich {
	l := limits(accounts, keys)
	r := &rich{node: node.New(config(l), state.New(l, 42), 1, words.NewDice(1)), names: make([]words.Name, accounts),
		nonce: make([]words.Nonce, accounts), now: words.Now{Mono: 1, Wall: 1_700_000_000_000}, asset: []byte("EUR/2"), dice: words.NewDice(1)}
	r.say(event.Boot{Found: event.Recovery{Journal: 9}})
	r.say(&event.Enrol{Key: event.Key{ID: boss, Tenant: 1, Scopes: event.AllScopes, Boot: true}})
	r.settle()
	for c := range words.Children {
		r.say(event.ChildUp{Child: c})
	}
	for i := range accounts {
		r.names[i].Text = fmt.Appendf(nil, "acct:%d", i)
		r.req = event.Request{Item: event.Item{Op: event.Issue, To: r.names[i], Amount: words.Units(1 << 40)}}
		r.step()
		r.names[i] = r.req.To
	}
	return r
}

func (r *rich) say(e event.Event) {
	r.node.Step(r.now, e, &r.out)
	for _, f := range r.out.Frames {
		r.bytes += uint64(f.Len)
	}
	r.out.Frames = r.out.Frames[:0]
}

// settle makes all that was emitted durable and folded.
func (r *rich) settle() {
	if r.bytes > 0 {
		r.node.Step(r.now, event.Durable{Upto: r.node.LSN(), Bytes: r.bytes}, &r.out)
		r.node.Step(r.now, event.Folded{Upto: r.node.LSN()}, &r.out)
		r.node.Step(r.now, event.Indexed{Upto: r.node.LSN()}, &r.out)
		r.bytes = 0
	}
}

// step asks for r.req under a key of its own.
func (r *rich) step() {
	r.keys++
	r.now.Mono += 1_000_000
	r.now.Wall++
	binary.LittleEndian.PutUint64(r.key[:], r.keys)
	for i := range r.key {
		r.key[i] = 'a' + r.key[i]&15
	}
	r.key[8], r.key[9], r.key[10] = 'a'+byte(r.keys>>4&15), 'a'+byte(r.keys>>12&15), 'a'+byte(r.keys>>20&15)
	r.req.Key.Text, r.req.Asset.Text = r.key[:], r.asset
	r.req.Caller, r.req.Tenant, r.req.Ticket = boss, 1, words.Ticket(r.keys)
	r.scratch = r.req.Seal(r.scratch)
	r.out.Reset()
	before := r.node.LSN()
	r.say(&r.req)
	if r.keys%64 == 0 {
		r.settle()
	}
	words.Assert(r.node.LSN() == before+1, "no frame")
}

func (r *rich) transfer() {
	n := uint64(len(r.names))
	from := r.dice.Below(n)
	to := (from + 1 + r.dice.Below(n-1)) % n
	r.nonce[from]++
	r.req = event.Request{Item: event.Item{Op: event.Transfer, From: r.names[from], To: r.names[to], Amount: words.Units(1), Nonce: r.nonce[from]}}
	r.step()
}

// TestStepAllocatesNothing: in steady state, with keys expiring all the while.
func TestStepAllocatesNothing(t *testing.T) {
	r := newRich(1000, 1<<17)
	for range 70_000 { // past the first expiry: a step is a millisecond, a key lives a minute
		r.transfer()
	}
	if n := testing.AllocsPerRun(10_000, r.transfer); n != 0 {
		t.Fatalf("%v allocations a step", n)
	}
	if err := r.node.Check(); err != nil {
		t.Fatal(err)
	}
}

func benchmarkTransfer(b *testing.B, accounts int) {
	r := newRich(accounts, 1<<21)
	b.ReportAllocs()
	for b.Loop() {
		r.transfer()
	}
	b.ReportMetric(float64(len(r.out.Arena)), "body-B")
}

func BenchmarkTransfer1k(b *testing.B) { benchmarkTransfer(b, 1_000) }
func BenchmarkTransfer1M(b *testing.B) { benchmarkTransfer(b, 1_000_000) }

func BenchmarkCopySmall(b *testing.B) {
	r, dst := newRich(8, 16384), newRich(8, 16384)
	for b.Loop() {
		r.node.CopyTo(dst.node)
	}
}
