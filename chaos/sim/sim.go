// Package sim plays the whole node, with its journal and its follower, in a world
// where the power fails between any two moves and chance decides what comes next.
//
// A life is what its chooser answers, and nothing else: by a seed, or by a log of choices,
// which is what a failure leaves. cmd/simulate plays both, makes logs small and draws them.
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

// Limits are small, so that every one of them is met.
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

// boss is the key that the node makes at its first start.
var boss = event.Key{ID: 77, Tenant: types.DefaultTenant, Hash: [32]byte{1}, Scopes: event.AllScopes, Bootstrap: true}

// World is one run.
type World struct {
	c     world.Chooser
	disk  *world.Disk
	kept  *world.Disk // of the snapshots
	now   types.Now
	odds  odds
	goal  goal
	Saw   map[string]int // how often what was to be seen was seen
	Cells map[Cell]int   // how the requests of clients ended

	GateCells map[GateCell]int // what all who came to the gate were told

	Steps  int // of the node
	checks int // steps without a frame from one Check of all to the next; 0: it is done at each

	config node.Config
	limits state.Limits
	narrow int // how its gate is
	node   *node.Node
	copied *node.Node // memory that CopyTo reuses
	fol    *readmodel.Follower
	trace  *trace.Trace
	swayed bool // the wall clock has not gone with time since the last step
	jour   *journalfile.Journal
	out    event.Effects
	next   loop.Batch        // grows
	inSync []record.Sealed   // written, not synced
	bytes  uint64            // of their bodies
	synced [][]record.Sealed // durable, not folded
	late   []event.Event
	enter  []*event.Request
	gate   *loop.Gate
	places []spot         // of the gate, by slot
	taken  uint64         // permits that were taken back in this life of the process
	broken uint64         // upstreams whose breakers keep anybody away
	stop   stopped        // how the last process ended
	skew   int            // ms that the clock was moved by since then
	made   map[string]int // files that were made, and how many names were lost until then

	unsourced types.Instant           // since when the clock is doubted and has no source; 0: it is not
	childs    [types.NumServices]bool // asked to run

	clients  []*client
	visitors [16]visitor
	moods    [upstreams * endpoints]mood
	asked    map[types.Ticket]*client
	twins    map[types.Ticket]second // sent twice: the second of each
	rate     int                     // of the wall clock, in hundredths
	ticket   uint32
	index    index
	clerk    clerk
	promise  promises
	said     testimony
	audit    audit
	went     types.LSN // the last frame of the process before
	moved    int       // moves so far
	calmed   int       // rounds of the calm so far
	harmed   bool      // what is durable may be overwritten
	known    types.LSN // the mark of durable frames that stands beside the journal
	unlawful bool      // the disk may break its law: nothing that was seen before is believed
	asleep   bool      // no tick since a pause
	draining bool      // it was told to end
	story    *story
	err      *Failure
}

func (w *World) move() {
	if w.disk.Dead() {
		w.powerLoss()
	}
	if w.draining {
		w.ended()
	}
	m := w.choose()
	if w.story == nil {
		m.do(w)
		return
	}
	w.beat(fmt.Sprintf("%d %s", w.moved, m.name), func() { m.do(w) })
}

// choose draws the next move. Where the gate is narrow, every other one is a visitor's.
func (w *World) choose() move {
	most := len(moves)
	if w.odds.gate > 0 {
		most *= 2
	}
	if at := w.c.Choose("move", most); at < len(moves) {
		return moves[at]
	}
	return move{"a visitor", (*World).visit}
}

// A move is what may come next.
type move struct {
	name string
	do   func(*World)
}

// moves are all but the visitors', each as often as it stands here; the first is the dull one.
var moves = [...]move{
	{"a round", (*World).round},
	{"a client", (*World).client}, {"a client", (*World).client}, {"a client", (*World).client}, {"a client", (*World).client}, {"a client", (*World).client},
	{"a turn", (*World).some}, {"a turn", (*World).some}, {"a turn", (*World).some},
	{"write", (*World).write}, {"write", (*World).write}, {"sync", (*World).sync}, {"sync", (*World).sync}, {"fold", (*World).fold}, {"fold", (*World).fold},
	{"time passes", (*World).while}, {"a read", (*World).read}, {"a child", (*World).children}, {"trouble", (*World).trouble},
	{"the index", (*World).indexing}, {"the index", (*World).indexing}, {"the index", (*World).indexing}, {"the index", (*World).indexing},
	{"keys", (*World).keys}, {"a snapshot", (*World).summed},
}

// client is a move of one of them; the last, who may do nothing here, comes less often.
func (w *World) client() {
	c := w.clients[w.c.Choose("client", 2*len(w.clients)-1)%len(w.clients)]
	if w.goal.set && w.c.Choose("goal/client", 2) == 1 {
		if c = w.who(); w.goal.Class == Barred && c.caller == boss.ID {
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

// round is what a node does that nobody disturbs: all that came is decided, written,
// synced and folded.
func (w *World) round() {
	w.turn(len(w.enter))
	w.write()
	w.sync()
	w.fold()
}

// turn is the loop's, with chance in the place of the channels.
func (w *World) turn(arrivals int) {
	events := w.late
	w.late = nil
	w.overtake()
	for e := w.gate.Comes(); e != nil; e = w.gate.Comes() {
		events = append(events, e)
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
	for i := range w.out.Arena { // whoever kept a view of it will be found out
		w.out.Arena[i] = 0xdb
	}
	if w.c.Choose("copy", 8) == 1 {
		if w.node.CopyTo(w.copied); w.copied.Hash() != w.node.Hash() {
			w.fail("copy", "a copy has another hash")
		}
		w.node, w.copied = w.copied, w.node
	}
}

// write and sync are the sealer's two moves.
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
	w.tell(journal, nobody, plain, "written to %v", sealed[len(sealed)-1].LSN)
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

// broke is a flush that failed: because the power went, or for its own reasons.
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

// read tells somebody a balance, which is a promise as well.
func (w *World) read() {
	if mark := w.fol.Mark(); mark > w.promise.durable {
		w.fail("read-before-durable", "a read as of %v, durable %v", mark, w.promise.durable)
	} else if w.fol.Hash() != w.promise.hashes[mark] {
		w.fail("follower-differs", "the follower differs from the node at %v", mark)
	}
	w.looks()
}

// children come up when they were asked to, and die when chance likes.
func (w *World) children() {
	var s event.Status
	if w.node.Status(&s); s.DegradedBy.Has(types.JournalFailed) && w.c.Choose("restart", 3) != 1 {
		w.disk.Leave(plenty) // somebody made room first
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
