package accounting

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"macronode/core/command"
	"macronode/core/types"
)

// A Request is a served request.
type Request struct {
	Tenant  types.Tenant
	At      types.Time     // when it ended
	Labels  *RequestLabels // nil: it is not counted
	In, Out uint64         // bytes of the bodies
	InFrame bool           // the request itself was counted in the frame of its effect: only its bytes are left
}

// A Meter adds up requests until the node records them. It is volatile: a crash loses what it has.
//
// It is no part of the node's state: requests must not wait for the node to be counted.
type Meter struct {
	length                 types.Time // of a window
	last                   Window     // of the last request: most are in the same window
	maxRows, maxTenantRows int
	rows                   map[RequestKey]*metered // pointers: a request looks its row up once
	tenantRows             map[types.Tenant]int
}

// A RequestKey identifies the requests of a Meter that are counted together.
type RequestKey struct {
	owner  uint64     // the tenant, as wide as the others: a key without padding is hashed at once
	from   types.Time // of the window
	labels labelKey
}

func (k RequestKey) tenant() types.Tenant { return types.Tenant(k.owner) }

func (k RequestKey) compare(o RequestKey) int {
	if order := cmp.Or(cmp.Compare(k.owner, o.owner), cmp.Compare(k.from, o.from)); order != 0 || k.labels == o.labels {
		return order
	}
	a, b := k.labels.Value(), o.labels.Value()
	return cmp.Or(cmp.Compare(a.service, b.service), cmp.Compare(a.method, b.method), cmp.Compare(a.route, b.route))
}

// metered is what requests add up to.
type metered struct {
	of              *RequestLabels
	ended, requests uint64 // all of them, and those that were not counted in a frame
	in, out         uint64
}

func (m *metered) add(o *metered) {
	m.ended, m.requests, m.in, m.out = m.ended+o.ended, m.requests+o.requests, m.in+o.in, m.out+o.out
}

// A MeteredUsage is what a Meter hands over: the command that records it, and what Return needs.
type MeteredUsage struct {
	Command  RecordMetered
	Requests uint64 // that it is the sum of
	rows     []meteredRow
}

type meteredRow struct {
	RequestKey
	metered
}

// NewMeter returns a meter of windows of a length. It has at most maxRows rows, and maxTenantRows of one tenant: usage of a tenant
// that the node rejects for now waits here, and must leave room for the others.
func NewMeter(window time.Duration, maxRows, maxTenantRows int) *Meter {
	return &Meter{length: types.Time(window / time.Millisecond), maxRows: maxRows, maxTenantRows: maxTenantRows, rows: make(map[RequestKey]*metered), tenantRows: make(map[types.Tenant]int)}
}

// Add counts a request, which has anything to count, and returns its key. It returns false if there is no room or the request has no labels, and
// then it counts nothing. A sum of bytes above 2^64-1 is not possible: it would take centuries between two calls of Take.
func (m *Meter) Add(r *Request) (RequestKey, bool) {
	if r.Labels == nil {
		return RequestKey{}, false
	}
	one := metered{r.Labels, 1, 1, r.In, r.Out}
	if r.InFrame {
		one.requests = 0
	}
	if r.At < m.last.From || r.At >= m.last.To {
		from := r.At - r.At%m.length
		m.last = Window{max(1, from), from + m.length}
	}
	k := RequestKey{uint64(r.Tenant), m.last.From, r.Labels.key}
	return k, m.add(k, &one)
}

func (m *Meter) add(k RequestKey, more *metered) bool {
	sum := m.rows[k]
	if sum == nil {
		if len(m.rows) >= m.maxRows || m.tenantRows[k.tenant()] >= m.maxTenantRows {
			return false
		}
		m.tenantRows[k.tenant()]++
		sum = &metered{of: more.of}
		m.rows[k] = sum
	}
	sum.add(more)
	return true
}

// Take returns what was counted since the last call, in commands without tickets, and forgets it.
func (m *Meter) Take() (all []*MeteredUsage) {
	var last *MeteredUsage
	for _, k := range slices.SortedFunc(maps.Keys(m.rows), RequestKey.compare) {
		if last == nil || last.Command.Tenant != k.tenant() || len(last.Command.Metered)+3 > MaxMetered {
			last = &MeteredUsage{Command: RecordMetered{Header: command.Header{Tenant: k.tenant()}}}
			all = append(all, last)
		}
		last.add(meteredRow{k, *m.rows[k]})
	}
	clear(m.rows)
	clear(m.tenantRows)
	for _, u := range all {
		u.Command.Sort()
	}
	return all
}

// add adds the rows of a key: its requests, and its bytes if there are any.
func (u *MeteredUsage) add(r meteredRow) {
	u.rows = append(u.rows, r)
	u.Requests += r.ended
	for _, d := range [...]struct {
		series        *Series
		value, events uint64
	}{{&r.of.requests, r.requests, r.requests}, {&r.of.bytesIn, r.in, r.ended}, {&r.of.bytesOut, r.out, r.ended}} {
		if d.value > 0 {
			u.Command.Metered = append(u.Command.Metered, Metered{*d.series, r.from, Count{d.value, d.events}})
		}
	}
}

// Keys yields the keys of the requests.
func (u *MeteredUsage) Keys(yield func(RequestKey) bool) {
	for i := range u.rows {
		if !yield(u.rows[i].RequestKey) {
			return
		}
	}
}

// Halves returns the usage as two commands; false if it is that of one service, method, route and window.
func (u *MeteredUsage) Halves() (first, second *MeteredUsage, ok bool) {
	n := len(u.rows) / 2
	if n == 0 {
		return nil, nil, false
	}
	return u.part(u.rows[:n]), u.part(u.rows[n:]), true
}

// part returns the usage of some rows of u.
func (u *MeteredUsage) part(rows []meteredRow) *MeteredUsage {
	p := &MeteredUsage{Command: RecordMetered{Header: command.Header{Tenant: u.Command.Tenant}}}
	for _, r := range rows {
		p.add(r)
	}
	p.Command.Sort()
	return p
}

// Return counts again what was not recorded. It returns the number of requests for which there is no room any more:
// they are lost.
func (m *Meter) Return(u *MeteredUsage) (lost uint64) {
	for i := range u.rows {
		if r := &u.rows[i]; !m.add(r.RequestKey, &r.metered) {
			lost += r.ended
		}
	}
	return lost
}
