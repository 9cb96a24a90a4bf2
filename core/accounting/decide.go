package accounting

import (
	"math/bits"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/share"
	"macronode/core/types"
)

// Decide records usage.
func (p *Plane) Decide(at types.Time, c command.Command, f plane.Frame, reply *event.Reply) {
	switch in := c.(type) {
	case *RecordEvents:
		if report := p.check(at, in, f, reply); reply.Problem == event.None {
			p.recordEvents(at, in, &report, f, reply)
		}
	case *RecordMetered:
		p.decideMetered(at, in, f, reply)
	default:
		reply.Problem = event.BadRequest
	}
}

// check finds the events that are not recorded yet, and returns how many these are; or it sets the problem of reply.
func (p *Plane) check(at types.Time, in *RecordEvents, f plane.Frame, reply *event.Reply) (report Report) {
	report = Report{Caller: in.Caller, Duplicate: uint16(in.repeats)}
	need := needs{ofEvents: true}
	if reply.Problem, reply.Item = p.checkEvents(at, in, f, &report, &need); reply.Problem != event.None {
		return report
	}
	if reply.Shortage = p.shortage(in.Tenant, &need); reply.Shortage.Limit != event.NoLimit {
		reply.Problem = event.UsageCapacity
	}
	return report
}

// recordEvents records the events that check found, and the report.
func (p *Plane) recordEvents(at types.Time, in *RecordEvents, report *Report, f plane.Frame, reply *event.Reply) {
	reply.Position = p.add(f, in.Tenant, kindReported, report.append(p.payload[:0]))
	for i := 0; i < len(in.Events); {
		i = p.addUsage(at, in, i, f)
	}
}

// add records a payload.
func (p *Plane) add(f plane.Frame, t types.Tenant, kind uint8, payload []byte) types.Position {
	*f.Record() = record.Record{Kind: record.PlaneKind(types.PlaneAccounting, kind), Tenant: t, Payload: payload}
	return f.Add()
}

// checkEvents finds the events that are new and counts them in report and need, or returns the problem of an event,
// from 1.
func (p *Plane) checkEvents(at types.Time, in *RecordEvents, f plane.Frame, report *Report, need *needs) (event.Problem, uint16) {
	for i := 0; i < len(in.Events); {
		end := i + 1 // of the events of the same series
		for end < len(in.Events) && in.Events[end].Series.ID == in.Events[i].Series.ID {
			end++
		}
		if why, item := p.checkSeries(at, in, i, end, f, report, need); why != event.None {
			return why, item
		}
		i = end
	}
	return event.None, 0
}

// needs are the rows and streams that a command adds, and the row that it adds usage to.
type needs struct {
	ofEvents      bool // a quarter of the rows is not for them, but for metered usage
	rows, streams int
	tenantStreams int // of the streams, those that the limit of the tenant is for
	lastStream    types.NameHash
	row           rowKey
	sum           uint64 // of that row with the usage of the command
}

// checkSeries checks the events from i to end, which are of one series and in the order of their times: those of one
// row are adjacent.
func (p *Plane) checkSeries(at types.Time, in *RecordEvents, i, end int, f plane.Frame, report *Report, need *needs) (event.Problem, uint16) {
	for ; i < end; i++ {
		e := &in.Events[i]
		prior, known := f.FindRef(in.Tenant, e.name, e.prior)
		if p.fresh[i] = !known; known {
			if prior.Hash != e.content {
				return event.EventConflict, e.Place + 1
			}
			report.Duplicate++
			continue
		}
		if why := checkTime(at, e.Time); why != event.None {
			return why, e.Place + 1
		}
		k := p.keyOfEvent(at, in, e)
		report.Recorded++
		if k.late {
			report.Late++
		}
		if !need.add(p, k, e.Series.stream, e.Value) {
			return event.UsageOverflow, e.Place + 1
		}
	}
	return event.None, 0
}

// add counts a value into the row k of a stream; false if the sum is too large. Values of one row come one after the
// other, and the rows in the order of their dimensions.
func (n *needs) add(p *Plane, k rowKey, stream types.NameHash, value uint64) (ok bool) {
	if k != n.row {
		n.row, n.sum = k, 0
		if place, exists := p.rows.Find(k); exists {
			_, was := p.rows.Row(place)
			n.sum = was.Value
		} else {
			n.addRow(p, k.tenant, stream)
		}
	}
	var carry uint64
	n.sum, carry = bits.Add64(n.sum, value, 0)
	return carry == 0
}

// addRow counts a row that does not exist, and its stream if that does not exist either.
func (n *needs) addRow(p *Plane, t types.Tenant, stream types.NameHash) {
	n.rows++
	if _, exists := p.streams.Find(streamKey{t, stream}); !exists && n.lastStream != stream {
		n.lastStream = stream
		n.streams++
		n.tenantStreams++
	}
}

// shortage returns the limit that so many more rows and streams of a tenant would exceed.
func (p *Plane) shortage(of types.Tenant, n *needs) event.Shortage {
	at, known := p.tenants.Find(of)
	var t tenant
	if known {
		_, t = p.tenants.Row(at)
	}
	tenants := 0
	if !known && n.rows > 0 {
		tenants = 1
	}
	left, ofTenant := p.rows.Room(), p.limits.TenantRow
	if n.ofEvents {
		left -= p.limits.Rows / 4
		ofTenant -= p.limits.TenantRow / 4
	}
	for _, c := range [...]struct {
		limit        event.Limit
		needed, left int
		shared       bool
	}{
		{event.UsageTenantRows, n.rows, share.Left(ofTenant, int(t.rows), left), ofTenant == 0},
		{event.UsageRows, n.rows, left, false},
		{event.UsageTenantDimensions, n.tenantStreams, p.limits.TenantDim - int(t.streams), false},
		{event.UsageStreams, n.streams, p.streams.Room(), false},
		{event.UsageTenants, tenants, p.tenants.Room(), false},
	} {
		if c.needed > 0 && c.needed > c.left && !(c.shared && n.rows > left) { // of a full table, the table is the shortage
			return event.Shortage{Limit: c.limit, Needed: uint64(c.needed), Left: uint64(max(c.left, 0)), Shared: c.shared}
		}
	}
	return event.Shortage{}
}

func checkTime(at, of types.Time) event.Problem {
	switch {
	case of < at.Add(-MaxAge):
		return event.EventTooOld
	case of > at.Add(MaxFuture):
		return event.EventInFuture
	}
	return event.None
}

// addUsage records the new events from i on that belong to one row, as many as a record takes, and returns the index
// of the next event.
func (p *Plane) addUsage(at types.Time, in *RecordEvents, i int, f plane.Frame) (next int) {
	for i < len(in.Events) && !p.fresh[i] {
		i++
	}
	if i == len(in.Events) {
		return i
	}
	first := &in.Events[i]
	k := p.keyOfEvent(at, in, first)
	u := k.usage(&first.Series)
	b := u.appendPrefix(p.payload[:0])
	for ; i < len(in.Events) && len(b)+entrySize+recordPrefix <= len(p.payload); i++ {
		e := &in.Events[i]
		if e.Series.ID != first.Series.ID || p.fresh[i] && p.keyOfEvent(at, in, e) != k {
			break
		}
		if p.fresh[i] {
			b = appendEntry(b, e.name, e.content, e.Value)
		}
	}
	p.add(f, in.Tenant, kindUsage, b)
	return i
}
