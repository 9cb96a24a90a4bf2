package index_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"macronode/adapters/index"
	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// usage makes frames of the accounting plane, and knows their slices and events.
type usage struct {
	*world
	plane  *accounting.Plane
	rec    record.Record
	now    types.Time
	body   []byte
	slices []accounting.SealedSlice
	events map[types.NameHash]command.PriorOutcome
}

func newUsage(pick chance) *usage {
	return &usage{world: newWorld(pick), now: 1_700_000_000_000, events: map[types.NameHash]command.PriorOutcome{},
		plane: accounting.New(accounting.Limits{Rows: 500, Streams: 9, Tenants: 2, TenantRow: 500, TenantDim: 9, Window: time.Minute}, 1)}
}

func (u *usage) Record() *record.Record { return &u.rec }
func (u *usage) Savepoint()             {}
func (u *usage) Undo()                  {}
func (u *usage) Commit()                {}
func (u *usage) FindRef(_ types.Tenant, ref types.NameHash, _ command.PriorOutcome) (command.PriorOutcome, bool) {
	s, used := u.events[ref]
	return s, used
}

func (u *usage) lsn() types.LSN { return types.LSN(len(u.shelf.frames) + 1) }

// Add adds the record to the open frame.
func (u *usage) Add() types.Position {
	if u.body == nil {
		u.body = record.Begin(nil, u.lsn(), u.now)
	}
	var i uint16
	u.body, i = record.Add(u.body, 0, &u.rec)
	p := types.Position{LSN: u.lsn(), Index: i}
	u.plane.Apply(u.now, types.NewTxID(3, p), &u.rec)
	for n := range u.plane.Refs(&u.rec) {
		name, content := u.plane.Ref(&u.rec, n)
		u.events[name] = command.PriorOutcome{Hash: content, ID: types.NewTxID(3, p)}
	}
	if _, ok := accounting.ReadSlice(&u.rec); ok {
		s, _ := accounting.DecodeSlice(u.rec.Tenant, bytes.Clone(u.rec.Payload))
		u.slices = append(u.slices, accounting.SealedSlice{Slice: s, LSN: p.LSN, Due: accounting.SliceDue(u.rec.Payload)})
	}
	return p
}

// end ends the frame.
func (u *usage) end() {
	if u.body == nil {
		return
	}
	s := record.Sealed{Journal: 3, LSN: u.lsn(), Body: u.body}
	if n := len(u.shelf.frames); n > 0 {
		s.Prev = u.shelf.frames[n-1].Root
	}
	s.Root, _ = digest.Chain(nil, s.Prev, u.body)
	u.body = nil
	u.shelf.add(s)
	u.shelf.upto.Store(uint64(s.LSN))
}

// change makes one more frame: events, or slices.
func (u *usage) change() {
	u.now += types.Time(u.pick(20_000))
	if u.pick(3) == 0 {
		for u.plane.Expire(u.now, &u.rec) {
			u.Add()
		}
		u.end()
		return
	}
	c := &accounting.RecordEvents{Header: command.Header{Tenant: 1}}
	for i := range 1 + u.pick(5) {
		s, err := accounting.NewSeries([...]string{"requests", "bytes_in", "custom:a"}[u.pick(3)], []accounting.Label{{Name: "service", Value: strconv.Itoa(u.pick(4))}})
		if err != nil {
			panic(err)
		}
		c.Events = append(c.Events, accounting.Event{Source: "s", ID: strconv.Itoa(u.pick(300)), Series: s, Value: 1, Time: u.now - types.Time(u.pick(300_000)), Place: uint16(i)})
	}
	var reply event.Reply
	if c.Seal() == nil {
		u.plane.Decide(u.now, c, u, &reply)
	}
	u.end()
}

// compare holds ranges of slices, and events, against what was made.
func (u *usage) compare(t tb, x *index.Indexer) {
	text := func(s *accounting.SealedSlice) string { return fmt.Sprintf("%d %d %+v\n", s.LSN, s.Seq, s.Slice) }
	for range 6 {
		in := accounting.SliceRange{Dimension: []byte([...]string{"", "requests", "custom:a", "custom:b"}[u.pick(4)]), To: math.MaxInt64, Upto: u.lsn() - types.LSN(u.pick(3))}
		if u.pick(2) == 0 {
			in.From = u.now - types.Time(u.pick(900_000))
			in.To = in.From + types.Time(u.pick(600_000))
			if u.pick(2) == 0 { // at boundaries
				in.From, in.To = in.From-in.From%60_000, in.To-in.To%60_000
			}
		}
		if u.pick(3) == 0 && len(u.slices) > 0 {
			in.AsOf = u.slices[u.pick(len(u.slices))].Due - types.Time(u.pick(2))
		}
		var want []accounting.SealedSlice
		for _, s := range u.slices {
			if (len(in.Dimension) == 0 || bytes.Equal(in.Dimension, s.Dimension)) && s.Window.From >= in.From && s.Window.From < in.To && s.LSN <= in.Upto &&
				(in.AsOf == 0 || s.Due <= in.AsOf) {
				want = append(want, s)
			}
		}
		slices.SortFunc(want, func(a, b accounting.SealedSlice) int {
			key := func(s *accounting.SealedSlice) []byte {
				return fmt.Appendf(nil, "%s\x00%020d%020d", s.Dimension, s.Window.From, s.Seq)
			}
			return bytes.Compare(key(&a), key(&b))
		})
		if len(want) > 0 && u.pick(3) == 0 {
			last := &want[u.pick(len(want))]
			in.After = accounting.SliceCursor{Dimension: last.Dimension, From: last.Window.From, Seq: last.Seq}
			want = want[1+slices.IndexFunc(want, func(s accounting.SealedSlice) bool { return text(&s) == text(last) }):]
		}
		most := 1 + u.pick(len(want)+2)
		want = want[:min(most, len(want))]
		n := 0
		err := x.Slices(1, in, func(s accounting.SealedSlice) bool {
			if n == len(want) || text(&s) != text(&want[n]) {
				t.Fatalf("the %d-th slice of %+v is\n%sof %d", n, in, text(&s), len(want))
			}
			n++
			return n < most
		})
		if err != nil || n != len(want) {
			t.Fatalf("%d slices of %+v, want %d; %v", n, in, len(want), err)
		}
	}
	u.compareStreams(t, x)
	c := &accounting.RecordEvents{Header: command.Header{Tenant: 1}}
	for i := range 20 {
		c.Events = append(c.Events, accounting.Event{Source: "s", ID: strconv.Itoa(u.pick(300)), Place: uint16(i)})
	}
	if err := c.Seal(); err != nil {
		return
	}
	if err := x.Look(&event.Execute{Command: c}); err != nil || c.IndexedTo < u.lsn()-1 {
		t.Fatalf("looked to %d of %d: %v", c.IndexedTo, u.lsn()-1, err)
	}
	c.Refs(func(name types.NameHash, prior *command.PriorOutcome) {
		want := u.events[name]
		if prior.ID != want.ID || prior.Hash != want.Hash {
			t.Fatalf("event %x is %+v, want %+v", name, *prior, want)
		}
	})
}

// compareStreams holds the streams, and slices by their seq, against what was made.
func (u *usage) compareStreams(t tb, x *index.Indexer) {
	heads := map[index.Stream]uint64{}
	for i := range u.slices {
		s := &u.slices[i]
		heads[index.Stream{Tenant: s.Tenant, Dimension: string(s.Dimension)}] = s.Seq
	}
	last := ""
	err := x.Streams(func(s index.Stream) bool {
		if heads[s] == 0 || s.Dimension <= last {
			t.Fatalf("stream %+v after %q is not one of %v", s, last, heads)
		}
		last = s.Dimension
		delete(heads, s)
		return true
	})
	if err != nil || len(heads) > 0 {
		t.Fatalf("the streams %v are missing: %v", heads, err)
	}
	if len(u.slices) == 0 {
		return
	}
	want := &u.slices[u.pick(len(u.slices))]
	got, ok, err := x.SliceAt(1, string(want.Dimension), want.Seq)
	if !ok || err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", *want) {
		t.Fatalf("slice %d of %s is %+v, %v: %v", want.Seq, want.Dimension, got, ok, err)
	}
	if _, ok, err := x.SliceAt(1, string(want.Dimension), uint64(len(u.slices))+1); ok || err != nil {
		t.Fatalf("a slice that was not made is there: %v", err)
	}
}

// TestUsageIsListed: slices are found by dimension and window, and events by their names, whatever is in tails and in
// tables.
func TestUsageIsListed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := newUsage(diced(rapid.Uint64().Draw(t, "seed")))
		limits := small(u.pick)
		limits.Frames = 1 + u.pick(90)
		d := newDesk(t, u.world, vfs.NewMem(), limits).open()
		d.start()
		for range 1 + u.pick(5) {
			from := len(u.shelf.frames)
			for range 1 + u.pick(40) {
				u.change()
			}
			d.x.Offer(u.shelf.frames[from:])
			d.comes()
			u.compare(t, d.x)
			if u.pick(4) == 0 {
				if err := d.ends(); err != nil {
					t.Fatalf("it ends with %v", err)
				}
				d.start()
				d.comes()
				u.compare(t, d.x)
			}
		}
		if err := d.ends(); err != nil {
			t.Fatalf("it ends with %v", err)
		}
	})
}
