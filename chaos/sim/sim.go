// Package sim simulates a whole node, with its journal and read model, in a world in which the
// power may fail between any two moves, and a chooser decides what happens next.
//
// A run is determined by its choices: by a seed, or by the log that a failure leaves.
// cmd/simulate plays both, shrinks logs and draws them.
//
//	clients ─► gate ─► enter ─► turn ─► next ─► write ─► sync ─► fold ─► replies ─► promises
//	                               a crash can follow each; recovery is played as well
package sim

import (
	"fmt"
	"time"

	"macronode/adapters/journalfile"
	"macronode/adapters/loop"
	"macronode/adapters/readmodel"
	"macronode/chaos/trace"
	"macronode/chaos/world"
	"macronode/core/event"
	"macronode/core/idempotency"
	"macronode/core/lifecycle/drain"
	"macronode/core/node"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

// limits are small, so that each of them is reached.
func limits() state.Limits {
	return state.Limits{
		Ledger: ledger.Limits{Accounts: 6, Holdings: 7, Assets: 3, Tenants: 2, TenantAccounts: 5, TenantHoldings: 6, TenantAssets: 2, Holds: 6, TenantHolds: 3, MaxBatchItems: 4,
			MaxAmount: types.MinorUnits(40), MaxDailyDebit: types.MinorUnits(40), MaxDailyIssue: types.MinorUnits(200)},
		Idempotency: idempotency.Limits{Keys: 16, PerTenant: 12, Tenants: 2, TTL: 20 * time.Second, MinRetention: 7 * time.Second},
		Keys:        16,
	}
}

func config() node.Config {
	return gateway(node.Config{State: limits(), MaxHeldReplies: 4, MaxReplayWaiters: 1, MaxHeldPerTenant: 3, MaxUnsyncedBytes: 40 << 10, MinFreeBytes: 4096, CommitTimeout: 3 * time.Second,
		StallThreshold: 200 * time.Millisecond, SyncTimeout: 5 * time.Second, HeartbeatInterval: time.Second, SweepInterval: time.Second, StartTimeout: 30 * time.Second,
		Drain: drain.Times{LameDuck: 500 * time.Millisecond, Drain: 3 * time.Second, Abort: time.Second}}, 0)
}

// boss is the bootstrap key, which the node makes at its first start.
var boss = event.Key{ID: 77, Tenant: types.DefaultTenant, Hash: [32]byte{1}, Scopes: event.AllScopes, Bootstrap: true}

// World is one run.
type World struct {
	c          world.Chooser
	disk       *world.Disk
	kept       *world.Disk // of the snapshots
	backups    backups
	vault      vault
	hasArchive bool
	now        types.Now
	odds       odds
	goal       goal
	Saw        map[string]int // counts of probes
	Cells      map[Cell]int   // counts of the outcomes of clients' requests

	GateCells map[GateCell]int // counts of the decisions at the gate

	Steps  int // of the node
	checks int // steps without a frame between two full Checks; 0: at each

	config node.Config
	limits state.Limits
	narrow int // limits of the gate
	node   *node.Node
	copied *node.Node // memory that CopyTo reuses
	fol    *readmodel.Follower
	trace  *trace.Trace
	defers bool // a power loss waits until the interrupted move has ended
	swayed bool // the wall clock was moved since the last step
	jour   *journalfile.Journal
	out    event.Effects
	next   loop.Batch        // grows
	inSync []record.Sealed   // written, not synced
	bytes  uint64            // of their bodies
	synced [][]record.Sealed // durable, not folded
	late   []event.Event
	enter  []*event.Request
	gate   *loop.Admission
	places []spot                   // of the gate, by slot
	taken  uint64                   // permits reclaimed in this process
	broken [event.NumCallers]uint64 // upstreams whose circuit is not closed
	stop   stopped                  // the end of the last process
	skew   int                      // ms by which the clock was moved since then
	made   map[string]int           // created files, and lost names until then

	unsourced types.Instant           // since when the clock is untrusted and has no source; 0: it is not
	childs    [types.NumServices]bool // started services

	clients   []*client
	visitors  [16]visitor
	moods     [upstreams * endpoints]mood
	asked     map[types.Ticket]*client
	copies    map[types.Ticket]second // requests that were sent twice: the copies
	rate      int                     // of the wall clock, in percent
	ticket    uint32
	index     index
	clerk     clerk
	promise   promises
	testified testimony
	audit     audit
	planes    []planeWorkload
	storage   *storageWorld // one of planes; nil: the run has no storage
	usage     *usageWorld   // one of planes; nil: the run has no usage
	exports   *exportWorld  // nil: the run has no exports
	went      types.LSN     // the last frame of the previous process
	moved     int           // moves so far
	calmed    int           // rounds of the calm so far
	harmed    bool          // durable data may be overwritten
	known     types.LSN     // the mark of durable frames beside the journal
	unlawful  bool          // the disk may violate its rules: earlier states prove nothing
	idled     time.Duration // without anything to do, for the clock alone
	asleep    bool          // no tick since a pause
	draining  bool          // a drain has begun
	recording *recording
	err       *Failure
}

func (w *World) move() {
	if w.dead() {
		w.powerLoss()
	}
	if w.draining {
		w.ended()
	}
	m := w.choose()
	if w.recording == nil {
		m.do(w)
		return
	}
	w.beat(fmt.Sprintf("%d %s", w.moved, m.name), func() { m.do(w) })
}

// choose draws the next move. If the gate is narrow, every other move is a visitor's. If there are plane workloads, some
// moves are those of their clients.
func (w *World) choose() move {
	most := len(moves)
	if w.odds.gate > 0 {
		most *= 2
	}
	all := most
	if len(w.planes) > 0 {
		all += planeMoves
	}
	switch at := w.c.Choose("move", all); {
	case at < len(moves):
		return moves[at]
	case at < most:
		return move{"a visitor", (*World).visit}
	}
	p := w.planes[w.moved%len(w.planes)]
	return move{"a " + p.name() + " client", p.move}
}

// planeMoves is the number of moves of clients of plane workloads, beside all others.
const planeMoves = 12

// A move is a possible next step.
type move struct {
	name string
	do   func(*World)
}

// moves are all moves except visitors', by frequency; the first is the default.
var moves = [...]move{
	{"a round", (*World).round},
	{"a client", (*World).client}, {"a client", (*World).client}, {"a client", (*World).client}, {"a client", (*World).client}, {"a client", (*World).client},
	{"a turn", (*World).some}, {"a turn", (*World).some}, {"a turn", (*World).some},
	{"write", (*World).write}, {"write", (*World).write}, {"sync", (*World).sync}, {"sync", (*World).sync}, {"fold", (*World).fold}, {"fold", (*World).fold},
	{"time passes", (*World).while}, {"a read", (*World).read}, {"a child", (*World).children}, {"trouble", (*World).trouble},
	{"the index", (*World).indexing}, {"the index", (*World).indexing}, {"the index", (*World).indexing}, {"the index", (*World).indexing},
	{"keys", (*World).keys}, {"a snapshot", (*World).summed},
}

// client is a move of a client; the last one, which is forbidden, is rare.
func (w *World) client() {
	c := w.clients[w.c.Choose("client", 2*len(w.clients)-1)%len(w.clients)]
	if w.goal.set && w.c.Choose("goal/client", 2) == 1 {
		if c = w.goalClient(); w.goal.Class == Barred && c.caller == boss.ID {
			w.keys()
		}
	}
	c.move(w)
	if w.odds.busy > 0 && w.c.Choose("busy", 4) != 1 {
		w.round()
		w.round()
		if !w.goal.wants(event.IdempotencyCapacity) {
			w.pass(time.Duration(w.c.Choose("busy/gone", 2000)) * time.Millisecond)
			w.indexing()
		}
	}
}

func (w *World) some() { w.turn(w.c.Choose("batch", 3)) }

// round does everything that an undisturbed node does: decide, write, sync and fold.
func (w *World) round() {
	w.turn(w.arrivals())
	w.write()
	w.sync()
	w.fold()
}

// arrivals is the largest number of requests that wait of one kind of client.
func (w *World) arrivals() int {
	most := len(w.enter)
	for _, p := range w.planes {
		most = max(most, len(*p.arrivals()))
	}
	return most
}

// turn is the loop's turn, with choices in place of channels.
func (w *World) turn(arrivals int) {
	events := w.late
	w.late = nil
	w.overtake()
	for e := w.gate.NextEvent(); e != nil; e = w.gate.NextEvent() {
		events = append(events, e)
	}
	for _, p := range w.planes {
		enter := p.arrivals()
		n := min(arrivals, len(*enter))
		events, *enter = append(events, (*enter)[:n]...), (*enter)[n:]
	}
	for ; arrivals > 0 && len(w.enter) > 0; arrivals-- {
		events, w.enter = append(events, w.enter[0]), w.enter[1:]
	}
	if len(events) > 0 {
		w.step(events...)
	}
}

func (w *World) step(events ...event.Event) {
	loop.Turn(watched{w}, w.now, events, &w.out)
	w.swayed = false
	w.next.Add(&w.out)
	w.verdicts(events)
	for _, r := range w.out.Replies {
		w.reply(r)
	}
	for _, op := range w.out.ServiceCommands {
		w.childs[op.Service] = op.Verb == event.StartService
		if op.Verb != event.StartService {
			w.late = append(w.late, event.ServiceDown{Service: op.Service})
		}
	}
	for i := range w.out.Arena { // overwrites the arena, to find views that outlive the turn
		w.out.Arena[i] = 0xdb
	}
	if w.c.Choose("copy", 8) == 1 {
		if w.node.CopyTo(w.copied); w.copied.Hash() != w.node.Hash() {
			w.fail("copy", "a copy has another hash")
		}
		w.node, w.copied = w.copied, w.node
	}
}

// write and sync are the two moves of the sealer.
func (w *World) write() {
	if w.inSync != nil || len(w.next.Frames) == 0 {
		return
	}
	batch := w.next
	w.next = loop.Batch{}
	sealed, err := w.jour.Write(batch.Arena, batch.Frames)
	if err != nil {
		w.broke(batch.Frames[0].LSN, err)
		return
	}
	w.inSync, w.bytes = sealed, uint64(len(batch.Arena))
	w.tell(journal, noLane, plain, "written to %v", sealed[len(sealed)-1].LSN)
}

func (w *World) sync() {
	if w.inSync == nil {
		return
	}
	batch := w.inSync
	w.inSync = nil
	upto, err := w.jour.Sync()
	if err != nil {
		w.broke(batch[0].LSN, err)
		return
	}
	w.promise.durable = upto
	w.tell(journal, disk, plain, "durable to %v", upto)
	w.late = append(w.late, event.Durable{Upto: upto, Bytes: w.bytes})
	w.synced = append(w.synced, batch)
}

// broke handles a failed flush: for a power loss, or a disk failure.
func (w *World) broke(from types.LSN, err error) {
	if w.disk.Dead() {
		w.powerLoss()
		return
	}
	w.Saw["flush failed"]++
	w.Saw["flush failed: "+journalfile.FaultOf(err).String()]++
	w.atDir("flush", err)
	w.tell(journal, disk, trouble, "from %v on: %v", from, err)
	w.late = append(w.late, event.FlushFailed{From: from, Fault: journalfile.FaultOf(err)})
}

func (w *World) fold() {
	if len(w.synced) == 0 {
		return
	}
	if err := w.fol.Fold(w.synced[0]); err != nil {
		w.fail("fold", "fold: %v", err)
	}
	for _, s := range w.synced[0] {
		w.audit.frame(w, s)
	}
	w.synced = w.synced[1:]
	w.tell(follows, journal, plain, "folded to %v", w.fol.Mark())
	w.late = append(w.late, event.Applied{Upto: w.fol.Mark()})
}

// read reads a balance, which is a promise too.
func (w *World) read() {
	if mark := w.fol.Mark(); mark > w.promise.durable {
		w.fail("read-before-durable", "a read as of %v, durable %v", mark, w.promise.durable)
	} else if w.fol.Hash() != w.promise.hashes[mark] {
		w.fail("follower-differs", "the follower differs from the node at %v", mark)
	}
	if w.usage != nil {
		w.usage.oracle.asks(w)
	}
	w.looks()
}

// children starts services that were started by the node, and sometimes ends them.
func (w *World) children() {
	var s event.Status
	if w.node.Status(&s); s.DegradedBy.Has(types.JournalFailed) && w.c.Choose("restart", 3) != 1 {
		w.disk.Leave(plenty) // space was freed first
		w.boot()
		return
	}
	c := types.Service(w.c.Choose("child/which", int(types.NumServices)))
	switch {
	case !w.childs[c]:
	case w.c.Choose("child/dies", 6) == 1:
		w.Saw["service failed"]++
		w.childs[c] = false
		w.step(event.ServiceDown{Service: c})
	case w.c.Choose("child/alone", 3) == 1:
		w.step(event.ServiceUp{Service: c})
	default:
		for c, asked := range w.childs {
			if asked {
				w.step(event.ServiceUp{Service: types.Service(c)})
			}
		}
	}
}
