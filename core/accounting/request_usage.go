package accounting

import (
	"math"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/types"
)

// A RequestUsage is what one request counts as, in the frame of its effect: the request, and the bytes of its body. The bytes of
// the response are not known when it is decided.
type RequestUsage struct {
	rows [2]Metered // in the order of RecordMetered.Sort
	n    int
}

// countsNow is a time that the node never reaches, so the row counts as now.
const countsNow = types.Time(math.MaxInt64)

var _ command.Usage = (*RequestUsage)(nil)

// NewRequestUsage returns the usage of a request; nil if it has no labels. The time of r does not matter: it counts in the window of
// the frame.
func NewRequestUsage(r *Request) *RequestUsage {
	if r.Labels == nil {
		return nil
	}
	u := new(RequestUsage)
	for _, row := range [...]struct {
		series *Series
		value  uint64
	}{{&r.Labels.bytesIn, r.In}, {&r.Labels.requests, 1}} {
		if row.value > 0 {
			u.rows[u.n] = Metered{*row.series, countsNow, Count{row.value, 1}}
			u.n++
		}
	}
	return u
}

// Bytes is the space that the usage takes in the journal, at most.
func (u *RequestUsage) Bytes() int {
	return u.n * (recordPrefix + usagePrefix + MaxDimension + MaxLabels + 16)
}

// Rows are the usage as rows, in the order of RecordMetered.Sort. Their time counts as now.
func (u *RequestUsage) Rows() []Metered { return u.rows[:u.n] }

// CountRequest counts a request of a tenant in the frame of its effect. It returns false if there is no room: then nothing is
// counted. A limit of usage is no reason to reject what was decided.
func (p *Plane) CountRequest(at types.Time, t types.Tenant, u *RequestUsage, f plane.Frame) bool {
	if problem, _ := p.CheckMetered(at, t, u.Rows(), false); problem != event.None {
		return false
	}
	p.AddMetered(at, t, u.Rows(), false, f)
	return true
}
