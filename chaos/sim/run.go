package sim

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"

	"macronode/chaos/world"
	"macronode/core/gateway/quota"
	"macronode/core/node"
	"macronode/core/state"
	"macronode/core/types"
)

// New is a world that begins with an empty disk. All that happens in it is what c
// answers.
func New(c world.Chooser) *World {
	w := &World{c: c, disk: world.NewDisk(), kept: world.NewDisk(), now: types.Now{Mono: 1, Wall: 1_700_000_000_000, Synced: true}, Saw: map[string]int{}, Cells: map[Cell]int{}, GateCells: map[GateCell]int{},
		asked: map[types.Ticket]*client{}, twins: map[types.Ticket]second{}, rate: even}
	w.disk.Hurt, w.disk.Told, w.made = w.hurt, w.names, map[string]int{}
	w.clients, w.index, w.clerk = people(), newIndex(), newClerk()
	w.said = newTestimony(len(w.clients))
	w.promise.begin(state.New(limits(), 0))
	return w
}

// mostMoves is how long a life can be.
const mostMoves = 1 << 16

// Life is the choices of a seed, for a life of so many moves. Most seeds roll dice; every
// fourth has its likes, so that one side of the node is starved for long, and then another.
func Life(seed uint64, moves int) world.Chooser {
	c := world.Chooser(world.NewSeeded(seed))
	if seed%4 == 3 {
		c = world.Priority(seed, int(seed/4%6), "move", "client")
	}
	c = world.Given(c, "goal/cell", int(seed%goals)) // each as often as any other
	return world.Given(c, "moves", moves)
}

// Steps are the sites at which a step of a life begins: what is between two of them can be
// left out.
func Steps() []string { return []string{"move", "calm"} }

// A Failure is a rule that was not kept.
type Failure struct {
	Rule string // its short name, which stays the same however small the run is made
	Says string
	Move int           // after so many of the life's moves
	View node.SpecView // of the node then
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s, at move %d: %s\nthe node: %+v", f.Rule, f.Move, f.Says, f.View)
}

// Run is a whole life. It returns a *Failure, or world.Diverged when c is the replay of a
// run that asked other questions: then nothing is known.
func (w *World) Run() (err error) {
	defer func() {
		r := recover()
		if d, ok := r.(world.Diverged); ok {
			err = d
			return
		}
		if r != nil {
			w.fail(panicked(r), "%v%s", r, places())
		}
		if err = nil; w.err != nil {
			err = w.err
		}
	}()
	w.live()
	return nil
}

// Rule is the rule that was broken, of an error of Run; empty when none was.
func Rule(err error) string {
	var f *Failure
	if errors.As(err, &f) {
		return f.Rule
	}
	return ""
}

// Failed is the rule that a run of c breaks.
func Failed(c world.Chooser) string { return Rule(New(c).Run()) }

func (w *World) live() {
	moves := w.c.Choose("moves", mostMoves)
	w.odds.draw(w.c)
	w.aim()
	w.config, w.narrow = gateway(config(), w.odds.gate), w.odds.gate
	w.limits = limits()
	if w.odds.gate > 0 && w.c.Choose("gate/unserved", 6) == 1 {
		w.config.Admission.Weights[types.ClassAnon] = 0
	}
	for i := ofInstanceBytes - 1; i < len(w.config.Quotas); i++ {
		if w.odds.gate == 0 || w.c.Choose("gate/rule", 2) != 1 {
			w.config.Quotas[i] = quota.Rule{}
		}
	}
	if w.odds.gate > 0 && w.c.Choose("gate/all-keys", 3) == 1 { // one tenant may have all there are
		w.limits.Idempotency.PerTenant = w.limits.Idempotency.Keys
		w.config.State = w.limits
	}
	if w.c.Choose("checks", 4) != 0 {
		w.checks = 8
	}
	w.beat("start", w.boot)
	for ; w.moved < moves && w.err == nil; w.moved++ {
		w.move()
	}
	if w.err != nil {
		return
	}
	w.c.Choose("calm", 1)
	if w.calm(); w.err != nil {
		return
	}
	ending := w.c.Choose("ending", 7)
	if ending == 0 || ending > 4 {
		w.end()
	}
	if w.certify(); w.err != nil {
		return
	}
	w.unlawful = true
	switch ending {
	case 1:
		w.beat("a bit rots", w.rot)
	case 2:
		w.beat("a sync lies", w.lie)
	case 3:
		w.beat("a snapshot rots", w.rotten)
	case 4:
		w.beat("a write goes astray", w.astray)
	case 5:
		w.beat("the journal loses its end", w.endLost)
	}
}

// fail notes the first rule that is broken.
func (w *World) fail(rule, format string, args ...any) {
	if w.err != nil {
		return
	}
	w.err = &Failure{Rule: rule, Says: fmt.Sprintf(format, args...), Move: w.moved}
	if w.node != nil {
		w.node.SpecView(&w.err.View)
	}
	w.tell(decider, nobody, wrong, "%s", rule)
}

// panicked names a panic: by what it says, without the numbers in it.
func panicked(r any) string {
	return "panic: " + numbers.ReplaceAllString(fmt.Sprint(r), "#")
}

var numbers = regexp.MustCompile(`\b(0x[0-9a-f]+|\d+)\b`)

// places are those lines of the product that a panic came through, the last first.
func places() (all string) {
	var pc [64]uintptr
	for frames := runtime.CallersFrames(pc[:runtime.Callers(2, pc[:])]); ; {
		f, more := frames.Next()
		if strings.HasPrefix(f.Function, "macronode/core/") || strings.HasPrefix(f.Function, "macronode/adapters/") {
			_, file, _ := strings.Cut(f.File, "/"+strings.SplitN(f.Function, "/", 3)[1]+"/")
			all += fmt.Sprintf("\n  %s  %s:%d", strings.TrimPrefix(f.Function, "macronode/"), file, f.Line)
		}
		if !more {
			return all
		}
	}
}

// label is the invariant that a Check names first.
func label(err error) string {
	name, _, _ := strings.Cut(err.Error(), ":")
	return name
}
