package accounting

import (
	"time"

	"macronode/core/types"
)

// windowAt returns the window of a time.
func (p *Plane) windowAt(at types.Time) Window {
	length := types.Time(p.limits.Window / time.Millisecond)
	from := at - at%length
	return Window{from, from + length}
}

// keyOf returns the row of postpaid usage of a time, which is recorded at at. If its window is sealed, or due to be, the row is
// part of the correction that is sealed with the current window.
func (p *Plane) keyOf(at types.Time, t types.Tenant, of types.Time, series types.NameHash) rowKey {
	k := rowKey{tenant: t, window: p.windowAt(of), series: series}
	if k.due = k.window.To.Add(p.limits.Grace); k.due <= at {
		k.late, k.due = true, p.windowAt(at).To.Add(p.limits.Grace)
	}
	return k
}

// keyOfEvent returns the row of an event.
func (p *Plane) keyOfEvent(at types.Time, in *RecordEvents, e *Event) rowKey {
	k := p.keyOf(at, in.Tenant, e.Time, e.Series.ID)
	k.prepaid = in.prepaid
	return k
}
