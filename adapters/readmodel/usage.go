package readmodel

import (
	"macronode/core/accounting"
	"macronode/core/flow"
	"macronode/core/types"
)

// accounting returns the accounting plane.
func (f *Follower) accounting() *accounting.Plane {
	return f.state.Plane(types.PlaneAccounting).(*accounting.Plane)
}

// OpenUsage passes the usage of a tenant that is not sealed at the point that it returns. Texts are valid until each returns.
func (f *Follower) OpenUsage(t types.Tenant, each func(*accounting.OpenRow)) accounting.ReadPoint {
	f.mu.RLock()
	defer f.mu.RUnlock()
	p := f.accounting()
	p.Open(t, func(r accounting.OpenRow) bool {
		each(&r)
		return true
	})
	return p.ReadPoint(t, f.state.LSN, f.state.At)
}

// ReadBooks passes the usage and the money of one state to read, which neither changes nor keeps them.
func (f *Follower) ReadBooks(read func(flow.Books)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	read(flow.Books{Usage: f.accounting(), Wallet: f.state.Wallet, Upto: f.state.LSN})
}

// ReportAt returns the report of a record; false if it is none, or cannot be read.
func (f *Follower) ReportAt(p types.Position) (r accounting.Report, ok bool) {
	s, err := f.frame(p.LSN)
	if err != nil {
		return r, false
	}
	return accounting.ReadReport(s.Body, p.Index)
}
