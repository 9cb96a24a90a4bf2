// Package drain is the reference model of core/lifecycle/drain: a timetable, and when the work
// was done.
package drain

// Drain is a timetable in nanoseconds.
type Drain struct {
	LameDuck, Drain, Abort int64
	Phase                  string // "" before it begins
	Until                  int64
}

// Begin starts the drain, once.
func (d *Drain) Begin(now int64) {
	if d.Phase != "" {
		return
	}
	if d.Phase, d.Until = "lame_duck", now+d.LameDuck; d.LameDuck == 0 {
		d.Phase, d.Until = "draining", now+d.Drain
	}
}

// Give stops waiting for the current phase.
func (d *Drain) Give(now int64) {
	if d.Phase == "lame_duck" || d.Phase == "draining" {
		d.Phase, d.Until = "aborting", now+d.Abort
	}
}

// Move advances by one or more phases, until there is a reason to wait.
func (d *Drain) Move(now int64, quiet bool) {
	over := now >= d.Until
	switch {
	case d.Phase == "lame_duck" && over:
		d.Phase, d.Until = "draining", now+d.Drain
	case d.Phase == "draining" && quiet:
		d.Phase, d.Until = "stopped", now
		return
	case d.Phase == "draining" && over:
		d.Phase, d.Until = "aborting", now+d.Abort
	case d.Phase == "aborting" && (quiet || over):
		d.Phase, d.Until = "stopped", now
		return
	default:
		return
	}
	d.Move(now, quiet)
}
