package sim

import (
	"macronode/core/event"
)

// streams: one who works has more of its bodies than it was told may go, and asks.
func (w *World) streams() {
	if v := w.any(works); v != nil {
		w.stream(v)
		w.decides()
	}
}

// pours: so have all who work.
func (w *World) pours() {
	for i := range w.visitors {
		if v := &w.visitors[i]; v.is == works && !v.stalls {
			w.stream(v)
		}
	}
	w.decides()
}

// stream asks, as the shell does: not while a word is on its way, though nobody may wait for that
// any more.
func (w *World) stream(v *visitor) {
	bytes, p := uint64(1+w.c.Choose("gate/part", 12_000)), &w.places[v.at]
	if asked := w.gate.Further(v.ticket, bytes); asked == p.asks {
		w.fail("stream", "%v asks for more, and did not hear: %v", v.ticket, asked)
	}
	if p.asks {
		w.Saw["more of a body is asked for, and a word is on its way"]++
	}
	v.streams, p.asks = true, true
}

// hearsFurther is what one is told of a part of its bodies. Some do not wait for that.
func (w *World) hearsFurther(o *visitor) {
	switch v, ok := w.gate.HearFurther(o.ticket); {
	case !o.streams:
	case w.c.Choose("gate/part/deaf", 6) == 1:
		o.streams = false
	case !ok:
	case v.Ticket != o.ticket || v.Problem == event.None && v.Bytes == 0:
		w.fail("stream", "%v may go on, and is told %+v", o.ticket, v)
	case v.Problem == event.None:
		w.Saw["more of a body goes"]++
		o.streams, o.went = false, o.went+v.Bytes
	default:
		w.Saw["more of a body does not go: "+v.Reason.String()]++
		o.streams = false
	}
}
