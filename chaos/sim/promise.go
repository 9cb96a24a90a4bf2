package sim

import (
	"bytes"

	"macronode/core/event"
	"macronode/core/state"
	"macronode/core/types"
)

// promises are all answers, and all durable frames. No later recovery may contradict them.
type promises struct {
	hashes  map[types.LSN]types.Hash64 // of the durable state, after each frame
	durable types.LSN                  // last durable frame
	records int                        // of the last frame: 0 for a heartbeat
	saw     map[types.Ticket]types.LSN // the last frame at its decision: its reply may show it
	answers map[string][]answer        // all answers, by key
	keys    []string                   // of answers, in the order of the first answer
	left    map[types.Ticket]bool      // cancelled
	indexed types.LSN                  // reported to the node
}

type answer struct {
	place types.Position
	asked types.RequestHash
	bytes []byte
}

func (p *promises) begin(empty state.State) {
	p.hashes = map[types.LSN]types.Hash64{0: empty.Hash()}
	p.saw, p.answers, p.left = map[types.Ticket]types.LSN{}, map[string][]answer{}, map[types.Ticket]bool{}
}

// appended records the state after a frame.
func (p *promises) appended(lsn types.LSN, h types.Hash64, records int) {
	p.hashes[lsn], p.records = h, records
}

func (p *promises) decided(t types.Ticket, last types.LSN) { p.saw[t] = last }

// answered records an answer. A replay has the same bytes as the first answer that was delivered.
func (p *promises) answered(w *World, want *event.Request, r event.Reply, got []byte) {
	key := string(want.Key.Text)
	for _, a := range p.answers[key] {
		if a.place == r.Position {
			if !bytes.Equal(a.bytes, got) || a.asked != want.Hash {
				w.fail("replay-differs", "%s was told\n%s, now\n%s", key, a.bytes, got)
			}
			return
		}
		if w.audit.ats[a.place.LSN].Add(limits().Idempotency.TTL) > w.audit.ats[r.Position.LSN] {
			w.fail("two-outcomes", "%s has two outcomes in its time: %v and %v", key, a.place, r.Position)
		}
	}
	if len(p.answers[key]) == 0 {
		p.keys = append(p.keys, key)
	}
	p.answers[key] = append(p.answers[key], answer{r.Position, want.Hash, got})
}

// hold checks, after a recovery to last, that all answers are still there.
func (p *promises) hold(w *World, last types.LSN) {
	if last < p.durable {
		w.fail("durable-lost", "recovered %v, durable was %v", last, p.durable)
	}
	for _, key := range p.keys { // in order: reading is a choice of the disk too
		for _, a := range p.answers[key] {
			if got, _, _, err := w.fol.Render(nil, a.place); err != nil || !bytes.Equal(got, a.bytes) {
				w.fail("answer-lost", "%s was told\n%s, now\n%s", key, a.bytes, got)
			}
		}
	}
	for lsn := range p.hashes {
		if lsn > last {
			delete(p.hashes, lsn)
		}
	}
	p.durable = last
}
