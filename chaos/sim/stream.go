package sim

import (
	"macronode/core/event"
)

// streams: an admitted request reserves more bytes than it was charged.
func (w *World) streams() {
	if v := w.any(works); v != nil {
		w.stream(v)
		w.decides()
	}
}

// pours: all admitted requests do.
func (w *World) pours() {
	for i := range w.visitors {
		if v := &w.visitors[i]; v.is == works && !v.stalls {
			w.stream(v)
		}
	}
	w.decides()
}

// stream reserves bytes, as the gate does: not while a decision is outstanding, even if its
// caller has left.
func (w *World) stream(v *visitor) {
	bytes, p := uint64(1+w.c.Choose("gate/part", 12_000)), &w.places[v.at]
	if asked := w.gate.Reserve(v.ticket, bytes); asked == p.asks {
		w.fail("stream", "%v asks for more, and did not hear: %v", v.ticket, asked)
	}
	if p.asks {
		w.Saw["more bytes are needed while a decision is outstanding"]++
	}
	v.streams, p.asks = true, true
}

// hearsFurther delivers the decision on a part. Some callers do not wait for it.
func (w *World) hearsFurther(o *visitor) {
	switch v, ok := w.gate.PollReserved(o.ticket); {
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
