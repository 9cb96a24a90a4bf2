// Command measure loads a node with a number of requests, makes one step for each kind of event,
// and writes the coverage of each step. It must be built with -cover -covermode=atomic;
// chaos/stepwork does that.
//
//	measure DIR REQUESTS    # DIR/<kind>/ gets the coverage counters of one step
package main

import (
	"errors"
	"log"
	"os"
	"path/filepath"
	"runtime/coverage"
	"strconv"
	"time"

	"macronode/core/event"
	"macronode/core/gateway/admission"
	"macronode/core/gateway/quota"
	"macronode/core/idempotency"
	"macronode/core/lifecycle/drain"
	"macronode/core/node"
	"macronode/core/state"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

const (
	root   types.KeyID  = 7
	tenant types.Tenant = 1
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: measure DIR REQUESTS")
	}
	many, err := strconv.Atoi(os.Args[2])
	if err == nil {
		err = measure(os.Args[1], many)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// measure writes the counters of one step of each kind. Each kind has its own node, so that the
// steps are independent.
func measure(dir string, many int) error {
	for name, next := range kinds() {
		l := newLoaded(many)
		e, to := next(l), filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(to, 0o700), coverage.ClearCounters()); err != nil {
			return err
		}
		l.out.Reset()
		l.node.Step(l.now, e, &l.out)
		if err := errors.Join(coverage.WriteCountersDir(to), coverage.WriteMetaDir(to)); err != nil {
			return err
		}
	}
	return nil
}

// kinds returns the measured events, each for a loaded node.
func kinds() map[string]func(l *loaded) event.Event {
	return map[string]func(l *loaded) event.Event{
		"arrive":        func(l *loaded) event.Event { return l.arrival(l.many + 1) },
		"arrive-other":  func(l *loaded) event.Event { a := l.arrival(l.many + 1); a.Peer = types.NameHash{9}; return a },
		"settle-queued": func(l *loaded) event.Event { return &event.Finish{Ticket: ticket(l.many)} },
		"settle-body":   func(l *loaded) event.Event { return &event.Finish{Ticket: ticket(l.many / 4), Bytes: 1} },
		"stream":        func(l *loaded) event.Event { return &event.ReserveBytes{Ticket: ticket(l.many / 2), Bytes: 64 << 10} },
		"cancel":        func(l *loaded) event.Event { return event.Cancel{Ticket: ticket(l.many)} },
		"request":       func(l *loaded) event.Event { return l.transfer(l.many + 1) },
		"find": func(l *loaded) event.Event {
			return &event.FindOutcome{Ticket: ticket(l.many + 1), Caller: root, Tenant: tenant}
		},
		"durable": func(*loaded) event.Event { return event.Durable{} },
		"folded":  func(*loaded) event.Event { return event.Applied{} },
		"indexed": func(*loaded) event.Event { return event.Indexed{} },
		"tick":    func(*loaded) event.Event { return event.Tick{} },
	}
}

// loaded is a node with many requests: half of the admitted ones have permits, and half of those
// hold a part of a body; the other half is queued. As many replies are held.
type loaded struct {
	node    *node.Node
	now     types.Now
	out     event.Effects
	many    int
	nonce   types.Nonce
	scratch []byte
}

func ticket(i int) types.Ticket { return types.NewTicket(uint32(i), 1) }

func newLoaded(many int) *loaded {
	c := config(many)
	l := &loaded{node: node.New(c, state.New(c.State, 1), 1, types.NewRand(1)), now: types.Now{Mono: 1, Wall: 1_700_000_000_000}, many: many}
	l.step(event.Recovered{Recovery: event.Recovery{Journal: 9}})
	l.step(&event.CreateKey{Key: event.Key{ID: root, Tenant: tenant, Scopes: event.AllScopes, Bootstrap: true}})
	for child := range types.NumServices {
		l.step(event.ServiceUp{Service: child})
	}
	l.flush()
	l.request(event.Item{Op: event.Issue, To: types.Name{Text: []byte("ann")}, Amount: types.MinorUnits(1 << 40)}, 0)
	l.flush()
	for i := 1; i <= many; i++ {
		l.step(l.arrival(i))
	}
	for i := 1; i < many/2; i++ { // the last one with a permit has reserved nothing yet
		if i <= many/4 {
			l.step(&event.ReserveBytes{Ticket: ticket(i), Bytes: 64 << 10})
		}
	}
	for i := 1; i <= many; i++ {
		l.step(l.transfer(i))
	}
	var v event.Status
	l.node.Status(&v)
	if l.node.LSN() < types.LSN(many) || int(v.HeldReplies) != many || v.Queued[types.FacetWallet][types.ClassAuthed] != uint32(many-many/2) {
		log.Fatalf("not loaded: %+v", v)
	}
	return l
}

// step handles an event and drops all effects except frames.
func (l *loaded) step(e event.Event) {
	l.out.Decisions, l.out.Replies = l.out.Decisions[:0], l.out.Replies[:0]
	l.node.Step(l.now, e, &l.out)
}

// flush makes all frames durable and applied.
func (l *loaded) flush() {
	bytes := uint64(0)
	for _, f := range l.out.Frames {
		bytes += uint64(f.Len)
	}
	l.out.Reset()
	l.step(event.Durable{Upto: l.node.LSN(), Bytes: bytes})
	l.step(event.Applied{Upto: l.node.LSN()})
	l.step(event.Indexed{Upto: l.node.LSN()})
}

func (l *loaded) arrival(i int) *event.Admit {
	return &event.Admit{Ticket: ticket(i), Class: types.ClassAuthed, Key: root, Tenant: tenant, Peer: types.NameHash{1}, DeclaredBytes: -1, TimeLeft: time.Hour}
}

func (l *loaded) transfer(i int) *event.Request {
	l.nonce++
	return l.sealed(event.Item{Op: event.Transfer, From: types.Name{Text: []byte("ann")}, To: types.Name{Text: []byte("bob")}, Amount: types.MinorUnits(1), Nonce: l.nonce}, i)
}

func (l *loaded) request(item event.Item, i int) { l.step(l.sealed(item, i)) }

func (l *loaded) sealed(item event.Item, i int) *event.Request {
	in := &event.Request{Item: item}
	in.Key.Text, in.Asset.Text = []byte("key-"+strconv.Itoa(i)), []byte("EUR/2")
	in.Caller, in.Tenant, in.Ticket = root, tenant, ticket(i)
	l.scratch = in.Seal(l.scratch)
	return in
}

// config has room for twice as many requests, so that none is rejected.
func config(many int) node.Config {
	room := 2*many + 8
	all := [types.NumClasses]int{room, room, room}
	gate := admission.Limits{Places: room, Quantum: 64 << 10, Weights: [types.NumClasses]uint64{10, 5, 1}, Least: 4 << 10, Wait: time.Minute, Grace: time.Second}
	for f := range gate.Facets {
		gate.Facets[f] = admission.Facet{Permits: many / 2, Queue: room, PerClass: all, PerFlow: room}
	}
	tables := state.Limits{
		Ledger: ledger.Limits{Accounts: 8, Holdings: 8, Assets: 4, Tenants: 4, TenantAccounts: 8, TenantHoldings: 8, TenantAssets: 4, Holds: 8, TenantHolds: 8,
			MaxAmount: types.MinorUnits(1e18), MaxDailyDebit: types.Amount{Hi: 1 << 40}, MaxDailyIssue: types.Amount{Hi: 1 << 40}},
		Idempotency: idempotency.Limits{Keys: room, PerTenant: room, Tenants: 4, TTL: time.Hour, MinRetention: 5 * time.Second},
		Keys:        4,
	}
	bytes := func(s types.QuotaScope) quota.Rule { // a quantum takes some time, and less than the longest wait
		return quota.Rule{Scope: s, Unit: types.UnitBytes, Rate: 64 << 10, Every: time.Second, Burst: 64 << 10, Classes: quota.AllClasses}
	}
	return node.Config{State: tables, MaxHeldReplies: room, MaxReplayWaiters: 64, MaxUnsyncedBytes: 1 << 30, MinFreeBytes: 1, CommitTimeout: time.Hour,
		StallThreshold: time.Minute, SyncTimeout: time.Hour, HeartbeatInterval: time.Hour, SweepInterval: time.Hour, StartTimeout: time.Hour,
		Drain: drain.Times{Drain: time.Hour, Abort: time.Hour}, MaxUpstreamCalls: 4, Admission: gate, MaxPacingDelay: time.Minute,
		QuotaLimits: quota.Limits{Peers: 16, Keys: 16, Tenants: 4}, Quotas: []quota.Rule{bytes(types.ScopePeer), bytes(types.ScopeTenant)}}
}
