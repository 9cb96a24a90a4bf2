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

// New returns a world with an empty disk. c determines everything that happens.
func New(c world.Chooser) *World {
	w := &World{c: c, disk: world.NewDisk(), kept: world.NewDisk(), now: types.Now{Mono: 1, Wall: 1_700_000_000_000, Synced: true}, Saw: map[string]int{}, Cells: map[Cell]int{}, GateCells: map[GateCell]int{},
		asked: map[types.Ticket]*client{}, copies: map[types.Ticket]second{}, rate: even}
	w.disk.Hurt, w.disk.OnOperation, w.made = w.hurt, w.names, map[string]int{}
	w.clients, w.index, w.clerk = people(), newIndex(), newClerk()
	w.backups, w.vault.disk = newBackups(), world.NewDisk()
	w.testified = newTestimony(len(w.clients))
	w.promise.begin(state.New(limits(), 0))
	return w
}

// mostMoves is the largest number of moves of a run.
const mostMoves = 1 << 16

// Choices returns the choices of a seed, for a run of a number of moves. Most seeds are uniform;
// every fourth uses world.Priority, which starves one side of the node for long, and then
// another.
func Choices(seed uint64, moves int) world.Chooser {
	c := world.Chooser(world.NewSeeded(seed))
	if seed%4 == 3 {
		c = world.Priority(seed, int(seed/4%6), "move", "client")
	}
	c = world.Given(c, "goal/cell", int(seed%goals)) // each as often as any other
	c = world.Given(c, "odds/storage", storageOdds(seed))
	c = world.Given(c, "odds/usage", usageOdds(seed))
	c = world.Given(c, "odds/prepaid", prepaidOdds(seed))
	c = world.Given(c, "odds/charges", chargeOdds(seed))
	c = givenWorkloads(c, uint64(types.Hash64(0).Mix(seed)))
	c = world.Given(c, "odds/exports", exportOdds(seed))
	c = world.Given(c, "odds/restore", restoreOdds(seed))
	c = world.Given(c, "odds/archive", int(types.Hash64(0).Mix(seed)/64%2))
	files, shards, storage := filesOdds(uint64(types.Hash64(0).Mix(seed)))
	if c = world.Given(world.Given(c, "odds/files", files), "odds/shards", shards); files > 0 {
		c = world.Given(c, "odds/storage", storage)
	}
	return world.Given(c, "moves", moves)
}

// storageOdds returns whether a seed has storage: two of eight have, one with a price.
func storageOdds(seed uint64) int {
	switch types.Hash64(0).Mix(seed) % 8 {
	case 0:
		return storageFree
	case 1:
		return storagePaid
	}
	return 0
}

// usageOdds returns whether a seed has usage: two of eight have, and no storage.
func usageOdds(seed uint64) int {
	if of := types.Hash64(0).Mix(seed) % 8; of == 2 || of == 3 {
		return 1
	}
	return 0
}

// prepaidOdds returns whether a seed has a prepaid tenant: half of those with usage have.
func prepaidOdds(seed uint64) int {
	if types.Hash64(0).Mix(seed)%8 == 3 {
		return 1
	}
	return 0
}

// chargeOdds returns whether the slices of a seed are charged: those of half of the postpaid tenants are.
func chargeOdds(seed uint64) int { return int(types.Hash64(0).Mix(seed) / 128 % 2) }

// addedSites returns those that older logs lack; their choice 0 changes nothing.
func addedSites() []string {
	sites := []string{"odds/storage", "odds/usage", "odds/prepaid", "odds/charges", "odds/exports", "odds/restore", "odds/archive", "odds/files", "odds/shards"}
	for _, p := range planeWorkloads {
		sites = append(sites, p.site)
	}
	return sites
}

// exportOdds returns whether a seed has exports: half of those with usage have.
func exportOdds(seed uint64) int { return int(types.Hash64(0).Mix(seed) / 8 % 2) }

// restoreOdds returns whether the machine of a seed is replaced: that of one of four is.
func restoreOdds(seed uint64) int {
	if types.Hash64(0).Mix(seed)/16%4 == 1 {
		return 1
	}
	return 0
}

// Replay returns the choices of a log.
func Replay(l world.Log) world.Chooser { return world.Replay(l, addedSites()...) }

// Steps are the sites at which a step of a run begins: the choices between two of them can be
// left out.
func Steps() []string { return []string{"move", "calm"} }

// A Failure is a violated rule.
type Failure struct {
	Rule string // its short name, which is the same for a shrunk run
	Text string
	Move int           // number of moves so far
	View node.SpecView // view of the node at that time
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s, at move %d: %s\nthe node: %+v", f.Rule, f.Move, f.Text, f.View)
}

// Run makes a whole run. It returns a *Failure, or world.Diverged if c replays a log of another
// version.
func (w *World) Run() (err error) {
	defer func() {
		r := recover()
		if w.usage != nil && w.usage.prepaid != nil {
			w.usage.prepaid.recorder.dies()
		}
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

// Rule returns the violated rule of an error of Run; "" if none.
func Rule(err error) string {
	var f *Failure
	if errors.As(err, &f) {
		return f.Rule
	}
	return ""
}

// Failed returns the rule that a run of c violates.
func Failed(c world.Chooser) string { return Rule(New(c).Run()) }

func (w *World) live() {
	moves := w.c.Choose("moves", mostMoves)
	w.odds.draw(w.c)
	w.aim()
	w.odds.drawWorkloads(w.c)
	w.hasArchive = w.c.Choose("odds/archive", 2) == 1
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
	if w.odds.gate > 0 && w.c.Choose("gate/all-keys", 3) == 1 { // one tenant may have all slots
		w.limits.Idempotency.PerTenant = w.limits.Idempotency.Keys
		w.config.State = w.limits
	}
	w.beginStorage()
	w.beginUsage()
	w.beginExports()
	w.beginWorkloads()
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
	if w.certifyExports(); w.err != nil {
		return
	}
	for _, p := range w.planes {
		if p.certify(w); w.err != nil {
			return
		}
	}
	certified := w.testified.frames
	defer func() { w.testified.frames = certified }() // an ending recovers others
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
	case 6:
		w.beat("the last backup is restored", w.past)
	}
}

// fail records the first violated rule.
func (w *World) fail(rule, format string, args ...any) {
	if w.err != nil {
		return
	}
	w.err = &Failure{Rule: rule, Text: fmt.Sprintf(format, args...), Move: w.moved}
	if w.node != nil {
		w.node.SpecView(&w.err.View)
	}
	w.tell(decider, noLane, wrong, "%s", rule)
}

// panicked returns the text of a panic without its numbers.
func panicked(r any) string {
	return "panic: " + numbers.ReplaceAllString(fmt.Sprint(r), "#")
}

var numbers = regexp.MustCompile(`\b(0x[0-9a-f]+|\d+)\b`)

// places returns the lines of the product in a panic's stack, the last first.
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

// label returns the invariant that a Check reports first.
func label(err error) string {
	name, _, _ := strings.Cut(err.Error(), ":")
	return name
}
