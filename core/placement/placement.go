// Package placement decides which providers store the copies of a file: weighted rendezvous hashing
// over failure domains.
//
//	key, provider ──► score ──► order of providers ──► the first ones, each in a domain of its own
//
// It is a function of its arguments alone, so no table of places is kept or refreshed. If a provider is added, a file keeps its
// places, or exchanges one of them for the new provider.
package placement

import (
	"math/bits"

	"macronode/core/digest"
	"macronode/core/types"
)

// Limits of a Table.
const (
	MaxProviders = 16
	MaxWeight    = 1 << 20
)

// A Provider is a place for copies.
type Provider struct {
	Name   string // no two are the same; the hash of it decides
	Domain string // providers in one domain may fail together
	Weight uint32 // its share of the files, from 1 to MaxWeight
}

// A Set is a set of providers: bit i is the i-th of the table.
type Set uint32

// Has reports whether i is in s.
func (s Set) Has(i int) bool { return s&(1<<i) != 0 }

// With returns s and i.
func (s Set) With(i int) Set { return s | 1<<i }

// Len returns the number of providers in s.
func (s Set) Len() int { return bits.OnesCount32(uint32(s)) }

// first returns the first provider in s, or None.
func (s Set) first() int {
	if s == 0 {
		return None
	}
	return bits.TrailingZeros32(uint32(s))
}

// An Order is a sequence of providers. Its zero value is empty.
type Order struct {
	list [MaxProviders]uint8
	n    int
}

// Len returns the length of o.
func (o *Order) Len() int { return o.n }

// At returns the i-th provider.
func (o *Order) At(i int) int { return int(o.list[i]) }

// Last returns o with provider i moved to its end, if it is in o.
func (o *Order) Last(i int) (moved Order) {
	found := false
	for at := range o.n {
		if o.At(at) == i {
			found = true
		} else {
			moved.add(o.At(at))
		}
	}
	if found {
		moved.add(i)
	}
	return moved
}

func (o *Order) add(i int) {
	o.list[o.n] = uint8(i)
	o.n++
}

// A Table is a list of providers.
type Table struct {
	all  [MaxProviders]provider
	n    int
	doms int
}

type provider struct {
	seed   types.Hash64
	weight uint64
	domain int // the number of the domain
}

// New returns the table of 1 to MaxProviders providers.
func New(list []Provider) (t Table) {
	types.Assert(len(list) > 0 && len(list) <= MaxProviders, "placement: too many providers, or none")
	for i, p := range list {
		types.Assert(p.Weight > 0 && p.Weight <= MaxWeight, "placement: a weight out of range")
		name := digest.Name([]byte(p.Name))
		t.all[i] = provider{seed: name.HashInto(0), weight: uint64(p.Weight), domain: t.doms}
		for j := range i {
			if list[j].Domain == p.Domain {
				t.all[i].domain = t.all[j].domain
				break
			}
		}
		t.doms = max(t.doms, t.all[i].domain+1)
	}
	t.n = len(list)
	return t
}

// Len returns the number of providers, Domains that of failure domains.
func (t *Table) Len() int     { return t.n }
func (t *Table) Domains() int { return t.doms }

// All returns the set of all providers.
func (t *Table) All() Set { return 1<<t.n - 1 }

// Spread returns in how many domains the providers of s are.
func (t *Table) Spread(s Set) int { return t.domains(s).Len() }

// Choose returns up to n of the usable providers for a key, the preferred one first. No two are in one domain, and none is in the
// domain of a provider of taken.
func (t *Table) Choose(key uint64, n int, usable, taken Set) (o Order) {
	ranked, domains := t.rank(key), t.domains(taken)
	for r := 0; r < ranked.n && o.n < n; r++ {
		i := ranked.At(r)
		if usable.Has(i) && !domains.Has(t.all[i].domain) {
			o.add(i)
			domains = domains.With(t.all[i].domain)
		}
	}
	return o
}

// None is the provider of a shard that has none.
const None = -1

// Assign returns the provider of each of n shards of a file, or None. held are the providers that have each shard; a shard that a usable one
// has stays there. Each other shard gets the provider that it has if all are usable, else another usable one, if there is one: no two
// shards are in one domain. If every usable provider has a shard, it goes to one of a shard that another one has as well.
func (t *Table) Assign(key uint64, n int, held *[MaxProviders]Set, usable Set) (at [MaxProviders]int) {
	placed, taken := t.Choose(key, n, t.All(), 0), Set(0)
	for shard := range at {
		at[shard] = None
		if shard < n {
			taken |= held[shard] & usable
		}
	}
	for shard := range n {
		if has := held[shard] & usable; has != 0 {
			at[shard] = has.first()
		} else if shard < placed.Len() {
			if i := placed.At(shard); usable.Has(i) && !t.domains(taken).Has(t.all[i].domain) {
				at[shard], taken = i, taken.With(i)
			}
		}
	}
	for shard := range n {
		if at[shard] != None {
			continue
		}
		other := t.Choose(key, 1, usable, taken)
		if other.Len() == 0 {
			other = t.Choose(key, 1, usable, SetOf(at))
		}
		if other.Len() > 0 {
			at[shard], taken = other.At(0), taken.With(other.At(0))
		}
	}
	return at
}

// SetOf returns the providers of some shards.
func SetOf(at [MaxProviders]int) (s Set) {
	for _, i := range at {
		if i != None {
			s = s.With(i)
		}
	}
	return s
}

// domains returns the domains of the providers of s.
func (t *Table) domains(s Set) (domains Set) {
	for i := range t.n {
		if s.Has(i) {
			domains = domains.With(t.all[i].domain)
		}
	}
	return domains
}

// Order returns all providers in the order in which a read tries them: those of first, then those of second, then the others; of each
// set, those that Choose prefers come first.
func (t *Table) Order(key uint64, first, second Set) (o Order) {
	if t.n == 1 {
		o.add(0)
		return o
	}
	ranked, seen := t.rank(key), Set(0)
	for _, of := range [...]Set{first, second &^ first, t.All() &^ (first | second)} {
		best := Order{}
		domains := Set(0)
		for r := range ranked.n {
			if i := ranked.At(r); of.Has(i) && !domains.Has(t.all[i].domain) {
				best.add(i)
				domains = domains.With(t.all[i].domain)
			}
		}
		for r := range best.n {
			o.add(best.At(r))
			seen = seen.With(best.At(r))
		}
		for r := range ranked.n {
			if i := ranked.At(r); of.Has(i) && !seen.Has(i) {
				o.add(i)
			}
		}
	}
	return o
}

// rank returns all providers by their scores.
func (t *Table) rank(key uint64) (o Order) {
	var costs [MaxProviders]uint64
	for i := range t.n {
		costs[i] = cost(uint64(t.all[i].seed.Mix(key).Mix(uint64(t.all[i].seed))))
		at := o.n
		for at > 0 && t.before(&costs, i, o.At(at-1)) {
			o.list[at] = o.list[at-1]
			at--
		}
		o.list[at] = uint8(i)
		o.n++
	}
	return o
}

// before reports whether i has a better score than j. The score is an exponential random number whose rate is the weight, so the
// chance of the best score is the share of the weight.
func (t *Table) before(costs *[MaxProviders]uint64, i, j int) bool {
	a, b := costs[i]*t.all[j].weight, costs[j]*t.all[i].weight
	return a < b || a == b && t.all[i].seed < t.all[j].seed
}

const fraction = 32 // bits of a cost behind the point

// cost returns -log2 of u/2^64 as a number with 32 bits behind the point. It is computed with integers, so that all machines agree.
func cost(u uint64) uint64 {
	u |= 1
	n := bits.Len64(u)
	mantissa, log := u<<(64-n), uint64(n-1)
	for range fraction {
		hi, lo := bits.Mul64(mantissa, mantissa)
		log <<= 1
		if hi>>63 == 1 {
			mantissa, log = hi, log|1
		} else {
			mantissa = hi<<1 | lo>>63
		}
	}
	return 64<<fraction - log
}
