package pricing

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"macronode/core/accounting"
	"macronode/core/digest"
)

// A List is the prices of usage, each with a name of its own. Each price that matches a row applies, so a row can be
// in several lines of an invoice.
type List []Price

// Check returns a *accounting.FieldError if l is no price list, with the index of the price in its field.
func (l List) Check() error {
	if len(l) > MaxPrices {
		return &accounting.FieldError{Field: "prices", Why: fmt.Sprintf("must be at most %d", MaxPrices)}
	}
	names := map[string]int{}
	for i := range l {
		if err := l[i].Check(); err != nil {
			at := err.(*accounting.FieldError) //nolint:errorlint,forcetypeassert // Check returns no other
			return &accounting.FieldError{Field: fmt.Sprintf("[%d].%s", i, at.Field), Why: at.Why}
		}
		if other, known := names[l[i].Name]; known {
			return &accounting.FieldError{Field: fmt.Sprintf("[%d].name", i), Why: fmt.Sprintf("is %s again: [%d] has it", l[i].Name, other)}
		}
		names[l[i].Name] = i
	}
	return nil
}

// Of returns the prices of a dimension, in the same order.
func (l List) Of(dimension string) (all List) {
	for i := range l {
		if l[i].Dimension == dimension {
			all = append(all, l[i])
		}
	}
	return all
}

// Sorted returns the prices in the order of their names. No amount depends on the order, so two valid lists with the same prices have one digest
// when they are sorted.
func (l List) Sorted() List {
	return slices.SortedFunc(slices.Values(l), func(a, b Price) int { return cmp.Compare(a.Name, b.Name) })
}

const listPrefix = "macronode prices 1\n"

// Digest returns the BLAKE3 digest of a valid list. It covers everything that changes an amount or a line, and the order.
func (l List) Digest() accounting.Digest {
	b := []byte(listPrefix)
	text := func(s string) { b = append(append(b, byte(len(s))), s...) }
	number := func(n uint64) { b = binary.LittleEndian.AppendUint64(b, n) }
	for i := range l {
		p := &l[i]
		text(p.Name)
		text(p.Dimension)
		b = append(b, byte(len(p.Labels)))
		for _, label := range p.Labels {
			text(label.Name)
			text(label.Value)
		}
		text(p.Asset)
		perWindow := byte(0)
		if p.PerWindow {
			perWindow = 1
		}
		b = append(b, byte(p.Model), perWindow)
		number(p.Per)
		b = append(b, byte(len(p.Tiers)))
		for _, t := range p.Tiers {
			number(t.UpTo)
			number(uint64(t.Price))
			number(uint64(t.Flat))
		}
	}
	return digest.Sum(b)
}
