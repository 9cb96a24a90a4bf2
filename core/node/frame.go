package node

import (
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/words"
)

// begin opens the step's only frame, once.
func (n *Node) begin(now words.Now, at words.Time, out *event.Effects) {
	if n.begun {
		return
	}
	n.begun = true
	if n.durable == n.state.LSN {
		n.flushing = now.Mono
	}
	n.state.Open(n.state.LSN+1, at)
	off := uint32(len(out.Arena))
	out.Arena = record.Begin(out.Arena, n.state.LSN, at)
	size := uint32(len(out.Arena)) - off
	out.Frames = append(out.Frames, event.Frame{LSN: n.state.LSN, Off: off, Len: size})
	n.backlog += uint64(size)
	n.quiet, n.idle = now.Mono, true
}

// record adds n.rec to the frame, and applies it.
func (n *Node) record(out *event.Effects) (index uint16) {
	f := &out.Frames[len(out.Frames)-1]
	out.Arena, index = record.Add(out.Arena, f.Off, &n.rec)
	n.backlog -= uint64(f.Len)
	f.Len = uint32(len(out.Arena)) - f.Off
	n.backlog += uint64(f.Len)
	n.state.Apply(index, &n.rec)
	n.idle = false
	return index
}

// A draft is what undo comes back to: the step up to there, its frame included.
type draft struct {
	state    state.Mark
	begun    bool
	idle     bool
	flushing words.Instant
	quiet    words.Instant
	backlog  uint64
	frames   int
	arena    int
	records  uint16 // of the frame that was begun
}

func (n *Node) draft(out *event.Effects) draft {
	d := draft{state: n.state.Mark(), begun: n.begun, idle: n.idle, flushing: n.flushing, quiet: n.quiet,
		backlog: n.backlog, frames: len(out.Frames), arena: len(out.Arena)}
	if n.begun {
		d.records = record.Count(out.Arena, out.Frames[d.frames-1].Off)
	}
	return d
}

func (n *Node) undo(d draft, out *event.Effects) {
	n.state.Undo(d.state)
	n.begun, n.idle, n.flushing, n.quiet, n.backlog = d.begun, d.idle, d.flushing, d.quiet, d.backlog
	out.Frames, out.Arena = out.Frames[:d.frames], out.Arena[:d.arena]
	if d.begun {
		f := &out.Frames[d.frames-1]
		f.Len = uint32(d.arena) - f.Off
		record.Cut(out.Arena, f.Off, d.records)
	}
}
