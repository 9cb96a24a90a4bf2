package explore

import (
	"errors"
	"fmt"

	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/state"
	"macronode/core/types"
)

// A World is the node and its environment, each at its position on the way of a frame. The disk
// behaves like the journal: after a crash, it has a prefix of the frames that it got, with all
// that were synced.
//
//	ask ─► node ─► last ─write─► wrote ─sync─► safe ─fold─► folded ─► hear
//	                 └ handed       └ in the pages  └ on the disk
//
// Invariants:
//
//	X1  a reply is sent after its frame is durable and folded
//	X2  the acknowledged outcome of a key, and its page, never change
//	X3  at most one page of a journal has an outcome of a key within its TTL
//	X4  after a crash the journal is a prefix of what it was, with all durable frames
//	X5  the folded state of a journal is that of the node that wrote it
//	X6  a request that is not cancelled is answered before the end, and given up only
//	    if necessary
//	X7  a draining node accepts nothing, and ends in time
//	X8  a key is evicted after the index has it durably, and after its retention
//	X9  time ends every wait: a reply by its deadline, a flush by its stall and then
//	    by its failure, the last frame by a heartbeat, a hold by its expiry
//	X10 a flush is stalled only after its threshold
type World struct {
	h    *shared
	node *node.Node // of this world; meaningful only if it is alive

	now     types.Now
	life    life
	last    *page // emitted frames
	handed  *page // those that the journal got
	wrote   *page // those that are written
	safe    *page // those that are durable
	folded  *page
	late    queue // events of the loop
	folds   queue // batches to fold
	failing bool  // the journal rejects writes in this run
	cut     bool  // the last crash left half a frame
	tail    uint8 // frames after the durable ones that it left

	mark, table *page // in the index; durable in the index
	heard       types.LSN
	clients     [2]client
	facts       [maxKeys]fact
	left        budget
	http        door
	began       types.Instant // start of the drain; 0: none
	flushed     types.LSN     // as far as the node was informed
	flush       types.Instant // start of the current flush
	emitted     types.Instant // time of the last frame
}

type life uint8

const (
	dead  life = iota // before recovery
	read              // read, and being made durable
	alive             //
	over              // the node has stopped
)

// budget limits the faults.
type budget struct{ powers, kills, fails, leaves, passes, jumps, tables, drains, aborts, downs uint8 }

// door is the public listener.
type door struct{ up, wanted, killed bool }

// fact is an acknowledged outcome of a key: it never changes.
type fact struct {
	page  *page // nil: none
	index uint16
}

// A word is an event for the node, or a batch to fold.
type word struct {
	what  report
	page  *page
	bytes uint32
}

type report uint8

const (
	durable report = iota + 1
	folds
	refused
	indexed
	ended // of the public listener
)

// queue is a FIFO queue.
type queue struct {
	words [6]word
	count uint8
}

func (q *queue) push(w word) {
	q.words[q.count] = w
	q.count++
}

func (q *queue) pop() word {
	w := q.words[0]
	copy(q.words[:], q.words[1:q.count])
	q.count--
	q.words[q.count] = word{}
	return w
}

func (q *queue) full() bool { return int(q.count) == len(q.words) }

func (q *queue) mix(h types.Hash64) types.Hash64 {
	h = h.Mix(uint64(q.count))
	for _, w := range q.words[:q.count] {
		h = w.page.mix(h.Mix(uint64(w.what)).Mix(uint64(w.bytes)))
	}
	return h
}

func (p *page) mix(h types.Hash64) types.Hash64 {
	if p == nil {
		return h.Mix(1)
	}
	return h.Mix(uint64(p.hash))
}

// Open returns the initial world of a plan.
func Open(s Plan) *World {
	h := newShared(s)
	s = h.scope
	w := h.world()
	w.left = budget{powers: s.powers, kills: s.kills}
	if !s.empty {
		w.left = budget{}
		w.settle()
		for _, one := range s.first {
			w.clients[0].ask(w, h.wish(&one))
			w.settle()
			w.clients[0] = client{}
		}
		w.mark, w.table = w.folded, w.folded
		if s.tables > 0 {
			w.step(event.Indexed{Upto: w.table.lsn})
			w.heard = w.table.lsn
		}
	}
	w.left = budget{s.powers, s.kills, s.fails, s.leaves, s.passes, s.jumps, s.tables, s.drains, s.aborts, s.downs}
	h.Saw = [sights]uint64{}
	for i := range w.clients {
		if i < len(s.scripts) {
			w.clients[i].tries = s.tries
		}
	}
	return w
}

func (h *shared) world() *World {
	w := &World{h: h, now: types.Now{Mono: 1, Wall: begin, Synced: true}, last: h.empty, handed: h.empty, wrote: h.empty,
		safe: h.empty, folded: h.empty, mark: h.empty, table: h.empty}
	w.node = node.New(h.config, h.fresh(), 1, types.NewRand(1))
	return w
}

// fresh returns an empty state.
func (h *shared) fresh() state.State { return state.New(h.config.State, 1) }

// settle does everything that the loop can do.
func (w *World) settle() {
	for range 100 {
		did := false
		for _, a := range w.Enabled(nil) {
			switch a.kind() {
			case actRead, actRewrite, actBoot, actWrite, actSync, actFold, actListen, actHear, actUp, actIndex:
				did = true
				w.act(a)
			default:
				continue
			}
			break
		}
		if !did {
			return
		}
	}
}

// CopyTo overwrites dst, reusing its memory.
func (w *World) CopyTo(dst *World) {
	n := dst.node
	if *dst = *w; n == nil {
		n = node.New(w.h.config, w.h.fresh(), 1, types.NewRand(1))
	}
	if dst.node = n; w.life == alive {
		w.node.CopyTo(n)
	}
}

// Hash covers everything that affects later steps.
func (w *World) Hash() types.Hash64 {
	h := types.Hash64(w.life)
	if w.life == alive {
		h = h.Mix(uint64(w.node.Hash()))
	}
	h = h.Mix(uint64(w.now.Mono)).Mix(uint64(w.now.Wall)).MixBool(w.now.Synced)
	for _, p := range [...]*page{w.last, w.handed, w.wrote, w.safe, w.folded, w.mark, w.table} {
		h = p.mix(h)
	}
	h = w.folds.mix(w.late.mix(h)).MixBool(w.failing).MixBool(w.cut).Mix(uint64(w.tail)).Mix(uint64(w.heard))
	for i := range w.clients {
		h = w.clients[i].mix(h)
	}
	for _, f := range w.facts {
		h = f.page.mix(h).Mix(uint64(f.index))
	}
	l := &w.left
	h = h.Mix(uint64(l.powers) | uint64(l.kills)<<8 | uint64(l.fails)<<16 | uint64(l.leaves)<<24 | uint64(l.passes)<<32 |
		uint64(l.jumps)<<40 | uint64(l.tables)<<48 | uint64(l.drains)<<56).Mix(uint64(l.aborts) | uint64(l.downs)<<8)
	return h.MixBool(w.http.up).MixBool(w.http.wanted).MixBool(w.http.killed).Mix(uint64(w.began)).
		Mix(uint64(w.flushed)).Mix(uint64(w.flush)).Mix(uint64(w.emitted))
}

// Check checks the invariants of the node, and of the world.
func (w *World) Check() error {
	switch {
	case w.life == alive && w.node.LSN() != w.last.lsn:
		return fmt.Errorf("X5: the node is at %v, its frames at %v", w.node.LSN(), w.last.lsn)
	case !w.last.has(w.handed) || !w.handed.has(w.wrote) || !w.wrote.has(w.safe):
		return fmt.Errorf("X4: last %v, handed %v, wrote %v, safe %v", w.last.lsn, w.handed.lsn, w.wrote.lsn, w.safe.lsn)
	case w.life == alive && !w.safe.has(w.folded) && w.h.scope.lies == (lies{}):
		return fmt.Errorf("X1: folded %v, safe %v", w.folded.lsn, w.safe.lsn)
	}
	for i, f := range w.facts {
		if f.page != nil && !w.last.has(f.page) {
			return fmt.Errorf("X2: key%d has the outcome %v, which is lost", i, f.page.lsn)
		}
	}
	if w.life != alive {
		return nil
	}
	if w.http.wanted && w.phase() >= types.Draining {
		return fmt.Errorf("X7: draining, but the listener was not stopped")
	}
	if err := w.waits(); err != nil {
		return err
	}
	if w.began > 0 {
		if err := w.ends(); err != nil {
			return err
		}
	}
	return w.node.Check()
}

// waits checks that every wait has an end.
func (w *World) waits() error {
	var v node.SpecView
	w.node.SpecView(&v)
	c := &w.h.config
	due, any := w.node.Due()
	by := func(what string, at types.Instant) error {
		if !any || due > at {
			return fmt.Errorf("X9: %s ends by %d, and the node is due at %d, %v", what, at, due, any)
		}
		return nil
	}
	err := error(nil)
	outstanding, writes := w.flushed < w.last.lsn && !v.Failed, !v.Failed && !v.Stalled
	if v.Stalled && (!outstanding && !v.Failed || w.now.Mono < w.flush.Add(c.StallThreshold)) {
		err = fmt.Errorf("X10: stalled at %d, of a flush that began at %d", w.now.Mono, w.flush)
	}
	if outstanding {
		err = errors.Join(err, by("a flush", w.flush.Add(c.SyncTimeout)))
	}
	if outstanding && !v.Stalled {
		err = errors.Join(err, by("a flush without a stall", w.flush.Add(c.StallThreshold)))
	}
	for i := range w.clients {
		if one := &w.clients[i]; one.state == waiting {
			err = errors.Join(err, by("a client's patience", one.since.Add(c.CommitTimeout)))
		}
	}
	if w.flushed == w.last.lsn && w.last.records > 0 && writes {
		err = errors.Join(err, by("the last frame's silence", w.emitted.Add(c.HeartbeatInterval)))
	}
	for i := range w.last.books.holds {
		if p := &w.last.books.holds[i]; p.open && p.until <= w.now.Wall && writes {
			err = errors.Join(err, by("a hold that is over", w.now.Mono.Add(c.SweepInterval)))
		}
	}
	return err
}

// ends advances only time after a drain has begun, with a disk and a listener that hang: the node
// stops in time.
func (w *World) ends() error {
	h := w.h
	if h.spare == nil {
		h.spare = new(World)
	}
	saw, s := h.Saw, h.spare
	h.err = nil
	w.CopyTo(s)
	d := &h.config.Drain
	for range 40 {
		if s.life == over {
			break
		}
		s.pass(0)
	}
	h.Saw = saw
	if h.err != nil {
		return h.err
	}
	if after := s.now.Mono - w.began; s.life != over || after > types.Instant(d.LameDuck+d.Drain+d.Abort) {
		return fmt.Errorf("X7: an endless drain: after %d ns the state is %d", after, s.life)
	}
	return nil
}

// Rest checks the end of a schedule: no request waits, and nothing is in progress.
func (w *World) Rest() error {
	for i := range w.clients {
		if c := &w.clients[i]; c.state == waiting {
			return fmt.Errorf("X6: client %d waits for an answer that never comes", i)
		}
	}
	switch {
	case w.life == over && w.h.scope.drains > 0:
	case w.life != alive:
		return fmt.Errorf("the end: state %d", w.life)
	case w.began > 0:
		return fmt.Errorf("X7: a drain that does not end")
	case !w.failing && (w.folded != w.last || w.late.count > 0):
		return fmt.Errorf("the end: last %v, folded %v", w.last.lsn, w.folded.lsn)
	}
	return nil
}
