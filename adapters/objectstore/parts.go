package objectstore

import (
	"slices"
	"strings"

	"macronode/core/coding"
	"macronode/core/placement"
	"macronode/core/storage"
)

// A Part is what a provider has of an object: a copy or a shard.
type Part struct {
	Provider int
	Scheme   coding.Scheme // zero: a copy
	Shard    int
}

// Size returns how many bytes of an object p has.
func (p Part) Size(o storage.Stored) uint64 {
	if p.Scheme.IsSet() {
		return p.Scheme.ShardLen(o.Size, p.Shard)
	}
	return o.Size
}

// Parts are the parts of an object that some providers have.
type Parts struct {
	Scheme coding.Scheme // zero: the object has copies
	table  *placement.Table
	in     [coding.MaxShards]placement.Set // the providers of each shard, or in[0] of the copies
}

// AreEnough reports whether the object can be read from p.
func (p *Parts) AreEnough() bool { return p.Count() >= p.Needed() }

// Needed returns how many parts an object needs to be read.
func (p *Parts) Needed() int { return max(1, int(p.Scheme.Data)) }

// Count returns how many different shards there are, or how many failure domains have a copy.
func (p *Parts) Count() (n int) {
	if !p.Scheme.IsSet() && p.table != nil {
		return p.table.Spread(p.in[0])
	}
	for _, has := range p.in {
		n += min(1, has.Len())
	}
	return n
}

// List returns all parts, those of each provider together.
func (p *Parts) List() (all []Part) {
	for i := range placement.MaxProviders {
		for shard := range p.in {
			if p.in[shard].Has(i) {
				all = append(all, Part{i, p.Scheme, shard})
			}
		}
	}
	return all
}

// Within returns the parts in some providers.
func (p *Parts) Within(some placement.Set) Parts {
	is := *p
	for shard := range is.in {
		is.in[shard] &= some
	}
	return is
}

// Add adds a part of the same scheme.
func (p *Parts) Add(part Part) { p.in[part.Shard] = p.in[part.Shard].With(part.Provider) }

// Join adds the parts of q.
func (p *Parts) Join(q *Parts) {
	for shard := range p.in {
		p.in[shard] |= q.in[shard]
	}
}

// Providers returns the providers that have a part.
func (p *Parts) Providers() (set placement.Set) {
	for _, has := range p.in {
		set |= has
	}
	return set
}

// NewParts returns parts of one scheme.
func (s *Store) NewParts(scheme coding.Scheme, list ...Part) Parts {
	p := Parts{Scheme: scheme, table: &s.table}
	for _, part := range list {
		p.Add(part)
	}
	return p
}

// Wanted returns how many parts an object with parts like those of p has when it lacks none.
func (s *Store) Wanted(p *Parts) int { return s.wanted(p.Scheme) }

// Missing returns the parts that an object lacks which has p, each with a usable provider for it. If there are too few, some have none.
func (s *Store) Missing(o storage.Stored, p *Parts, usable placement.Set) (list []Part) {
	if !p.Scheme.IsSet() {
		has := p.in[0]
		missing := s.table.Choose(uint64(o.File), max(0, s.copies.Count-s.table.Spread(has)), usable&^has, has)
		for i := range missing.Len() {
			list = append(list, Part{Provider: missing.At(i)})
		}
		return list
	}
	for shard, i := range s.table.Assign(uint64(o.File), p.Scheme.Shards(), &p.in, usable|p.Providers()) {
		if i != placement.None && p.in[shard] == 0 && usable.Has(i) {
			list = append(list, Part{i, p.Scheme, shard})
		}
	}
	return list
}

// Parts returns the parts that the names of files say an object has. A restore that was interrupted may leave parts of two schemes: those
// are returned that the object can be read from.
func (f Files) Parts(o storage.Stored) Parts { return bestOf(f.partsOf(o)) }

// bestOf returns the parts of one scheme that an object can be read from, else those of which most are there.
func bestOf(all []Parts) (best Parts) {
	for i := range all {
		if i == 0 || !best.AreEnough() && (all[i].AreEnough() || all[i].Count() > best.Count()) {
			best = all[i]
		}
	}
	return best
}

// partsOf returns the parts of an object by their schemes, first the copies.
func (f Files) partsOf(o storage.Stored) []Parts {
	all := make([]Parts, 1, 2)
	base := name(o.Address, o.File)
	for i, names := range f.Names {
		for _, l := range layouts(o.Size) {
			if _, ok := slices.BinarySearch(names, base+l.suffix()); ok {
				all[0].Add(Part{Provider: i})
			}
		}
		at, _ := slices.BinarySearch(names, base+shardMark)
		for ; at < len(names) && strings.HasPrefix(names[at], base+shardMark); at++ {
			_, scheme, shard, ok := cutShard(names[at])
			if !ok || !scheme.Applies(o.Size) {
				continue
			}
			of := slices.IndexFunc(all, func(p Parts) bool { return p.Scheme == scheme })
			if of < 0 {
				of = len(all)
				all = append(all, Parts{Scheme: scheme})
			}
			all[of].Add(Part{i, scheme, shard})
		}
	}
	for i := range all {
		all[i].table = f.table
	}
	return all
}
