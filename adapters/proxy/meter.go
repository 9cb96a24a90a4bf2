package proxy

import "macronode/core/event"

// A Meter limits how many bytes of the bodies of a request are forwarded. If a ResponseWriter
// implements it, it is asked before each part of both bodies, concurrently. Otherwise there is no
// limit.
type Meter interface {
	// TryTake takes n bytes if they may be forwarded at once. Take takes 1 to n bytes, and waits until
	// they may be forwarded, or returns the problem. It takes fewer than n if the rest must wait.
	TryTake(n int) bool
	Take(n int) (took int, why event.Problem)
	// Count counts bytes of the client that were forwarded, CountSent those of the upstream that were
	// not written to the ResponseWriter.
	Count(n int)
	CountSent(n int)
}

// LosesPermit is a ResponseWriter whose request may have to end because it has lost its permit.
type LosesPermit interface {
	// OnLostPermit sets whose LosePermit is called then, once, perhaps at once.
	OnLostPermit(holder interface{ LosePermit(why event.RejectReason) })
}

// noMeter has no limit.
type noMeter struct{}

func (noMeter) TryTake(int) bool                { return true }
func (noMeter) Take(n int) (int, event.Problem) { return n, event.None }
func (noMeter) Count(int)                       {}
func (noMeter) CountSent(int)                   {}
