package trace

import (
	"macronode/core/event"
	"macronode/core/words"
)

// ends counts what became of one who was in, if the end has begun.
func (d *door) ends(f event.Fate) {
	if d.begun {
		*map[event.Fate]*uint64{event.Done: &d.report.Finished, event.TurnedAway: &d.report.Refused, event.GivenUp: &d.report.Aborted}[f]++
	}
}

// reported wants the drain to tell of each who was in when it began, or came since, and of each
// once; who is in when it is over is given up.
func (d *door) reported(after *View) error {
	for _, v := range d.says {
		if v.Why == event.NotServing {
			d.ends(event.TurnedAway)
		}
	}
	want := d.report
	if after.Phase == words.Stopped {
		want.Aborted += uint64(d.count(func(g *guest) bool { return g.at != "queued" }))
	}
	if after.Report != want {
		return broken("Reported", "the drain tells of %+v, and it was %+v", after.Report, want)
	}
	return nil
}
