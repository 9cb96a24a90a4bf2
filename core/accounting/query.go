package accounting

import (
	"time"

	"macronode/core/digest"
	"macronode/core/types"
)

// openRows passes the rows of a tenant that are not sealed.
func (p *Plane) openRows(t types.Tenant, each func(place uint32) bool) {
	at, known := p.tenants.Find(t)
	if !known {
		return
	}
	_, of := p.tenants.Row(at)
	for next := of.first; next > 0; next = p.links[next-1].next {
		if !each(next - 1) {
			return
		}
	}
}

// An OpenRow is usage that is not sealed yet.
type OpenRow struct {
	Dimension []byte
	Window    Window
	Late      bool // it will be in a correction
	Prepaid   bool // it was paid when it was recorded
	Row
}

// Open passes the usage of a tenant that is not sealed yet, in no particular order. Texts are valid until the plane
// changes.
func (p *Plane) Open(t types.Tenant, each func(OpenRow) bool) {
	p.openRows(t, func(place uint32) bool {
		k, c := p.rows.Row(place)
		text := &p.texts[place]
		return each(OpenRow{text.Dimension(), k.window, k.late, k.prepaid, Row{text.Labels(), c}})
	})
}

// Stream returns the state of a stream.
func (p *Plane) Stream(t types.Tenant, dimension []byte) (s Stream, ok bool) {
	at, ok := p.streams.Find(streamKey{t, digest.Name(dimension)})
	if ok {
		_, s = p.streams.Row(at)
	}
	return s, ok
}

// Rows returns the number of rows that are not sealed, and Streams that of streams.
func (p *Plane) Rows() int    { return p.rows.Len() }
func (p *Plane) Streams() int { return p.streams.Len() }

// SealedTo returns the end of the windows that are sealed at a time, for a tenant: only corrections change their usage.
func (p *Plane) SealedTo(t types.Tenant, at types.Time) types.Time {
	to := p.windowAt(max(0, at.Add(-p.limits.Grace))).From
	p.openRows(t, func(place uint32) bool {
		if k, _ := p.rows.Row(place); !k.late { // it may be due by an earlier configuration, or not sealed yet
			to = min(to, k.window.From)
		}
		return true
	})
	return to
}

// AsOfLimit returns the latest time as of which the state of a time answers queries: all that is due by then is sealed. No usage that is
// recorded later is due by then, so these slices are all that will ever be.
func (p *Plane) AsOfLimit(at types.Time) types.Time {
	first, any := p.due.First()
	if !any {
		return at
	}
	k, _ := p.rows.Row(first)
	return min(at, k.due-1)
}

// A ReadPoint says what a query can read of a state.
type ReadPoint struct {
	Upto      types.LSN  // the last frame of the state
	At        types.Time // of that frame
	SealedTo  types.Time // the end of the windows of the tenant that are sealed
	AsOfLimit types.Time // the latest time that a query can be as of
}

// ReadPoint returns what a query of a tenant can read after a frame.
func (p *Plane) ReadPoint(t types.Tenant, upto types.LSN, at types.Time) ReadPoint {
	return ReadPoint{upto, at, p.SealedTo(t, at), p.AsOfLimit(at)}
}

// SealLag returns for how long the oldest row is due at a time.
func (p *Plane) SealLag(at types.Time) time.Duration {
	first, any := p.due.First()
	if !any {
		return 0
	}
	k, _ := p.rows.Row(first)
	return time.Duration(max(0, at-k.due)) * time.Millisecond
}

// A SealedSlice is a slice and the frame that sealed it.
type SealedSlice struct {
	Slice
	LSN types.LSN
	Due types.Time // when its rows were due: about the time of the seal
}

// A SliceRange selects slices of a tenant, in the order of dimension, window and seq.
type SliceRange struct {
	Dimension []byte      // empty: all
	From, To  types.Time  // windows that begin in [From, To)
	Upto      types.LSN   // sealed by frames up to here
	AsOf      types.Time  // due by then; zero: whenever it was due
	After     SliceCursor // zero: from the first
}

// InTime reports whether a slice was sealed by the last frame of r, and due by its time.
func (r *SliceRange) InTime(s *SealedSlice) bool {
	return s.LSN <= r.Upto && (r.AsOf == 0 || s.Due <= r.AsOf)
}

// A SliceCursor is the place of a slice in the order of a SliceRange.
type SliceCursor struct {
	Dimension []byte
	From      types.Time // of its window
	Seq       uint64
}
