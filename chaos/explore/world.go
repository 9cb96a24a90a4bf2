package explore

import (
	"errors"
	"fmt"

	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/state"
	"macronode/core/types"
)

// A World is the node and all that stands around it, each at its place on the way of a
// frame. The rule of the disk is the journal's: after a crash there is any prefix of the
// frames that were handed to it, and what it was heard to have synced.
//
//	ask ─► node ─► last ─write─► wrote ─sync─► safe ─fold─► folded ─► hear
//	                 └ handed       └ in the pages  └ on the disk
//
// Invariants:
//
//	X1  nothing is told that is not on the disk and folded
//	X2  what was told of a key, and the page that tells it, is the same for ever
//	X3  one page of a journal at most has the outcome of a key in its time
//	X4  after a crash the journal is a prefix of what it was, and has all that is safe
//	X5  what was folded of a journal is what the node had that wrote it
//	X6  whoever asked and did not leave is answered before the end, and not given up
//	    without a need
//	X7  a drain that has closed the door lets nothing in, and ends in its time
//	X8  a key leaves the window when the index has it for ever, and its trail is over
//	X9  time alone ends what waits: a reply by its patience, a flush by its stall and then
//	    by its failure, a last frame that nobody vouches for, a hold that is over
//	X10 a flush that has not had its time is not called stalled
type World struct {
	h    *house
	node *node.Node // of this world alone; of no meaning unless it is alive

	now     types.Now
	life    life
	last    *page // frames that the node has emitted
	handed  *page // of them, those that the journal was given
	wrote   *page // those that can be read
	safe    *page // those on the disk
	folded  *page
	late    queue // of what the shell has to say
	folds   queue // of batches to fold
	failing bool  // the journal is of no more use in this life
	cut     bool  // what the last crash left ends in half a frame
	tail    uint8 // frames that it left beyond those that were safe

	mark, table *page // what the index has; what it has for ever
	heard       types.LSN
	clients     [2]client
	facts       [maxKeys]fact
	left        budget
	http        door
	began       types.Instant // the drain; 0: it has not
	flushed     types.LSN     // as far as the node has heard
	flush       types.Instant // what comes after that began to be flushed
	emitted     types.Instant // the last frame
}

type life uint8

const (
	dead  life = iota // nobody has looked at the disk
	read              // what is there was read, and is being written anew
	alive             //
	over              // the node has stopped
)

// budget is what may still befall a world.
type budget struct{ powers, kills, fails, leaves, passes, jumps, tables, drains, aborts, downs uint8 }

// door is the public listener, as the shell has it.
type door struct{ up, wanted, killed bool }

// fact is what somebody was told of a key: it is so for ever.
type fact struct {
	page  *page // nil: nothing yet
	index uint16
}

// A word is what the shell has to say to the node, or a batch to fold.
type word struct {
	what  said
	page  *page
	bytes uint32
}

type said uint8

const (
	durable said = iota + 1
	folds
	refused
	indexed
	ended // the public listener
)

// queue is first in, first out.
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

// Open is a plan's world at its start.
func Open(s Plan) *World {
	h := newHouse(s)
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

func (h *house) world() *World {
	w := &World{h: h, now: types.Now{Mono: 1, Wall: begin, Synced: true}, last: h.empty, handed: h.empty, wrote: h.empty,
		safe: h.empty, folded: h.empty, mark: h.empty, table: h.empty}
	w.node = node.New(h.config, h.fresh(), 1, types.NewRand(1))
	return w
}

// fresh is a state of its own with nothing in it.
func (h *house) fresh() state.State { return state.New(h.config.State, 1) }

// settle does all that the shell does, until there is nothing left to do.
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

// Hash is of all that decides what follows.
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

// Check is the node's own invariants, and those of where things stand.
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
			return fmt.Errorf("X2: key%d was told of %v, which is gone", i, f.page.lsn)
		}
	}
	if w.life != alive {
		return nil
	}
	if w.http.wanted && w.phase() >= types.Draining {
		return fmt.Errorf("X7: the door is closed, and the listener was not asked to end")
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

// waits wants an end of everything that waits to be in sight.
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

// ends lets time alone go by after a drain has begun, with a disk that never answers and
// a listener that never goes: the node stops in its time all the same.
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
		return fmt.Errorf("X7: a drain without end: after %d ns the life is %d", after, s.life)
	}
	return nil
}

// Rest is asked at the end of a schedule: nobody waits, nothing is under way.
func (w *World) Rest() error {
	for i := range w.clients {
		if c := &w.clients[i]; c.state == waiting {
			return fmt.Errorf("X6: client %d waits for an answer that never comes", i)
		}
	}
	switch {
	case w.life == over && w.h.scope.drains > 0:
	case w.life != alive:
		return fmt.Errorf("the end: of life %d", w.life)
	case w.began > 0:
		return fmt.Errorf("X7: a drain that does not end")
	case !w.failing && (w.folded != w.last || w.late.count > 0):
		return fmt.Errorf("the end: last %v, folded %v", w.last.lsn, w.folded.lsn)
	}
	return nil
}
