package placement

// A State is what is known of the providers when parts of an object are to be written.
type State struct {
	Healthy Set                  // they have not failed
	Spare   [MaxProviders]uint64 // bytes that each can take
}

// Room returns the healthy providers that can take some bytes, at least one.
func (s *State) Room(bytes uint64) (room Set) {
	for i, spare := range s.Spare {
		if s.Healthy.Has(i) && spare >= max(1, bytes) {
			room = room.With(i)
		}
	}
	return room
}

// steps returns the providers that are chosen from, the best first. Each set has those before it: those with room, those with less room, those
// without any, which may have it soon, and the failed ones.
func (t *Table) steps(bytes uint64, s *State) [4]Set {
	return [...]Set{s.Room(bytes), s.Room(0), s.Healthy & t.All(), t.All()}
}

// Writers returns the providers that get a part of an upload, each of that many bytes. There are up to n with room for it, no two in one domain,
// and the preferred one first. If these are fewer than required, others follow until there are as many: a write into them may succeed, and
// says why it does not.
//
// Invariants:
//
//	W1  a provider without room, or a failed one, is chosen only if those with room are in fewer domains than are required
//	W2  as many are chosen as the domains with room allow, at most n, and as many as are required if there are so many domains
func (t *Table) Writers(key uint64, n, required int, bytes uint64, s *State) (o Order) {
	chosen := Set(0)
	for _, usable := range t.steps(bytes, s) {
		more := t.Choose(key, n-o.n, usable, chosen)
		for i := range more.Len() {
			o.add(more.At(i))
			chosen = chosen.With(more.At(i))
		}
		n = min(n, max(required, o.n))
	}
	return o
}

// ShardWriters is Writers for n shards of a new object. It returns the provider of each, or None. A shard is in the provider where it belongs if
// that has room.
func (t *Table) ShardWriters(key uint64, n, required int, bytes uint64, s *State) (at [MaxProviders]int) {
	var held [MaxProviders]Set
	chosen := 0
	for step, usable := range t.steps(bytes, s) {
		for shard, i := range t.Assign(key, n, &held, usable) {
			if i != None && held[shard] == 0 && (step == 0 || chosen < required) {
				held[shard] = held[shard].With(i)
				chosen++
			}
		}
	}
	for shard, in := range held {
		at[shard] = in.first()
	}
	return at
}
