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
	At      types.Time // when it ended
	Service string     // labels: valid ones of a series, in lower case
	Method  string
	Route   string
	In, Out uint64 // bytes of the bodies
	InFrame bool   // the request itself was counted in the frame of its effect: only its bytes are left
}

// Labels returns the text of the labels of r, as a Series has it; false if one of them is invalid.
func (r *Request) Labels() (text []byte, ok bool) {
	k := RequestKey{service: r.Service, method: r.Method, route: r.Route}
	s, err := NewSeries("requests", k.labels())
	return s.Labels, err == nil
}

// A Meter adds up requests until the node records them. It is volatile: a crash loses what it has.
//
// It is no part of the node's state: requests must not wait for the node to be counted.
type Meter struct {
	window                 time.Duration
	maxRows, maxTenantRows int
	rows                   map[RequestKey]*metered // pointers: a request looks its row up once
	tenantRows             map[types.Tenant]int
}

// A RequestKey identifies the requests of a Meter that are counted together.
type RequestKey struct {
	tenant                 types.Tenant
	from                   types.Time // of the window
	service, method, route string
}

func (k RequestKey) compare(o RequestKey) int {
	return cmp.Or(cmp.Compare(k.tenant, o.tenant), cmp.Compare(k.from, o.from), cmp.Compare(k.service, o.service), cmp.Compare(k.method, o.method), cmp.Compare(k.route, o.route))
}

// labels returns the labels of the series.
func (k *RequestKey) labels() []Label {
	return []Label{{"service", k.service}, {"method", k.method}, {"route", k.route}}
}

// valid reports whether the labels are those of a series.
func (k *RequestKey) valid() bool {
	_, err := NewSeries("requests", k.labels())
	return err == nil
}

// metered is what requests add up to.
type metered struct {
	ended, requests uint64 // all of them, and those that were not counted in a frame
	in, out         uint64
}

func (m *metered) add(o metered) {
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
	return &Meter{window: window, maxRows: maxRows, maxTenantRows: maxTenantRows, rows: make(map[RequestKey]*metered), tenantRows: make(map[types.Tenant]int)}
}

// Add counts a request, which has anything to count. It returns false if there is no room or a label is invalid, and then it counts nothing. A sum of bytes above 2^64-1
// is not possible: it would take centuries between two calls of Take.
func (m *Meter) Add(r Request) bool {
	one := metered{1, 1, r.In, r.Out}
	if r.InFrame {
		one.requests = 0
	}
	return m.add(m.Key(&r), one)
}

// Key returns the key of a request.
func (m *Meter) Key(r *Request) RequestKey {
	length := types.Time(m.window / time.Millisecond)
	return RequestKey{r.Tenant, max(1, r.At-r.At%length), r.Service, r.Method, r.Route}
}

func (m *Meter) add(k RequestKey, more metered) bool {
	sum := m.rows[k]
	if sum == nil {
		if len(m.rows) >= m.maxRows || m.tenantRows[k.tenant] >= m.maxTenantRows || !k.valid() {
			return false
		}
		m.tenantRows[k.tenant]++
		sum = new(metered)
		m.rows[k] = sum
	}
	sum.add(more)
	return true
}

// Take returns what was counted since the last call, in commands without tickets, and forgets it.
func (m *Meter) Take() (all []*MeteredUsage) {
	var last *MeteredUsage
	for _, k := range slices.SortedFunc(maps.Keys(m.rows), RequestKey.compare) {
		if last == nil || last.Command.Tenant != k.tenant || len(last.Command.Metered)+3 > MaxMetered {
			last = &MeteredUsage{Command: RecordMetered{Header: command.Header{Tenant: k.tenant}}}
			all = append(all, last)
		}
		last.add(k, *m.rows[k])
	}
	clear(m.rows)
	clear(m.tenantRows)
	for _, u := range all {
		u.Command.Sort()
	}
	return all
}

// add adds the rows of a key: its requests, and its bytes if there are any.
func (u *MeteredUsage) add(k RequestKey, sum metered) {
	u.rows = append(u.rows, meteredRow{k, sum})
	u.Requests += sum.ended
	for _, d := range [...]struct {
		dimension     string
		value, events uint64
	}{{"requests", sum.requests, sum.requests}, {"bytes_in", sum.in, sum.ended}, {"bytes_out", sum.out, sum.ended}} {
		if d.value == 0 {
			continue
		}
		s, err := NewSeries(d.dimension, k.labels())
		types.Assert(err == nil, "accounting: a request with an invalid label was counted")
		u.Command.Metered = append(u.Command.Metered, Metered{s, k.from, Count{d.value, d.events}})
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
		p.add(r.RequestKey, r.metered)
	}
	p.Command.Sort()
	return p
}

// Return counts again what was not recorded. It returns the number of requests for which there is no room any more:
// they are lost.
func (m *Meter) Return(u *MeteredUsage) (lost uint64) {
	for _, r := range u.rows {
		if !m.add(r.RequestKey, r.metered) {
			lost += r.ended
		}
	}
	return lost
}
