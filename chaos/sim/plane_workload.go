package sim

import (
	"macronode/chaos/world"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/state"
)

// A planeWorkload has the clients of a plane in a run, beside those of money, and checks what they see. It lives through
// all processes of the run.
type planeWorkload interface {
	name() string
	// move is a move of one of the clients.
	move(w *World)
	// arrivals returns the events that clients have submitted; the world takes them from it.
	arrivals() *[]event.Event
	// stepped checks a step of the node, and the body of its frame; no body: it made none.
	stepped(w *World, in event.Event, body []byte)
	// replied handles a reply to a client; false: it is of another client.
	replied(w *World, r event.Reply) bool
	// recovers compares a recovered state, and the frames that it comes from, with all that was acknowledged.
	recovers(w *World, st *state.State, frames []record.Sealed)
	// crashed forgets what the last process had not answered.
	crashed(w *World)
	// insist submits what clients still want, without new requests.
	insist(w *World)
	// busy reports whether a client wants something, unanswered how many submitted requests have no reply.
	busy() bool
	unanswered() int
	// certify compares the durable frames and the state at the end of a run with the acknowledged outcomes.
	certify(w *World)
}

// planeWorkloads are those that a run may have, with the site that decides it. Each adds its plane to the limits of the
// world. Those of storage and accounting have sites of their own, because logs contain them.
var planeWorkloads = [...]struct {
	site  string
	begin func(*World) planeWorkload
}{
	{"odds/counter", beginCounter}, // examples/counter
}

// workloadSeeds is the number of seeds of which one has a plane workload.
const workloadSeeds = 16

// givenWorkloads gives a seed its plane workloads. Such a seed has neither storage nor usage.
func givenWorkloads(c world.Chooser, hash uint64) world.Chooser {
	for i, p := range planeWorkloads {
		has := 0
		if hash%workloadSeeds == uint64(workloadSeeds-1-i) {
			has = 1
		}
		c = world.Given(c, p.site, has)
	}
	return c
}

// beginWorkloads begins the workloads of a run.
func (w *World) beginWorkloads() {
	for _, p := range planeWorkloads {
		if w.c.Choose(p.site, 2) == 1 {
			w.planes = append(w.planes, p.begin(w))
			w.config.State = w.limits
			w.promise.begin(state.New(w.limits, 0))
		}
	}
}
