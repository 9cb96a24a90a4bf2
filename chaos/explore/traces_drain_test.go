package explore

import (
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// drainPlan stays within Drain: every request is new, none is cancelled, and there is no
// heartbeat.
func drainPlan() Plan {
	return Plan{drains: 1, aborts: 1, slow: true, downs: 1, fails: 1, passes: 3, tries: 1, heartbeat: 60 * second, patience: 2 * second,
		scripts: [][]wish{{issue(0, "ann", 1), issue(1, "ann", 1)}, {issue(2, "bob", 1), issue(3, "bob", 1)}}}
}

// unit is the unit of Drain's deadlines.
const unit = 100 * time.Millisecond

// drainTeller translates a run to steps of Drain.
type drainTeller struct {
	steps []observed
	base  types.LSN // before the run
	was   event.Status
	http  string        // as the node sees it
	entry types.Instant // start of the current phase
	gone  int           // units since then
	asks  int
	cur   [2]int
	held  map[int]bool
	word  report // the next event for the node
	fell  bool   // the listener ended, and the node has not handled that
}

func newDrainTeller() *drainTeller { return &drainTeller{held: map[int]bool{}} }

func (t *drainTeller) trace() []observed { return t.steps }

func (t *drainTeller) tell(x ...any) { t.steps = append(t.steps, x) }

// may excludes what the specification does differently: one batch at a time, and a listener that
// obeys.
func (t *drainTeller) may(w *World, a Action) bool {
	waits := w.clients[0].state == waiting || w.clients[1].state == waiting
	var s event.Status
	w.node.Status(&s)
	switch a.kind() {
	case actAsk:
		return !t.fell && (t.http == "up" || len(t.steps) == 0)
	case actWrite:
		return !t.fell && s.Applied == s.Durable && w.folded == w.safe && w.late.count == 0
	case actDown:
		return w.http.wanted || w.http.killed || !waits
	case actDrain:
		return !t.fell && t.asks > 1 // otherwise most runs would be short
	case actListen, actFold, actSync, actHear:
		return true
	case actPass:
		due, _ := w.node.Due()
		return !t.fell && due < w.now.Mono.Add(10*second) // otherwise a heartbeat comes
	default:
		return !t.fell
	}
}

func (t *drainTeller) before(w *World, a Action) {
	if len(t.steps) == 0 {
		t.base, t.http = w.last.lsn, "up"
		t.tell("Meet", "key")
		t.tell("Meet", "admin")
		t.tell("Up")
	}
	t.word = w.late.words[0].what
	t.fell = t.fell && (a.kind() != actListen || t.word != ended) || a.kind() == actDown && w.http.wanted
	w.node.Status(&t.was)
}

var ranks = map[types.Phase]int{types.LameDuck: 1, types.Draining: 2, types.Aborting: 3, types.Stopped: 4}

func (t *drainTeller) after(w *World, a Action) {
	var s event.Status
	w.node.Status(&s)
	observed := len(t.steps)
	if a.kind() == actPass {
		t.passes(w)
	}
	t.happens(w, a, &s)
	for _, op := range w.h.out.ServiceCommands {
		if op.Service != types.ServiceHTTP || a.kind() == actWrite || a.kind() == actSync || a.kind() == actFold || a.kind() == actHear || a.kind() == actDown {
			continue
		}
		switch {
		case op.Verb == event.StartService:
			t.tell("Restart")
			t.http = "starting"
		case t.http != "down":
			t.http = "ending"
		}
	}
	t.moves(w, a, &s)
	if len(t.steps) == observed {
		return
	}
	t.tell("See", s.Phase.String(), int(s.LSN-t.base), int(s.Durable-t.base), int(s.Applied-t.base), int(s.HeldReplies), s.Ready, s.Reads, s.Writes)
}

// passes adds the time of a phase, in whole units.
func (t *drainTeller) passes(w *World) {
	if ranks[t.was.Phase] == 0 {
		return
	}
	for n := int((w.now.Mono - t.entry) / types.Instant(unit)); t.gone < n; t.gone++ {
		t.tell("Pass")
	}
}

// happens translates an action, without phases.
func (t *drainTeller) happens(w *World, a Action, s *event.Status) {
	switch a.kind() {
	case actAsk:
		t.asks++
		k := t.asks
		t.tell("Send", k)
		t.cur[a.n()], t.held[k] = k, s.HeldReplies > t.was.HeldReplies || s.LSN > t.was.LSN
		t.tell("Enter", k, t.held[k])
	case actUp:
		t.tell("Up")
		t.http = "up"
	case actDrain:
		t.tell("Drain")
	case actAbort:
		if ranks[t.was.Phase] < 3 {
			t.tell("Abort")
		}
	case actListen:
		t.hears(s)
	default:
	}
	if s.DegradedBy.Has(types.JournalStalled) && !t.was.DegradedBy.Has(types.JournalStalled) {
		t.tell("Stall")
	}
	if failed := s.DegradedBy.Has(types.JournalFailed) && !t.was.DegradedBy.Has(types.JournalFailed); failed {
		t.tell("Fail")
		clear(t.held) // one batch at a time: every waiting request waits for a lost frame
	}
	for i := range w.clients {
		c, k := &w.clients[i], t.cur[i]
		if c.state == mailed && t.held[k] {
			if delete(t.held, k); a.kind() == actPass && ranks[s.Phase] < 3 {
				t.tell("Patience", k)
			}
		}
	}
}

// hears translates an event of the loop.
func (t *drainTeller) hears(s *event.Status) {
	switch {
	case t.word == durable && s.Durable > t.was.Durable:
		t.tell("Sync", int(s.Durable-t.base))
	case t.word == folds && s.Applied > t.was.Applied:
		t.tell("Fold")
	case t.word == ended && t.http == "ending":
		t.tell("Ended")
		t.http = "down"
	case t.word == ended:
		t.tell("Die")
		t.http = "down"
	}
}

// moves translates the phases.
func (t *drainTeller) moves(w *World, a Action, s *event.Status) {
	from, to := ranks[t.was.Phase], ranks[s.Phase]
	if from < to {
		t.entry, t.gone = w.now.Mono, 0
	}
	if a.kind() == actDrain {
		from = 1
	}
	if a.kind() == actAbort {
		from = max(from, 3)
	}
	if from == 1 && to >= 2 {
		t.tell("Close")
		from = 2
	}
	if from == 2 && to == 3 {
		t.tell("GiveUp")
	}
	if from < 4 && to == 4 {
		t.tell("Stop")
	}
}
