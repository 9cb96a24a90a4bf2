package index

import (
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/types"
)

// Look fills in with what the index has of its idempotency key and its refs, and with the LSN that the
// index had reached before. If the lookup is not needed (no ref, and no evicted key that is still
// valid), the LSN is 0.
func (x *Indexer) Look(in event.Event) error {
	if r, is := in.(*event.Request); is {
		return x.request(r)
	}
	if find, is := in.(*event.FindOutcome); is {
		return x.prior(find.Tenant, find.Key.ID, &find.Prior, &find.IndexedTo)
	}
	if execute, is := in.(*event.Execute); is {
		if c, is := execute.Command.(command.WithRefs); is {
			return x.refs(c)
		}
		h := execute.Command.Head()
		return x.prior(h.Tenant, h.Key.ID, &h.Prior, &h.IndexedTo)
	}
	return nil
}

// refs looks up the refs of a command without an idempotency key.
func (x *Indexer) refs(c command.WithRefs) error {
	h := c.Head()
	return x.asked(func(v *view) {
		h.IndexedTo = v.mark.lsn
		c.Refs(func(ref types.NameHash, prior *command.PriorOutcome) { *prior = v.ref(h.Tenant, ref) })
	})
}

// prior looks up an idempotency key if the window may have evicted it.
func (x *Indexer) prior(t types.Tenant, key types.NameHash, prior *command.PriorOutcome, to *types.LSN) error {
	*to, *prior = 0, command.PriorOutcome{}
	if !x.config.Aged() {
		return nil
	}
	return x.asked(func(v *view) { *prior, *to = v.key(t, key), v.mark.lsn })
}

func (x *Indexer) request(in *event.Request) error {
	refs := false
	in.IndexedTo, in.Prior = 0, command.PriorOutcome{}
	for _, item := range in.Each {
		item.PriorRef = types.TxID{}
		refs = refs || len(item.Ref.Text) > 0
	}
	if !refs && !x.config.Aged() {
		return nil
	}
	return x.asked(func(v *view) {
		in.Prior, in.IndexedTo = v.key(in.Tenant, in.Key.ID), v.mark.lsn
		for _, item := range in.Each {
			if len(item.Ref.Text) > 0 {
				item.PriorRef = v.ref(in.Tenant, item.Ref.ID).ID
			}
		}
	})
}

// Key returns the outcome of an idempotency key within its TTL.
func (x *Indexer) Key(t types.Tenant, id types.NameHash) (s command.PriorOutcome, found bool, err error) {
	err = x.asked(func(v *view) { s = v.key(t, id) })
	return s, s.ID.Position().LSN > 0, err
}

// Ref returns the record of a ref.
func (x *Indexer) Ref(t types.Tenant, id types.NameHash) (used types.TxID, found bool, err error) {
	err = x.asked(func(v *view) { used = v.ref(t, id).ID })
	return used, used.Position().LSN > 0, err
}

func (x *Indexer) asked(do func(*view)) error {
	v, err := x.view()
	if err != nil {
		return err
	}
	do(v)
	return v.close()
}

// key searches the tails, which have all buckets in one group, then the buckets within the TTL,
// the youngest first.
func (v *view) key(t types.Tenant, id types.NameHash) command.PriorOutcome {
	x := v.index
	at := uint64(v.mark.at)
	young, old := at/x.width, max(v.mark.dropped, uint64(v.mark.first)/x.width)
	if at >= x.ttl {
		old = max(old, (at-x.ttl)/x.width)
	}
	var room [64]byte
	key := keyKey(room[:0], young, t, id)
	value, ok := v.recent(key)
	for bucket := young + 1; !ok && bucket > old && v.err == nil; bucket-- {
		key = keyKey(room[:0], bucket-1, t, id)
		value, ok = v.kept(key)
	}
	var s seen
	switch {
	case !ok:
		return command.PriorOutcome{}
	case !s.read(value):
		v.bad(key)
		return command.PriorOutcome{}
	case s.at.Add(x.config.TTL) <= v.mark.at:
		return command.PriorOutcome{}
	}
	return command.PriorOutcome{Hash: s.asked, ID: v.mark.lives.id(s.place), At: s.at}
}

// ref returns what used a ref: the position, and the digest of the content if that is an event.
func (v *view) ref(t types.Tenant, id types.NameHash) (s command.PriorOutcome) {
	var room [64]byte
	key := refKey(room[:0], t, id)
	value, ok := v.get(key)
	if !ok {
		return s
	}
	r := values{b: value}
	p := r.place()
	if len(r.b) > 0 {
		copy(s.Hash[:], r.take(len(s.Hash)))
	}
	if !r.whole() {
		v.bad(key)
		return command.PriorOutcome{}
	}
	s.ID = v.mark.lives.id(p)
	return s
}
