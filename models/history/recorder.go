package history

import "macronode/core/types"

// A Recorder keeps what one client asked and was answered. Each client has its own; the
// ops of all of them together are a history.
type Recorder[Q any, A comparable] struct {
	client uint32
	ops    []Op[Q, A]
}

// NewRecorder is that of a client, whose number is nobody else's.
func NewRecorder[Q any, A comparable](client uint32) *Recorder[Q, A] {
	return &Recorder[Q, A]{client: client}
}

// Call notes what is about to be asked, before it leaves, and gives it a key. Numbers
// begin at 1.
func (r *Recorder[Q, A]) Call(now types.Instant, k Kind, ask Q) Key {
	key := Key{r.client, uint32(len(r.ops) + 1)}
	r.ops = append(r.ops, Op[Q, A]{Key: key, Call: now, Return: Never, Kind: k, Ask: ask})
	return key
}

// Return notes the answer, once it is there, and the place that it claims. Of one key the
// first answer counts.
func (r *Recorder[Q, A]) Return(k Key, now types.Instant, at types.Position, answer A) {
	types.Assert(k.Client == r.client && 0 < k.Number && int(k.Number) <= len(r.ops), "history: a key of nobody")
	if op := &r.ops[k.Number-1]; op.Return == Never {
		op.Return, op.Place, op.Answer = now, at, answer
	}
}

// Ops are all so far.
func (r *Recorder[Q, A]) Ops() []Op[Q, A] { return r.ops }
