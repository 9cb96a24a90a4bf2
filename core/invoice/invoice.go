// Package invoice computes what the usage of a period costs, from sealed slices and a price list.
//
//	slices of a period ─► parts: what a slice adds to a price ─┬─► lines: all parts of a price, rounded once
//	                                                           └─► charges: one for each slice and asset
//
// The charge of a slice is the amount of all parts up to the slice, less the amount of those before it, in the order
// of seq. So the charges of a line add up to its amount, without a difference of rounding. A later correction has a
// higher seq, so it changes no earlier charge.
//
// Prepaid usage has lines of its own. It was paid when it was recorded, so it is in no total and has no charge.
package invoice

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"macronode/core/accounting"
	"macronode/core/pricing"
	"macronode/core/types"
)

// MaxParts is the number of slices of one invoice, and of pairs of a slice and a price, together.
const MaxParts = 1_000_000

// maxLine is the end of the amounts of a line: those of all prices of a list add up to what an asset may have.
const (
	maxLine = 1 << (63 - 6) // times 2^64
	_       = uint(1<<6 - pricing.MaxPrices)
)

// Errors of Add.
var (
	ErrParts  = fmt.Errorf("invoice: more than %d slices and prices of slices: ask for a shorter time, or use longer windows", MaxParts)
	ErrTenant = errors.New("invoice: a slice of another tenant")
)

// A Builder collects the slices of a tenant whose windows begin in a period.
type Builder struct {
	tenant   types.Tenant
	period   accounting.Window
	prices   pricing.List
	parts    [][]part // of each price, for postpaid usage and then for prepaid usage
	unpriced []Unpriced
	ranges   []Range
	postpaid []Slice
	count    int // of all parts and slices
}

// A part is what a slice adds to a price.
type part struct {
	seq    uint64
	digest accounting.Digest
	late   bool
	window accounting.Window
	units  types.Amount
}

// Unpriced is usage without a price.
type Unpriced struct {
	Dimension string
	Units     types.Amount
}

// New returns a builder without slices. The prices are valid.
func New(t types.Tenant, period accounting.Window, prices pricing.List) *Builder {
	return &Builder{tenant: t, period: period, prices: prices, parts: make([][]part, 2*len(prices))}
}

// Add adds a slice, which a Verifier has accepted. A slice of a window that does not begin in the period is ignored.
func (b *Builder) Add(s *accounting.Slice) error {
	switch {
	case s.Tenant != b.tenant:
		return ErrTenant
	case s.Window.From < b.period.From || s.Window.From >= b.period.To:
		return nil
	case b.count+1+len(b.prices) > MaxParts:
		return ErrParts
	}
	b.addRange(s)
	b.count++
	if !s.Kind.IsPrepaid() {
		b.postpaid = append(b.postpaid, Slice{string(s.Dimension), s.Seq, s.Digest})
	}
	priced := make([]bool, len(s.Rows))
	for i := range b.prices {
		p := &b.prices[i]
		if p.Dimension != string(s.Dimension) {
			continue
		}
		of, matches := part{seq: s.Seq, digest: s.Digest, late: s.Kind.IsLate(), window: s.Window}, false
		for j, r := range s.Rows {
			if p.Matches(r.Labels) {
				of.units, _ = of.units.Add(types.MinorUnits(r.Value))
				matches, priced[j] = true, true
			}
		}
		if matches {
			at := i
			if s.Kind.IsPrepaid() {
				at += len(b.prices)
			}
			b.parts[at] = append(b.parts[at], of)
			b.count++
		}
	}
	for j, r := range s.Rows {
		if !priced[j] {
			b.addUnpriced(s.Dimension, types.MinorUnits(r.Value))
		}
	}
	return nil
}

func (b *Builder) addUnpriced(dimension []byte, units types.Amount) {
	at := slices.IndexFunc(b.unpriced, func(u Unpriced) bool { return u.Dimension == string(dimension) })
	if at < 0 {
		at = len(b.unpriced)
		b.unpriced = append(b.unpriced, Unpriced{Dimension: string(dimension)})
	}
	b.unpriced[at].Units, _ = b.unpriced[at].Units.Add(units)
}

// A Line is what the usage of a price costs.
type Line struct {
	Price       *pricing.Price
	Prepaid     bool              // Amount was paid when the usage was recorded
	Slices      uint64            // with usage of the price
	First, Last uint64            // their lowest and highest seq
	Head        accounting.Digest // of the slice Last
	Windows     uint64            // with usage of the price
	Units       types.Amount
	Late        types.Amount // of Units: from corrections
	Amount      types.Amount
}

// A Total is the sum of all lines of an asset.
type Total struct {
	Asset  string
	Amount types.Amount
}

// A Charge is what a slice adds to the amounts of an asset. It is never 0.
type Charge struct {
	Dimension string
	Asset     string
	Seq       uint64
	Digest    accounting.Digest
	Window    accounting.Window // of the slice
	Amount    types.Amount
	Refund    bool // the slice makes the usage before it cheaper, by Amount: volume prices can do that
}

// A Slice identifies a slice of the tenant.
type Slice struct {
	Dimension string
	Seq       uint64
	Digest    accounting.Digest
}

// An Invoice is what the usage of a period costs.
type Invoice struct {
	Tenant   types.Tenant
	Period   accounting.Window // of the begins of windows
	Prices   pricing.List
	Lines    []Line     // in the order of the prices, those with usage; prepaid ones come last
	Prepaid  []Total    // of the prepaid lines, by asset
	Totals   []Total    // of all other lines, by asset
	Unpriced []Unpriced // by dimension
	Charges  []Charge   // by dimension, asset and seq
	Postpaid []Slice    // all slices that a charge can be of, by dimension and seq: those without one cost nothing
	Ranges   []Range    // of all slices of the period, by dimension
}

// Invoice returns the invoice of the slices that were added. The order in which they were added does not matter. Its
// error is pricing.ErrAmount.
func (b *Builder) Invoice() (v Invoice, err error) {
	v = Invoice{Tenant: b.tenant, Period: b.period, Prices: b.prices, Unpriced: slices.Clone(b.unpriced), Ranges: slices.Clone(b.ranges), Postpaid: slices.Clone(b.postpaid)}
	slices.SortFunc(v.Postpaid, func(a, b Slice) int { return cmp.Or(cmp.Compare(a.Dimension, b.Dimension), cmp.Compare(a.Seq, b.Seq)) })
	slices.SortFunc(v.Ranges, func(a, b Range) int { return cmp.Compare(a.Dimension, b.Dimension) })
	slices.SortFunc(v.Unpriced, func(a, b Unpriced) int { return cmp.Compare(a.Dimension, b.Dimension) })
	var steps []step
	for i := range b.parts {
		if len(b.parts[i]) == 0 {
			continue
		}
		l, of, err := b.line(i)
		if err != nil {
			return v, err
		}
		v.Lines = append(v.Lines, l)
		if l.Prepaid {
			v.Prepaid = addTotal(v.Prepaid, l.Price.Asset, l.Amount)
			continue
		}
		steps = append(steps, of...)
		v.Totals = addTotal(v.Totals, l.Price.Asset, l.Amount)
	}
	for _, all := range [...][]Total{v.Totals, v.Prepaid} {
		slices.SortFunc(all, func(a, b Total) int { return cmp.Compare(a.Asset, b.Asset) })
	}
	v.Charges = charges(steps)
	return v, nil
}

func addTotal(all []Total, asset string, amount types.Amount) []Total {
	at := slices.IndexFunc(all, func(t Total) bool { return t.Asset == asset })
	if at < 0 {
		at = len(all)
		all = append(all, Total{Asset: asset})
	}
	all[at].Amount, _ = all[at].Amount.Add(amount)
	return all
}

// A step is how a slice changes the amount of a line.
type step struct {
	Charge
	before, after types.Amount
}

// line returns the line of the parts at an index, and its steps in the order of seq.
func (b *Builder) line(at int) (l Line, steps []step, err error) {
	parts := b.parts[at]
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.seq, b.seq) })
	l = Line{Price: &b.prices[at%len(b.prices)], Prepaid: at >= len(b.prices), Slices: uint64(len(parts)), First: parts[0].seq}
	seen := map[accounting.Window]bool{}
	for i := range parts {
		p := &parts[i]
		if !seen[p.window] {
			seen[p.window] = true
			l.Windows++
		}
		l.Units, _ = l.Units.Add(p.units)
		if p.late {
			l.Late, _ = l.Late.Add(p.units)
		}
		before := l.Amount
		if l.Amount, err = l.Price.Amount(pricing.Quantity{Units: l.Units, Windows: l.Windows}); err != nil {
			return l, nil, err
		}
		if l.Amount.Hi >= maxLine {
			return l, nil, pricing.ErrAmount
		}
		l.Last, l.Head = p.seq, p.digest
		steps = append(steps, step{Charge{Dimension: l.Price.Dimension, Asset: l.Price.Asset, Seq: p.seq, Digest: p.digest, Window: p.window}, before, l.Amount})
	}
	return l, steps, nil
}

// charges joins the steps of each slice and asset.
func charges(steps []step) (all []Charge) {
	slices.SortStableFunc(steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.Dimension, b.Dimension), cmp.Compare(a.Asset, b.Asset), cmp.Compare(a.Seq, b.Seq))
	})
	for i := 0; i < len(steps); {
		c, up, down := steps[i].Charge, types.Amount{}, types.Amount{}
		for ; i < len(steps) && steps[i].Dimension == c.Dimension && steps[i].Asset == c.Asset && steps[i].Seq == c.Seq; i++ {
			up, _ = up.Add(steps[i].after)
			down, _ = down.Add(steps[i].before)
		}
		if c.Refund = up.Less(down); c.Refund {
			up, down = down, up
		}
		if c.Amount, _ = up.Sub(down); !c.Amount.IsZero() {
			all = append(all, c)
		}
	}
	return all
}

// A Range is the lowest and the highest seq of a dimension.
type Range struct {
	Dimension string
	accounting.SeqRange
}

// addRange adds the seq of a slice.
func (b *Builder) addRange(s *accounting.Slice) {
	at := slices.IndexFunc(b.ranges, func(r Range) bool { return r.Dimension == string(s.Dimension) })
	if at < 0 {
		at = len(b.ranges)
		b.ranges = append(b.ranges, Range{string(s.Dimension), accounting.SeqRange{First: s.Seq, Last: s.Seq}})
	}
	r := &b.ranges[at]
	r.First, r.Last = min(r.First, s.Seq), max(r.Last, s.Seq)
}
