package audit

import (
	"net/http"

	"macronode/core/rejection"
	"macronode/core/types"
)

// rejectedShares limits the lines of rejected requests of each tenant, so that the requests of one do not fill the files. A change is
// in the journal, whatever becomes of its line. Tenants whose numbers are a multiple of 256 apart have one limit.
type rejectedShares [256]rejectedShare

// rejectedShare is the credit of a tenant for lines.
type rejectedShare struct {
	credit  rejection.Credit
	omitted uint64 // lines since the last one that was accepted
}

// of returns the share of a tenant.
func (r *rejectedShares) of(t types.Tenant) *rejectedShare { return &r[uint64(t)%uint64(len(r))] }

// accept takes the credit for a line. If there is none, it counts the line and returns false. A line that is accepted has the number of
// those before it that were not.
func (r *rejectedShare) accept(line *Line, rate rejection.Rate) bool {
	if !r.credit.Take(types.Instant(line.at.UnixNano()), rate) {
		r.omitted++
		return false
	}
	line.omitted, r.omitted = r.omitted, 0
	return true
}

// isLimited reports whether a line is that of a rejected request, under a rate that is one.
func (l *Line) isLimited(rate rejection.Rate) bool {
	return rate.Burst > 0 && l.Status >= http.StatusBadRequest
}
