package export

import (
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/types"
)

// MaxSinks is the number of sinks that the plane knows at once. A sink is known until it is forgotten.
const MaxSinks = 64

// A sink was seen for the first time.
type sink struct {
	after types.LSN // items of frames up to this one are not exported, unless their lane was made earlier; 0: all are
	size  uint8
	name  [MaxSink]byte
}

// HashInto mixes s into h, without the name: its digest is the key.
func (s sink) HashInto(h types.Hash64) types.Hash64 { return h.Mix(uint64(s.after)) }

func newSink(name []byte, after types.LSN) (s sink) {
	s.after, s.size = after, uint8(copy(s.name[:], name))
	return s
}

// hasLane reports whether a sink has a lane. It looks at all lanes, once for each sink.
func (p *Plane) hasLane(sink []byte) bool {
	for at := range p.lanes.Capacity() {
		if _, _, taken := p.lanes.At(uint32(at)); taken && string(p.names[at].Sink()) == string(sink) {
			return true
		}
	}
	return false
}

// decideBegin records a sink that was not seen. If it has lanes, they were made by a program that did not record sinks: then it gets
// all items.
func (p *Plane) decideBegin(in *Begin, f plane.Frame, reply *event.Reply) {
	if _, known := p.sinks.Find(digest.Name(in.Sink)); known {
		return
	}
	if p.sinks.Room() == 0 {
		reply.Problem = event.ExportCapacity
		return
	}
	reply.Position = p.add(f, in.Tenant, kindBegun, appendBegun(p.payload[:0], in.Sink, in.Now && !p.hasLane(in.Sink)))
}

// decideForget removes a sink that was seen.
func (p *Plane) decideForget(in *Forget, f plane.Frame, reply *event.Reply) {
	if _, known := p.sinks.Find(digest.Name(in.Sink)); !known {
		reply.Problem = event.NotFound
		return
	}
	reply.Position = p.add(f, in.Tenant, kindForgotten, appendText(p.payload[:0], in.Sink))
}

// Sink returns the last frame whose items a sink does not get; 0: it gets all. It returns false if the sink was not seen.
func (p *Plane) Sink(name []byte) (after types.LSN, known bool) {
	at, known := p.sinks.Find(digest.Name(name))
	if known {
		_, s := p.sinks.Row(at)
		after = s.after
	}
	return after, known
}

// Sinks passes the names of all sinks that were seen, in no particular order. They are valid until each returns.
func (p *Plane) Sinks(each func(name []byte, after types.LSN) bool) {
	for at := range p.sinks.Capacity() {
		if _, s, taken := p.sinks.At(uint32(at)); taken && !each(s.name[:s.size], s.after) {
			return
		}
	}
}
