package lanes_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/lanes"
	"macronode/core/types"
	reference "macronode/models/lanes"
)

// stream is a stream of the journal with its durable lane, and what the sink got of it.
type stream struct {
	id          types.LaneID
	head        uint64
	cursor      uint64
	quarantined []uint64
	due         []uint64
	got         []uint64 // in the order in which the sink accepted them, without redeliveries
	again       []uint64 // redeliveries
	settled     uint64   // by the machine, up to here
	moved       bool     // an operator has moved the cursor
}

// world is a machine between a sink, a journal and a node, with the reference model.
type world struct {
	*rapid.T
	machine *lanes.Machine
	model   *reference.Board
	limits  lanes.Limits
	seed    uint64
	seen    map[string]int

	now      int64
	streams  []*stream
	sends    []lanes.Send
	commands []lanes.Command
	room     int // of the quarantine
}

func newWorld(t *rapid.T, seen map[string]int) *world {
	w := &world{T: t, seen: seen, now: 1, room: rapid.IntRange(0, 2).Draw(t, "quarantine")}
	w.limits = lanes.Limits{Active: rapid.IntRange(1, 5).Draw(t, "active"), Inflight: rapid.IntRange(1, 4).Draw(t, "inflight"), Tenant: rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3}).Draw(t, "of a tenant"),
		Commands: rapid.IntRange(1, 3).Draw(t, "commands"), Window: rapid.Uint64Range(1, 4).Draw(t, "window"),
		Backoff: 50 * time.Millisecond, MaxBackoff: 400 * time.Millisecond, Budget: time.Second, Failures: rapid.IntRange(1, 3).Draw(t, "failures")}
	for i := range 5 {
		w.streams = append(w.streams, &stream{id: types.LaneID{Tenant: types.Tenant(1 + max(0, i-2)), ID: types.NameHash{byte(i)}}})
	}
	w.start()
	return w
}

// weightOf returns the weight of a tenant of 1 to 3. The first has the most streams.
func weightOf(t types.Tenant) uint8 { return uint8(4 - t) }

// start makes a machine that has forgotten everything.
func (w *world) start() {
	w.seed++
	l := w.limits
	w.machine = lanes.New(l, weightOf, types.NewRand(w.seed))
	w.model = &reference.Board{Again: true, Limits: reference.Limits{Active: l.Active, Inflight: l.Inflight, Tenant: l.Tenant, Weight: func(t types.Tenant) int { return int(weightOf(t)) }, Commands: l.Commands, Failures: l.Failures, Window: l.Window,
		Backoff: int64(l.Backoff), MaxBackoff: int64(l.MaxBackoff), Budget: int64(l.Budget)}}
	w.sends, w.commands = nil, nil
}

func (w *world) at(id types.LaneID) *stream {
	return w.streams[slices.IndexFunc(w.streams, func(s *stream) bool { return s.id == id })]
}

func nameOf(id types.LaneID, position uint64, row bool) reference.Name {
	if !row {
		position = 0
	}
	return reference.Name{Lane: id, Row: position}
}

// seal adds positions to a stream.
func (w *world) seal(*rapid.T) {
	s := rapid.SampledFrom(w.streams).Draw(w.T, "stream")
	s.head += uint64(rapid.IntRange(1, 4).Draw(w.T, "positions"))
	w.offer(s)
}

func (w *world) offer(s *stream) {
	if got, want := w.machine.Offer(s.id, s.cursor, s.head), w.model.Offer(nameOf(s.id, 0, false), s.cursor, s.head); got != want {
		w.Fatalf("loaded %v, want %v", got, want)
	}
	for _, p := range s.due {
		if got, want := w.machine.OfferRow(s.id, p), w.model.Offer(nameOf(s.id, p, true), p-1, p); got != want {
			w.Fatalf("row loaded %v, want %v", got, want)
		}
	}
}

// copies goes on with a copy of the machine: it must act as the machine would have.
func (w *world) copies(*rapid.T) {
	was := w.machine.Hash()
	next := lanes.New(w.limits, nil, types.NewRand(77))
	w.machine.CopyTo(next)
	if next.Hash() != was {
		w.Fatal("the hash of a copy differs")
	}
	w.machine.Stop() // the copy does not notice
	if next.Hash() != was || w.machine.Hash() == was && next.Again() {
		w.Fatal("a copy shares its state, or the hash leaves a field out")
	}
	w.machine = next
}

// scan offers everything again, if there is something to load.
func (w *world) scan(*rapid.T) {
	if !w.machine.Again() {
		return
	}
	w.machine.BeginScan()
	w.model.Again = false
	for _, s := range w.streams {
		w.offer(s)
	}
}

// send takes sends, until one is not possible or by chance.
func (w *world) send(*rapid.T) {
	for range rapid.IntRange(1, 4).Draw(w.T, "sends") {
		s, ok := w.machine.Next(types.Instant(w.now))
		if !ok {
			if why := w.model.Idle(w.now); why != "" {
				w.Fatalf("nothing is sent, and %s", why)
			}
			return
		}
		if why := w.model.Next(w.now, nameOf(s.Lane, s.Position, s.Row), s.Position); why != "" {
			w.Fatalf("%+v is sent: %s", s, why)
		}
		if of := w.at(s.Lane); !s.Row && s.Position <= of.settled {
			w.Fatalf("%+v is sent, and %d is settled", s, of.settled)
		}
		w.sends = append(w.sends, s)
	}
}

// poisoned reports whether the sink rejects a position.
func poisoned(s *lanes.Send) bool { return s.Position%5 == 3 }

// end ends a send. The sink may have accepted it although it is reported as failed.
func (w *world) end(*rapid.T) {
	if len(w.sends) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.sends)-1).Draw(w.T, "send")
	s := w.sends[i]
	r := lanes.Result{Outcome: lanes.OK}
	switch {
	case rapid.IntRange(0, 2).Draw(w.T, "fails") == 0:
		r.Outcome = lanes.Retryable
		if !poisoned(&s) && rapid.Bool().Draw(w.T, "it arrived") {
			w.arrive(&s)
		}
	case poisoned(&s) && !(s.Row && rapid.Bool().Draw(w.T, "mended")):
		r = lanes.Result{Outcome: lanes.Permanent, Reason: types.ExportTooLarge, Status: 413}
	case !w.arrive(&s):
		r.Outcome = lanes.Duplicate
	}
	w.sends = slices.Delete(w.sends, i, i+1)
	w.ended(s, r)
}

func (w *world) ended(s lanes.Send, r lanes.Result) {
	w.machine.Sent(types.Instant(w.now), s, r)
	w.model.Sent(w.now, nameOf(s.Lane, s.Position, s.Row), r.Outcome == lanes.OK || r.Outcome == lanes.Duplicate, r.Outcome == lanes.Permanent)
	w.seen[map[lanes.Outcome]string{lanes.OK: "ok", lanes.Duplicate: "duplicate", lanes.Retryable: "retryable", lanes.Permanent: "permanent"}[r.Outcome]]++
	if w.machine.Stats().Down {
		w.seen["down"]++
	}
}

// arrive adds a position to those of the sink; false if it had it.
func (w *world) arrive(s *lanes.Send) bool {
	of := w.at(s.Lane)
	list := &of.got
	if s.Row {
		list = &of.again
	}
	if slices.Contains(*list, s.Position) {
		return false
	}
	*list = append(*list, s.Position)
	return true
}

// ask takes commands.
func (w *world) ask(*rapid.T) {
	for range rapid.IntRange(1, 3).Draw(w.T, "commands") {
		c, ok := w.machine.NextCommand(types.Instant(w.now))
		if !ok {
			if why := w.model.Quiet(w.now); why != "" {
				w.Fatalf("no command, and %s", why)
			}
			return
		}
		if why := w.model.Ask(w.now, modelOf(c)); why != "" {
			w.Fatalf("%+v: %s", c, why)
		}
		if c.Row != (c.Kind == lanes.Resolve) && c.Kind != lanes.Quarantine || c.Kind == lanes.Quarantine && (c.Reason != types.ExportTooLarge || c.Status != 413) {
			w.Fatalf("%+v", c)
		}
		w.commands = append(w.commands, c)
	}
}

func modelOf(c lanes.Command) reference.Command {
	return reference.Command{Name: nameOf(c.Lane, c.From, c.Row), From: c.From, To: c.To, Rejected: c.Kind == lanes.Quarantine}
}

// record lets the node decide a command, as core/export does. The answer may be lost.
func (w *world) record(*rapid.T) {
	if len(w.commands) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.commands)-1).Draw(w.T, "command")
	c := w.commands[i]
	w.commands = slices.Delete(w.commands, i, i+1)
	fate := rapid.IntRange(0, 5).Draw(w.T, "fate")
	if fate == 0 { // refused
		w.answer(c, lanes.Retry)
		return
	}
	a := w.decide(c)
	if fate == 1 { // unknown
		a = lanes.Retry
	}
	w.answer(c, a)
}

func (w *world) decide(c lanes.Command) lanes.Answer {
	s := w.at(c.Lane)
	quarantined := slices.Contains(s.quarantined, c.From)
	gone := func(list []uint64) []uint64 {
		return slices.DeleteFunc(list, func(p uint64) bool { return p == c.From })
	}
	switch {
	case c.Kind == lanes.Quarantine && quarantined:
		s.due = gone(s.due)
	case c.Kind == lanes.Resolve && !quarantined, c.Kind != lanes.Resolve && c.From != s.cursor+1:
		return lanes.Moved
	case c.Kind == lanes.Quarantine:
		n := 0
		for _, o := range w.streams {
			n += len(o.quarantined)
		}
		if n >= w.room {
			return lanes.Full
		}
		s.cursor++
		s.settled = s.cursor
		s.quarantined = append(s.quarantined, c.From)
	case c.Kind == lanes.Resolve:
		s.quarantined, s.due = gone(s.quarantined), gone(s.due)
	default:
		for p := c.From; p <= c.To; p++ {
			if !slices.Contains(s.got, p) {
				w.Fatalf("%+v settles %d, which the sink does not have", c, p)
			}
		}
		s.cursor, s.settled = c.To, c.To
	}
	return lanes.Done
}

func (w *world) answer(c lanes.Command, a lanes.Answer) {
	w.machine.Answered(types.Instant(w.now), c, a)
	switch a {
	case lanes.Done:
		w.model.Settled(modelOf(c))
	case lanes.Retry:
		w.model.Refuse(w.now, modelOf(c))
	case lanes.Moved:
		w.model.Moved(modelOf(c))
	case lanes.Full:
		w.model.Full(w.now, modelOf(c))
	}
	w.seen[map[lanes.Answer]string{lanes.Done: "done", lanes.Retry: "refused", lanes.Moved: "moved", lanes.Full: "full"}[a]]++
}

// operate moves a cursor, or has a position redelivered.
func (w *world) operate(*rapid.T) {
	s := rapid.SampledFrom(w.streams).Draw(w.T, "stream")
	switch {
	case len(s.quarantined) > 0 && rapid.Bool().Draw(w.T, "redrive"):
		if p := rapid.SampledFrom(s.quarantined).Draw(w.T, "row"); !slices.Contains(s.due, p) {
			s.due = append(s.due, p)
		}
	case s.cursor > 0 && rapid.Bool().Draw(w.T, "rewind"):
		s.moved = true
		s.cursor -= uint64(rapid.IntRange(1, int(s.cursor)).Draw(w.T, "positions"))
		s.settled = min(s.settled, s.cursor)
		after := func(p uint64) bool { return p > s.cursor }
		s.quarantined, s.due = slices.DeleteFunc(s.quarantined, after), slices.DeleteFunc(s.due, after)
	case s.cursor < s.head:
		s.moved = true
		s.cursor += uint64(rapid.IntRange(1, int(s.head-s.cursor)).Draw(w.T, "positions"))
	}
	if rapid.Bool().Draw(w.T, "reload") {
		w.machine.Reload(s.id)
		w.model.Reload(s.id)
	} else {
		w.offer(s)
	}
}

// work lets everything move on a little.
func (w *world) work(t *rapid.T) {
	for range rapid.IntRange(1, 6).Draw(w.T, "rounds") {
		w.send(t)
		w.end(t)
		w.pass(t)
		w.ask(t)
		w.record(t)
		w.check(t)
	}
}

// pass lets time go by, sometimes until the machine wants to act.
func (w *world) pass(*rapid.T) {
	by := rapid.SampledFrom([]int64{1, 1e6, 1e8, 2e9}).Draw(w.T, "time")
	if due, any := w.machine.Due(); any && rapid.Bool().Draw(w.T, "until due") {
		by = max(1, int64(due)-w.now)
	}
	w.now += by
}

// restart forgets the machine. Sends that ran may still have arrived.
func (w *world) restart(*rapid.T) {
	for i := range w.sends {
		if !poisoned(&w.sends[i]) && rapid.Bool().Draw(w.T, "it arrived") {
			w.arrive(&w.sends[i])
		}
	}
	w.start()
}

func (w *world) check(*rapid.T) {
	if err := w.machine.Check(); err != nil {
		w.Fatal(err)
	}
	s := w.machine.Stats()
	blocked := w.model.Count(func(l *reference.Lane) bool { return l.Full })
	if s.Active != len(w.model.Lanes) || s.Inflight != len(w.sends) || s.Commands != len(w.commands) || s.Blocked != blocked {
		w.Fatalf("%+v, want %d lanes, %d sends, %d commands and %d blocked lanes", s, len(w.model.Lanes), len(w.sends), len(w.commands), blocked)
	}
	for _, of := range w.streams {
		for row := range of.head + 1 { // 0: the lane
			if got, want := w.machine.Loaded(of.id, row), w.model.Find(reference.Name{Lane: of.id, Row: row}) != nil; got != want {
				w.Fatalf("stream %v, row %d: loaded %v, want %v", of.id, row, got, want)
			}
		}
	}
}

// settle ends the faults, and runs until the machine has nothing left to do. It acts only when the machine says so.
func (w *world) settle() {
	for range 100_000 {
		w.check(nil)
		w.scan(nil)
		progress := false
		for {
			s, ok := w.machine.Next(types.Instant(w.now))
			if !ok {
				break
			}
			progress = true
			w.model.Next(w.now, nameOf(s.Lane, s.Position, s.Row), s.Position)
			w.sends = append(w.sends, s)
		}
		for _, s := range w.sends {
			progress = true
			r := lanes.Result{Outcome: lanes.OK}
			if poisoned(&s) && !s.Row {
				r = lanes.Result{Outcome: lanes.Permanent, Reason: types.ExportTooLarge, Status: 413}
			} else {
				w.arrive(&s)
			}
			w.ended(s, r)
		}
		w.sends = nil
		for {
			c, ok := w.machine.NextCommand(types.Instant(w.now))
			if !ok {
				break
			}
			w.model.Ask(w.now, modelOf(c))
			w.commands = append(w.commands, c)
		}
		for _, c := range w.commands {
			progress = true
			w.answer(c, w.decide(c))
		}
		w.commands = nil
		due, any := w.machine.Due()
		switch {
		case progress:
		case any:
			w.now = max(w.now+1, int64(due))
		case w.machine.Again():
		default:
			w.finished()
			return
		}
	}
	w.Fatalf("it does not come to rest: %+v", w.machine.Stats())
}

func (w *world) finished() {
	for _, s := range w.streams {
		if s.cursor != s.head || len(s.due) > 0 {
			w.Fatalf("stream %v is not exported: %+v", s.id, *s)
		}
		if s.moved {
			continue
		}
		if !slices.IsSorted(s.got) {
			w.Fatalf("stream %v is exported in another order: %v", s.id, s.got)
		}
		for p := range s.head {
			if n := p + 1; !slices.Contains(s.got, n) && !slices.Contains(s.quarantined, n) && !slices.Contains(s.again, n) {
				w.Fatalf("position %d of stream %v is lost: %+v", n, s.id, *s)
			}
		}
	}
	if !w.machine.Idle() || w.machine.Stats().Active > 0 {
		w.Fatalf("at rest with %+v", w.machine.Stats())
	}
}

// TestMachineAgreesWithModel: every send and command is one that the model allows, nothing that must be sent waits, and after the
// faults everything is exported, in order, or quarantined.
func TestMachineAgreesWithModel(t *testing.T) {
	seen := map[string]int{}
	want := []string{"ok", "duplicate", "retryable", "permanent", "down", "done", "refused", "moved", "full"}
	rare := func(what string) bool { return seen[what] == 0 }
	for round := range 200 {
		rapid.Check(t, func(r *rapid.T) {
			w := newWorld(r, seen)
			r.Repeat(map[string]func(*rapid.T){"seal": w.seal, "copy": w.copies, "scan": w.scan, "send": w.send, "send more": w.send, "end": w.end, "end more": w.end, "end once more": w.end,
				"ask": w.ask, "work": w.work, "work more": w.work, "record": w.record, "record more": w.record, "operate": w.operate, "pass": w.pass, "restart": func(t *rapid.T) {
					if rapid.IntRange(0, 5).Draw(t, "restarts") == 0 {
						w.restart(t)
					}
				}, "": w.check})
			w.room = 1 << 20
			w.settle()
		})
		if t.Failed() || round >= 9 && !slices.ContainsFunc(want, rare) {
			break
		}
	}
	if i := slices.IndexFunc(want, rare); i >= 0 {
		t.Errorf("%s never occurred", want[i])
	}
	t.Log(seen)
}
