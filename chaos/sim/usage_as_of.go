package sim

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"macronode/core/accounting"
	"macronode/core/types"
)

// A usageAnswer is the usage of the tenant as of a time, as it was when it was asked for.
type usageAnswer struct {
	asOf types.Time
	upto types.LSN // the last frame then
	text string
}

// mostAnswers is how many answers a run compares later.
const mostAnswers = 64

// asks reads usage as of the latest time that the read model permits. There is none before the first frame.
func (o *usageOracle) asks(w *World) {
	p := w.fol.OpenUsage(usageTenant, func(*accounting.OpenRow) {})
	if n := len(o.asked); p.AsOfLimit == 0 || n == mostAnswers || n > 0 && o.asked[n-1].asOf >= p.AsOfLimit {
		return
	}
	w.note(p.AsOfLimit < p.At, "usage as of a time is read while usage is due")
	a := usageAnswer{p.AsOfLimit, p.Upto, o.asOf(accounting.SliceRange{Upto: p.Upto, AsOf: p.AsOfLimit})}
	w.note(a.text != "", "usage as of a time is read")
	o.asked = append(o.asked, a)
}

// usageLine is the usage of a series in a window as text.
func usageLine(dimension, labels string, from int64, value *big.Int) string {
	return fmt.Sprintf("%s %s from %d: %v", dimension, labels, from, value)
}

// asOf adds up the slices of the tenant that a query reads.
func (o *usageOracle) asOf(in accounting.SliceRange) string {
	sums := map[usageAt]*big.Int{}
	for i := range o.slices {
		s := &o.slices[i]
		if s.Tenant != usageTenant || !in.InTime(&accounting.SealedSlice{LSN: s.lsn, Due: s.due}) {
			continue
		}
		for _, r := range s.Rows {
			at := usageAt{dimension: s.Dimension, labels: r.Labels, from: s.From}
			if sums[at] == nil {
				sums[at] = new(big.Int)
			}
			sums[at].Add(sums[at], new(big.Int).SetUint64(r.Value))
		}
	}
	var lines []string
	for at, sum := range sums { //nolint:maporder // they are sorted
		lines = append(lines, usageLine(at.dimension, at.labels, at.from, sum))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// asksAgain asks as of each time again: the answer is that of then, and that of the model.
func (o *usageOracle) asksAgain(w *World) {
	for _, a := range o.asked {
		var lines []string
		for _, s := range o.book.AsOf(usageTenant, int64(a.asOf)) {
			lines = append(lines, usageLine(s.Dimension, s.Labels, s.From, s.Value))
		}
		slices.Sort(lines)
		if now, want := o.asOf(accounting.SliceRange{Upto: types.MaxLSN, AsOf: a.asOf}), strings.Join(lines, "\n"); now != a.text || now != want {
			w.fail("usage-as-of", "as of %v, the usage is\n%s\nit was\n%s\nthe model has\n%s", a.asOf, now, a.text, want)
			return
		}
	}
}
