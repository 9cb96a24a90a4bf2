package placement

// A Move brings the copies or the shards of an object to the providers where an upload would write them now:
//
//	names of files ──► Missing: written ──────┐
//	               └─► Unsure: read as a whole ┴──► Confirm ──► Surplus: removed
//
// Of an object with shards, each shard has one place. Of one with copies, shard 0 stands for them all and has several places.
//
// Invariants:
//
//	V1  a part is surplus only when every place of its shard is confirmed, so no shard becomes unreadable, and no object loses a copy
//	V2  places are in different failure domains, and each is the place of one shard
//	V3  as few shards are written as these places allow: a shard stays in any of them that has it
//	V4  a shard without a place stays where it is
type Move struct {
	held, want, good [MaxProviders]Set // of each shard
}

// MoveCopies returns the move of an object that has n copies if it lacks none. held are the providers that have one.
func (t *Table) MoveCopies(key uint64, n int, held Set) (m Move) {
	m.held[0] = held
	places := t.Choose(key, n, t.All(), 0)
	for i := range places.Len() {
		m.want[0] = m.want[0].With(places.At(i))
	}
	return m
}

// MoveShards returns the move of an object with n shards. held are the providers that have each of them.
func (t *Table) MoveShards(key uint64, n int, held *[MaxProviders]Set) (m Move) {
	p := seating{places: t.Choose(key, n, t.All(), 0), held: held}
	there, missing := make([]int, 0, MaxProviders), make([]int, 0, MaxProviders)
	for shard := range n {
		if held[shard] == 0 {
			missing = append(missing, shard)
			continue
		}
		there = append(there, shard)
		seen := Set(0)
		p.keep(shard, &seen)
	}
	p.putAll(there)
	p.putAll(missing)
	for i := range t.n {
		if p.taken.Has(i) {
			m.want[p.shards[i]] = Set(0).With(i)
		}
	}
	m.held = *held
	return m
}

// seating gives each shard of an object a place.
type seating struct {
	places Order
	held   *[MaxProviders]Set
	taken  Set                 // places that have a shard
	shards [MaxProviders]uint8 // of each place that is taken
}

func (p *seating) put(shard, i int) { p.taken, p.shards[i] = p.taken.With(i), uint8(shard) }

// isPlaced reports whether a shard has a place.
func (p *seating) isPlaced(shard int) bool {
	for i := range p.shards {
		if p.taken.Has(i) && int(p.shards[i]) == shard {
			return true
		}
	}
	return false
}

// keep gives a shard a place that has it. If another shard has that place, and is in a further one as well, it goes there: so as many
// shards stay as possible. seen are the places that were tried.
func (p *seating) keep(shard int, seen *Set) bool {
	for n := range p.places.Len() {
		i := p.places.At(n)
		if !p.held[shard].Has(i) || seen.Has(i) {
			continue
		}
		*seen = seen.With(i)
		if !p.taken.Has(i) || p.keep(int(p.shards[i]), seen) {
			p.put(shard, i)
			return true
		}
	}
	return false
}

// putAll gives shards that have no place a free one: the one where an upload would write the shard, else the first one.
func (p *seating) putAll(shards []int) {
	for _, shard := range shards {
		if shard < p.places.Len() && !p.isPlaced(shard) && !p.taken.Has(p.places.At(shard)) {
			p.put(shard, p.places.At(shard))
		}
	}
	for _, shard := range shards {
		for n := 0; n < p.places.Len() && !p.isPlaced(shard); n++ {
			if i := p.places.At(n); !p.taken.Has(i) {
				p.put(shard, i)
			}
		}
	}
}

// IsNeeded reports whether a part is missing in its place, or one is elsewhere.
func (m *Move) IsNeeded() bool {
	for shard, want := range m.want {
		if want != 0 && want != m.held[shard] {
			return true
		}
	}
	return false
}

// Places returns the providers that are to have a shard. There is none if the object has more shards than there are failure domains.
func (m *Move) Places(shard int) Set { return m.want[shard] }

// Missing returns the places of a shard that have no file of it.
func (m *Move) Missing(shard int) Set { return m.want[shard] &^ m.held[shard] }

// Unsure returns the places of a shard that have a file of it, which is to be read before another one is removed.
func (m *Move) Unsure(shard int) Set {
	if want := m.want[shard]; want != 0 && m.held[shard]&^want != 0 {
		return want & m.held[shard] &^ m.good[shard]
	}
	return 0
}

// Confirm notes that a provider has a durable file of a shard, which was read as a whole just now.
func (m *Move) Confirm(shard, i int) { m.good[shard] = m.good[shard].With(i) }

// Surplus returns the providers whose files of a shard may be removed now.
func (m *Move) Surplus(shard int) Set {
	if want := m.want[shard]; want != 0 && want&^m.good[shard] == 0 {
		return m.held[shard] &^ want
	}
	return 0
}
