package flow

import (
	"errors"
	"slices"
	"strconv"

	"macronode/core/accounting"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/pricing"
	"macronode/core/types"
)

// Terms are what a prepaid tenant pays for usage, and with which accounts. They do not change.
type Terms struct {
	prices      pricing.List
	list        accounting.Digest
	payer       types.Name
	beneficiary types.Name
	ids         []types.NameHash // of the prices
	assets      []types.Name
	assetOf     []uint16 // of each price, its place in assets
}

// ErrPerWindow reports a price that a prepaid tenant cannot have.
var ErrPerWindow = errors.New("flow: a flat price for each window has no prepaid line")

// NewTerms returns the terms of valid prices. Payer and beneficiary are two accounts of the tenant. Its error is
// ErrPerWindow.
func NewTerms(prices pricing.List, payer, beneficiary string) (*Terms, error) {
	name := func(s string) types.Name { return types.Name{ID: digest.Name([]byte(s)), Text: []byte(s)} }
	t := &Terms{prices: prices, list: prices.Digest(), payer: name(payer), beneficiary: name(beneficiary)}
	for i := range prices {
		p := &prices[i]
		if p.PerWindow {
			return nil, ErrPerWindow
		}
		at := slices.IndexFunc(t.assets, func(n types.Name) bool { return string(n.Text) == p.Asset })
		if at < 0 {
			at = len(t.assets)
			t.assets = append(t.assets, name(p.Asset))
		}
		t.ids, t.assetOf = append(t.ids, LineID(p)), append(t.assetOf, uint16(at))
	}
	return t, nil
}

// Asset returns the asset of a shortfall.
func (t *Terms) Asset(s event.Shortfall) string { return string(t.assets[s.Asset-1].Text) }

// pricesOf returns the prices that apply to usage: bit i is price i.
func (t *Terms) pricesOf(dimension string, labels []byte) (bits uint64) {
	for i := range t.prices {
		if p := &t.prices[i]; p.Dimension == dimension && p.Matches(labels) {
			bits |= 1 << i
		}
	}
	return bits
}

// String describes the accounts and the digest of the price list.
func (t *Terms) String() string {
	return string(t.payer.Text) + " pays " + string(t.beneficiary.Text) + " by " + t.list.String()
}

// Payer returns the account that pays.
func (t *Terms) Payer() string { return string(t.payer.Text) }

// LineID identifies the line of a price: it covers what the price is for, but not how much it is.
func LineID(p *pricing.Price) types.NameHash {
	b := []byte("line\x00" + p.Name + "\x00" + p.Dimension + "\x00" + p.Asset)
	for _, l := range p.Labels {
		b = append(append(append(append(b, 0), l.Name...), '='), l.Value...)
	}
	return digest.Name(b)
}

// Key returns the key of a command of a flow. random is used once.
func Key(random string) types.Name {
	text := []byte("flow:" + random)
	return types.Name{ID: digest.Name(text), Text: text}
}

// keys returns a key for the transfer in each asset.
func (t *Terms) keys(of types.Name) []types.Name {
	keys := make([]types.Name, len(t.assets))
	for i := range keys {
		text := strconv.AppendInt(append(slices.Clone(of.Text), '.'), int64(i), 10)
		keys[i] = types.Name{ID: digest.Name(text), Text: text}
	}
	return keys
}
