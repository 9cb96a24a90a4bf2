package httpapi_test

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"macronode/adapters/httpapi"
	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/record"
	"macronode/core/types"
)

// usageBook is the accounting plane of a backend, with the refs that a node has and the slices that an index has.
type usageBook struct {
	backend *backend
	mu      sync.Mutex
	plane   *accounting.Plane
	record  record.Record
	events  map[types.NameHash]command.PriorOutcome
	slices  []accounting.SealedSlice
	at      types.Time    // of the state, if it is after now
	behind  bool          // the index does not have the last frame
	problem event.Problem // of every report; None: the plane decides
	lacks   event.Shortfall
	terms   *flow.Terms // of the last report; nil: it was postpaid

	reading, blocked chan struct{} // as many reads as reading has room for are reported, and wait
}

var _ httpapi.UsageReader = (*usageBook)(nil)

func (h *backend) usage() *usageBook {
	if h.book == nil {
		h.book = &usageBook{backend: h, events: map[types.NameHash]command.PriorOutcome{},
			plane: accounting.New(accounting.Limits{Rows: 40, Streams: 9, Tenants: 3, TenantRow: 30, TenantDim: 5, Window: time.Minute, Grace: time.Second}, 1)}
	}
	return h.book
}

func (u *usageBook) Record() *record.Record { return &u.record }
func (u *usageBook) Savepoint()             {}
func (u *usageBook) Undo()                  {}
func (u *usageBook) Commit()                {}
func (u *usageBook) FindRef(_ types.Tenant, ref types.NameHash, _ command.PriorOutcome) (command.PriorOutcome, bool) {
	s, used := u.events[ref]
	return s, used
}

// Add makes a frame of the record.
func (u *usageBook) Add() types.Position {
	u.plane.Apply(u.time(), types.TxID{}, &u.record)
	p := u.backend.seal(&u.record)
	for i := range u.plane.Refs(&u.record) {
		name, content := u.plane.Ref(&u.record, i)
		u.events[name] = command.PriorOutcome{Hash: content, ID: types.NewTxID(journal, p)}
	}
	if _, ok := accounting.ReadSlice(&u.record); ok {
		s, _ := accounting.DecodeSlice(u.record.Tenant, bytes.Clone(u.record.Payload))
		u.slices = append(u.slices, accounting.SealedSlice{Slice: s, LSN: p.LSN, Due: accounting.SliceDue(u.record.Payload)})
	}
	return p
}

func (u *usageBook) execute(c command.Command) (r event.Reply) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.backend.mu.Lock()
	defer u.backend.mu.Unlock()
	r.Shortfall, u.terms = u.lacks, nil
	if paid, ok := c.(*flow.PrepaidEvents); ok && paid.ValidateFields() == nil {
		u.terms, c = paid.Terms, &paid.RecordEvents
	}
	if r.Problem = u.problem; r.Problem == event.None {
		u.plane.Decide(u.time(), c, u, &r)
	}
	return r
}

// time is the time of the state.
func (u *usageBook) time() types.Time { return max(now, u.at) }

// seal seals everything that is due at a time.
func (u *usageBook) seal(at types.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.backend.mu.Lock()
	defer u.backend.mu.Unlock()
	for u.plane.Expire(at, &u.record) {
		u.Add()
	}
}

func (u *usageBook) OpenUsage(t types.Tenant, each func(*accounting.OpenRow)) accounting.ReadPoint {
	select {
	case u.reading <- struct{}{}:
		<-u.blocked
	default:
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.plane.Open(t, func(r accounting.OpenRow) bool {
		each(&r)
		return true
	})
	return u.plane.ReadPoint(t, types.LSN(len(u.backend.frames)), u.time())
}

func (u *usageBook) ReportAt(p types.Position) (accounting.Report, bool) {
	u.backend.mu.Lock()
	defer u.backend.mu.Unlock()
	if p.LSN == 0 {
		return accounting.Report{}, false
	}
	return accounting.ReadReport(u.backend.frames[p.LSN-1].Body, p.Index)
}

func (u *usageBook) AwaitFrame(context.Context, types.LSN) bool { return !u.behind }

func (u *usageBook) Slices(t types.Tenant, in accounting.SliceRange, each func(accounting.SealedSlice) bool) error {
	order := func(a, b accounting.SliceCursor) int {
		return cmp.Or(bytes.Compare(a.Dimension, b.Dimension), cmp.Compare(a.From, b.From), cmp.Compare(a.Seq, b.Seq))
	}
	place := func(s *accounting.SealedSlice) accounting.SliceCursor {
		return accounting.SliceCursor{Dimension: s.Dimension, From: s.Window.From, Seq: s.Seq}
	}
	all := slices.Clone(u.slices)
	slices.SortFunc(all, func(a, b accounting.SealedSlice) int { return order(place(&a), place(&b)) })
	for _, s := range all {
		if s.Tenant == t && (len(in.Dimension) == 0 || bytes.Equal(s.Dimension, in.Dimension)) && s.Window.From >= in.From && s.Window.From < in.To &&
			in.InTime(&s) && order(place(&s), in.After) > 0 && !each(s) {
			break
		}
	}
	return nil
}
