package trace_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"macronode/chaos/trace"
	"macronode/core/drain"
	"macronode/core/event"
	"macronode/core/idem"
	"macronode/core/ledger"
	"macronode/core/node"
	"macronode/core/quota"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/words"
)

const boss words.KeyID = 7

func config() node.Config {
	l := state.Limits{
		Ledger: ledger.Limits{Accounts: 6, Holdings: 8, Assets: 3, Tenants: 2, TenantAccounts: 6, TenantHoldings: 8, TenantAssets: 3, Holds: 6, TenantHolds: 6, Items: 4,
			Amount: words.Units(40), Day: words.Units(200), IssueDay: words.Units(4000)},
		Idem: idem.Limits{Keys: 24, Share: 24, Tenants: 2, TTL: 20 * time.Second, Trail: time.Second},
		Keys: 8,
	}
	return node.Config{State: l, Held: 4, Waiters: 2, Share: 3, Backlog: 40 << 10, Reserve: 4096, Patience: 3 * time.Second,
		Stall: 200 * time.Millisecond, Fail: 5 * time.Second, Vouch: time.Second, Sweep: time.Second, Start: 3 * time.Second,
		Drain: drain.Times{LameDuck: 500 * time.Millisecond, Drain: 2 * time.Second, Abort: time.Second},
		Admit: house(), Quotas: quotas(), Subjects: quota.Limits{Peers: 2, Keys: 4, Tenants: 4}, Pace: 100 * time.Millisecond}
}

// rig is one life of a node whose disk and clients are chance's.
type rig struct {
	r      *rand.Rand
	node   *node.Node
	watch  func(before, after *trace.View, what *trace.Step) error
	spoil  func(before, after *trace.View, what *trace.Step) bool // what is seen is changed; true once it was
	spoilt bool
	now    words.Now
	out    event.Effects
	sizes  []event.Frame
	waits  []words.Ticket
	nonces map[string]words.Nonce
	ticket words.Ticket
	keys   int
	holds  []words.TxID
	asked  *event.Request
	ends   []words.Child // those who were asked to end, and will
	steps  int
	saw    map[string]int
	index  map[string]event.Seen // what an index would say, of keys and of refs
	slots  [places]words.Ticket  // who is at the gate

	gated     bool         // many are at the gate
	config    *node.Config // nil: config()
	is        node.Config  // as it was changed
	strangers map[words.Ticket]bool
	works     map[words.Ticket]bool                    // were told to go
	hears     func(event.Event, []event.Verdict) error // each step
}

// odds are whether anything goes wrong, and whether the life has an end.
type odds struct {
	faults bool
	ends   bool
}

var errSpoilt = errors.New("what was changed was not seen")

// live plays a life of so many moves, and returns what its watch says.
func (g *rig) live(seed uint64, moves int, o odds) error {
	g.r = rand.New(rand.NewPCG(seed, 1))
	c := config()
	if g.config != nil {
		c = *g.config
	}
	if seed%5 == 1 {
		c.Admit.Weights[words.Anon] = 0
	}
	g.gated = seed%3 == 1
	g.is, g.strangers, g.works = c, map[words.Ticket]bool{}, map[words.Ticket]bool{}
	g.node = node.New(c, state.New(c.State, 1), 1, words.NewDice(seed))
	g.watch, g.saw, g.nonces = trace.Watch(trace.New(c)), map[string]int{}, map[string]words.Nonce{}
	g.index = map[string]event.Seen{}
	g.now = words.Now{Mono: 1, Wall: 1_700_000_000_000, Synced: true}
	if err := g.say(event.Boot{Found: event.Recovery{Journal: 9}}, &event.Enrol{Ticket: g.next(), Key: event.Key{ID: boss, Tenant: 1, Scopes: event.AllScopes, Boot: true}}); err != nil {
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
		if err := g.say(event.Signal{What: event.Drain}); err != nil {
			return err
		}
		for range 60 {
			if err := g.move(odds{faults: o.faults}); err != nil {
				return err
			}
			if g.r.IntN(30) == 0 {
				if err := g.say(event.Signal{What: event.Abort}); err != nil {
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

func (g *rig) next() words.Ticket { g.ticket++; return g.ticket }

func (g *rig) move(o odds) error {
	if g.gated && g.r.IntN(2) == 0 {
		return g.comes()
	}
	switch n := g.r.IntN(20); {
	case n < 9:
		return g.say(g.request())
	case n < 13:
		return g.flush()
	case n < 14:
		if g.r.IntN(12) == 0 {
			return g.say(&event.Enrol{Ticket: g.next(), Caller: boss, Tenant: 1, Key: event.Key{ID: words.KeyID(100 + g.ticket), Tenant: 1, Scopes: event.MayRead}})
		}
		k := fmt.Sprintf("k%d", g.r.IntN(g.keys+1))
		return g.say(&event.Find{Ticket: g.next(), Caller: boss, Tenant: 1, Key: g.name(k), Upto: g.node.LSN(), Seen: g.index[k]})
	case n < 15:
		if len(g.ends) > 0 {
			c := g.ends[0]
			g.ends = g.ends[1:]
			return g.say(event.ChildDown{Child: c})
		}
		c := words.Child(g.r.IntN(int(words.Children)))
		if g.r.IntN(6) == 0 && o.faults {
			return g.say(event.ChildDown{Child: c})
		}
		return g.say(event.ChildUp{Child: c})
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
			return g.say(event.Room{Free: uint64(g.r.IntN(2)) << 20})
		case 1:
			var s event.Status
			if g.node.Status(&s); s.Durable < s.LSN && g.r.IntN(8) == 0 {
				return g.say(event.Refused{From: s.Durable + 1, Why: event.SyncFailed})
			}
		case 2, 3:
			g.now.Wall += words.Time(g.r.IntN(20_000) - 9_000)
		case 4:
			g.now.Wall += words.Time(g.r.IntN(100_000))
			g.now.Synced = g.r.IntN(4) > 0
		case 5:
			g.now.Wall += words.Time(g.r.IntN(900) - 300)
		case 6:
			return g.say(event.Signal{What: event.AcceptClock})
		}
		return g.say(event.Room{Free: 1 << 20})
	default:
		gone := time.Duration([]int{5, 50, 150, 400, 1200}[g.r.IntN(5)]) * time.Millisecond
		if o.faults && g.r.IntN(8) == 0 {
			gone = 25 * time.Second
		}
		g.now.Mono, g.now.Wall = g.now.Mono.Plus(gone), g.now.Wall.Plus(gone)
		return g.say(event.Tick{})
	}
}

func (g *rig) up() error {
	for c := range words.Children {
		if err := g.say(event.ChildUp{Child: c}); err != nil {
			return err
		}
	}
	return nil
}

// flush makes some frames durable, and tells the node so; perhaps it folds them.
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
	if g.node.Status(&s); s.Folded < s.Durable && g.r.IntN(3) > 0 {
		return g.say(event.Folded{Upto: s.Durable})
	}
	return nil
}

func (g *rig) name(text string) words.Name {
	n := words.Name{Text: []byte(text)}
	r := event.Find{Key: n}
	r.Seal()
	return r.Key
}

// request asks for something new, or once more for what was asked last.
func (g *rig) request() *event.Request {
	r := &event.Request{Ticket: g.next(), Caller: boss, Tenant: 1, Upto: g.node.LSN()}
	switch {
	case g.asked != nil && g.r.IntN(5) == 0:
		r.Item, r.Key = g.asked.Item, g.asked.Key
	default:
		g.keys++
		who := []string{"ann", "bob", "cy"}
		g.item(&r.Item, who[g.r.IntN(3)], who[g.r.IntN(3)])
		r.Key.Text = fmt.Appendf(nil, "k%d", g.keys)
		if g.r.IntN(20) == 0 { // a key that asked something else
			r.Key.Text = fmt.Appendf(nil, "k%d", g.r.IntN(g.keys+1))
		}
	}
	r.Seal(nil)
	r.Seen, r.Used = g.index[string(r.Key.Text)], g.index[string(r.Ref.Text)].ID
	g.asked = r
	return r
}

// indexes notes what an index will know of a frame.
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
		seen := event.Seen{Asked: r.Asked, ID: words.NewTxID(9, words.Place{LSN: h.LSN, Index: i}), At: h.At}
		if r.Keyed() {
			g.index[string(r.Key.Text)] = seen
		}
		if len(r.Ref.Text) > 0 {
			g.index[string(r.Ref.Text)] = seen
		}
	}
}

func (g *rig) item(i *event.Item, from, to string) {
	i.Asset, i.Amount = words.Name{Text: []byte("EUR/2")}, words.Units(uint64(1+g.r.IntN(9)))
	i.From.Text, i.To.Text = []byte(from), []byte(to)
	i.Nonce = max(1, g.nonces[from]+words.Nonce([]int{0, 1, 1, 1, 1, 1, 1, 2}[g.r.IntN(8)]))
	switch n := g.r.IntN(10); {
	case n < 3 || from == to && n < 8:
		i.Op, i.From, i.Nonce = event.Issue, words.Name{}, 0
		if g.r.IntN(5) == 0 {
			i.Ref.Text = fmt.Appendf(nil, "r%d", g.keys)
		}
	case n < 7:
		i.Op = event.Transfer
	case n < 8:
		i.Op, i.To = event.Burn, words.Name{}
	case len(g.holds) == 0 || n < 9:
		i.Op, i.To, i.Until = event.Hold, words.Name{}, g.now.Wall.Plus(time.Duration(1+g.r.IntN(4000))*time.Millisecond)
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
	if before.Phase == words.Stopped {
		return nil
	}
	g.out.Reset()
	g.node.Step(g.now, in, &g.out)
	g.node.Status(&after.Status)
	g.steps++
	if g.hears != nil {
		if err := g.hears(in, g.out.Verdicts); err != nil {
			return err
		}
	}
	s := trace.Step{Now: g.now, In: in, Replies: g.out.Replies, Verdicts: g.out.Verdicts, Childs: g.out.Childs}
	for _, f := range g.out.Frames {
		s.Frame = g.out.Body(f)
		g.indexes(s.Frame)
		g.sizes = append(g.sizes, f)
	}
	for _, op := range s.Childs {
		if op.What != event.StartChild {
			g.ends = append(g.ends, op.Child)
		}
	}
	if q, ok := in.(*event.Request); ok {
		g.waits = append(g.waits, q.Ticket)
		if q.Op == event.Hold && len(s.Frame) > 0 {
			g.holds = append(g.holds, words.NewTxID(9, words.Place{LSN: after.LSN}))
		}
		if len(s.Frame) > 0 && q.Nonce > 0 {
			g.nonces[string(q.From.Text)] = max(g.nonces[string(q.From.Text)], q.Nonce)
		}
	}
	for _, v := range s.Verdicts {
		switch {
		case g.works[v.Ticket]:
			g.saw["more "+v.Why.String()]++
		case v.Why == event.Admitted:
			g.works[v.Ticket] = true
			g.saw["gate admitted"]++
		default:
			g.saw["gate "+v.Why.String()]++
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
