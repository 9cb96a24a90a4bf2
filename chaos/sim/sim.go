// Package sim plays the whole node, with its journal and its follower, in a world
// where the power fails between any two moves and chance decides what comes next.
//
//	clients ─► enter ─► turn ─► next ─► write ─► sync ─► fold ─► replies ─► promises
//	                               a crash can follow each; recovery is played as well
package sim

import (
	"fmt"
	"time"

	"macronode/adapters/follower"
	"macronode/adapters/journalfile"
	"macronode/adapters/loop"
	"macronode/chaos/world"
	"macronode/core/drain"
	"macronode/core/event"
	"macronode/core/idem"
	"macronode/core/ledger"
	"macronode/core/node"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/words"
)

// Limits are small, so that every one of them is met.
func limits() state.Limits {
	return state.Limits{
		Ledger: ledger.Limits{Accounts: 6, Holdings: 7, Assets: 3, Tenants: 2, TenantAccounts: 5, TenantHoldings: 6, TenantAssets: 2,
			Amount: words.Units(40), Day: words.Units(60), IssueDay: words.Units(400)},
		Idem: idem.Limits{Keys: 18, Share: 15, Tenants: 2, TTL: 20 * time.Second},
		Keys: 4,
	}
}

func config() node.Config {
	return node.Config{State: limits(), Held: 4, Waiters: 1, Backlog: 12 << 10, Reserve: 4096, Patience: 3 * time.Second,
		Stall: 200 * time.Millisecond, Fail: 5 * time.Second, Vouch: time.Second, Sweep: time.Second, Start: 30 * time.Second,
		Drain: drain.Times{LameDuck: 500 * time.Millisecond, Drain: 3 * time.Second, Abort: time.Second}}
}

// boss is the key that the node makes at its first start.
var boss = event.Key{ID: 77, Tenant: words.DefaultTenant, Hash: [32]byte{1}, Scopes: event.AllScopes, Boot: true}

// World is one run.
type World struct {
	c    world.Chooser
	disk *world.Disk
	now  words.Now
	odds odds
	Saw  map[string]int // how often what was to be seen was seen

	node   *node.Node
	copied *node.Node // memory that CopyTo reuses
	fol    *follower.Follower
	jour   *journalfile.Journal
	out    event.Effects
	next   loop.Batch        // grows
	inSync []record.Sealed   // written, not synced
	bytes  uint64            // of their bodies
	synced [][]record.Sealed // durable, not folded
	late   []event.Event
	enter  []*event.Request
	childs [words.Children]bool // asked to run

	clients []*client
	asked   map[words.Ticket]*client
	ticket  uint32
	promise promises
	audit   audit
	err     error
}

// odds are drawn once a run, so that some runs are all storm and some nearly calm.
type odds struct{ crash, fault, clock, leave int }

// New is a world that begins with an empty disk.
func New(c world.Chooser) *World {
	w := &World{c: c, disk: world.NewDisk(), now: words.Now{Mono: 1, Wall: 1_700_000_000_000, Synced: true}, Saw: map[string]int{},
		asked: map[words.Ticket]*client{}}
	w.odds = odds{crash: c.Choose("odds/crash", 4), fault: c.Choose("odds/fault", 4), clock: c.Choose("odds/clock", 4), leave: c.Choose("odds/leave", 4)}
	w.clients = people()
	w.promise.begin(state.New(limits(), 0))
	w.boot()
	return w
}

// Run makes so many moves and returns what went wrong.
func (w *World) Run(moves int) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	for range moves {
		if w.move(); w.err != nil {
			return w.err
		}
	}
	if w.calm(); w.err != nil {
		return w.err
	}
	switch w.c.Choose("ending", 5) {
	case 1:
		w.rot()
	case 2:
		w.lie()
	default:
		w.end()
	}
	return w.err
}

func (w *World) fail(format string, args ...any) {
	if w.err == nil {
		var v node.View
		if w.node != nil {
			w.node.View(&v)
		}
		w.err = fmt.Errorf("%w\nthe node: %+v", fmt.Errorf(format, args...), v)
	}
}

func (w *World) move() {
	if w.disk.Dead() {
		w.powerLoss()
	}
	switch w.c.Choose("move", 18) {
	case 0, 1, 2, 3, 4:
		w.clients[w.c.Choose("client", len(w.clients))].move(w)
	case 5, 6, 7:
		w.turn(w.c.Choose("batch", 3))
	case 8, 9:
		w.write()
	case 10, 11:
		w.sync()
	case 12, 13:
		w.fold()
	case 14:
		longest := []int{50, 50, 150, 250, 1200, 4000}[w.c.Choose("longest", 6)]
		w.pass(time.Duration(w.c.Choose("gone", longest)) * time.Millisecond)
	case 15:
		w.read()
	case 16:
		w.children()
	case 17:
		w.trouble()
	}
}

// turn is the loop's, with chance in the place of the channels.
func (w *World) turn(arrivals int) {
	events := w.late
	w.late = nil
	for ; arrivals > 0 && len(w.enter) > 0; arrivals-- {
		events, w.enter = append(events, w.enter[0]), w.enter[1:]
	}
	if len(events) > 0 {
		w.step(events...)
	}
}

// watched is the node, seen after each step of a turn.
type watched struct{ *World }

func (w watched) Step(now words.Now, in event.Event, out *event.Effects) {
	frames := len(out.Frames)
	w.node.Step(now, in, out)
	if err := w.node.Check(); err != nil {
		w.fail("check: %v", err)
	}
	if len(out.Frames) > frames+1 {
		w.fail("one step, %d frames", len(out.Frames)-frames)
	}
	if len(out.Frames) > frames {
		h, _, err := record.Open(out.Body(out.Frames[frames]))
		if err != nil || h.LSN != w.node.LSN() {
			w.fail("frame %v: %v", h.LSN, err)
		}
		w.promise.appended(h.LSN, w.node.StateHash(), int(h.Count))
	}
	if r, ok := in.(*event.Request); ok {
		w.promise.decided(r.Ticket, w.node.LSN())
	}
}

func (w watched) Due() (words.Instant, bool) { return w.node.Due() }
func (w watched) Status(s *event.Status)     { w.node.Status(s) }

func (w *World) step(events ...event.Event) {
	loop.Turn(watched{w}, w.now, events, &w.out)
	w.next.Add(&w.out)
	for _, r := range w.out.Replies {
		w.reply(r)
	}
	for _, op := range w.out.Childs {
		w.childs[op.Child] = op.What == event.StartChild
		if op.What != event.StartChild {
			w.late = append(w.late, event.ChildDown{Child: op.Child})
		}
	}
	for i := range w.out.Arena { // whoever kept a view of it will be found out
		w.out.Arena[i] = 0xdb
	}
	if w.c.Choose("copy", 8) == 1 {
		if w.node.CopyTo(w.copied); w.copied.Hash() != w.node.Hash() {
			w.fail("a copy has another hash")
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
	w.late = append(w.late, event.Durable{Upto: upto, Bytes: w.bytes})
	w.synced = append(w.synced, batch)
}

// broke is a flush that failed: because the power went, or for its own reasons.
func (w *World) broke(from words.LSN, err error) {
	if w.disk.Dead() {
		w.powerLoss()
		return
	}
	w.Saw["flush failed"]++
	w.late = append(w.late, event.Refused{From: from, Why: journalfile.FaultOf(err)})
}

func (w *World) fold() {
	if len(w.synced) == 0 {
		return
	}
	if err := w.fol.Fold(w.synced[0]); err != nil {
		w.fail("fold: %v", err)
	}
	for _, s := range w.synced[0] {
		w.audit.frame(w, s)
	}
	w.synced = w.synced[1:]
	w.late = append(w.late, event.Folded{Upto: w.fol.Mark()})
}

// read tells somebody a balance, which is a promise as well.
func (w *World) read() {
	if mark := w.fol.Mark(); mark > w.promise.durable {
		w.fail("a read as of %v, durable %v", mark, w.promise.durable)
	} else if w.fol.Hash() != w.promise.hashes[mark] {
		w.fail("the follower differs from the node at %v", mark)
	}
}

// pass lets time go by, with a Tick at its end. Before Due a Tick does nothing; at
// Due it does something, or puts Due off.
func (w *World) pass(gone time.Duration) {
	w.now.Mono += words.Instant(gone)
	w.now.Wall += words.Time(gone / time.Millisecond)
	moved := w.c.Choose("clock", 40) < w.odds.clock
	if moved { // which no Due could foresee
		w.Saw["clock moved"]++
		w.now.Wall = max(1, w.now.Wall+words.Time(w.c.Choose("skew", 40_000)-18_000))
		w.now.Synced = w.c.Choose("synced", 4) > 0
	}
	due, any := w.node.Due()
	lsn, told := w.node.LSN(), len(w.asked)
	w.step(event.Tick{})
	acted := w.node.LSN() != lsn || len(w.asked) != told || len(w.out.Childs) > 0
	if acted && !moved && (!any || due > w.now.Mono) {
		w.fail("a tick acted at %v, due %v %v: %+v", w.now.Mono, due, any, w.out)
	}
	if next, again := w.node.Due(); again && !acted && any && due <= w.now.Mono && next <= w.now.Mono {
		w.fail("due %v, and still due %v after a tick that did nothing at %v", due, next, w.now.Mono)
	}
}

// children come up when they were asked to, and die when chance likes.
func (w *World) children() {
	var s event.Status
	if w.node.Status(&s); s.Ailing.Has(words.JournalFailed) && w.c.Choose("restart", 3) > 0 {
		w.disk.Full = false // somebody made room first
		w.boot()
		return
	}
	c := words.Child(w.c.Choose("child", int(words.Children)))
	switch {
	case !w.childs[c]:
	case w.c.Choose("child/dies", 6) == 1:
		w.Saw["child died"]++
		w.childs[c] = false
		w.step(event.ChildDown{Child: c})
	default:
		w.step(event.ChildUp{Child: c})
	}
}

func (w *World) trouble() {
	if w.c.Choose("trouble", 12) < w.odds.crash {
		if w.c.Choose("kill", 2) == 1 {
			w.Saw["killed"]++ // the process goes, what was written stays
			w.disk.Fuse = -1
			w.boot()
			return
		}
		w.disk.Fuse = w.c.Choose("fuse", 10)
		if w.disk.Dead() {
			w.powerLoss()
		}
		return
	}
	if w.c.Choose("fault", 12) < w.odds.fault {
		switch w.c.Choose("which", 3) {
		case 0:
			w.disk.FailSync = true
		case 1:
			w.disk.Full = !w.disk.Full
		case 2:
			w.step(event.Room{Free: uint64(w.c.Choose("free", 2)) << 20})
		}
	}
}

func (w *World) powerLoss() {
	w.Saw["power lost"]++
	w.disk.Crash(w.c)
	w.boot()
}

// calm ends all trouble: whoever asks is answered, and the last frame has a
// successor that vouches for it.
func (w *World) calm() {
	w.disk.Fuse, w.disk.FailSync, w.disk.Full, w.odds = -1, false, false, odds{}
	w.now.Synced = true
	w.boot()
	for range 60 {
		for c := range words.Children {
			w.step(event.ChildUp{Child: c})
		}
		w.pass(2 * time.Second)
		w.settle()
		for _, c := range w.clients {
			c.insist(w)
		}
		w.settle()
	}
	for _, c := range w.clients {
		if c.want != nil {
			w.fail("%s is never answered", c.want.Key.Text)
		}
	}
	for range 3 {
		w.pass(time.Second)
		w.settle()
	}
	if w.promise.records > 0 {
		w.fail("nothing vouches for the last frame")
	}
}

// settle carries all that is under way to its end.
func (w *World) settle() {
	for range 8 {
		w.turn(4)
		w.write()
		w.sync()
		w.fold()
	}
}

// end drains the node: everybody who asked is answered, and it stops in time.
func (w *World) end() {
	for _, c := range w.clients {
		c.insist(w)
	}
	began := w.now.Mono
	w.step(event.Signal{What: event.Drain})
	var s event.Status
	for s.Phase != words.Stopped && w.err == nil {
		if w.pass(100 * time.Millisecond); w.now.Mono > began.Plus(5*time.Second) {
			w.fail("a drain without end: %+v", s)
		}
		w.settle()
		w.node.Status(&s)
	}
	if len(w.asked) > 0 {
		w.fail("%d requests were let in and never answered", len(w.asked))
	}
}
