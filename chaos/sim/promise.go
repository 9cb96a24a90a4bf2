package sim

import (
	"bytes"

	"macronode/core/event"
	"macronode/core/state"
	"macronode/core/types"
)

// promises are all that anybody was ever told, and what the disk was heard to say.
// No later recovery may contradict them.
type promises struct {
	hashes  map[types.LSN]types.Hash64 // of what outlives the process, after each frame
	durable types.LSN                  // what the disk promised
	records int                        // of the last frame: 0 for a time frame
	saw     map[types.Ticket]types.LSN // the last frame when it was decided: what its reply may tell of
	answers map[string][]answer        // by key, every one ever given
	keys    []string                   // of answers, in the order of their first ones
	left    map[types.Ticket]bool      // nobody waits for these any more
	indexed types.LSN                  // the node was ever told
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

// appended notes the state after a frame.
func (p *promises) appended(lsn types.LSN, h types.Hash64, records int) {
	p.hashes[lsn], p.records = h, records
}

func (p *promises) decided(t types.Ticket, last types.LSN) { p.saw[t] = last }

// told notes an answer. A replay is the same bytes as an answer before it, or the
// first that came through.
func (p *promises) told(w *World, want *event.Request, r event.Reply, got []byte) {
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
	for _, key := range p.keys { // in order: reading is what a disk does too
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
