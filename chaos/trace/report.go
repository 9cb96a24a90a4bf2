package trace

import (
	"macronode/core/event"
	"macronode/core/types"
)

// ends counts what became of one who was in, if the end has begun.
func (d *door) ends(f event.Completion) {
	if d.begun {
		*map[event.Completion]*uint64{event.CompletionDone: &d.report.Finished, event.CompletionRejected: &d.report.Rejected, event.CompletionAborted: &d.report.Aborted}[f]++
	}
}

// reported wants the drain to tell of each who was in when it began, or came since, and of each
// once; who is in when it is over is given up.
func (d *door) reported(after *View) error {
	for _, v := range d.says {
		if v.Reason == event.RejectNotServing {
			d.ends(event.CompletionRejected)
		}
	}
	want := d.report
	if after.Phase == types.Stopped {
		want.Aborted += uint64(d.count(func(g *guest) bool { return g.at != "queued" }))
	}
	if after.Report != want {
		return broken("Reported", "the drain tells of %+v, and it was %+v", after.Report, want)
	}
	return nil
}
