package history

import "macronode/core/types"

// A Recorder records the calls and answers of one client. The operations of all clients together
// are a history.
type Recorder[Q any, A comparable] struct {
	client uint32
	ops    []Op[Q, A]
}

// NewRecorder returns the recorder of a client with a unique number.
func NewRecorder[Q any, A comparable](client uint32) *Recorder[Q, A] {
	return &Recorder[Q, A]{client: client}
}

// Call records a call before it is sent, and returns its key. Numbers start at 1.
func (r *Recorder[Q, A]) Call(now types.Instant, k Kind, ask Q) Key {
	key := Key{r.client, uint32(len(r.ops) + 1)}
	r.ops = append(r.ops, Op[Q, A]{Key: key, Call: now, Return: Never, Kind: k, Ask: ask})
	return key
}

// Return records an answer and the position that it claims. The first answer of a key counts.
func (r *Recorder[Q, A]) Return(k Key, now types.Instant, at types.Position, answer A) {
	types.Assert(k.Client == r.client && 0 < k.Number && int(k.Number) <= len(r.ops), "history: an unknown key")
	if op := &r.ops[k.Number-1]; op.Return == Never {
		op.Return, op.Place, op.Answer = now, at, answer
	}
}

// Ops returns all operations so far.
func (r *Recorder[Q, A]) Ops() []Op[Q, A] { return r.ops }
