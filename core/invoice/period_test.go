package invoice_test

import (
	"errors"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/accounting"
	"macronode/core/invoice"
	"macronode/core/types"
)

func date(year int, month time.Month, day int) types.Time {
	return types.Time(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).UnixMilli())
}

// TestChargePeriod: periods that can be charged begin with a month and do not exceed it; the error has the month.
func TestChargePeriod(t *testing.T) {
	t.Parallel()
	january := accounting.Window{From: date(2026, 1, 1), To: date(2026, 2, 1)}
	december := accounting.Window{From: date(2025, 12, 1), To: date(2026, 1, 1)}
	for _, c := range []struct {
		from, to  types.Time
		month     accounting.Window
		isCharged bool
	}{
		{date(2026, 1, 1), date(2026, 2, 1), january, true},
		{date(2026, 1, 1), date(2026, 1, 1) + 1, january, true},
		{date(2024, 2, 1), date(2024, 2, 29), accounting.Window{From: date(2024, 2, 1), To: date(2024, 3, 1)}, true},
		{date(2025, 12, 1), date(2026, 1, 1), december, true},
		{date(2026, 1, 1), date(2026, 1, 1), january, false},
		{date(2026, 1, 2), date(2026, 1, 3), january, false},
		{date(2026, 1, 1), date(2025, 12, 31), january, false},
		{date(2026, 1, 1), date(2026, 2, 1) + 1, january, false},
		{date(2026, 1, 1) - 1, date(2026, 2, 1), december, false},
		{date(2025, 12, 31), date(2026, 1, 1), december, false},
	} {
		p, err := invoice.NewChargePeriod(accounting.Window{From: c.from, To: c.to})
		var wrong *invoice.PeriodError
		switch {
		case c.isCharged && (err != nil || p != invoice.ChargePeriod{Month: c.month, To: c.to}):
			t.Errorf("%d to %d: %+v, %v", c.from, c.to, p, err)
		case !c.isCharged && (!errors.As(err, &wrong) || wrong.Month != c.month):
			t.Errorf("%d to %d: %v, want an error with the month %+v", c.from, c.to, err, c.month)
		}
	}
}

// chargeRun is a run that charges: it has the slices that are sealed, and a ledger in which each ref is used once.
func chargeRun(t *rapid.T, ledger map[string]invoice.Charge, p invoice.ChargePeriod, sealed []accounting.Slice) {
	v := build(t, p.Month, prices(), sealed)
	due := map[string]bool{}
	for i := range v.Charges {
		c := v.Charges[i]
		ref := c.Ref(1)
		due[ref] = true
		was, made := ledger[ref]
		switch {
		case made && was != c:
			t.Fatalf("in %+v\n%+v\nis due, and was charged with\n%+v", p, c, was)
		case !made && p.Has(&c):
			ledger[ref] = c
		}
	}
	for _, s := range v.Postpaid {
		for _, asset := range []string{"EUR/2", "POINT"} {
			if ref := s.Ref(1, asset); ledger[ref].Seq > 0 && !due[ref] {
				t.Fatalf("in %+v\n%+v costs nothing, and was charged with\n%+v", p, s, ledger[ref])
			}
		}
	}
}

// TestEachSliceIsChargedOnce: whatever periods the runs have, and whatever is sealed by then, each slice is charged once,
// and the charges of a month add up to the invoice of the month.
func TestEachSliceIsChargedOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		middle := date(2026, time.Month(rapid.IntRange(1, 12).Draw(t, "month")), 1)
		all := append(anySlices(t, "requests"), anySlices(t, "bytes_out")...)
		for i := range all { // some windows are in the month before
			all[i].Window.From += middle - 4*minute
			all[i].Window.To += middle - 4*minute
		}
		months := []accounting.Window{accounting.MonthOf(middle - 1), accounting.MonthOf(middle)}
		ledger := map[string]invoice.Charge{}
		least := map[string]int{} // of what is sealed, by dimension: it becomes more from run to run
		for range rapid.IntRange(1, 4).Draw(t, "runs") {
			from := rapid.SampledFrom([]types.Time{middle, middle, months[0].From, middle - 2*minute, middle + 2*minute}).Draw(t, "from")
			p := accounting.Window{From: from, To: middle + types.Time(rapid.IntRange(-3, 10).Draw(t, "to")*minute)}
			var sealed []accounting.Slice
			for _, dimension := range []string{"requests", "bytes_out"} {
				n := least[dimension] + rapid.IntRange(0, 6).Draw(t, dimension)
				least[dimension] = n
				for i := range all {
					if string(all[i].Dimension) == dimension && all[i].Seq <= uint64(n) {
						sealed = append(sealed, all[i])
					}
				}
			}
			if of, err := invoice.NewChargePeriod(p); err == nil {
				chargeRun(t, ledger, of, sealed)
			}
		}
		for _, m := range months {
			chargeRun(t, ledger, invoice.ChargePeriod{Month: m, To: m.To}, all)
			of := map[string]invoice.Charge{}
			for ref, c := range ledger {
				if c.Window.From >= m.From && c.Window.From < m.To {
					of[ref] = c
				}
			}
			checkTotals(t, build(t, m, prices(), all), of)
		}
	})
}

// checkTotals compares what the ledger has with the totals of an invoice.
func checkTotals(t *rapid.T, v invoice.Invoice, ledger map[string]invoice.Charge) {
	var made []invoice.Charge
	for _, c := range ledger { //nolint:maporder // it is a sum
		made = append(made, c)
	}
	by := sums(made)
	for _, total := range v.Totals {
		if by[total.Asset] == nil {
			by[total.Asset] = new(big.Int)
		}
		if by[total.Asset].Cmp(large(total.Amount)) != 0 {
			t.Fatalf("%v %s are charged, and the invoice of %+v has %v", by[total.Asset], total.Asset, v.Period, total.Amount)
		}
	}
	for asset, n := range by { //nolint:maporder // the rule is the same for each
		if n.Sign() != 0 && !slices.ContainsFunc(v.Totals, func(of invoice.Total) bool { return of.Asset == asset }) {
			t.Fatalf("%v %s are charged, and the invoice of %+v has none", n, asset, v.Period)
		}
	}
}

// TestChargesOfShorterPeriod: a correction that is sealed after a later window has one charge, whether the later window is in the period or
// not. In an invoice of the shorter period it would have another one.
func TestChargesOfShorterPeriod(t *testing.T) {
	t.Parallel()
	all := []accounting.Slice{
		slice(1, accounting.SliceUsage, 0, 10, 0),
		slice(2, accounting.SliceUsage, 5, 35, 0),
		slice(3, accounting.SliceCorrection, 1, 10, 0),
	}
	for _, to := range []types.Time{3 * minute, 100 * minute} {
		p, err := invoice.NewChargePeriod(accounting.Window{To: to})
		if err != nil {
			t.Fatal(err)
		}
		made := build(t, p.Month, prices()[1:2], all).Charges
		made = slices.DeleteFunc(made, func(c invoice.Charge) bool { return !p.Has(&c) })
		// 10 for 3 units up to 50 units, then 1.3: 100 for the first 30, 150 for 45, and 150 + 17 + 2 for 55.
		want := []invoice.Charge{
			{Dimension: "requests", Asset: "EUR/2", Seq: 1, Digest: accounting.Digest{1}, Window: window(0), Amount: types.MinorUnits(33)},
			{Dimension: "requests", Asset: "EUR/2", Seq: 2, Digest: accounting.Digest{2}, Window: window(5), Amount: types.MinorUnits(117)},
			{Dimension: "requests", Asset: "EUR/2", Seq: 3, Digest: accounting.Digest{3}, Window: window(1), Amount: types.MinorUnits(19)},
		}
		if to == 3*minute {
			want = slices.Delete(want, 1, 2)
		}
		if !slices.Equal(made, want) {
			t.Errorf("to %v: %+v\nwant %+v", to, made, want)
		}
	}
}
