package node_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"macronode/core/event"
	"macronode/core/gateway/quota"
	"macronode/core/idempotency"
	"macronode/core/lifecycle/drain"
	"macronode/core/node"
	"macronode/core/state"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

// limits returns limits for n accounts and a number of keys.
func limits(n, keys int) state.Limits {
	return state.Limits{
		Ledger: ledger.Limits{Accounts: n, Holdings: n, Assets: 4, Tenants: 4, TenantAccounts: n, TenantHoldings: n, TenantAssets: 4, Holds: n, TenantHolds: n,
			MaxAmount: types.MinorUnits(1e18), MaxDailyDebit: types.Amount{Hi: 1 << 40}, MaxDailyIssue: types.Amount{Hi: 1 << 40}},
		Idempotency: idempotency.Limits{Keys: keys, PerTenant: keys, Tenants: 4, TTL: time.Minute, MinRetention: 5 * time.Second},
		Keys:        4,
	}
}

func config(l state.Limits) node.Config {
	return node.Config{State: l, MaxHeldReplies: 512, MaxReplayWaiters: 64, MaxUnsyncedBytes: 8 << 20, MinFreeBytes: 1 << 20, CommitTimeout: 5 * time.Second,
		StallThreshold: 200 * time.Millisecond, SyncTimeout: 5 * time.Second, HeartbeatInterval: time.Second, SweepInterval: time.Second, StartTimeout: 30 * time.Second,
		Drain: drain.Times{Drain: 3 * time.Second, Abort: time.Second}, MaxUpstreamCalls: 4,
		Admission: smallLimits(), QuotaLimits: quota.Limits{Peers: 16, Keys: 16, Tenants: 4}, MaxPacingDelay: time.Millisecond,
		Quotas: []quota.Rule{{Scope: types.ScopeInstance, Rate: 1e6, Every: time.Second, Burst: 1000, Classes: quota.AllClasses},
			{Scope: types.ScopePeer, Rate: 1e6, Every: time.Second, Burst: 1000, Classes: quota.AllClasses},
			{Scope: types.ScopeTenant, Rate: 1e6, Every: time.Second, Burst: 1000, Classes: quota.ClassSetOf(types.ClassAuthed)}}}
}

// rich is a node whose accounts have money, with what a step needs.
type rich struct {
	node    *node.Node
	names   []types.Name
	nonce   []types.Nonce
	out     event.Effects
	now     types.Now
	req     event.Request
	dice    types.Rand
	keys    uint64
	key     [12]byte
	scratch []byte
	asset   []byte
	bytes   uint64
}

const boss types.KeyID = 7

func newRich(accounts, keys int) *rich {
	l := limits(accounts, keys)
	r := &rich{node: node.New(config(l), state.New(l, 42), 1, types.NewRand(1)), names: make([]types.Name, accounts),
		nonce: make([]types.Nonce, accounts), now: types.Now{Mono: 1, Wall: 1_700_000_000_000}, asset: []byte("EUR/2"), dice: types.NewRand(1)}
	r.say(event.Recovered{Recovery: event.Recovery{Journal: 9}})
	r.say(&event.CreateKey{Key: event.Key{ID: boss, Tenant: 1, Scopes: event.AllScopes, Bootstrap: true}})
	r.settle()
	for c := range types.NumServices {
		r.say(event.ServiceUp{Service: c})
	}
	for i := range accounts {
		r.names[i].Text = fmt.Appendf(nil, "acct:%d", i)
		r.req = event.Request{Item: event.Item{Op: event.Issue, To: r.names[i], Amount: types.MinorUnits(1 << 40)}}
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

// settle makes everything durable and applied.
func (r *rich) settle() {
	if r.bytes > 0 {
		r.node.Step(r.now, event.Durable{Upto: r.node.LSN(), Bytes: r.bytes}, &r.out)
		r.node.Step(r.now, event.Applied{Upto: r.node.LSN()}, &r.out)
		r.node.Step(r.now, event.Indexed{Upto: r.node.LSN()}, &r.out)
		r.bytes = 0
	}
}

// step submits r.req under a new key.
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
	r.req.Caller, r.req.Tenant, r.req.Ticket = boss, 1, types.Ticket(r.keys)
	r.scratch = r.req.Seal(r.scratch)
	r.out.Reset()
	before := r.node.LSN()
	r.say(&r.req)
	if r.keys%64 == 0 {
		r.settle()
	}
	types.Assert(r.node.LSN() == before+1, "no frame")
}

func (r *rich) transfer() {
	n := uint64(len(r.names))
	from := r.dice.Uint64n(n)
	to := (from + 1 + r.dice.Uint64n(n-1)) % n
	r.nonce[from]++
	r.req = event.Request{Item: event.Item{Op: event.Transfer, From: r.names[from], To: r.names[to], Amount: types.MinorUnits(1), Nonce: r.nonce[from]}}
	r.step()
}

// TestStepAllocatesNothing: in steady state, while keys expire.
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
