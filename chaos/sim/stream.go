package sim

import (
	"slices"

	"macronode/core/event"
)

// streams: one who works has more of its bodies than it was told may go, and asks.
func (w *World) streams() {
	if v := w.any(works); v != nil {
		w.stream(v)
	}
}

// pours: so have all who work.
func (w *World) pours() {
	for i := range w.visitors {
		if v := &w.visitors[i]; v.is == works && !v.stalls {
			w.stream(v)
		}
	}
}

func (w *World) stream(v *visitor) {
	bytes := uint64(1 + w.c.Choose("gate/part", 12_000))
	if v.streams && w.c.Choose("gate/part/again", 4) != 1 { // which changes nothing
		return
	}
	v.streams = true
	w.step(&event.Stream{Ticket: v.ticket, Bytes: bytes})
	if v.streams {
		w.Saw["more of a body waits"]++
	}
}

// streamed hands a verdict of a part of a body to whose that is, if it has not ended.
func (w *World) streamed(v event.Verdict) {
	i := slices.IndexFunc(w.visitors[:], func(o visitor) bool { return o.is == works && o.ticket == v.Ticket })
	if i < 0 {
		return
	}
	o := &w.visitors[i]
	if !o.streams {
		w.fail("stream", "%v is told of what it did not ask: %+v", v.Ticket, v)
	}
	switch o.streams = false; {
	case v.Problem == event.None && v.Bytes == 0:
		w.fail("stream", "%v may go on with nothing", v.Ticket)
	case v.Problem == event.None:
		w.Saw["more of a body goes"]++
	default:
		w.Saw["more of a body does not go: "+v.Why.String()]++
	}
}
