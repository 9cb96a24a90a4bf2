package loop

import (
	"context"
	"time"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/types"
)

// An Index has the keys and refs that the window has evicted. Look fills the prior outcomes of a *event.Request,
// *event.Execute or *event.FindOutcome, and the LSN that the index had reached before.
type Index interface{ Look(in event.Event) error }

// clearPrior clears the prior outcomes: without an index, the node may still find the key in its window.
func clearPrior(in event.Event) {
	if r, ok := in.(*event.Request); ok {
		r.IndexedTo, r.Prior = 0, command.PriorOutcome{}
		for _, item := range r.Each {
			item.PriorRef = types.TxID{}
		}
	}
	if f, ok := in.(*event.FindOutcome); ok {
		f.IndexedTo, f.Prior = 0, command.PriorOutcome{}
	}
	if c, ok := in.(*event.Execute); ok {
		h := c.Command.Head()
		h.IndexedTo, h.Prior = 0, command.PriorOutcome{}
	}
}

// withIndex reads the index before each submit, until the node does not return StaleIndexRead. A retry is rare:
// only if the index is far behind.
func (k *Dispatcher) withIndex(ctx context.Context, in event.Event, submit func() (event.Reply, bool)) (event.Reply, bool) {
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		var lookErr error
		if k.Index != nil {
			if lookErr = k.Index.Look(in); lookErr != nil {
				clearPrior(in)
			}
		}
		r, ok := submit()
		if !ok || r.Problem != event.StaleIndexRead || k.Index == nil {
			return r, ok
		}
		if lookErr != nil {
			return event.Reply{Problem: event.Unavailable}, true
		}
		if k.OnStaleRead != nil {
			k.OnStaleRead()
		}
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return event.Reply{Problem: event.Unavailable}, true
		}
	}
}
