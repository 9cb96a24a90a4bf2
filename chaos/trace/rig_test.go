package trace_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"macronode/chaos/trace"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/gateway/quota"
	"macronode/core/idempotency"
	"macronode/core/lifecycle/drain"
	"macronode/core/node"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

const boss types.KeyID = 7

func config() node.Config {
	l := state.Limits{
		Ledger: ledger.Limits{Accounts: 6, Holdings: 8, Assets: 3, Tenants: 2, TenantAccounts: 6, TenantHoldings: 8, TenantAssets: 3, Holds: 6, TenantHolds: 6, MaxBatchItems: 4,
			MaxAmount: types.MinorUnits(40), MaxDailyDebit: types.MinorUnits(20), MaxDailyIssue: types.MinorUnits(4000)},
		Idempotency: idempotency.Limits{Keys: 24, PerTenant: 24, Tenants: 2, TTL: 20 * time.Second, MinRetention: time.Second},
		Keys:        8,
	}
	return node.Config{State: l, MaxHeldReplies: 4, MaxReplayWaiters: 2, MaxHeldPerTenant: 3, MaxUnsyncedBytes: 40 << 10, MinFreeBytes: 4096, CommitTimeout: 3 * time.Second,
		StallThreshold: 200 * time.Millisecond, SyncTimeout: 5 * time.Second, HeartbeatInterval: time.Second, SweepInterval: time.Second, StartTimeout: 3 * time.Second,
		Drain:            drain.Times{LameDuck: 500 * time.Millisecond, Drain: 2 * time.Second, Abort: time.Second},
		MaxUpstreamCalls: 6, Upstreams: services(), Admission: smallGate(), Quotas: quotas(), QuotaLimits: quota.Limits{Peers: 2, Keys: 4, Tenants: 4}, MaxPacingDelay: 100 * time.Millisecond}
}

// rig is a random run of a node with its disk and clients.
type rig struct {
	r      *rand.Rand
	node   *node.Node
	watch  func(before, after *trace.View, what *trace.Step) error
	spoil  func(before, after *trace.View, what *trace.Step) bool // changes what is seen; true once it has
	spoilt bool
	now    types.Now
	out    event.Effects
	sizes  []event.Frame
	waits  []types.Ticket
	nonces map[string]types.Nonce
	ticket types.Ticket
	keys   int
	holds  []types.TxID
	asked  *event.Request
	ends   []types.Service // services that were stopped, and will end
	steps  int
	saw    map[string]int
	index  map[string]command.PriorOutcome // outcomes in an index, of keys and of refs
	slots  [places]types.Ticket            // tickets at the gate

	sent   map[types.Ticket]string // requests to upstreams: out, waits or answered
	others []types.KeyID           // keys that the first one has created

	gated   bool         // many requests at the gate
	serves  bool         // many requests go to upstreams, and by other keys
	config  *node.Config // nil: config()
	is      node.Config  // as it was changed
	keyless map[types.Ticket]bool
	works   map[types.Ticket]bool                     // admitted requests
	permit  types.Ticket                              // of the last of them
	hears   func(event.Event, []event.Decision) error // gets each step
}

// odds are whether failures occur, and whether the run ends with a drain.
type odds struct {
	faults bool
	ends   bool
}

var errSpoilt = errors.New("the change was not detected")

// live makes a run of a number of moves, and returns the result of its trace.
func (g *rig) live(seed uint64, moves int, o odds) error {
	g.r = rand.New(rand.NewPCG(seed, 1))
	c := config()
	if g.config != nil {
		c = *g.config
	}
	if seed%5 == 1 {
		c.Admission.Weights[types.ClassAnon] = 0
	}
	g.gated, g.serves = seed%3 == 1, seed%12 == 8
	g.sent = map[types.Ticket]string{}
	g.is, g.keyless, g.works = c, map[types.Ticket]bool{}, map[types.Ticket]bool{}
	g.node = node.New(c, state.New(c.State, 1), 1, types.NewRand(seed))
	g.watch, g.saw, g.nonces = trace.Watch(trace.New(c)), map[string]int{}, map[string]types.Nonce{}
	g.index = map[string]command.PriorOutcome{}
	g.now = types.Now{Mono: 1, Wall: 1_700_000_000_000, Synced: true}
	if err := g.say(event.Recovered{Recovery: event.Recovery{Journal: 9}}, &event.CreateKey{Ticket: g.next(), Key: event.Key{ID: boss, Tenant: 1, Scopes: event.AllScopes, Bootstrap: true}}); err != nil {
		return err
	}
	if seed%4 > 0 {
		if err := g.up(); err != nil {
			return err
		}
	}
	for range moves {
		if err := g.move(o); err != nil {
			return err
		}
	}
	if o.ends {
		if err := g.say(event.Signal{Kind: event.Drain}); err != nil {
			return err
		}
		for range 60 {
			if err := g.move(odds{faults: o.faults}); err != nil {
				return err
			}
			if g.r.IntN(30) == 0 {
				if err := g.say(event.Signal{Kind: event.Abort}); err != nil {
					return err
				}
			}
		}
	}
	if g.spoil != nil && g.spoilt {
		return errSpoilt
	}
	return nil
}

func (g *rig) next() types.Ticket { g.ticket++; return g.ticket }

func (g *rig) move(o odds) error {
	switch {
	case g.gated && g.r.IntN(2) == 0:
		return g.comes()
	case g.gated && g.r.IntN(8) == 0:
		return g.grants()
	case g.serves && g.r.IntN(3) == 0:
		return g.forwards()
	case g.serves && g.r.IntN(12) == 0:
		return g.grants()
	}
	switch n := g.r.IntN(20); {
	case n < 9:
		return g.say(g.request())
	case n < 13:
		return g.flush()
	case n < 14:
		if g.r.IntN(12) == 0 {
			return g.say(&event.CreateKey{Ticket: g.next(), Caller: boss, Tenant: 1, Key: event.Key{ID: types.KeyID(100 + g.ticket), Tenant: 1, Scopes: event.ScopeRead}})
		}
		k := fmt.Sprintf("k%d", g.r.IntN(g.keys+1))
		return g.say(&event.FindOutcome{Ticket: g.next(), Caller: boss, Tenant: 1, Key: g.name(k), IndexedTo: g.node.LSN(), Prior: g.index[k]})
	case n < 15:
		if len(g.ends) > 0 {
			c := g.ends[0]
			g.ends = g.ends[1:]
			return g.say(event.ServiceDown{Service: c})
		}
		c := types.Service(g.r.IntN(int(types.NumServices)))
		if g.r.IntN(6) == 0 && o.faults {
			return g.say(event.ServiceDown{Service: c})
		}
		return g.say(event.ServiceUp{Service: c})
	case n < 16:
		if len(g.waits) > 0 && o.faults {
			return g.say(event.Cancel{Ticket: g.waits[g.r.IntN(len(g.waits))]})
		}
		return g.up()
	case n < 17:
		var s event.Status
		g.node.Status(&s)
		return g.say(event.Indexed{Upto: s.Durable})
	case n < 18:
		if !o.faults {
			return g.flush()
		}
		switch g.r.IntN(12) {
		case 0:
			return g.say(event.DiskFree{Bytes: []uint64{0, 511, 512, 1 << 20}[g.r.IntN(4)]})
		case 1:
			var s event.Status
			if g.node.Status(&s); s.Durable < s.LSN && g.r.IntN(8) == 0 {
				return g.say(event.FlushFailed{From: s.Durable + 1, Fault: event.SyncFailed})
			}
		case 2, 3:
			g.now.Wall += types.Time(g.r.IntN(20_000) - 9_000)
		case 4:
			g.now.Wall += types.Time(g.r.IntN(100_000))
			g.now.Synced = g.r.IntN(4) > 0
		case 5:
			g.now.Wall += types.Time(g.r.IntN(900) - 300)
		case 6:
			return g.say(event.Signal{Kind: event.AcceptClock})
		}
		return g.say(event.DiskFree{Bytes: 1 << 20})
	default:
		gone := time.Duration([]int{5, 50, 150, 400, 1200}[g.r.IntN(5)]) * time.Millisecond
		if o.faults && g.r.IntN(8) == 0 {
			gone = 25 * time.Second
		}
		g.now.Mono, g.now.Wall = g.now.Mono.Add(gone), g.now.Wall.Add(gone)
		return g.say(event.Tick{})
	}
}

func (g *rig) up() error {
	for c := range types.NumServices {
		if err := g.say(event.ServiceUp{Service: c}); err != nil {
			return err
		}
	}
	return nil
}

// flush makes some frames durable; perhaps it applies them.
func (g *rig) flush() error {
	if n := len(g.sizes); n > 0 {
		n = 1 + g.r.IntN(n)
		d := event.Durable{Upto: g.sizes[n-1].LSN}
		for _, f := range g.sizes[:n] {
			d.Bytes += uint64(f.Len)
		}
		g.sizes = g.sizes[n:]
		if err := g.say(d); err != nil {
			return err
		}
	}
	var s event.Status
	if g.node.Status(&s); s.Applied < s.Durable && g.r.IntN(3) > 0 {
		return g.say(event.Applied{Upto: s.Durable})
	}
	return nil
}

func (g *rig) name(text string) types.Name {
	n := types.Name{Text: []byte(text)}
	r := event.FindOutcome{Key: n}
	r.Seal()
	return r.Key
}

// request makes a new request, or repeats the last one.
func (g *rig) request() *event.Request {
	r := &event.Request{Header: command.Header{Ticket: g.next(), Caller: boss, Tenant: 1, IndexedTo: g.node.LSN()}}
	switch {
	case g.asked != nil && g.r.IntN(5) == 0:
		r.Item, r.Key = g.asked.Item, g.asked.Key
	default:
		g.keys++
		caller := []string{"ann", "bob", "cy"}
		g.item(&r.Item, caller[g.r.IntN(3)], caller[g.r.IntN(3)])
		r.Key.Text = fmt.Appendf(nil, "k%d", g.keys)
		if g.r.IntN(20) == 0 { // a key with another request
			r.Key.Text = fmt.Appendf(nil, "k%d", g.r.IntN(g.keys+1))
		}
	}
	if len(g.others) > 0 && g.r.IntN(3) == 0 {
		r.Caller = g.others[g.r.IntN(len(g.others))]
	}
	if r.Seal(nil); g.keys%2 == 0 {
		r.Permit = g.permit
	}
	r.Prior, r.PriorRef = g.index[string(r.Key.Text)], g.index[string(r.Ref.Text)].ID
	g.asked = r
	return r
}

// indexes adds a frame to the index.
func (g *rig) indexes(body []byte) {
	h, rest, err := record.Open(body)
	for i := range h.Count {
		var r record.Record
		if err == nil {
			rest, err = record.Next(rest, &r)
		}
		if err != nil {
			return
		}
		seen := command.PriorOutcome{Hash: r.Hash, ID: types.NewTxID(9, types.Position{LSN: h.LSN, Index: i}), At: h.At}
		if r.IsOutcome() {
			g.index[string(r.Key.Text)] = seen
		}
		if len(r.Ref.Text) > 0 {
			g.index[string(r.Ref.Text)] = seen
		}
	}
}

func (g *rig) item(i *event.Item, from, to string) {
	i.Asset, i.Amount = types.Name{Text: []byte("EUR/2")}, types.MinorUnits(uint64(1+g.r.IntN(9)))
	i.From.Text, i.To.Text = []byte(from), []byte(to)
	i.Nonce = max(1, g.nonces[from]+types.Nonce([]int{0, 1, 1, 1, 1, 1, 1, 2}[g.r.IntN(8)]))
	switch n := g.r.IntN(10); {
	case n < 3 || from == to && n < 8:
		i.Op, i.From, i.Nonce = event.Issue, types.Name{}, 0
		if g.r.IntN(5) == 0 {
			i.Ref.Text = fmt.Appendf(nil, "r%d", g.keys)
		}
	case n < 7:
		i.Op = event.Transfer
	case n < 8:
		i.Op, i.To = event.Burn, types.Name{}
	case len(g.holds) == 0 || n < 9:
		i.Op, i.To, i.ExpiresAt = event.Hold, types.Name{}, g.now.Wall.Add(time.Duration(1+g.r.IntN(4000))*time.Millisecond)
	default:
		i.Op, i.Nonce, i.Hold = event.Capture, 0, g.holds[g.r.IntN(len(g.holds))]
		if from == to {
			i.To.Text = []byte("shop")
		}
	}
}

func (g *rig) say(events ...event.Event) error {
	for _, in := range events {
		if err := g.step(in); err != nil {
			return fmt.Errorf("step %d, %T %+v: %w", g.steps, in, in, err)
		}
	}
	return nil
}

func (g *rig) step(in event.Event) error {
	var before, after trace.View
	g.node.Status(&before.Status)
	if before.Phase == types.Stopped {
		return nil
	}
	g.out.Reset()
	g.node.Step(g.now, in, &g.out)
	g.node.Status(&after.Status)
	g.steps++
	if g.hears != nil {
		if err := g.hears(in, g.out.Decisions); err != nil {
			return err
		}
	}
	s := trace.Step{Now: g.now, In: in, Replies: g.out.Replies, Verdicts: g.out.Decisions, Childs: g.out.ServiceCommands, Answers: g.out.UpstreamReplies}
	for _, f := range g.out.Frames {
		s.Frame = g.out.Body(f)
		g.indexes(s.Frame)
		g.sizes = append(g.sizes, f)
	}
	for _, op := range s.Childs {
		if op.Verb != event.StartService {
			g.ends = append(g.ends, op.Service)
		}
	}
	if q, ok := in.(*event.Request); ok {
		g.waits = append(g.waits, q.Ticket)
		if q.Op == event.Hold && len(s.Frame) > 0 {
			g.holds = append(g.holds, types.NewTxID(9, types.Position{LSN: after.LSN}))
		}
		if len(s.Frame) > 0 && q.Nonce > 0 {
			g.nonces[string(q.From.Text)] = max(g.nonces[string(q.From.Text)], q.Nonce)
		}
	}
	for _, v := range s.Verdicts {
		switch {
		case g.works[v.Ticket]:
			g.saw["more "+v.Reason.String()]++
		case v.Reason == event.Admitted:
			g.works[v.Ticket], g.permit = true, v.Ticket
			g.saw["gate admitted"]++
		default:
			g.saw["gate "+v.Reason.String()]++
			g.slots[v.Ticket.Slot()] = 0
		}
	}
	for _, r := range s.Replies {
		g.saw["told "+r.Problem.Code()]++
		if r.Problem == event.NonceUsed || r.Problem == event.NonceAhead {
			g.saw["nonce"]++
		}
		if r.Replayed {
			g.saw["replayed"]++
		}
	}
	g.saw[after.Phase.String()]++
	if g.spoil != nil && !g.spoilt {
		g.spoilt = g.spoil(&before, &after, &s)
	}
	return g.watch(&before, &after, &s)
}
