package node_test

import (
	"testing"

	"macronode/core/event"
	"macronode/core/types"
)

// holdReplies makes the node hold replies that are not durable, and returns their tickets.
func (r *rich) holdReplies(many int) []types.Ticket {
	tickets := make([]types.Ticket, many)
	for i := range tickets {
		if r.keys%64 == 63 {
			r.keys++ // step would flush
		}
		r.transfer()
		tickets[i] = r.req.Ticket
	}
	return tickets
}

// TestCancelIsOfItsTicketAlone: of the held replies, those of cancelled tickets are not released and all others
// are, in any order.
func TestCancelIsOfItsTicketAlone(t *testing.T) {
	const held = 60
	r := newRich(2, 1<<10)
	r.settle()
	tickets := r.holdReplies(held)
	for i := held - 1; i >= 0; i -= 2 {
		for range 2 { // the second changes nothing
			r.node.Step(r.now, event.Cancel{Ticket: tickets[i]}, &r.out)
		}
		if err := r.node.Check(); err != nil {
			t.Fatal(err)
		}
	}
	r.out.Reset()
	r.settle()
	if len(r.out.Replies) != held/2 {
		t.Fatalf("%d replies are released, %d of %d were cancelled", len(r.out.Replies), held/2, held)
	}
	for i, reply := range r.out.Replies {
		if reply.Ticket != tickets[2*i] {
			t.Errorf("reply %d is to ticket %d, want %d", i, reply.Ticket, tickets[2*i])
		}
	}
	r.node.Step(r.now, event.Cancel{Ticket: tickets[0]}, &r.out) // after its release it changes nothing
	if err := r.node.Check(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkCancelAll: 500 replies are held, and all clients disconnect, the last first.
func BenchmarkCancelAll(b *testing.B) {
	const held = 500
	r := newRich(2, 1<<21)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		r.settle()
		tickets := r.holdReplies(held)
		b.StartTimer()
		for i := held - 1; i >= 0; i-- {
			r.node.Step(r.now, event.Cancel{Ticket: tickets[i]}, &r.out)
		}
	}
}
