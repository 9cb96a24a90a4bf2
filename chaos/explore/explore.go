// Package explore takes every schedule of a small world to its end: who moves first,
// where the power goes, what is left on the disk. What chaos/sim draws by chance is here
// all there is, of the same node.
//
//	Enabled ─► each action ─► CopyTo, Do ─► Hash ─► seen before? back : Check, and deeper
//	                             └─ broken ─► the actions that led there, made short
//
// A scope is whole, or its test is red: nothing is cut in silence.
//
// Nothing is reduced either; it was measured, and does not pay. Every state is looked at, so
// sleep sets save transitions alone: where steps of the node count as dependent on each
// other, the scopes of the same key and of a kill keep 56,823 of 71,749 and 128,789 of
// 154,032; an oracle that tries each pair in both orders, and takes far longer, would keep
// 29,647 and 76,022. Symmetry of clients would halve two scopes of eighteen at most, because the
// others' clients want different things, and would want the node's tickets renamed.
package explore

import (
	"fmt"

	"macronode/core/types"
)

// An Action is one thing that may happen next, as its system numbers them.
type Action uint32

// A System is what is explored: data that can be copied, and its rules.
type System[S any] interface {
	*S
	Enabled(to []Action) []Action // what may happen next, in an order that the state decides; none: the end
	Do(a Action) error            // the rule that a broke, if any
	Check() error                 // asked once of each state
	Rest() error                  // asked of a state in which nothing may happen any more
	Hash() types.Hash64           // of all that decides what may follow, and whether it is right
	CopyTo(dst *S)                // reuses dst's memory
	Say(a Action) string          // what a is, for people; asked before it is done
}

// A Scope is a world small enough to be explored.
type Scope struct {
	Name string
	Room int // states that the table takes, 8 bytes each; one more and the report is not whole
}

// A Report is what was explored. Whole says that it was all; then, if nothing was found,
// no schedule goes on for ever, because none comes back to where it was.
type Report struct {
	Name                               string
	Distinct, Transitions, Depth, Ends uint64
	Whole                              bool
	Found                              *Failure
}

// Missed is how likely two states looked like one, at most: n²/2^64 for 63 bits.
func (r Report) Missed() float64 { n := float64(r.Distinct); return n * n / (1 << 64) }

func (r Report) String() string {
	return fmt.Sprintf("%s: %d states, %d transitions, %d ends, depth %d, whole %v, missed something with a chance of %.0e",
		r.Name, r.Distinct, r.Transitions, r.Ends, r.Depth, r.Whole, r.Missed())
}

// A step is a state on the way to the one at hand, what may happen in it, and which of
// that comes next.
type step[S any] struct {
	at   *S
	may  []Action
	next int
	slot int
}

// A walk goes depth first, so that it holds no more states than it is deep.
type walk[S any, P System[S]] struct {
	seen seen
	way  []*step[S]
	deep int
	r    Report
}

// Run explores from a start, which stays as it is, until all is done, something is
// found, or the table is full.
func Run[S any, P System[S]](start P, s Scope) Report {
	w := walk[S, P]{seen: newSeen(s.Room), r: Report{Name: s.Name}}
	err := w.guarded(start)
	if err != nil {
		w.r.Found = shorten[S, P](start, w.log(), err)
	}
	w.r.Whole = w.r.Whole && err == nil
	return w.r
}

// guarded is the walk; whoever panics in it has broken a rule.
func (w *walk[S, P]) guarded(start P) (err error) {
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("panic: %v", why)
		}
	}()
	first := w.below()
	start.CopyTo(first.at)
	if err := w.enter(first); err != nil {
		return err
	}
	for w.deep > 0 {
		top := w.way[w.deep-1]
		if top.next == len(top.may) {
			w.seen.close(top.slot)
			w.deep--
			continue
		}
		a := top.may[top.next]
		top.next++
		next := w.below()
		if top.next < len(top.may) {
			P(top.at).CopyTo(next.at)
		} else {
			top.at, next.at = next.at, top.at // nobody comes back to it
		}
		w.r.Transitions++
		if err := P(next.at).Do(a); err != nil {
			return err
		}
		if err := w.enter(next); err != nil || w.seen.full() {
			return err
		}
	}
	w.r.Whole = true
	return nil
}

// below is the memory for the next step of the way.
func (w *walk[S, P]) below() *step[S] {
	if w.deep == len(w.way) {
		w.way = append(w.way, &step[S]{at: new(S)})
	}
	return w.way[w.deep]
}

// enter goes on from a state, if it is a new one.
func (w *walk[S, P]) enter(s *step[S]) error {
	p := P(s.at)
	slot, was := w.seen.open(p.Hash())
	switch was {
	case opened:
		return errRound
	case closed:
		return nil
	case fresh:
	}
	w.r.Distinct++
	if err := p.Check(); err != nil {
		return err
	}
	s.may, s.next, s.slot = p.Enabled(s.may[:0]), 0, slot
	if len(s.may) == 0 {
		w.r.Ends++
		if err := p.Rest(); err != nil {
			return err
		}
	}
	w.deep++
	w.r.Depth = max(w.r.Depth, uint64(w.deep-1))
	return nil
}

// log is the actions that led to where the walk is.
func (w *walk[S, P]) log() (log []Action) {
	for _, s := range w.way[:w.deep] {
		if s.next > 0 {
			log = append(log, s.may[s.next-1])
		}
	}
	return log
}
