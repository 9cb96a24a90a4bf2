package sim

import (
	"errors"
	"fmt"

	"macronode/chaos/recall"
	"macronode/chaos/twin"
	"macronode/core/types"
	"macronode/models/history"
)

// past is a history and its journal: one op for each outcome, however often and by how many
// requests it was asked for.
type past struct {
	ops     []history.Op[ask, string]
	entries []history.Entry
}

func (h *past) journal(yield func(history.Entry) bool) {
	for _, e := range h.entries {
		if !yield(e) {
			return
		}
	}
}

// itself is the node among clients.
const itself = 1 << 20

// history makes one of what was said. The requests of one key are one op where they ask the
// same and came to one outcome: it was called with the first of them that may have brought
// it about, and returned with the first answer that told of it.
func (t *testimony) history(m *recall.Memory) (h past, err error) {
	asked := map[string][]*history.Op[ask, string]{}
	for _, r := range t.said {
		ops := r.Ops()
		for i := range ops {
			switch op := &ops[i]; {
			case op.Kind == history.Read:
				look := *op
				look.Place = m.Seen(types.DefaultTenant, op.Ask.seq)
				h.ops = append(h.ops, look)
			case !t.void[op.Key]:
				key := string(op.Ask.in.Key.Text)
				asked[key] = append(asked[key], op)
			}
		}
	}
	used := map[history.Key]bool{}
	for n, e := range m.Entries {
		at := history.Entry{Place: e.Place, Key: history.Key{Client: itself, Number: uint32(n + 1)}}
		if e.Key == "" {
			h.ops = append(h.ops, history.Op[ask, string]{Key: at.Key, Call: history.Always, Return: history.Never, Kind: history.Write, Ask: ask{over: e.Lapsed}})
		} else if op, ok := outcome(asked[e.Key], e, used); ok {
			for _, again := range asked[e.Key] {
				if again.Return < history.Never && again.Place == e.Place && again.Answer != op.Answer {
					return h, fmt.Errorf("the answer at %v was told as\n%s, and as\n%s", e.Place, op.Answer, again.Answer)
				}
			}
			if err := tells(&op); err != nil {
				return h, err
			}
			if op.Return == history.Never {
				t.untold++
			}
			used[op.Key], at.Key = true, op.Key
			h.ops = append(h.ops, op)
		}
		h.entries = append(h.entries, at)
	}
	return h, t.lost(&h, m)
}

// outcome is the op that a record is of, and that none before it was.
func outcome(asked []*history.Op[ask, string], e recall.Entry, used map[history.Key]bool) (of history.Op[ask, string], ok bool) {
	first := history.Never
	for _, op := range asked {
		answered := op.Return < history.Never
		if answered && op.Place != e.Place || used[op.Key] || op.Ask.in.Hash != e.Asked {
			continue
		}
		first = min(first, op.Call)
		if !ok || answered && op.Return < of.Return {
			of, ok = *op, true
		}
	}
	of.Call = first
	return of, ok
}

// lost adds what was told and has no record.
func (t *testimony) lost(h *past, m *recall.Memory) error {
	places := make(map[types.Position]bool, len(m.Entries))
	for _, e := range m.Entries {
		places[e.Place] = true
	}
	for _, r := range t.said {
		for _, op := range r.Ops() {
			if op.Kind == history.Write && op.Return < history.Never && !places[op.Place] {
				if err := tells(&op); err != nil {
					return err
				}
				h.ops = append(h.ops, op)
			}
		}
	}
	return nil
}

// tells puts what matters of an answer in its place.
func tells(op *history.Op[ask, string]) error {
	if op.Return == history.Never {
		return nil
	}
	what, at, err := twin.Gist([]byte(op.Answer))
	if err == nil && at != op.Place {
		err = errors.New("it stands elsewhere than it says")
	}
	if err != nil {
		return fmt.Errorf("the answer at %v, %s: %w", op.Place, op.Answer, err)
	}
	op.Answer = what
	return nil
}
