package charges

import (
	"math/big"
	"slices"
	"strings"
	"time"

	"macronode/core/accounting"
	"macronode/core/digest"
	"macronode/core/pricing"
	"macronode/core/types"
	model "macronode/models/pricing"
)

// A LineKey identifies a line: a price in a calendar month of UTC.
type LineKey struct {
	Tenant types.Tenant
	Price  types.NameHash
	Month  int64 // its begin, in milliseconds
}

// LineID identifies a price: what it is for, whatever it is.
func LineID(p *pricing.Price) types.NameHash {
	text := strings.Join([]string{"line", p.Name, p.Dimension, p.Asset}, "\x00")
	for _, l := range p.Labels {
		text += "\x00" + l.Name + "=" + l.Value
	}
	return digest.Name([]byte(text))
}

// MonthOf returns the begin of the month of a time.
func MonthOf(at int64) int64 {
	y, m, _ := time.UnixMilli(at).UTC().Date()
	return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
}

// Applies reports whether a price applies to a series.
func Applies(p *pricing.Price, dimension, labels string) bool {
	return p.Dimension == dimension && !slices.ContainsFunc(p.Labels, func(l accounting.Label) bool {
		return !slices.Contains(strings.Split(labels, ","), l.Name+"="+l.Value)
	})
}

// Cost returns what units cost, by the reference model of prices.
func Cost(p *pricing.Price, units *big.Int) *big.Int {
	rational := func(m pricing.Micros) *big.Rat { return big.NewRat(int64(m), 1_000_000) }
	var tiers []model.Tier
	for _, t := range p.Tiers {
		tier := model.Tier{Price: rational(t.Price), Flat: rational(t.Flat)}
		if t.UpTo > 0 {
			tier.End = new(big.Int).SetUint64(t.UpTo)
		}
		tiers = append(tiers, tier)
	}
	per := new(big.Int).SetUint64(p.Per)
	switch p.Model {
	case pricing.Flat:
		return model.Round(tiers[0].Price)
	case pricing.PerUnit:
		return model.Round(model.Linear(units, tiers[0].Price, per))
	case pricing.Graduated:
		return model.Round(model.Graduated(units, tiers, per))
	case pricing.Volume:
		return model.Round(model.Volume(units, tiers, per))
	}
	panic("a price without a model")
}
