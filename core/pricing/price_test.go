package pricing_test

import (
	"errors"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/accounting"
	"macronode/core/pricing"
	"macronode/core/types"
	reference "macronode/models/pricing"
)

func large(a types.Amount) *big.Int {
	n := new(big.Int).Lsh(new(big.Int).SetUint64(a.Hi), 64)
	return n.Or(n, new(big.Int).SetUint64(a.Lo))
}

func units(n uint64) pricing.Quantity {
	return pricing.Quantity{Units: types.MinorUnits(n), Windows: 1}
}

// anyMicros draws small, round and large prices.
func anyMicros() *rapid.Generator[pricing.Micros] {
	return rapid.OneOf(
		rapid.Map(rapid.Uint64Range(0, 40), func(n uint64) pricing.Micros { return pricing.Micros(n * 250_000) }),
		rapid.Map(rapid.Uint64Range(0, uint64(pricing.MaxMicros)), func(n uint64) pricing.Micros { return pricing.Micros(n) }),
		rapid.Just(pricing.MaxMicros))
}

// anyPrice draws a valid price of a model.
func anyPrice(t *rapid.T, m pricing.Model) pricing.Price {
	p := pricing.Price{Name: "p", Dimension: "requests", Asset: "EUR/2", Model: m, Per: 1}
	n := 1
	if m != pricing.Flat {
		p.Per = rapid.OneOf(rapid.SampledFrom([]uint64{1, 2, 3, 1000, 1 << 30, pricing.MaxPer}), rapid.Uint64Range(1, pricing.MaxPer)).Draw(t, "per")
	}
	if m == pricing.Graduated || m == pricing.Volume {
		n = rapid.IntRange(1, pricing.MaxTiers).Draw(t, "tiers")
	}
	end := uint64(0)
	for i := range n {
		tier := pricing.Tier{Price: anyMicros().Draw(t, "price")}
		if m == pricing.Graduated || m == pricing.Volume {
			tier.Flat = anyMicros().Draw(t, "flat")
		}
		if i < n-1 {
			end += rapid.OneOf(rapid.Uint64Range(1, 20), rapid.Uint64Range(1, 1<<58)).Draw(t, "units of the tier")
			tier.UpTo = end
		}
		p.Tiers = append(p.Tiers, tier)
	}
	p.PerWindow = m == pricing.Flat && rapid.Bool().Draw(t, "for each window")
	return p
}

// anyQuantity prefers the ends of tiers.
func anyQuantity(t *rapid.T, p *pricing.Price) pricing.Quantity {
	q := pricing.Quantity{Windows: rapid.Uint64Range(0, 3).Draw(t, "windows")}
	end := p.Tiers[rapid.IntRange(0, len(p.Tiers)-1).Draw(t, "tier")].UpTo
	q.Units = rapid.OneOf(
		rapid.Map(rapid.Uint64Range(0, 2), func(n uint64) types.Amount { return types.MinorUnits(max(end, 1) + n - 1) }),
		rapid.Map(rapid.Uint64Range(0, 100), types.MinorUnits), rapid.Map(rapid.Uint64(), types.MinorUnits),
		rapid.Map(rapid.Uint64(), func(n uint64) types.Amount { return types.Amount{Hi: n, Lo: ^n} })).Draw(t, "units")
	return q
}

// amountOf is the amount by the model.
func amountOf(p *pricing.Price, q pricing.Quantity) *big.Int {
	rational := func(m pricing.Micros) *big.Rat {
		return new(big.Rat).SetFrac(new(big.Int).SetUint64(uint64(m)), big.NewInt(1_000_000))
	}
	var tiers []reference.Tier
	for _, t := range p.Tiers {
		tier := reference.Tier{Price: rational(t.Price), Flat: rational(t.Flat)}
		if t.UpTo > 0 {
			tier.End = new(big.Int).SetUint64(t.UpTo)
		}
		tiers = append(tiers, tier)
	}
	n, per := large(q.Units), new(big.Int).SetUint64(p.Per)
	switch {
	case q.Windows == 0:
		return new(big.Int)
	case p.PerWindow:
		return reference.Round(reference.Linear(new(big.Int).SetUint64(q.Windows), tiers[0].Price, per))
	case p.Model == pricing.Flat:
		return reference.Round(tiers[0].Price)
	case p.Model == pricing.PerUnit:
		return reference.Round(reference.Linear(n, tiers[0].Price, per))
	case p.Model == pricing.Graduated:
		return reference.Round(reference.Graduated(n, tiers, per))
	}
	return reference.Round(reference.Volume(n, tiers, per))
}

// TestAmountAgreesWithModel compares each model with fractions, and the largest amount with that of the ledger.
func TestAmountAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPrice(t, rapid.SampledFrom([]pricing.Model{pricing.Flat, pricing.PerUnit, pricing.Graduated, pricing.Volume}).Draw(t, "model"))
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		q := anyQuantity(t, &p)
		want := amountOf(&p, q)
		got, err := p.Amount(q)
		if fits := want.Cmp(large(types.MaxSupply())) <= 0; fits != (err == nil) || err != nil && !errors.Is(err, pricing.ErrAmount) {
			t.Fatalf("%+v of %+v: %v, want %v", q, p, err, want)
		}
		if err == nil && large(got).Cmp(want) != 0 {
			t.Fatalf("%+v of %+v costs %v, want %v", q, p, got, want)
		}
	})
}

// TestMoreUsageNeverCostsLess: except for volume prices, whose later tiers may be cheaper for all units.
func TestMoreUsageNeverCostsLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPrice(t, rapid.SampledFrom([]pricing.Model{pricing.Flat, pricing.PerUnit, pricing.Graduated}).Draw(t, "model"))
		less, more := anyQuantity(t, &p), anyQuantity(t, &p)
		if more.Units.Less(less.Units) {
			less.Units, more.Units = more.Units, less.Units
		}
		if more.Windows < less.Windows {
			less.Windows, more.Windows = more.Windows, less.Windows
		}
		a, errLess := p.Amount(less)
		b, errMore := p.Amount(more)
		if errLess != nil && errMore == nil || errMore == nil && b.Less(a) {
			t.Fatalf("%+v costs %v and %+v costs %v", less, a, more, b)
		}
	})
}

// TestPartsAddUp: a price of each unit in whole minor units has no rounding, so parts cost what the whole costs. With
// rounding, they differ by at most one minor unit.
func TestPartsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPrice(t, pricing.PerUnit)
		whole := rapid.Bool().Draw(t, "whole")
		if whole {
			p.Per, p.Tiers[0].Price = 1, p.Tiers[0].Price/1_000_000*1_000_000
		}
		a, b := rapid.Uint64Range(0, 1<<62).Draw(t, "a"), rapid.Uint64Range(0, 1<<62).Draw(t, "b")
		one, _ := p.Amount(units(a))
		two, _ := p.Amount(units(b))
		both, err := p.Amount(units(a + b))
		sum, _ := one.Add(two)
		difference := new(big.Int).Sub(large(sum), large(both))
		if err != nil || whole && difference.Sign() != 0 || difference.CmpAbs(big.NewInt(1)) > 0 {
			t.Fatalf("%v + %v, together %v: %v", one, two, both, err)
		}
	})
}

// TestTierBoundaries shows each model at the end of a tier: 10 units at 5, then 10 at 2 and 7 once, then 0.5.
func TestTierBoundaries(t *testing.T) {
	tiers := []pricing.Tier{{UpTo: 10, Price: 5_000_000}, {UpTo: 20, Price: 2_000_000, Flat: 7_000_000}, {Price: 500_000}}
	for _, c := range []struct{ units, graduated, volume uint64 }{
		{0, 0, 0}, {1, 5, 5}, {10, 50, 50}, {11, 59, 29}, {20, 77, 47}, {21, 78, 11}, {22, 78, 11}, {23, 79, 12},
	} {
		for model, want := range map[pricing.Model]uint64{pricing.Graduated: c.graduated, pricing.Volume: c.volume} {
			p := pricing.Price{Name: "p", Dimension: "requests", Asset: "EUR/2", Model: model, Per: 1, Tiers: tiers}
			if got, err := p.Amount(units(c.units)); err != nil || got != types.MinorUnits(want) {
				t.Errorf("%v of %d units: %v, %v, want %d", model, c.units, got, err, want)
			}
		}
	}
}

// TestRounding: an amount is rounded once, half up.
func TestRounding(t *testing.T) {
	p := pricing.Price{Model: pricing.PerUnit, Per: 1000, Tiers: []pricing.Tier{{Price: 1_500_000}}}
	for n, want := range map[uint64]uint64{0: 0, 333: 0, 334: 1, 999: 1, 1000: 2, 1666: 2, 1667: 3} {
		if got, err := p.Amount(units(n)); err != nil || got != types.MinorUnits(want) {
			t.Errorf("%d units: %v, %v, want %d", n, got, err, want)
		}
	}
	two := pricing.Price{Model: pricing.Graduated, Per: 1, Tiers: []pricing.Tier{{UpTo: 1, Price: 400_000}, {Price: 400_000}}}
	if got, _ := two.Amount(units(2)); got != types.MinorUnits(1) {
		t.Errorf("0.4 and 0.4 are %v: each tier was rounded", got)
	}
}

func TestMicros(t *testing.T) {
	for text, want := range map[string]pricing.Micros{"0": 0, "1": 1_000_000, "0.25": 250_000, "0.000001": 1, "999999999999.999999": pricing.MaxMicros} {
		if got, err := pricing.ParseMicros(text); err != nil || got != want || got.String() != text {
			t.Errorf("%s is %d, %v, written %v", text, got, err, got)
		}
	}
	for _, text := range []string{"", ".", "1.", ".5", "01", "00", "0.10", "1.0", "-1", "+1", "1e3", "1,5", "0.0000001", "1000000000000", " 1", "1 ", "0.-1", "0.+1", "1.2.3"} {
		if got, err := pricing.ParseMicros(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		m := anyMicros().Draw(t, "micros")
		if back, err := pricing.ParseMicros(m.String()); err != nil || back != m {
			t.Fatalf("%d is written %v and read as %d, %v", m, m, back, err)
		}
	})
}

// TestInvalidPrices: each fault names its field.
func TestInvalidPrices(t *testing.T) {
	for name, c := range map[string]struct {
		field  string
		change func(*pricing.Price)
	}{
		"no name":             {"[0].name", func(p *pricing.Price) { p.Name = "" }},
		"blank in a name":     {"[0].name", func(p *pricing.Price) { p.Name = "a b" }},
		"unknown dimension":   {"[0].dimension", func(p *pricing.Price) { p.Dimension = "bytes" }},
		"upper case":          {"[0].dimension", func(p *pricing.Price) { p.Dimension = "Requests" }},
		"unknown label":       {"[0].labels", func(p *pricing.Price) { p.Labels = []accounting.Label{{Name: "host", Value: "a"}} }},
		"label in upper case": {"[0].labels", func(p *pricing.Price) { p.Labels = []accounting.Label{{Name: "service", Value: "A"}} }},
		"labels out of order": {"[0].labels", func(p *pricing.Price) {
			p.Labels = []accounting.Label{{Name: "route", Value: "a"}, {Name: "service", Value: "a"}}
		}},
		"no asset":          {"[0].asset", func(p *pricing.Price) { p.Asset = "" }},
		"no model":          {"[0].model", func(p *pricing.Price) { p.Model = 0 }},
		"no unit size":      {"[0].per", func(p *pricing.Price) { p.Per = 0 }},
		"large unit size":   {"[0].per", func(p *pricing.Price) { p.Per = pricing.MaxPer + 1 }},
		"unit size of flat": {"[0].per", func(p *pricing.Price) { p.Model, p.Tiers, p.Per = pricing.Flat, p.Tiers[2:], 2 }},
		"each of units":     {"[0].each", func(p *pricing.Price) { p.PerWindow = true }},
		"no tier":           {"[0].tiers", func(p *pricing.Price) { p.Tiers = nil }},
		"many tiers":        {"[0].tiers", func(p *pricing.Price) { p.Tiers = make([]pricing.Tier, pricing.MaxTiers+1) }},
		"tiers of a unit":   {"[0].tiers", func(p *pricing.Price) { p.Model = pricing.PerUnit }},
		"tiers end":         {"[0].tiers[2].up_to", func(p *pricing.Price) { p.Tiers[2].UpTo = 30 }},
		"tiers end early":   {"[0].tiers[1].up_to", func(p *pricing.Price) { p.Tiers[1].UpTo = 0 }},
		"tiers in disorder": {"[0].tiers[1].up_to", func(p *pricing.Price) { p.Tiers[1].UpTo = 10 }},
		"large price":       {"[0].tiers[0].price", func(p *pricing.Price) { p.Tiers[0].Price = pricing.MaxMicros + 1 }},
		"large unit price": {"[0].price", func(p *pricing.Price) {
			p.Model, p.Tiers = pricing.PerUnit, []pricing.Tier{{Price: pricing.MaxMicros + 1}}
		}},
		"large flat":           {"[0].tiers[0].flat", func(p *pricing.Price) { p.Tiers[0].Flat = pricing.MaxMicros + 1 }},
		"flat of a unit price": {"[0].tiers", func(p *pricing.Price) { p.Model, p.Tiers = pricing.PerUnit, []pricing.Tier{{Flat: 1}} }},
	} {
		p := pricing.Price{Name: "p", Dimension: "requests", Asset: "EUR/2", Model: pricing.Graduated, Per: 1, Tiers: []pricing.Tier{{UpTo: 10}, {UpTo: 20}, {}}}
		if err := (pricing.List{p}).Check(); err != nil {
			t.Fatal(err)
		}
		c.change(&p)
		at := new(accounting.FieldError)
		if err := (pricing.List{p}).Check(); !errors.As(err, &at) || at.Field != c.field {
			t.Errorf("%s: %v, want %s", name, err, c.field)
		}
	}
	p := pricing.Price{Name: "p", Dimension: "requests", Asset: "EUR/2", Model: pricing.Flat, Per: 1, Tiers: []pricing.Tier{{}}}
	if err := (pricing.List{p, p}).Check(); err == nil || err.Error() != "[1].name: is p again: [0] has it" {
		t.Error(err)
	}
	if err := make(pricing.List, pricing.MaxPrices+1).Check(); err == nil {
		t.Error("too many prices are valid")
	}
}

// TestDigestCoversEveryField: two lists with any different field have different digests.
func TestDigestCoversEveryField(t *testing.T) {
	base := func() pricing.List {
		return pricing.List{{Name: "p", Dimension: "requests", Labels: []accounting.Label{{Name: "service", Value: "a"}}, Asset: "EUR/2", Model: pricing.Graduated, Per: 1, Tiers: []pricing.Tier{{UpTo: 10}, {}}}}
	}
	seen := map[accounting.Digest]int{base().Digest(): -1}
	for i, change := range []func(*pricing.Price){
		func(p *pricing.Price) { p.Name = "q" }, func(p *pricing.Price) { p.Dimension = "cpu_ms" }, func(p *pricing.Price) { p.Labels[0].Name = "route" },
		func(p *pricing.Price) { p.Labels[0].Value = "b" }, func(p *pricing.Price) { p.Labels = nil }, func(p *pricing.Price) { p.Asset = "EUR" },
		func(p *pricing.Price) { p.Model = pricing.Volume }, func(p *pricing.Price) { p.PerWindow = true }, func(p *pricing.Price) { p.Per = 2 },
		func(p *pricing.Price) { p.Tiers[0].UpTo++ }, func(p *pricing.Price) { p.Tiers[0].Price++ }, func(p *pricing.Price) { p.Tiers[1].Flat++ },
		func(p *pricing.Price) { p.Tiers = p.Tiers[1:] },
	} {
		l := base()
		change(&l[0])
		if other, known := seen[l.Digest()]; known {
			t.Errorf("changes %d and %d have the same digest", i, other)
		}
		seen[l.Digest()] = i
	}
	one, two := base(), pricing.List{base()[0], base()[0]}
	if again := base(); one.Digest() == two.Digest() || one.Digest() != again.Digest() {
		t.Error("the digest is not that of the list")
	}
}

// TestSortedListsHaveOneDigest: the order of a list changes its digest, and not that of the sorted list, which has the same prices.
func TestSortedListsHaveOneDigest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l pricing.List
		for i := range rapid.IntRange(0, 5).Draw(t, "prices") {
			p := anyPrice(t, rapid.SampledFrom([]pricing.Model{pricing.Flat, pricing.PerUnit, pricing.Graduated, pricing.Volume}).Draw(t, "model"))
			p.Name = string(rune('a' + i))
			l = append(l, p)
		}
		other := pricing.List(rapid.Permutation(l).Draw(t, "order"))
		if got := other.Sorted(); got.Digest() != l.Digest() || len(got) != len(l) {
			t.Fatalf("sorted: %v, want %v", got, l)
		}
		if isSame := slices.EqualFunc(l, other, func(a, b pricing.Price) bool { return a.Name == b.Name }); isSame != (other.Digest() == l.Digest()) {
			t.Fatalf("the digest of %v", other)
		}
	})
}

// TestMatches: a filter needs each of its labels in full.
func TestMatches(t *testing.T) {
	p := pricing.Price{Labels: []accounting.Label{{Name: "service", Value: "shop"}, {Name: "method", Value: "get"}}}
	for labels, want := range map[string]bool{
		"service=shop,method=get": true, "service=shop,region=eu,method=get": true, "service=shop": false, "method=get": false, "": false,
		"service=shop2,method=get": false, "service=sho,method=get": false, "service=get,method=shop": false,
	} {
		if got := p.Matches([]byte(labels)); got != want {
			t.Errorf("%q: %v", labels, got)
		}
	}
	if p.Labels = nil; !p.Matches(nil) {
		t.Error("without labels, a row does not match")
	}
}
