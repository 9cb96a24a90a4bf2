package storage

import (
	"errors"
	"testing"

	"macronode/core/types"
)

// TestCheckFinds breaks each invariant.
func TestCheckFinds(t *testing.T) {
	k := holding{owner{1, Bucket("photos").ID}, Address{1}}
	for what, c := range map[string]struct {
		spoil func(p *Plane)
		want  error
	}{
		"nothing":                   {func(*Plane) {}, nil},
		"an object held once less":  {func(p *Plane) { p.replace(k.address, 1) }, ErrHoldings},
		"an object without holding": {func(p *Plane) { p.objects.Put(Address{9}, Object{}) }, ErrHoldings},
		"a holding without object":  {func(p *Plane) { p.holdings.Put(holding{k.owner, Address{9}}, nothing{}) }, ErrHoldings},
		"a usage too high":          {func(p *Plane) { p.setUsage(k.owner, Usage{99, 1}) }, ErrUsage},
		"a usage that is lost":      {func(p *Plane) { p.setUsage(k.owner, Usage{}) }, ErrUsage},
		"logical":                   {func(p *Plane) { p.logical.Bytes++ }, ErrTotals},
		"physical":                  {func(p *Plane) { p.physical.Objects-- }, ErrTotals},
	} {
		p := New(Limits{Objects: 3, Holdings: 4, Buckets: 6}, 1)
		p.hold(k, Object{Size: 10, File: 1})
		p.hold(holding{owner{2, Bucket("books").ID}, k.address}, Object{})
		c.spoil(p)
		if err := p.Check(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
}

// replace changes how many holdings an object counts.
func (p *Plane) replace(a Address, refs uint32) {
	place, _ := p.objects.Find(a)
	_, o := p.objects.Row(place)
	p.objects.Drop(place)
	o.refs = refs
	p.objects.Put(a, o)
}

// TestBytes: New takes the memory that Bytes says, and no step takes more.
func TestBytes(t *testing.T) {
	l := Limits{Objects: 1000, Holdings: 2000, Buckets: 50}
	if got := Bytes(l); got < 1000*48+2000*52 || got > 1<<20 {
		t.Errorf("%d bytes", got)
	}
	p := New(l, types.Hash64(1))
	k := holding{owner{1, Bucket("photos").ID}, Address{1}}
	if n := testing.AllocsPerRun(100, func() { p.hold(k, Object{Size: 1, File: 1}); p.drop(k) }); n > 0 {
		t.Errorf("%v allocations of a put and a delete", n)
	}
}
