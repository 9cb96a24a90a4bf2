package trace

import (
	"macronode/core/event"
	"macronode/core/types"
)

// ends counts the outcome of a request, if the drain has begun.
func (d *gate) ends(f event.Completion) {
	if d.begun {
		*map[event.Completion]*uint64{event.CompletionDone: &d.report.Finished, event.CompletionRejected: &d.report.Rejected, event.CompletionAborted: &d.report.Aborted}[f]++
	}
}

// reported checks that the drain report counts each request that was in progress at its start or
// came since, once; a request in progress at the end counts as aborted.
func (d *gate) reported(after *View) error {
	for _, v := range d.expected {
		if v.Reason == event.RejectNotServing {
			d.ends(event.CompletionRejected)
		}
	}
	want := d.report
	if after.Phase == types.Stopped {
		want.Aborted += uint64(d.count(func(g *gateRequest) bool { return g.at != "queued" }))
	}
	if after.Report != want {
		return broken("Reported", "the drain reports %+v, want %+v", after.Report, want)
	}
	return nil
}
