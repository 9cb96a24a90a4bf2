package indexer

import (
	"macronode/core/event"
	"macronode/core/words"
)

// Look tells a *event.Request or a *event.Find what the index knows of its key and its
// refs, and how far it had come before it was asked. Where it is not asked, Upto is 0,
// which claims nothing: without a ref, and with no forgotten key in its time, the node
// does not need it.
func (x *Indexer) Look(in event.Event) error {
	if r, is := in.(*event.Request); is {
		return x.request(r)
	}
	find, is := in.(*event.Find)
	if !is {
		return nil
	}
	find.Upto, find.Seen = 0, event.Seen{}
	if !x.config.Aged() {
		return nil
	}
	return x.asked(func(v *view) { find.Seen, find.Upto = v.key(find.Tenant, find.Key.ID), v.mark.lsn })
}

func (x *Indexer) request(in *event.Request) error {
	refs := false
	in.Upto, in.Seen = 0, event.Seen{}
	for _, item := range in.Each {
		item.Used = words.TxID{}
		refs = refs || len(item.Ref.Text) > 0
	}
	if !refs && !x.config.Aged() {
		return nil
	}
	return x.asked(func(v *view) {
		in.Seen, in.Upto = v.key(in.Tenant, in.Key.ID), v.mark.lsn
		for _, item := range in.Each {
			if len(item.Ref.Text) > 0 {
				item.Used = v.ref(in.Tenant, item.Ref.ID)
			}
		}
	})
}

// Key is what became of an idempotency key that is in its time.
func (x *Indexer) Key(t words.Tenant, id words.ID) (s event.Seen, found bool, err error) {
	err = x.asked(func(v *view) { s = v.key(t, id) })
	return s, s.ID.Place().LSN > 0, err
}

// Ref is who has a ref.
func (x *Indexer) Ref(t words.Tenant, id words.ID) (used words.TxID, found bool, err error) {
	err = x.asked(func(v *view) { used = v.ref(t, id) })
	return used, used.Place().LSN > 0, err
}

func (x *Indexer) asked(do func(*view)) error {
	v, err := x.view()
	if err != nil {
		return err
	}
	do(v)
	return v.close()
}

// key looks through the tails, which have all buckets in one group, and then through the
// buckets whose keys may live, the youngest first.
func (v *view) key(t words.Tenant, id words.ID) event.Seen {
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
		return event.Seen{}
	case !s.read(value):
		v.bad(key)
		return event.Seen{}
	case s.at.Plus(x.config.TTL) <= v.mark.at:
		return event.Seen{}
	}
	return event.Seen{Asked: s.asked, ID: v.mark.lives.id(s.place), At: s.at}
}

func (v *view) ref(t words.Tenant, id words.ID) words.TxID {
	var room [64]byte
	key := refKey(room[:0], t, id)
	value, ok := v.get(key)
	if !ok {
		return words.TxID{}
	}
	r := values{b: value}
	p := r.place()
	if !r.whole() {
		v.bad(key)
		return words.TxID{}
	}
	return v.mark.lives.id(p)
}
