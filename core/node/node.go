// Package node is the whole node as one deterministic machine: a switchboard that
// carries each event to the machines that decide, and their decisions out.
//
//	event ──► Step ──► a frame, applied at once ──► sealed, durable, folded
//	             └───► replies, held until what they tell of is folded ◄──┘
package node

import (
	"time"

	"macronode/core/admit"
	"macronode/core/clock"
	"macronode/core/drain"
	"macronode/core/event"
	"macronode/core/queue"
	"macronode/core/quota"
	"macronode/core/ready"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/supervise"
	"macronode/core/table"
	"macronode/core/upstream"
	"macronode/core/words"
)

// Config is what a node is made with.
type Config struct {
	State    state.Limits
	Held     int           // replies that wait
	Waiters  int           // of them, those of a key whose first reply waits too
	Share    int           // of them, those of one tenant; 0: all
	Backlog  uint64        // bytes of frames that are not durable; sweeps stop at half of it
	Reserve  uint64        // bytes of the disk that are kept for recovery and drain
	Patience time.Duration // how long a reply may wait
	Stall    time.Duration // a flush that takes longer stops writes
	Fail     time.Duration // one that takes longer is given up
	Vouch    time.Duration // after so long a silence the last frame gets a successor
	Sweep    time.Duration // between two looks for expired keys
	Start    time.Duration // for all dependencies
	Drain    drain.Times
	Admit    admit.Limits
	Quotas   []quota.Rule
	Subjects quota.Limits
	Pace     time.Duration // how long who comes may wait for the instance's quota, of the class of the least weight
	Calls    int           // requests that are with upstreams at once
	Beyond   []upstream.Rules
	Awaited  uint64 // upstreams that must be well once before anything is served: bit i is upstream i
	Gate     uint64 // version of what says who may come in; a Renew moves it
}

// Node decides. All of it is plain data.
//
// Invariants:
//
//	N1  folded ≤ durable ≤ the last frame, and indexed ≤ durable
//	N2  replies are held in the order of After, which is that of their deadlines
//	N3  waiters is the number of held replies that are replays
//	N4  the backlog is empty if and only if the last frame is durable
//	N5  crowd is, of each tenant, the number of its replies that are held
//	N7  a reply that is held and not cancelled is found from its ticket
//	N6  nobody waits for a permit that is there, where the instance's quota lets him go
type Node struct {
	plain

	state  state.State // changed by open and record only
	quota  quota.Quota
	admit  admit.Admit
	beyond upstream.Upstreams
	held   queue.Queue[waiting]
	crowd  table.Table[words.Tenant, count] // of held

	heldAt  table.Pool[words.Ticket, nothing] // of held, those that are not cancelled
	numbers []uint64                          // of each place in heldAt, the number of the reply in held

	rec record.Record // of the step at hand: nothing of it is read in another, so it is not copied
}

// plain is what of a node is copied as it stands: it owns no memory.
type plain struct {
	config Config // shared: nobody changes what it points to
	clock  clock.Clock
	ready  ready.Ready
	super  supervise.Supervisor
	drain  drain.Drain

	durable  words.LSN
	folded   words.LSN
	indexed  words.LSN     // the index holds all up to here, for ever
	keyAt    words.LSN     // the frame of the first API key, until it is folded
	backlog  uint64        // bytes
	flushing words.Instant // the flush at hand began
	quiet    words.Instant // the last frame was begun
	sweep    words.Instant // the next look for expired keys
	waiters  uint32
	fault    event.Fault // how the journal failed first
	booted   bool
	idle     bool // the last frame holds nothing but the time
	begun    bool // the step at hand has its frame
	report   event.Report
	gaveUp   uint64 // replies, at an abort
}

// New makes a node of what recovery folded; s is the node's own from now on.
func New(c Config, s state.State, now words.Instant, dice words.Dice) *Node {
	if c.Share == 0 {
		c.Share = c.Held
	}
	seed := dice
	slots := words.Hash64(seed.Below(1 << 62))
	c.Subjects.Places = c.Admit.Places
	return &Node{state: s, held: queue.New[waiting](c.Held, queue.Reject),
		crowd:  table.New[words.Tenant, count](c.State.Ledger.Tenants, slots),
		heldAt: table.NewPool[words.Ticket, nothing](c.Held, slots), numbers: make([]uint64, c.Held),
		quota: quota.New(c.Quotas, c.Subjects, slots), admit: admit.New(c.Admit, slots),
		beyond: upstream.New(max(1, c.Calls), seed, c.Beyond...),
		plain: plain{config: c, clock: clock.From(s.At), ready: ready.New(now, c.Start, c.Awaited), super: supervise.New(dice),
			drain: drain.New(c.Drain), durable: s.LSN, folded: s.LSN, idle: true}}
}

// Step carries one event to its effects: at most one frame, no allocation once out
// has grown, no loop but over what is bounded by a limit.
func (n *Node) Step(now words.Now, in event.Event, out *event.Effects) {
	at, phase := n.clock.Read(now), n.drain.Phase()
	n.begun = false
	n.ready.Ail(words.ClockDoubted, n.clock.Doubted())
	n.ready.Ail(words.BreakerOpen, n.beyond.Broken() != 0)
	switch in := in.(type) {
	case *event.Arrive:
		n.arrive(now, in, out)
	case *event.Stream:
		n.stream(now.Mono, in, out)
	case *event.Settle:
		n.settle(now.Mono, in, out)
	case *event.Renew:
		n.renew(now.Mono, in, out)
	case *event.Ask:
		n.ask(now.Mono, in, out)
	case event.Probed:
		n.beyond.Probed(now.Mono, in)
		n.ready.Ail(words.NoEndpoint, n.beyond.Down() != 0)
		if in.Well {
			n.ready.Await(^(uint64(1) << in.Upstream))
		}
	case *event.Request:
		n.request(now, at, in, out)
	case *event.Find:
		n.find(now, at, in, out)
	case *event.Enrol:
		n.enrol(now, at, in, out)
	case *event.Revoke:
		n.revoke(now, at, in, out)
	case event.Boot:
		n.boot(now, at, in, out)
	case event.Durable:
		n.sync(now, in)
	case event.Folded:
		n.fold(in.Upto, out)
	case event.Indexed:
		words.Assert(in.Upto <= n.durable, "node: indexed what is not durable")
		n.indexed = max(n.indexed, in.Upto)
	case event.Refused:
		n.refuse(in.From, in.Why, out)
	case event.Cancel:
		n.cancel(in.Ticket)
	case event.ChildUp:
		n.super.Up(in.Child)
		if need, ok := in.Child.Need(); ok {
			n.ready.Meet(need)
		}
	case event.ChildDown:
		n.super.Down(now.Mono, in.Child)
		if need, ok := in.Child.Need(); ok {
			n.ready.Miss(need)
		}
	case event.Room:
		n.ready.Ail(words.DiskFull, in.Free < n.config.Reserve)
	case event.Reloaded:
		n.ready.Ail(words.ReloadFailed, in.Failed)
	case event.Signal:
		n.signal(now, in.What)
	case event.Tick:
		n.tick(now, at, out)
	}
	n.live(now, phase, out)
}

// boot begins the life after a recovery. A damaged journal is read and not written.
func (n *Node) boot(now words.Now, at words.Time, in event.Boot, out *event.Effects) {
	n.booted = true
	n.ready.Meet(words.NeedJournal)
	if n.state.Keys.Ruled(at) {
		n.ready.Meet(words.NeedKey)
	}
	n.super.Begin(out)
	if in.Found.Damaged {
		n.fault = event.Damaged
		n.ready.Ail(words.JournalFailed, true)
		return
	}
	n.rec = record.Record{Kind: record.Booted, Journal: in.Found.Journal, Cut: in.Found.Cut, Tail: in.Found.Tail}
	n.begin(now, at, out)
	n.record(out)
}

// sync notes what is on disk. The next flush, if anything is left, begins now.
func (n *Node) sync(now words.Now, in event.Durable) {
	words.Assert(in.Upto <= n.state.LSN && in.Bytes <= n.backlog, "node: durable beyond what was emitted")
	n.durable = max(n.durable, in.Upto)
	n.backlog -= in.Bytes
	n.flushing = now.Mono
	n.ready.Ail(words.Stalled, false)
}

// fold notes what the follower knows, and lets go whatever tells of no more.
func (n *Node) fold(upto words.LSN, out *event.Effects) {
	words.Assert(upto <= n.durable, "node: folded what is not durable")
	n.folded = max(n.folded, upto)
	if n.keyAt > 0 && n.keyAt <= n.folded {
		n.keyAt = 0
		n.ready.Meet(words.NeedKey)
	}
	n.release(out)
}

// refuse gives up all frames ≥ from: what they hold is not known, until a restart
// has read what the disk has.
func (n *Node) refuse(from words.LSN, why event.Fault, out *event.Effects) {
	if n.fault == 0 {
		n.fault = why
	}
	n.ready.Ail(words.JournalFailed, true)
	n.giveUp(out, func(w waiting) bool { return w.reply.After >= from })
}

func (n *Node) signal(now words.Now, what event.Signals) {
	switch what {
	case event.Drain:
		n.keepTime(now.Mono)
		n.drain.Begin(now.Mono)
	case event.Abort:
		n.keepTime(now.Mono)
		n.drain.Begin(now.Mono)
		n.drain.Abort(now.Mono)
	case event.AcceptClock:
		n.clock.Accept()
	}
}

// keepTime makes the next time frame due at once when an end is asked for, if the clock
// leads: the next start goes on from the journal's time, and must not read one that was
// reported before the end. A crash can still lose one interval of Vouch.
func (n *Node) keepTime(now words.Instant) {
	if n.clock.Leads() && !n.drain.Begun() {
		n.quiet = min(n.quiet, now.Plus(-n.config.Vouch))
	}
}

// tick does what is due.
func (n *Node) tick(now words.Now, at words.Time, out *event.Effects) {
	n.ready.Tick(now.Mono)
	if n.outstanding() {
		n.ready.Ail(words.Stalled, n.ready.Has(words.Stalled) || n.flushing.Plus(n.config.Stall) <= now.Mono)
		if n.flushing.Plus(n.config.Fail) <= now.Mono {
			n.refuse(n.durable+1, event.TooSlow, out)
		}
	}
	n.expire(out, now.Mono)
	n.late(now.Mono, out)
	n.beyond.Tick(now.Mono)
	if n.sweeps() && n.sweep <= now.Mono {
		n.sweep = now.Mono.Plus(n.config.Sweep)
		if n.clear(now, at, out) {
			n.sweep = now.Mono // there may be more
			return
		}
	}
	if n.vouches() && n.quiet.Plus(n.config.Vouch) <= now.Mono {
		n.begin(now, at, out)
	}
}

// clear records that a bounded number of keys have left the window, and that of holds
// the time is over.
func (n *Node) clear(now words.Now, at words.Time, out *event.Effects) bool {
	if n.clock.Doubted() || !n.ready.Writes() || n.backlog > n.config.Backlog/2 {
		return false
	}
	if upto, any := n.state.Idem.Spare(at, n.indexed, words.MaxExpire); any {
		n.rec = record.Record{Kind: record.Forgot, Upto: upto}
		n.begin(now, at, out)
		n.record(out)
	}
	for range words.MaxExpire {
		n.rec = record.Record{}
		if !n.state.Ledger.Overdue(at, &n.rec) {
			break
		}
		n.begin(now, at, out)
		n.record(out)
	}
	return n.begun
}

// live moves the node's own life on: children, and the drain from where it stood
// before the step.
func (n *Node) live(now words.Now, before words.Phase, out *event.Effects) {
	if !n.booted {
		return
	}
	n.ready.Ail(words.IndexBehind, n.state.Idem.Tight() || !n.super.IsUp(words.ChildIndexer))
	if !n.drain.Begun() {
		n.super.Tick(now.Mono, out)
		n.ready.Ail(words.Restarting, n.super.Troubled(now.Mono))
		return
	}
	quiet := n.super.IsDown(words.ChildHTTP) && n.held.Len() == 0 && !n.outstanding()
	n.drain.Move(now.Mono, quiet)
	phase := n.drain.Phase()
	if before < words.Draining && phase >= words.Draining {
		n.super.Stop(words.ChildHTTP, event.StopChild, out)
		n.shut(now.Mono, out)
	}
	if before < words.Aborting && phase >= words.Aborting && !quiet {
		n.super.Stop(words.ChildHTTP, event.KillChild, out)
		n.gaveUp += uint64(n.held.Len())
		n.giveUp(out, func(waiting) bool { return true })
	}
}

// outstanding reports that a flush is owed to frames that can still become durable.
func (n *Node) outstanding() bool {
	return n.durable < n.state.LSN && !n.ready.Has(words.JournalFailed)
}
