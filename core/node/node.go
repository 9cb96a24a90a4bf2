// Package node is the whole node as one deterministic state machine. Step routes each event to the
// state machine that decides it, and returns the effects.
//
//	event ──► Step ──► a frame, applied at once ──► sealed ──► durable ──► applied by the read model
//	             └───► replies, held until what they reveal is applied ◄───┘
package node

import (
	"time"

	"macronode/core/clock"
	"macronode/core/event"
	"macronode/core/flow"
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

// Config is the configuration of a node.
type Config struct {
	State             state.Limits
	MaxHeldReplies    int           // held replies of all tenants
	MaxReplayWaiters  int           // held replies that repeat an outcome which is not applied yet
	MaxHeldPerTenant  int           // held replies of one tenant; 0: MaxHeldReplies
	MaxUnsyncedBytes  uint64        // bytes of frames that are not durable; sweeps stop at half of it
	MinFreeBytes      uint64        // bytes of the disk that are kept free for recovery and drain
	CommitTimeout     time.Duration // time after which a held reply becomes outcome_unknown
	StallThreshold    time.Duration // a longer flush stops writes until it ends
	SyncTimeout       time.Duration // a longer flush counts as failed
	HeartbeatInterval time.Duration // idle time before a heartbeat frame is written
	SweepInterval     time.Duration // between two sweeps for expired keys and holds
	StartTimeout      time.Duration // for all dependencies; a later start is degraded
	Drain             drain.Times
	Admission         admission.Limits
	Quotas            []quota.Rule
	QuotaLimits       quota.Limits
	MaxPacingDelay    time.Duration // longest wait for the instance quota, of the class with the least weight
	MaxUpstreamCalls  int           // concurrent calls to upstreams
	Upstreams         []upstream.Rules
	AwaitedUpstreams  uint64     // upstreams that must pass a health check before the node is ready: bit i is upstream i
	PolicyVersion     uint64     // version of the applied policy
	Price             flow.Price // of writes of objects
}

// Node is the state of the node. It is plain data.
//
// Invariants:
//
//	N1  applied ≤ durable ≤ the last frame, and indexed ≤ durable
//	N2  replies are held in the order of After, which is that of their deadlines
//	N3  replayWaiters is the number of held replies that are replays
//	N4  the backlog is empty if and only if the last frame is durable
//	N5  heldByTenant is the number of held replies of each tenant
//	N6  no request waits if a permit is free and the instance quota admits it
//	N7  a held reply that is not cancelled is found by its ticket
//	N8  no request whose API key is revoked waits or has a permit, and nextKeyEnd is not after the end of the key of one that does
type Node struct {
	scalars

	state        state.State // changed by beginFrame, addRecord and undo only
	quota        quota.Quota
	admission    admission.Admit
	upstreams    upstream.Upstreams
	held         queue.Queue[heldReply]
	heldByTenant table.Table[types.Tenant, heldCount] // counts held

	heldAt  table.Pool[types.Ticket, nothing] // the replies in held that are not cancelled
	numbers []uint64                          // for each place in heldAt, the number of its reply in held

	rec    record.Record // scratch of a step: the record to add
	frame  frame         // scratch of a step: the frame as its plane sees it
	answer event.Reply   // scratch of a step: the reply to its command
	paid   flow.Paid     // scratch of a step: the price is part of the configuration

	prepaid flow.Prepaid // scratch of a step
}

// scalars are the fields that CopyTo copies by assignment: they own no memory.
type scalars struct {
	config     Config // shared between copies; what it points to never changes
	clock      clock.Clock
	readiness  readiness.Readiness
	supervisor supervisor.Supervisor
	drain      drain.Drain

	durable        types.LSN
	applied        types.LSN
	indexed        types.LSN     // the index has durably stored the keys of all frames up to here
	firstKeyAt     types.LSN     // the frame of the first API key; 0 once it is applied
	backlog        uint64        // bytes of frames that are not durable
	flushStarted   types.Instant // start of the flush that is running
	lastFrameAt    types.Instant // when the last frame began
	nextSweep      types.Instant // when the next sweep is due
	nextKeyEnd     types.Time    // not after the first end of a key of a request that waits or is admitted; 0: no key ends
	replayWaiters  uint32
	fault          event.Fault // the first fault of the journal; 0: none
	recovered      bool
	lastFrameEmpty bool // the last frame has no record
	frameOpen      bool // this step has begun its frame
	report         event.DrainReport
	abortedReplies uint64 // held replies that an abort ended
}

// New returns a node with the recovered state s, which it owns from now on.
func New(c Config, s state.State, now types.Instant, dice types.Rand) *Node {
	if c.MaxHeldPerTenant == 0 {
		c.MaxHeldPerTenant = c.MaxHeldReplies
	}
	seed := dice
	slots := types.Hash64(seed.Uint64n(1 << 62))
	c.QuotaLimits.Slots = c.Admission.Places
	return &Node{state: s, paid: flow.New(c.Price), held: queue.New[heldReply](c.MaxHeldReplies, queue.Reject),
		heldByTenant: table.New[types.Tenant, heldCount](c.State.Ledger.Tenants, slots),
		heldAt:       table.NewPool[types.Ticket, nothing](c.MaxHeldReplies, slots), numbers: make([]uint64, c.MaxHeldReplies),
		quota: quota.New(c.Quotas, c.QuotaLimits, slots), admission: admission.New(c.Admission, slots),
		upstreams: upstream.New(max(1, c.MaxUpstreamCalls), seed, c.Upstreams...),
		scalars: scalars{config: c, clock: clock.From(s.At), readiness: readiness.New(now, c.StartTimeout, c.AwaitedUpstreams), supervisor: supervisor.New(dice),
			drain: drain.New(c.Drain), durable: s.LSN, applied: s.LSN, lastFrameEmpty: true}}
}

// setConditions sets the reasons to be degraded that each step may change.
func (n *Node) setConditions() {
	n.readiness.SetDegraded(types.ClockUntrusted, n.clock.Untrusted())
	n.readiness.SetDegraded(types.ClockAhead, n.clock.FarAhead())
	n.readiness.SetDegraded(types.CircuitOpen, n.upstreams.OpenCircuits() != [event.NumCallers]uint64{})
}

// Step decides one event and appends its effects to out: at most one frame. It allocates nothing once
// out has grown, and every loop is bounded by a limit.
func (n *Node) Step(now types.Now, in event.Event, out *event.Effects) {
	at, phase := n.clock.Read(now), n.drain.Phase()
	n.frameOpen = false
	n.setConditions()
	switch in := in.(type) {
	case *event.Admit:
		n.admitRequest(now, at, in, out)
	case *event.ReserveBytes:
		n.reserveBytes(now.Mono, in, out)
	case *event.Finish:
		n.finishRequest(now.Mono, in, out)
	case *event.ApplyPolicy:
		n.applyPolicy(now.Mono, in, out)
	case *event.UpstreamQuery:
		n.upstreamQuery(now.Mono, in, out)
	case event.HealthChecked:
		n.onHealthChecked(now.Mono, in)
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
		n.readiness.SetDiskFree(in.Bytes, n.config.MinFreeBytes)
	case event.ProviderHealth:
		n.onProviderHealth(in)
	case event.FrameUnreadable:
		n.readiness.SetDegraded(types.JournalDamaged, true) // until a restart
	case event.ObjectFiles:
		n.readiness.SetDegraded(types.ObjectsUnavailable, in.Unreadable)
		n.readiness.SetDegraded(types.UploadsRefused, in.Unwritable)
	case event.SegmentsArchived:
		n.readiness.SetDegraded(types.ArchiveFailed, in.Failed)
	case event.ConfigReloaded:
		n.readiness.SetDegraded(types.ConfigRejected, in.Failed)
	case event.Signal:
		n.signal(now, in.Kind)
	case event.Tick:
		n.tick(now, at, out)
	}
	n.moveLifecycle(now, phase, out)
}

// onHealthChecked handles a health check of an endpoint.
func (n *Node) onHealthChecked(now types.Instant, in event.HealthChecked) {
	n.upstreams.HealthChecked(now, in)
	n.readiness.SetDegraded(types.NoEndpoint, n.upstreams.Down() != 0)
	if in.Healthy {
		n.readiness.AwaitUpstreams(^(uint64(1) << in.Upstream))
	}
}

// boot starts the node after recovery. A damaged journal is only read.
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
	for _, c := range in.Commands {
		p := n.state.Plane(c.Plane())
		types.Assert(p != nil && isByNode(c) && c.ValidateFields() == nil, "node: a command of the start that is invalid")
		n.answer = event.Reply{}
		n.decide(now, at, p, c, &n.answer, out)
	}
}

// onDurable records how far the journal is durable. If frames are left, the next flush begins now.
func (n *Node) onDurable(now types.Now, in event.Durable) {
	types.Assert(in.Upto <= n.state.LSN && in.Bytes <= n.backlog, "node: durable beyond what was emitted")
	n.durable = max(n.durable, in.Upto)
	n.backlog -= in.Bytes
	n.flushStarted = now.Mono
	n.readiness.SetDegraded(types.JournalStalled, false)
}

// onApplied records how far the read model has applied frames, and releases the replies that reveal no
// more than that.
func (n *Node) onApplied(upto types.LSN, out *event.Effects) {
	types.Assert(upto <= n.durable, "node: folded what is not durable")
	n.applied = max(n.applied, upto)
	if n.firstKeyAt > 0 && n.firstKeyAt <= n.applied {
		n.firstKeyAt = 0
		n.readiness.Satisfy(types.DependencyKey)
	}
	n.release(out)
}

// onFlushFailed ends all replies that depend on frames ≥ from with outcome_unknown: only a restart can
// read what the disk has.
func (n *Node) onFlushFailed(from types.LSN, why event.Fault, out *event.Effects) {
	if n.fault == 0 {
		n.fault = why
	}
	n.readiness.SetDegraded(types.JournalFailed, true)
	n.giveUp(out, func(w heldReply) bool { return w.reply.After >= from })
}

// onProviderHealth degrades the node while providers of objects have failed, copies are missing, or objects are lost.
func (n *Node) onProviderHealth(in event.ProviderHealth) {
	n.readiness.SetDegraded(types.ProviderFailed, in.Failed > 0)
	n.readiness.SetDegraded(types.CopiesMissing, in.Lacking)
	n.readiness.SetDegraded(types.ObjectsLost, in.Lost)
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

// keepTime makes a heartbeat frame due at once when a drain begins, if the node's clock is ahead of the
// journal's time. The next start continues from the journal's time, which must not be before a time
// that was reported. A crash can still lose one HeartbeatInterval.
func (n *Node) keepTime(now types.Instant) {
	if n.clock.Ahead() && !n.drain.Started() {
		n.lastFrameAt = min(n.lastFrameAt, now.Add(-n.config.HeartbeatInterval))
	}
}

// tick does what is due by time.
func (n *Node) tick(now types.Now, at types.Time, out *event.Effects) {
	n.readiness.Tick(now.Mono)
	if n.flushOutstanding() {
		n.readiness.SetDegraded(types.JournalStalled, n.readiness.Has(types.JournalStalled) || n.flushStarted.Add(n.config.StallThreshold) <= now.Mono)
		if n.flushStarted.Add(n.config.SyncTimeout) <= now.Mono {
			n.onFlushFailed(n.durable+1, event.TooSlow, out)
		}
	}
	n.expireReplies(out, now.Mono)
	if n.nextKeyEnd > 0 && n.nextKeyEnd <= at {
		n.endRequests(now.Mono, at, out)
	}
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

// sweepExpired evicts a bounded number of idempotency keys, and records a bounded number of what is due
// by time in all planes together. It returns whether it recorded anything: there may be more.
func (n *Node) sweepExpired(now types.Now, at types.Time, out *event.Effects) bool {
	if n.clock.Untrusted() || !n.readiness.AcceptsWrites() || n.backlog > n.config.MaxUnsyncedBytes/2 {
		return false
	}
	if upto, any := n.state.Idempotency.Evictable(at, n.indexed, types.MaxForgottenPerSweep); any {
		n.rec = record.Record{Kind: record.KeysForgotten, Upto: upto}
		n.beginFrame(now, at, out)
		n.addRecord(out)
	}
	left := types.MaxForgottenPerSweep
	for p := range n.state.Planes {
		for ; left > 0; left-- {
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

// moveLifecycle advances the supervised services and the drain; before is the phase at the start of
// the step.
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

// flushOutstanding reports whether frames wait for a flush that can still succeed.
func (n *Node) flushOutstanding() bool {
	return n.durable < n.state.LSN && !n.readiness.Has(types.JournalFailed)
}
