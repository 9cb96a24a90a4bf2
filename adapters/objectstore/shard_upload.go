package objectstore

import (
	"slices"

	"macronode/core/coding"
	"macronode/core/digest"
	"macronode/core/placement"
)

// beginShards chooses the providers of the shards, if it has not done so. Full and failed ones are used if there are too few others.
func (u *Upload) beginShards() {
	if u.scheme.IsSet() || u.err != nil {
		return
	}
	s := u.store
	u.scheme = s.copies.Coding
	required, bytes := s.copies.requiredShards(), u.partBytes()
	var at [placement.MaxProviders]int
	s.choose(bytes, func(state *placement.State) (chosen placement.Set) {
		at = s.table.ShardWriters(uint64(u.file), u.scheme.Shards(), required, bytes, state)
		chosen = placement.SetOf(at)
		u.noteRoom(chosen, state.Room(bytes))
		return chosen
	})
	u.targets = make([]target, 0, u.scheme.Shards())
	for shard, i := range at {
		if i != placement.None {
			u.targets = append(u.targets, target{member: s.providers[i], shard: shard})
		}
	}
	if u.refuseAbsent(); u.err == nil && len(u.targets) < required { // there are fewer failure domains
		u.err = ErrUnavailable
	}
}

// flushStripe writes the stripe: each shard gets its group, or its block of parity.
func (u *Upload) flushStripe() {
	t, bytes := u.stripe, u.stripe.full*digest.Group+u.filled
	block, groups := min(digest.Group, bytes), (bytes+digest.Group-1)/digest.Group
	if !u.beginWrite(bytes, block) {
		return
	}
	for i := range int(t.scheme.Data) {
		length := min(digest.Group, max(0, bytes-i*digest.Group))
		if i < groups {
			u.tree.Add(t.group(i)[:length], u.addNode)
		}
		t.setData(i, length, block)
	}
	number := uint64(u.written) / t.scheme.Stripe()
	if slices.ContainsFunc(u.targets, func(t target) bool { return !u.scheme.IsData(t.shard) }) {
		u.err = t.encode(u.store.codec(t.scheme), uint64(u.file), number)
	}
	size := uint64(u.written) + uint64(bytes)
	u.each(func(_ *Upload, to *target) error {
		if _, length := t.scheme.At(size, number, to.shard); length > 0 {
			return to.write(t.memory[to.shard*shardMemory:][:length])
		}
		return nil
	})
	u.written += int64(bytes)
	t.full, u.filled, u.group = 0, 0, t.group(0)
}

// wanted returns how many parts an object has that lacks none.
func (s *Store) wanted(scheme coding.Scheme) int {
	if scheme.IsSet() {
		return scheme.Shards()
	}
	return s.copies.Count
}
