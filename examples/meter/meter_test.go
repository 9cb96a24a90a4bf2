package meter_test

import (
	"errors"
	"fmt"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/accounting"
	"macronode/core/event"
	"macronode/core/types"
	"macronode/examples/meter"
)

func limits() accounting.Limits {
	return accounting.Limits{Rows: 100, Streams: 4, Tenants: 2, TenantRow: 80, TenantDim: 3, Window: time.Minute, Grace: 5 * time.Second}
}

const begin = types.Time(1_767_225_600_000) // 2026

func use(id, dimension string, value uint64, at types.Time) accounting.Event {
	s, err := accounting.NewSeries(dimension, []accounting.Label{{Name: "service", Value: "maps"}})
	if err != nil {
		panic(err)
	}
	return accounting.Event{Source: "gateway", ID: id, Series: s, Value: value, Time: at}
}

// A program records usage, seals it, asks for it, and hands over slices that anyone can verify.
func Example() {
	m := meter.New(limits(), 1000)
	var kept [][]byte // in a program: a file, synced before the events are acknowledged
	keep := func(frame []byte) {
		if frame != nil {
			kept = append(kept, frame)
		}
	}
	frame, recorded, err := m.Record(begin, 7, []accounting.Event{use("1", "requests", 3, begin), use("2", "requests", 4, begin), use("3", "bytes_out", 900, begin)})
	keep(frame)
	fmt.Println("recorded:", recorded, err)
	frame, recorded, err = m.Record(begin, 7, []accounting.Event{use("2", "requests", 4, begin)}) // a retry
	keep(frame)
	fmt.Println("again:", recorded, err)
	keep(m.Seal(begin.Add(2 * time.Minute)))
	frame, _, _ = m.Record(begin.Add(2*time.Minute), 7, []accounting.Event{use("4", "requests", 1, begin.Add(time.Second))}) // too late for its window
	keep(frame)
	keep(m.Seal(begin.Add(4 * time.Minute)))

	after := meter.New(limits(), 1000) // another process
	for _, frame := range kept {
		if err := after.Replay(frame); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("requests:", after.Units(7, "requests", begin, begin.Add(time.Hour)))
	v := accounting.NewVerifier()
	all := after.Slices()
	for i := range all {
		if err := v.Add(&all[i]); err != nil {
			fmt.Println(err)
		}
		fmt.Printf("slice %d of %s: %v\n", all[i].Seq, all[i].Dimension, all[i].Kind)
	}
	for _, chain := range v.Streams() {
		fmt.Printf("%s: %v verified, %v of it late, %d gaps\n", chain.Dimension, chain.Total, chain.Late, len(chain.Gaps()))
	}
	// Output:
	// recorded: 3 <nil>
	// again: 0 <nil>
	// requests: 8
	// slice 1 of bytes_out: usage
	// slice 1 of requests: usage
	// slice 2 of requests: correction
	// bytes_out: 900 verified, 0 of it late, 0 gaps
	// requests: 8 verified, 1 of it late, 0 gaps
}

// A program has a meter, and the frames that it has made durable.
type program struct {
	*rapid.T
	*meter.Meter
	now    types.Time
	kept   [][]byte
	past   []accounting.Event // that were ever sent
	known  map[string]bool    // ids of recorded events
	sums   map[string]*big.Int
	serial int
}

// restarts forgets everything but the frames.
func (p *program) restarts() {
	p.Meter = meter.New(limits(), 1000)
	for _, frame := range p.kept {
		if err := p.Replay(frame); err != nil {
			p.Fatal(err)
		}
	}
}

func (p *program) seals() {
	p.now = p.now.Add(time.Duration(rapid.IntRange(0, 90).Draw(p.T, "seconds")) * time.Second)
	for frame := p.Seal(p.now); frame != nil; frame = p.Seal(p.now) {
		p.kept = append(p.kept, frame)
	}
}

// draw draws an event: a new one, or one that was sent before.
func (p *program) draw() accounting.Event {
	if len(p.past) > 0 && rapid.Bool().Draw(p.T, "again") {
		return rapid.SampledFrom(p.past).Draw(p.T, "event")
	}
	p.serial++
	at := p.now.Add(-time.Duration(rapid.IntRange(0, 200).Draw(p.T, "ago")) * time.Second)
	e := use(fmt.Sprint(p.serial), rapid.SampledFrom([]string{"requests", "custom:x"}).Draw(p.T, "dimension"), rapid.Uint64Range(0, 1<<40).Draw(p.T, "value"), at)
	p.past = append(p.past, e)
	return e
}

// records records events. If the program ends before the frame is durable, it makes the call again.
func (p *program) records() {
	var all []accounting.Event
	for range rapid.IntRange(1, 4).Draw(p.T, "events") {
		all = append(all, p.draw())
	}
	frame, recorded, err := p.Record(p.now, 7, all)
	if rejected := new(meter.RejectedError); errors.As(err, &rejected) && rejected.Problem == event.UsageCapacity {
		return
	} else if err != nil {
		p.Fatal(err)
	}
	if frame != nil && rapid.IntRange(0, 3).Draw(p.T, "lost") == 0 {
		p.restarts()
		again, repeated, err := p.Record(p.now, 7, all)
		if err != nil || repeated != recorded {
			p.Fatalf("%d recorded, and %d after the frame was lost: %v", recorded, repeated, err)
		}
		frame = again
	}
	if frame != nil {
		p.kept = append(p.kept, frame)
	}
	for _, e := range all {
		if !p.known[e.ID] {
			p.known[e.ID] = true
			recorded--
			of := p.sums[string(e.Series.Dimension)]
			of.Add(of, new(big.Int).SetUint64(e.Value))
		}
	}
	if recorded != 0 {
		p.Fatalf("%d more events were recorded than are new", recorded)
	}
}

// check compares the usage with the sums, and verifies the slices.
func (p *program) check() {
	for dimension, want := range p.sums {
		if got := p.Units(7, dimension, 0, 1<<50); got.String() != want.String() {
			p.Fatalf("%v of %s, want %v", got, dimension, want)
		}
	}
	v, all := accounting.NewVerifier(), p.Slices()
	for i := range all {
		if err := v.Add(&all[i]); err != nil {
			p.Fatal(err)
		}
	}
	for _, chain := range v.Streams() {
		if seqs := chain.Seqs(); seqs.First != 1 || len(chain.Gaps()) > 0 {
			p.Fatalf("%s has the slices %v, gaps %v", chain.Dimension, seqs, chain.Gaps())
		}
	}
}

// TestUsageIsCountedOnce: whatever is repeated and whenever the program ends, each event is in the sum once, and the slices form chains.
func TestUsageIsCountedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &program{T: t, Meter: meter.New(limits(), 1000), now: begin, known: map[string]bool{}, sums: map[string]*big.Int{"requests": {}, "custom:x": {}}}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				p.seals()
			case 1:
				p.restarts()
			default:
				p.records()
			}
			p.check()
		}
	})
}

// TestNamesHaveRoom: names are kept for as long as their events could be recorded again, and no longer.
func TestNamesHaveRoom(t *testing.T) {
	m := meter.New(limits(), 2)
	record := func(at types.Time, of ...accounting.Event) error {
		_, _, err := m.Record(at, 7, of)
		return err
	}
	if err := record(begin, use("1", "requests", 1, begin), use("2", "requests", 1, begin)); err != nil {
		t.Fatal(err)
	}
	if err := record(begin, use("2", "requests", 1, begin)); err != nil {
		t.Errorf("a retry: %v", err)
	}
	if err := record(begin, use("3", "requests", 1, begin)); !errors.Is(err, meter.ErrFull) {
		t.Errorf("a third event: %v", err)
	}
	later := begin.Add(accounting.MaxAge + accounting.MaxFuture)
	if err := record(later, use("3", "requests", 1, later)); !errors.Is(err, meter.ErrFull) {
		t.Errorf("an event could be recorded again: %v", err)
	}
	later++
	rejected := new(meter.RejectedError)
	if err := record(later, use("1", "requests", 1, begin)); !errors.As(err, &rejected) || rejected.Problem != event.EventTooOld || rejected.Event != 1 {
		t.Errorf("a name that was forgotten: %v", err)
	}
	if err := record(later, use("3", "requests", 1, later)); err != nil {
		t.Errorf("there is room: %v", err)
	}
	if err := record(later, accounting.Event{Undated: true}); !errors.Is(err, meter.ErrUndated) {
		t.Errorf("an event without a time: %v", err)
	}
}

// TestReplayNeedsOrder: a frame that is missing, repeated or damaged is not applied.
func TestReplayNeedsOrder(t *testing.T) {
	m := meter.New(limits(), 10)
	first, _, _ := m.Record(begin, 7, []accounting.Event{use("1", "requests", 1, begin)})
	second := m.Seal(begin.Add(time.Hour))
	is := meter.New(limits(), 10)
	for _, c := range []struct {
		frame []byte
		fails bool
	}{{second, true}, {first[:len(first)-1], true}, {first, false}, {first, true}, {second, false}, {nil, true}} {
		if err := is.Replay(c.frame); (err != nil) != c.fails {
			t.Errorf("%d bytes: %v", len(c.frame), err)
		}
	}
	if len(is.Slices()) != 1 || is.Units(7, "requests", 0, begin.Add(time.Hour)) != types.MinorUnits(1) {
		t.Error("the usage is not there")
	}
}
