package node

import (
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/idempotency"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

// beginFrame begins the frame of the step if there is none yet.
func (n *Node) beginFrame(now types.Now, at types.Time, out *event.Effects) {
	if n.frameOpen {
		return
	}
	n.frameOpen = true
	if n.durable == n.state.LSN {
		n.flushStarted = now.Mono
	}
	n.state.Open(n.state.LSN+1, at)
	off := uint32(len(out.Arena))
	out.Arena = record.Begin(out.Arena, n.state.LSN, at)
	size := uint32(len(out.Arena)) - off
	out.Frames = append(out.Frames, event.Frame{LSN: n.state.LSN, Off: off, Len: size})
	n.backlog += uint64(size)
	n.lastFrameAt, n.lastFrameEmpty = now.Mono, true
}

// addRecord appends n.rec to the frame and applies it.
func (n *Node) addRecord(out *event.Effects) (index uint16) {
	f := &out.Frames[len(out.Frames)-1]
	out.Arena, index = record.Add(out.Arena, f.Off, &n.rec)
	n.backlog -= uint64(f.Len)
	f.Len = uint32(len(out.Arena)) - f.Off
	n.backlog += uint64(f.Len)
	n.state.Apply(index, &n.rec)
	n.lastFrameEmpty = false
	return index
}

// A savepoint is the point of a step that undo returns to, including the frame.
type savepoint struct {
	state          state.Savepoint
	frameOpen      bool
	lastFrameEmpty bool
	flushStarted   types.Instant
	lastFrameAt    types.Instant
	backlog        uint64
	frames         int
	arena          int
	records        uint16 // of the frame, if it had begun
}

func (n *Node) savepoint(out *event.Effects) savepoint {
	d := savepoint{state: n.state.Savepoint(), frameOpen: n.frameOpen, lastFrameEmpty: n.lastFrameEmpty, flushStarted: n.flushStarted, lastFrameAt: n.lastFrameAt,
		backlog: n.backlog, frames: len(out.Frames), arena: len(out.Arena)}
	if n.frameOpen {
		d.records = record.Count(out.Arena, out.Frames[d.frames-1].Off)
	}
	return d
}

func (n *Node) undo(d savepoint, out *event.Effects) {
	n.state.Undo(d.state)
	n.frameOpen, n.lastFrameEmpty, n.flushStarted, n.lastFrameAt, n.backlog = d.frameOpen, d.lastFrameEmpty, d.flushStarted, d.lastFrameAt, d.backlog
	out.Frames, out.Arena = out.Frames[:d.frames], out.Arena[:d.arena]
	if d.frameOpen {
		f := &out.Frames[d.frames-1]
		f.Len = uint32(d.arena) - f.Off
		record.Truncate(out.Arena, f.Off, d.records)
	}
}

// A frame is the frame of the current step, as plane.Frame.
type frame struct {
	node *Node
	now  types.Now
	at   types.Time
	out  *event.Effects
	mark savepoint
}

func (f *frame) Record() *record.Record { return &f.node.rec }

func (f *frame) Add() types.Position {
	f.node.beginFrame(f.now, f.at, f.out)
	return types.Position{LSN: f.node.state.LSN, Index: f.node.addRecord(f.out)}
}

func (f *frame) Savepoint() { f.mark = f.node.savepoint(f.out) }
func (f *frame) Undo()      { f.node.undo(f.mark, f.out) }
func (f *frame) Commit()    { f.node.state.Commit() }

func (f *frame) FindRef(t types.Tenant, ref types.NameHash, prior command.PriorOutcome) (command.PriorOutcome, bool) {
	return f.node.state.Idempotency.FindRef(idempotency.Key{Tenant: t, Name: ref, Ref: true}, prior)
}
