// Package node is the whole node as one deterministic machine: a switchboard that
// carries each event to the machines that decide, and their decisions out.
//
//	event ──► Step ──► a frame, applied at once ──► sealed, durable, folded
//	             └───► replies, held until what they tell of is folded ◄──┘
package node

import (
	"time"

	"macronode/core/clock"
	"macronode/core/event"
	"macronode/core/gateway/admission"
	"macronode/core/gateway/quota"
	"macronode/core/gateway/upstream"
	"macronode/core/lifecycle/drain"
	"macronode/core/lifecycle/readiness"
	"macronode/core/lifecycle/supervisor"
	"macronode/core/queue"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/table"
	"macronode/core/types"
)

// Config is what a node is made with.
type Config struct {
	State             state.Limits
	MaxHeldReplies    int           // replies that wait
	MaxReplayWaiters  int           // of them, those of a key whose first reply waits too
	MaxHeldPerTenant  int           // of them, those of one tenant; 0: all
	MaxUnsyncedBytes  uint64        // bytes of frames that are not durable; sweeps stop at half of it
	MinFreeBytes      uint64        // bytes of the disk that are kept for recovery and drain
	CommitTimeout     time.Duration // how long a reply may wait
	StallThreshold    time.Duration // a flush that takes longer stops writes
	SyncTimeout       time.Duration // one that takes longer is given up
	HeartbeatInterval time.Duration // after so long a silence the last frame gets a successor
	SweepInterval     time.Duration // between two looks for expired keys
	StartTimeout      time.Duration // for all dependencies
	Drain             drain.Times
	Admission         admission.Limits
	Quotas            []quota.Rule
	QuotaLimits       quota.Limits
	MaxPacingDelay    time.Duration // how long who comes may wait for the instance's quota, of the class of the least weight
	MaxUpstreamCalls  int           // requests that are with upstreams at once
	Upstreams         []upstream.Rules
	AwaitedUpstreams  uint64 // upstreams that must be well once before anything is served: bit i is upstream i
	PolicyVersion     uint64 // version of what says who may come in; a Renew moves it
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
	scalars

	state        state.State // changed by open and record only
	quota        quota.Quota
	admission    admission.Admit
	upstreams    upstream.Upstreams
	held         queue.Queue[heldReply]
	heldByTenant table.Table[types.Tenant, heldCount] // of held

	heldAt  table.Pool[types.Ticket, nothing] // of held, those that are not cancelled
	numbers []uint64                          // of each place in heldAt, the number of the reply in held

	rec    record.Record // scratch of a step: the record to add
	frame  frame         // scratch of a step: the frame as its plane sees it
	answer event.Reply   // scratch of a step: the reply to its command
}

// scalars is what of a node is copied as it stands: it owns no memory.
type scalars struct {
	config     Config // shared: nobody changes what it points to
	clock      clock.Clock
	readiness  readiness.Readiness
	supervisor supervisor.Supervisor
	drain      drain.Drain

	durable        types.LSN
	applied        types.LSN
	indexed        types.LSN     // the index holds all up to here, for ever
	firstKeyAt     types.LSN     // the frame of the first API key, until it is folded
	backlog        uint64        // bytes
	flushStarted   types.Instant // the flush at hand began
	lastFrameAt    types.Instant // the last frame was begun
	nextSweep      types.Instant // the next look for expired keys
	replayWaiters  uint32
	fault          event.Fault // how the journal failed first
	recovered      bool
	lastFrameEmpty bool // the last frame holds nothing but the time
	frameOpen      bool // the step at hand has its frame
	report         event.DrainReport
	abortedReplies uint64 // replies, at an abort
}

// New makes a node of what recovery folded; s is the node's own from now on.
func New(c Config, s state.State, now types.Instant, dice types.Rand) *Node {
	if c.MaxHeldPerTenant == 0 {
		c.MaxHeldPerTenant = c.MaxHeldReplies
	}
	seed := dice
	slots := types.Hash64(seed.Uint64n(1 << 62))
	c.QuotaLimits.Slots = c.Admission.Places
	return &Node{state: s, held: queue.New[heldReply](c.MaxHeldReplies, queue.Reject),
		heldByTenant: table.New[types.Tenant, heldCount](c.State.Ledger.Tenants, slots),
		heldAt:       table.NewPool[types.Ticket, nothing](c.MaxHeldReplies, slots), numbers: make([]uint64, c.MaxHeldReplies),
		quota: quota.New(c.Quotas, c.QuotaLimits, slots), admission: admission.New(c.Admission, slots),
		upstreams: upstream.New(max(1, c.MaxUpstreamCalls), seed, c.Upstreams...),
		scalars: scalars{config: c, clock: clock.From(s.At), readiness: readiness.New(now, c.StartTimeout, c.AwaitedUpstreams), supervisor: supervisor.New(dice),
			drain: drain.New(c.Drain), durable: s.LSN, applied: s.LSN, lastFrameEmpty: true}}
}

// Step carries one event to its effects: at most one frame, no allocation once out
// has grown, no loop but over what is bounded by a limit.
func (n *Node) Step(now types.Now, in event.Event, out *event.Effects) {
	at, phase := n.clock.Read(now), n.drain.Phase()
	n.frameOpen = false
	n.readiness.SetDegraded(types.ClockUntrusted, n.clock.Untrusted())
	n.readiness.SetDegraded(types.CircuitOpen, n.upstreams.OpenCircuits() != 0)
	switch in := in.(type) {
	case *event.Admit:
		n.admitRequest(now, in, out)
	case *event.ReserveBytes:
		n.reserveBytes(now.Mono, in, out)
	case *event.Finish:
		n.finishRequest(now.Mono, in, out)
	case *event.ApplyPolicy:
		n.applyPolicy(now.Mono, in, out)
	case *event.UpstreamQuery:
		n.upstreamQuery(now.Mono, in, out)
	case event.HealthChecked:
		n.upstreams.HealthChecked(now.Mono, in)
		n.readiness.SetDegraded(types.NoEndpoint, n.upstreams.Down() != 0)
		if in.Healthy {
			n.readiness.AwaitUpstreams(^(uint64(1) << in.Upstream))
		}
	case *event.Request:
		n.command(now, at, in, out)
	case *event.Execute:
		n.command(now, at, in.Command, out)
	case *event.FindOutcome:
		n.findOutcome(now, at, in, out)
	case *event.CreateKey:
		n.createKey(now, at, in, out)
	case *event.RevokeKey:
		n.revokeKey(now, at, in, out)
	case event.Recovered:
		n.boot(now, at, in, out)
	case event.Durable:
		n.onDurable(now, in)
	case event.Applied:
		n.onApplied(in.Upto, out)
	case event.Indexed:
		types.Assert(in.Upto <= n.durable, "node: indexed what is not durable")
		n.indexed = max(n.indexed, in.Upto)
	case event.FlushFailed:
		n.onFlushFailed(in.From, in.Fault, out)
	case event.Cancel:
		n.cancel(in.Ticket)
	case event.ServiceUp:
		n.supervisor.Up(in.Service)
		if need, ok := in.Service.Dependency(); ok {
			n.readiness.Satisfy(need)
		}
	case event.ServiceDown:
		n.supervisor.Down(now.Mono, in.Service)
		if need, ok := in.Service.Dependency(); ok {
			n.readiness.Unsatisfy(need)
		}
	case event.DiskFree:
		n.readiness.SetDegraded(types.DiskFull, in.Bytes < n.config.MinFreeBytes)
	case event.ConfigReloaded:
		n.readiness.SetDegraded(types.ConfigRejected, in.Failed)
	case event.Signal:
		n.signal(now, in.Kind)
	case event.Tick:
		n.tick(now, at, out)
	}
	n.moveLifecycle(now, phase, out)
}

// boot begins the life after a recovery. A damaged journal is read and not written.
func (n *Node) boot(now types.Now, at types.Time, in event.Recovered, out *event.Effects) {
	n.recovered = true
	n.readiness.Satisfy(types.DependencyJournal)
	if n.state.Keys.HasAdmin(at) {
		n.readiness.Satisfy(types.DependencyKey)
	}
	n.supervisor.Start(out)
	if in.Recovery.Damaged {
		n.fault = event.Damaged
		n.readiness.SetDegraded(types.JournalFailed, true)
		return
	}
	n.rec = record.Record{Kind: record.Started, Journal: in.Recovery.Journal, CutBytes: in.Recovery.CutBytes, TailFrames: in.Recovery.TailFrames}
	n.beginFrame(now, at, out)
	n.addRecord(out)
}

// onDurable notes what is on disk. The next flush, if anything is left, begins now.
func (n *Node) onDurable(now types.Now, in event.Durable) {
	types.Assert(in.Upto <= n.state.LSN && in.Bytes <= n.backlog, "node: durable beyond what was emitted")
	n.durable = max(n.durable, in.Upto)
	n.backlog -= in.Bytes
	n.flushStarted = now.Mono
	n.readiness.SetDegraded(types.JournalStalled, false)
}

// onApplied notes what the follower knows, and lets go whatever tells of no more.
func (n *Node) onApplied(upto types.LSN, out *event.Effects) {
	types.Assert(upto <= n.durable, "node: folded what is not durable")
	n.applied = max(n.applied, upto)
	if n.firstKeyAt > 0 && n.firstKeyAt <= n.applied {
		n.firstKeyAt = 0
		n.readiness.Satisfy(types.DependencyKey)
	}
	n.release(out)
}

// onFlushFailed gives up all frames ≥ from: what they hold is not known, until a restart
// has read what the disk has.
func (n *Node) onFlushFailed(from types.LSN, why event.Fault, out *event.Effects) {
	if n.fault == 0 {
		n.fault = why
	}
	n.readiness.SetDegraded(types.JournalFailed, true)
	n.giveUp(out, func(w heldReply) bool { return w.reply.After >= from })
}

func (n *Node) signal(now types.Now, what event.SignalKind) {
	switch what {
	case event.Drain:
		n.keepTime(now.Mono)
		n.drain.Start(now.Mono)
	case event.Abort:
		n.keepTime(now.Mono)
		n.drain.Start(now.Mono)
		n.drain.Abort(now.Mono)
	case event.AcceptClock:
		n.clock.Accept()
	}
}

// keepTime makes the next time frame due at once when an end is asked for, if the clock
// leads: the next start goes on from the journal's time, and must not read one that was
// reported before the end. A crash can still lose one interval of Vouch.
func (n *Node) keepTime(now types.Instant) {
	if n.clock.Ahead() && !n.drain.Started() {
		n.lastFrameAt = min(n.lastFrameAt, now.Add(-n.config.HeartbeatInterval))
	}
}

// tick does what is due.
func (n *Node) tick(now types.Now, at types.Time, out *event.Effects) {
	n.readiness.Tick(now.Mono)
	if n.flushOutstanding() {
		n.readiness.SetDegraded(types.JournalStalled, n.readiness.Has(types.JournalStalled) || n.flushStarted.Add(n.config.StallThreshold) <= now.Mono)
		if n.flushStarted.Add(n.config.SyncTimeout) <= now.Mono {
			n.onFlushFailed(n.durable+1, event.TooSlow, out)
		}
	}
	n.expireReplies(out, now.Mono)
	n.expireWaiting(now.Mono, out)
	n.upstreams.Tick(now.Mono)
	if n.sweepDue() && n.nextSweep <= now.Mono {
		n.nextSweep = now.Mono.Add(n.config.SweepInterval)
		if n.sweepExpired(now, at, out) {
			n.nextSweep = now.Mono // there may be more
			return
		}
	}
	if n.heartbeatDue() && n.lastFrameAt.Add(n.config.HeartbeatInterval) <= now.Mono {
		n.beginFrame(now, at, out)
	}
}

// maxExpiriesPerSweep is the number of expiry records of one plane in one sweep: all planes together
// stay below MaxRecords.
const (
	maxExpiriesPerSweep = types.MaxForgottenPerSweep
	_                   = uint(types.MaxRecords - 1 - 5*maxExpiriesPerSweep) // five planes
)

// sweepExpired evicts a bounded number of idempotency keys, and records what is due by time in each
// plane.
func (n *Node) sweepExpired(now types.Now, at types.Time, out *event.Effects) bool {
	if n.clock.Untrusted() || !n.readiness.AcceptsWrites() || n.backlog > n.config.MaxUnsyncedBytes/2 {
		return false
	}
	if upto, any := n.state.Idempotency.Evictable(at, n.indexed, types.MaxForgottenPerSweep); any {
		n.rec = record.Record{Kind: record.KeysForgotten, Upto: upto}
		n.beginFrame(now, at, out)
		n.addRecord(out)
	}
	for p := range n.state.Planes {
		for range maxExpiriesPerSweep {
			n.rec = record.Record{}
			if !p.Expire(at, &n.rec) {
				break
			}
			n.beginFrame(now, at, out)
			n.addRecord(out)
		}
	}
	return n.frameOpen
}

// moveLifecycle moves the node's own life on: children, and the drain from where it stood
// before the step.
func (n *Node) moveLifecycle(now types.Now, before types.Phase, out *event.Effects) {
	if !n.recovered {
		return
	}
	n.readiness.SetDegraded(types.IndexBehind, n.state.Idempotency.NearlyFull() || !n.supervisor.IsUp(types.ServiceIndex))
	if !n.drain.Started() {
		n.supervisor.Tick(now.Mono, out)
		n.readiness.SetDegraded(types.CrashLoop, n.supervisor.CrashLoop(now.Mono))
		return
	}
	quiet := n.supervisor.IsDown(types.ServiceHTTP) && n.held.Len() == 0 && !n.flushOutstanding()
	n.drain.Advance(now.Mono, quiet)
	phase := n.drain.Phase()
	if before < types.Draining && phase >= types.Draining {
		n.supervisor.Stop(types.ServiceHTTP, event.StopService, out)
		n.rejectWaiting(now.Mono, out)
	}
	if before < types.Aborting && phase >= types.Aborting && !quiet {
		n.supervisor.Stop(types.ServiceHTTP, event.KillService, out)
		n.abortedReplies += uint64(n.held.Len())
		n.giveUp(out, func(heldReply) bool { return true })
	}
}

// flushOutstanding reports that a flush is owed to frames that can still become durable.
func (n *Node) flushOutstanding() bool {
	return n.durable < n.state.LSN && !n.readiness.Has(types.JournalFailed)
}
