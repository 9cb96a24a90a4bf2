// Package explore executes every schedule of a small system: the order of clients, the points of
// crashes, what survives on disk. chaos/sim samples these at random; here they are exhaustive,
// for the same node.
//
//	Enabled ─► each action ─► CopyTo, Do ─► Hash ─► seen before? back : Check, and deeper
//	                             └─ violation ─► the actions that led there, shortened
//
// A scope is explored completely, or its test fails: nothing is cut silently.
//
// There is no partial-order reduction: measured, it does not pay. Every state is visited, so
// sleep sets save transitions only: if steps of the node count as dependent, the scopes of the
// same key and of a kill keep 56,823 of 71,749 and 128,789 of 154,032; an oracle that tries each
// pair in both orders, and takes far longer, would keep 29,647 and 76,022. Symmetry of clients
// would halve at most two of eighteen scopes, because in the others clients make different
// requests, and tickets would have to be renamed.
package explore

import (
	"fmt"

	"macronode/core/types"
)

// An Action is a possible step, numbered by its system.
type Action uint32

// A System is explored: copyable data with rules.
type System[S any] interface {
	*S
	Enabled(to []Action) []Action // the possible actions, in an order that depends on the state only; none: the end
	Do(a Action) error            // returns the violated rule, if any
	Check() error                 // called once per state
	Rest() error                  // called in a final state
	Hash() types.Hash64           // of everything that affects later steps and rules
	CopyTo(dst *S)                // reuses dst's memory
	Say(a Action) string          // describes an action; called before it is done
}

// A Scope is a system small enough to be explored.
type Scope struct {
	Name string
	Room int // states of the table, 8 bytes each; if it is full, the report is not whole
}

// A Report is the result. Whole means complete; then, without a failure, every schedule ends,
// because no state is revisited.
type Report struct {
	Name                               string
	Distinct, Transitions, Depth, Ends uint64
	Whole                              bool
	Found                              *Failure
}

// Missed is an upper bound of the probability of a hash collision: n²/2^64 for 63 bits.
func (r Report) Missed() float64 { n := float64(r.Distinct); return n * n / (1 << 64) }

func (r Report) String() string {
	return fmt.Sprintf("%s: %d states, %d transitions, %d ends, depth %d, whole %v, missed something with a chance of %.0e",
		r.Name, r.Distinct, r.Transitions, r.Ends, r.Depth, r.Whole, r.Missed())
}

// A step is a state on the current path, its actions, and the next of them.
type step[S any] struct {
	at   *S
	may  []Action
	next int
	slot int
}

// A walk is a depth-first search, so it holds one state per level.
type walk[S any, P System[S]] struct {
	seen seen
	way  []*step[S]
	deep int
	r    Report
}

// Run explores from a start, which is not changed, until everything is done, a rule is violated,
// or the table is full.
func Run[S any, P System[S]](start P, s Scope) Report {
	w := walk[S, P]{seen: newSeen(s.Room), r: Report{Name: s.Name}}
	err := w.guarded(start)
	if err != nil {
		w.r.Found = shorten[S, P](start, w.log(), err)
	}
	w.r.Whole = w.r.Whole && err == nil
	return w.r
}

// guarded is the walk; a panic is a violation.
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
			top.at, next.at = next.at, top.at // the state is not needed again
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

// below returns the memory of the next level.
func (w *walk[S, P]) below() *step[S] {
	if w.deep == len(w.way) {
		w.way = append(w.way, &step[S]{at: new(S)})
	}
	return w.way[w.deep]
}

// enter continues from a state, if it is new.
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

// log returns the actions of the current path.
func (w *walk[S, P]) log() (log []Action) {
	for _, s := range w.way[:w.deep] {
		if s.next > 0 {
			log = append(log, s.may[s.next-1])
		}
	}
	return log
}
