// Package pricing computes what usage costs: from a quantity of a dimension to an amount of an asset. It has integers
// only, and the same quantity always costs the same.
//
//	quantity ─► tiers ─► sum of units × price, in millionths of a minor unit ─► divided once, rounded half up ─► amount
//
// Rounding: an amount is rounded once, after all tiers are summed, to whole minor units. A half is rounded up.
package pricing

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"macronode/core/accounting"
	"macronode/core/types"
)

// Limits of a price list.
const (
	MaxPrices = 64
	MaxTiers  = 16
	MaxPer    = 1_000_000_000_000 // units that a price may be for
	MaxName   = 64                // bytes of the name of a price
)

// The largest divisor of a price fits in 64 bits.
const _ = uint64(1<<63 - MaxPer*microsPerUnit)

// A Model says how a quantity becomes an amount.
type Model uint8

// The models.
const (
	Flat      Model = iota + 1 // a fixed amount for each invoice with usage, or for each window with usage
	PerUnit                    // each unit has the same price
	Graduated                  // each unit has the price of the tier that it is in
	Volume                     // all units have the price of the tier that the last unit is in
)

// Models returns the names of the models, in their order from 1.
func Models() [4]string { return [...]string{"flat", "per_unit", "graduated", "volume"} }

func (m Model) String() string { return Models()[m-1] }

// A Tier is the price of the units up to a quantity.
type Tier struct {
	UpTo  uint64 // the last unit of the tier; 0 in the last tier: there is no end
	Price Micros // of Per units
	Flat  Micros // in addition, once, if the tier is used
}

// A Price is what usage of a dimension costs. Its fields are valid if Check returns nil.
type Price struct {
	Name      string // identifies the price in a list
	Dimension string
	Labels    []accounting.Label // rows without these labels are not priced; in the order of accounting.LabelNames
	Asset     string             // of the amount
	Model     Model
	PerWindow bool   // of Flat: for each window with usage, not once
	Per       uint64 // units that a tier's price is for
	Tiers     []Tier // in order; one, if the model is Flat or PerUnit
}

// A Quantity is usage that has a price.
type Quantity struct {
	Units   types.Amount // of the dimension
	Windows uint64       // with usage
}

// ErrAmount reports an amount that is larger than an asset may have.
var ErrAmount = errors.New("pricing: the amount is larger than the ledger takes")

// Amount returns what a quantity costs, in minor units. Without a window it is 0. Its error is ErrAmount.
func (p *Price) Amount(q Quantity) (types.Amount, error) {
	var (
		sum     wide
		divisor = p.Per * microsPerUnit
		ok      = true
	)
	switch {
	case q.Windows == 0:
	case p.Model == Flat:
		times := uint64(1)
		if p.PerWindow {
			times = q.Windows
		}
		sum, divisor = product(types.MinorUnits(times), uint64(p.Tiers[0].Price)), microsPerUnit
	case p.Model == Volume:
		sum, ok = p.tier(p.tierOf(q.Units), q.Units)
	default:
		sum, ok = p.graduated(q.Units)
	}
	a, fits := sum.divide(divisor)
	if !ok || !fits {
		return types.Amount{}, ErrAmount
	}
	return a, nil
}

// graduated returns the sum of all tiers.
func (p *Price) graduated(units types.Amount) (sum wide, ok bool) {
	var before types.Amount // units of the tiers before
	for i := range p.Tiers {
		end := units
		if up := types.MinorUnits(p.Tiers[i].UpTo); !up.IsZero() && up.Less(units) {
			end = up
		}
		in, _ := end.Sub(before)
		of, fits := p.tier(i, in)
		if !fits {
			return sum, false
		}
		if sum, fits = sum.add(of); !fits {
			return sum, false
		}
		if before = end; before == units {
			break
		}
	}
	return sum, true
}

// tier returns what units of a tier cost, times Per and a million.
func (p *Price) tier(at int, units types.Amount) (sum wide, ok bool) {
	if units.IsZero() {
		return sum, true
	}
	t := &p.Tiers[at]
	return product(units, uint64(t.Price)).add(product(types.MinorUnits(p.Per), uint64(t.Flat)))
}

// tierOf returns the tier of the last unit.
func (p *Price) tierOf(units types.Amount) int {
	for i := range p.Tiers {
		if up := p.Tiers[i].UpTo; up == 0 || !types.MinorUnits(up).Less(units) {
			return i
		}
	}
	return len(p.Tiers) - 1
}

// Matches reports whether a row with labels, in the form of accounting.Row, has the price.
func (p *Price) Matches(labels []byte) bool {
	for _, want := range p.Labels {
		if !hasLabel(labels, want) {
			return false
		}
	}
	return true
}

func hasLabel(labels []byte, want accounting.Label) bool {
	for pair := range bytes.SplitSeq(labels, []byte{','}) {
		name, value, _ := bytes.Cut(pair, []byte{'='})
		if string(name) == want.Name && string(value) == want.Value {
			return true
		}
	}
	return false
}

// Check returns a *accounting.FieldError if p is no price.
func (p *Price) Check() error {
	wrong := func(field, format string, args ...any) error {
		return &accounting.FieldError{Field: field, Why: fmt.Sprintf(format, args...)}
	}
	if !validName(p.Name) {
		return wrong("name", "must be 1..%d of A-Z a-z 0-9 _ -", MaxName)
	}
	series, err := accounting.NewSeries(p.Dimension, p.Labels)
	if err != nil {
		return err
	}
	canonical := accounting.ParseLabels(series.Labels)
	switch {
	case string(series.Dimension) != p.Dimension:
		return wrong("dimension", "must not have upper case")
	case !equalLabels(canonical, p.Labels):
		return wrong("labels", "must not have upper case, and must be in the order service, region, method, route, subject")
	case types.CheckAsset(p.Asset) != nil:
		return wrong("asset", "must be 1..%d of A-Z a-z 0-9 / _ -", types.MaxAsset)
	case p.Model < Flat || p.Model > Volume:
		names := Models()
		return wrong("model", "must be one of %s", strings.Join(names[:], ", "))
	case p.Per == 0 || p.Per > MaxPer:
		return wrong("per", "must be 1..%d", uint64(MaxPer))
	case p.Per != 1 && p.Model == Flat:
		return wrong("per", "has no meaning for a flat price")
	case p.PerWindow && p.Model != Flat:
		return wrong("each", "is for flat prices only")
	}
	return p.checkTiers(wrong)
}

func (p *Price) checkTiers(wrong func(field, format string, args ...any) error) error {
	tiered := p.Model == Graduated || p.Model == Volume
	switch {
	case len(p.Tiers) == 0 || len(p.Tiers) > MaxTiers:
		return wrong("tiers", "must be 1..%d", MaxTiers)
	case !tiered && (len(p.Tiers) > 1 || p.Tiers[0].UpTo > 0 || p.Tiers[0].Flat > 0):
		return wrong("tiers", "are for graduated and volume prices only")
	}
	for i, t := range p.Tiers {
		last := i == len(p.Tiers)-1
		switch {
		case !tiered && t.Price > MaxMicros:
			return wrong("price", "must be at most %v", MaxMicros)
		case last && t.UpTo != 0:
			return wrong(fmt.Sprintf("tiers[%d].up_to", i), "must not be set: the last tier has no end")
		case !last && t.UpTo == 0:
			return wrong(fmt.Sprintf("tiers[%d].up_to", i), "must be set: only the last tier has no end")
		case !last && i > 0 && t.UpTo <= p.Tiers[i-1].UpTo:
			return wrong(fmt.Sprintf("tiers[%d].up_to", i), "must be more than that of the tier before, %d", p.Tiers[i-1].UpTo)
		case t.Price > MaxMicros:
			return wrong(fmt.Sprintf("tiers[%d].price", i), "must be at most %v", MaxMicros)
		case t.Flat > MaxMicros:
			return wrong(fmt.Sprintf("tiers[%d].flat", i), "must be at most %v", MaxMicros)
		}
	}
	return nil
}

func validName(s string) bool {
	if len(s) == 0 || len(s) > MaxName {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

func equalLabels(a, b []accounting.Label) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
