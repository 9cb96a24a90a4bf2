package lanes_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"macronode/ci/memcheck"
	"macronode/ci/transcript"
	"macronode/core/lanes"
	"macronode/core/types"
)

// laneID returns the lane with a name such as 1a: lane a of tenant 1.
func laneID(name string) types.LaneID {
	return types.LaneID{Tenant: types.Tenant(name[0] - '0'), ID: types.NameHash{name[1]}}
}

func nameOfLane(id types.LaneID) string { return fmt.Sprintf("%d%c", id.Tenant, id.ID[0]) }

// TestScheduler plays transcripts. A lane is named 1a: lane a of tenant 1. Weights are the numbers of the tenants.
//
//	machine active=4 inflight=2 tenant=2 commands=1 window=3    a new machine
//	at 100ms                     sets the time
//	offer 1a 0 3                 positions 1, 2 and 3 are not exported
//	row 1a 2                     a redelivery
//	next                         the next send
//	sent 1a 2 ok                 … duplicate, retryable, permanent; with "row" of a redelivery
//	ask                          the next command
//	answer done                  … retry, moved, full: of the first command that was asked for
//	due · again · scan · stop · stats
func TestScheduler(t *testing.T) {
	p := &player{T: t}
	transcript.Play(t, "testdata/scheduler", func(w []string) string {
		out := p.say(w)
		if err := p.machine.Check(); err != nil {
			t.Fatalf("%v: %v", w, err)
		}
		return out
	})
}

type player struct {
	*testing.T
	machine  *lanes.Machine
	now      types.Instant
	commands []lanes.Command
}

func (p *player) number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		p.Fatal(err)
	}
	return n
}

func (p *player) time(at types.Instant) string { return time.Duration(at).String() }

var outcomes = map[string]lanes.Outcome{"ok": lanes.OK, "duplicate": lanes.Duplicate, "retryable": lanes.Retryable, "permanent": lanes.Permanent}
var answers = map[string]lanes.Answer{"done": lanes.Done, "retry": lanes.Retry, "moved": lanes.Moved, "full": lanes.Full}

func (p *player) say(w []string) string {
	switch w[0] {
	case "machine":
		p.machine, p.commands, p.now = lanes.New(p.limits(w[1:]), func(t types.Tenant) uint8 { return uint8(t) }, types.NewRand(1)), nil, 0
	case "at":
		d, err := time.ParseDuration(w[1])
		if err != nil {
			p.Fatal(err)
		}
		p.now = types.Instant(d)
	case "offer":
		return fmt.Sprint(p.machine.Offer(laneID(w[1]), p.number(w[2]), p.number(w[3])))
	case "row":
		return fmt.Sprint(p.machine.OfferRow(laneID(w[1]), p.number(w[2])))
	case "next":
		s, ok := p.machine.Next(p.now)
		if !ok {
			return "nothing"
		}
		return fmt.Sprintf("%s %d, attempt %d%s", nameOfLane(s.Lane), s.Position, s.Attempt, map[bool]string{true: ", row"}[s.Row])
	case "sent":
		p.machine.Sent(p.now, lanes.Send{Lane: laneID(w[1]), Position: p.number(w[2]), Row: len(w) > 4}, lanes.Result{Outcome: outcomes[w[3]], Status: 400})
	case "ask":
		c, ok := p.machine.NextCommand(p.now)
		if !ok {
			return "nothing"
		}
		p.commands = append(p.commands, c)
		out := fmt.Sprintf("%s %s %d..%d", map[lanes.CommandKind]string{lanes.Settle: "settle", lanes.Quarantine: "quarantine", lanes.Resolve: "resolve"}[c.Kind], nameOfLane(c.Lane), c.From, c.To)
		if c.Kind == lanes.Quarantine {
			out += fmt.Sprintf(", %v %d", c.Reason, c.Status)
		}
		return out
	case "answer":
		p.machine.Answered(p.now, p.commands[0], answers[w[1]])
		p.commands = p.commands[1:]
	case "due":
		at, any := p.machine.Due()
		if !any {
			return "never"
		}
		return p.time(at)
	case "again":
		return fmt.Sprint(p.machine.Again())
	case "scan":
		p.machine.BeginScan()
	case "stop":
		p.machine.Stop()
	case "stats":
		s := p.machine.Stats()
		return fmt.Sprintf("%d active, %d sends, %d commands, %d blocked, down %v, idle %v; %+v", s.Active, s.Inflight, s.Commands, s.Blocked, s.Down, p.machine.Idle(), s.Counters)
	default:
		p.Fatalf("unknown: %v", w)
	}
	return ""
}

func (p *player) limits(words []string) lanes.Limits {
	l := lanes.DefaultLimits()
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		n := int(p.number(value))
		switch name {
		case "active":
			l.Active = n
		case "inflight":
			l.Inflight = n
		case "tenant":
			l.Tenant = n
		case "commands":
			l.Commands = n
		case "window":
			l.Window = uint64(n)
		case "failures":
			l.Failures = n
		default:
			p.Fatalf("unknown limit %s", w)
		}
	}
	return l
}

// TestTurnsFollowWeights: while all tenants have something to send, each has its weight's part of the sends, however many lanes it has, and
// however many sends may run.
func TestTurnsFollowWeights(t *testing.T) {
	weights := []uint8{1, 3, 8, 0, 200} // limited to 1..8
	want := []int{1, 3, 8, 1, 8}
	for _, lanesOf := range [][]int{{1, 1, 1, 1, 1}, {50, 10, 50, 10, 50}, {50, 1, 1, 50, 2}} {
		l := lanes.DefaultLimits()
		l.Inflight, l.Tenant = 1, 1
		m := lanes.New(l, func(t types.Tenant) uint8 { return weights[t-1] }, types.NewRand(1))
		for i := range weights {
			for n := range lanesOf[i] {
				m.Offer(types.LaneID{Tenant: types.Tenant(i + 1), ID: types.NameHash{byte(n)}}, 0, 1<<40)
			}
		}
		counts := make([]int, len(weights))
		const rounds = 100
		for range rounds * (1 + 3 + 8 + 1 + 8) {
			s, ok := m.Next(1)
			if !ok {
				t.Fatal("nothing is sent")
			}
			counts[s.Lane.Tenant-1]++
			m.Sent(1, s, lanes.Result{Outcome: lanes.OK})
			for c, ok := m.NextCommand(1); ok; c, ok = m.NextCommand(1) {
				m.Answered(1, c, lanes.Done)
			}
		}
		for i := range want {
			if counts[i] != rounds*want[i] {
				t.Errorf("%v lanes: %v sends in %d rounds, want %v in each", lanesOf, counts, rounds, want)
				break
			}
		}
	}
}

// TestFailingTenantStopsNoOther: the sink rejects, or does not answer, for one tenant only. Another one gets all its positions through
// meanwhile, without a wait.
func TestFailingTenantStopsNoOther(t *testing.T) {
	for _, outcome := range []lanes.Outcome{lanes.Retryable, lanes.Permanent} {
		m := lanes.New(lanes.DefaultLimits(), nil, types.NewRand(1))
		for n := range 100 {
			m.Offer(types.LaneID{Tenant: 1, ID: types.NameHash{byte(n)}}, 0, 1<<40)
		}
		other := types.LaneID{Tenant: 2}
		m.Offer(other, 0, 1<<40)
		delivered, now := 0, types.Instant(1)
		for range 1000 {
			var sends []lanes.Send
			for s, ok := m.Next(now); ok; s, ok = m.Next(now) {
				sends = append(sends, s)
			}
			if !slicesHas(sends, other) {
				t.Fatalf("after %d deliveries the other tenant waits", delivered)
			}
			for _, s := range sends {
				r := lanes.Result{Outcome: outcome}
				if s.Lane == other {
					r.Outcome = lanes.OK
					delivered++
				}
				m.Sent(now, s, r)
			}
			for c, ok := m.NextCommand(now); ok; c, ok = m.NextCommand(now) {
				m.Answered(now, c, lanes.Done)
			}
			now++
		}
	}
}

// TestHangingTenantStopsNoOther: the sends of a tenant with many lanes get no answer. Another one gets all its positions through meanwhile,
// also if it has nothing to send at first.
func TestHangingTenantStopsNoOther(t *testing.T) {
	for inflight := 2; inflight <= 64; inflight++ {
		for _, weight := range []uint8{1, lanes.MaxWeight} {
			l := lanes.DefaultLimits()
			l.Inflight = inflight
			m := lanes.New(l, func(t types.Tenant) uint8 { return max(1, weight*uint8(t%2)) }, types.NewRand(1))
			for n := range 100 {
				m.Offer(types.LaneID{Tenant: 1, ID: types.NameHash{byte(n)}}, 0, 1<<40)
			}
			hanging := 0
			for _, ok := m.Next(1); ok; _, ok = m.Next(1) {
				hanging++
			}
			if weight == 1 && hanging != (inflight+1)/2 || hanging < (inflight+1)/2 || hanging >= inflight {
				t.Errorf("inflight %d, weight %d: %d sends of one tenant", inflight, weight, hanging)
			}
			other := types.LaneID{Tenant: 2}
			m.Offer(other, 0, 1<<40)
			for range 100 {
				s, ok := m.Next(1)
				if !ok || s.Lane != other {
					t.Fatalf("inflight %d, weight %d: %d sends hang, and the other tenant waits", inflight, weight, hanging)
				}
				m.Sent(1, s, lanes.Result{Outcome: lanes.OK})
				for c, ok := m.NextCommand(1); ok; c, ok = m.NextCommand(1) {
					m.Answered(1, c, lanes.Done)
				}
			}
		}
	}
}

// TestWeightsHoldWhileSendsRun: two tenants with many lanes keep a sink busy, and their sends end in the order in which they began. Each has the
// part of its weight, as far as the number of sends allows.
func TestWeightsHoldWhileSendsRun(t *testing.T) {
	for _, c := range []struct {
		inflight    int
		weights     [2]uint8
		least, most float64 // deliveries of the first tenant for one of the second
	}{
		{4, [2]uint8{1, 1}, 0.95, 1.05}, {16, [2]uint8{1, 1}, 0.95, 1.05}, {16, [2]uint8{2, 1}, 1.8, 2.2}, {16, [2]uint8{8, 1}, 5, 8.5}, {64, [2]uint8{8, 1}, 6.5, 8.5},
	} {
		l := lanes.DefaultLimits()
		l.Inflight = c.inflight
		m := lanes.New(l, func(t types.Tenant) uint8 { return c.weights[t-1] }, types.NewRand(1))
		for n := range 200 {
			m.Offer(types.LaneID{Tenant: types.Tenant(1 + n%2), ID: types.NameHash{byte(n)}}, 0, 1<<40)
		}
		var running []lanes.Send
		counts := [2]float64{}
		for range 10_000 {
			for s, ok := m.Next(1); ok; s, ok = m.Next(1) {
				running = append(running, s)
			}
			s := running[0]
			running = running[1:]
			counts[s.Lane.Tenant-1]++
			m.Sent(1, s, lanes.Result{Outcome: lanes.OK})
			for c, ok := m.NextCommand(1); ok; c, ok = m.NextCommand(1) {
				m.Answered(1, c, lanes.Done)
			}
		}
		if got := counts[0] / counts[1]; got < c.least || got > c.most {
			t.Errorf("inflight %d, weights %v: %v deliveries, %.2f for one", c.inflight, c.weights, counts, got)
		}
	}
}

func slicesHas(sends []lanes.Send, id types.LaneID) bool {
	for _, s := range sends {
		if s.Lane == id {
			return true
		}
	}
	return false
}

func TestStepsAllocateNothing(t *testing.T) {
	m := lanes.New(lanes.DefaultLimits(), nil, types.NewRand(1))
	now, cursor := types.Instant(0), uint64(0)
	id := types.LaneID{Tenant: 1}
	if n := testing.AllocsPerRun(100, func() {
		now += types.Instant(time.Minute)
		m.Offer(id, cursor, cursor+1)
		for _, o := range [...]lanes.Outcome{lanes.Retryable, lanes.OK} {
			s, _ := m.Next(now)
			m.Sent(now, s, lanes.Result{Outcome: o})
			now += types.Instant(time.Minute)
		}
		c, _ := m.NextCommand(now)
		m.Answered(now, c, lanes.Done)
		cursor++
	}); n > 0 || m.Stats().Active > 0 {
		t.Errorf("%v allocations, %+v", n, m.Stats())
	}
}

func TestBytesMatchesMemory(t *testing.T) {
	l := lanes.DefaultLimits()
	memcheck.Check(t, "lanes", lanes.Bytes(l), func() *lanes.Machine { return lanes.New(l, nil, types.NewRand(1)) })
}
