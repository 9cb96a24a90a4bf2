package sim

import (
	"errors"
	"fmt"

	"macronode/chaos/recall"
	"macronode/chaos/refmodel"
	"macronode/core/types"
	"macronode/models/history"
)

// past is a history and its journal: one operation per outcome, however many requests asked for
// it.
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

// itself is the client number of the node.
const itself = 1 << 20

// history makes the history of a testimony. Equal requests under one key with one outcome are one
// operation: called with the first that may have caused it, and returned with the first answer.
func (t *testimony) history(m *recall.Memory) (h past, err error) {
	asked := map[string][]*history.Op[ask, string]{}
	for _, r := range t.testified {
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
		if e.Tenant == storageTenant || e.Plane > types.PlaneWallet {
			continue // no client of the wallet asked for it
		}
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

// outcome returns the operation of a record.
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

// lost adds answered operations without a record.
func (t *testimony) lost(h *past, m *recall.Memory) error {
	places := make(map[types.Position]bool, len(m.Entries))
	for _, e := range m.Entries {
		places[e.Place] = true
	}
	for _, r := range t.testified {
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

// tells replaces an answer by its relevant part.
func tells(op *history.Op[ask, string]) error {
	if op.Return == history.Never {
		return nil
	}
	what, at, err := refmodel.Gist([]byte(op.Answer))
	if err == nil && at != op.Place {
		err = errors.New("its position differs from its record")
	}
	if err != nil {
		return fmt.Errorf("the answer at %v, %s: %w", op.Place, op.Answer, err)
	}
	op.Answer = what
	return nil
}
