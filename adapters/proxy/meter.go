package proxy

import "macronode/core/event"

// A Meter says when parts of the bodies of a request may go on. A ResponseWriter that is one
// is asked before each, of both bodies, and from both sides at once; one that is none lets
// all go.
type Meter interface {
	// May takes n bytes that may go on at once; Pass waits until they may, or says why they
	// may not.
	May(n int) bool
	Pass(n int) event.Problem
	// Took tells of bytes that went and that were not written to the ResponseWriter.
	Took(n int)
}

// free is the meter of who has none.
type free struct{}

func (free) May(int) bool           { return true }
func (free) Pass(int) event.Problem { return event.None }
func (free) Took(int)               {}
