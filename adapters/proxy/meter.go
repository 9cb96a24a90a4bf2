package proxy

import "macronode/core/event"

// A Meter limits how many bytes of the bodies of a request are forwarded. If a ResponseWriter
// implements it, it is asked before each part of both bodies, concurrently. Otherwise there is no
// limit.
type Meter interface {
	// TryTake takes n bytes if they may be forwarded at once. Wait waits until they may, or
	// returns the problem.
	TryTake(n int) bool
	Wait(n int) event.Problem
	// Count counts bytes of the client that were forwarded, CountSent those of the upstream that were
	// not written to the ResponseWriter.
	Count(n int)
	CountSent(n int)
}

// noMeter has no limit.
type noMeter struct{}

func (noMeter) TryTake(int) bool       { return true }
func (noMeter) Wait(int) event.Problem { return event.None }
func (noMeter) Count(int)              {}
func (noMeter) CountSent(int)          {}
