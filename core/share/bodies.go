package share

import "macronode/core/types"

// MinWindow is the window that a receiver leaves open in any case for a connection without bodies: half of what a connection of HTTP/2 begins
// with. Many receivers open the window only after they have read half of it.
const MinWindow = 32 << 10

// UnknownLength is the length of a body that does not announce one.
const UnknownLength = -1

// Bodies are the request bodies in progress on one connection, which share the flow-control window that its receiver opens. A receiver
// opens the window for what it has read. So a body that it does not read can fill the window, and then all others wait. Therefore a
// connection has bodies of one of two kinds:
//
//	small  at most MinWindow bytes, of any flow; the window is open for all of them, so none waits for another one
//	long   any other length, also an unknown one, of one flow: they can delay only each other
//
// Invariants:
//
//	B1  the window is open for what is left to send of all small bodies
//	B2  all long bodies are of one flow
//	B3  there are no small bodies while there are long ones
type Bodies struct {
	small    int
	reserved int64 // bytes of the small bodies, also of what was sent of them
	long     int
	flow     types.Flow // of the long bodies, if there are any
}

// IsSmall reports whether a body of a length is small.
func IsSmall(length int64) bool { return length >= 0 && length <= MinWindow }

// Fits reports whether a body of a flow may begin while the receiver's window is open for that many bytes.
func (b *Bodies) Fits(flow types.Flow, length, window int64) bool {
	if IsSmall(length) {
		return b.long == 0 && b.reserved+length <= window
	}
	return b.small == 0 && (b.long == 0 || b.flow == flow) && window >= MinWindow
}

// Begin begins a body that fits.
func (b *Bodies) Begin(flow types.Flow, length int64) {
	if IsSmall(length) {
		b.small++
		b.reserved += length
		return
	}
	b.long++
	b.flow = flow
}

// End ends a body that has begun: nothing more of it is sent.
func (b *Bodies) End(length int64) {
	if IsSmall(length) {
		b.small--
		b.reserved -= length
		return
	}
	b.long--
}

// InProgress returns how many bodies there are.
func (b *Bodies) InProgress() int { return b.small + b.long }
