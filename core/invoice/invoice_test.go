package invoice_test

import (
	"errors"
	"math/big"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/accounting"
	"macronode/core/invoice"
	"macronode/core/pricing"
	"macronode/core/types"
)

const minute = 60_000

func large(a types.Amount) *big.Int {
	n := new(big.Int).Lsh(new(big.Int).SetUint64(a.Hi), 64)
	return n.Or(n, new(big.Int).SetUint64(a.Lo))
}

// prices are one of each model, with two assets and a filter.
func prices() pricing.List {
	shop := []accounting.Label{{Name: "service", Value: "shop"}}
	return pricing.List{
		{Name: "base", Dimension: "requests", Asset: "EUR/2", Model: pricing.Flat, Per: 1, Tiers: []pricing.Tier{{Price: 500_000_000}}},
		{Name: "calls", Dimension: "requests", Asset: "EUR/2", Model: pricing.Graduated, Per: 3, Tiers: []pricing.Tier{{UpTo: 50, Price: 10_000_000}, {Price: 1_300_000}}},
		{Name: "shop", Dimension: "requests", Labels: shop, Asset: "EUR/2", Model: pricing.Volume, Per: 1, Tiers: []pricing.Tier{{UpTo: 40, Price: 7_000_000}, {Price: 2_000_000}}},
		{Name: "points", Dimension: "requests", Asset: "POINT", Model: pricing.Flat, PerWindow: true, Per: 1, Tiers: []pricing.Tier{{Price: 1_500_000}}},
		{Name: "out", Dimension: "bytes_out", Asset: "EUR/2", Model: pricing.PerUnit, Per: 1000, Tiers: []pricing.Tier{{Price: 250_000}}},
	}
}

// anySlices draws the slices of a stream: usage in order of windows, and corrections of earlier ones.
func anySlices(t *rapid.T, dimension string) (all []accounting.Slice) {
	n := rapid.IntRange(0, 12).Draw(t, "slices")
	for i := range n {
		s := accounting.Slice{Tenant: 1, Dimension: []byte(dimension), Seq: uint64(i + 1), Kind: accounting.SliceUsage, Digest: accounting.Digest{byte(i)}}
		at := i
		if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
			s.Kind, at = accounting.SliceCorrection, rapid.IntRange(0, i).Draw(t, "window")
		}
		if rapid.IntRange(0, 3).Draw(t, "prepaid") == 0 {
			s.Kind += accounting.SlicePrepaid - accounting.SliceUsage
		}
		s.Window = accounting.Window{From: types.Time(at * minute), To: types.Time((at + 1) * minute)}
		for _, labels := range []string{"service=search", "service=shop"} {
			if rapid.Bool().Draw(t, labels) {
				s.Rows = append(s.Rows, accounting.Row{Labels: []byte(labels), Count: accounting.Count{Value: rapid.Uint64Range(0, 30).Draw(t, "value"), Events: 1}})
			}
		}
		all = append(all, s)
	}
	return all
}

func build(t interface{ Fatal(...any) }, period accounting.Window, l pricing.List, all []accounting.Slice) invoice.Invoice {
	b := invoice.New(1, period, l)
	for i := range all {
		if err := b.Add(&all[i]); err != nil {
			t.Fatal(err)
		}
	}
	v, err := b.Invoice()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// sums adds up charges by asset.
func sums(all []invoice.Charge) map[string]*big.Int {
	by := map[string]*big.Int{}
	for _, c := range all {
		if by[c.Asset] == nil {
			by[c.Asset] = new(big.Int)
		}
		amount := large(c.Amount)
		if c.Refund {
			amount.Neg(amount)
		}
		by[c.Asset].Add(by[c.Asset], amount)
	}
	return by
}

// TestChargesAddUp: the charges of the slices add up to the totals, and each line has the amount of its quantity. The
// order in which slices are added does not matter.
func TestChargesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := append(anySlices(t, "requests"), anySlices(t, "bytes_out")...)
		period := accounting.Window{From: types.Time(rapid.IntRange(0, 4).Draw(t, "from") * minute), To: types.Time(rapid.IntRange(5, 12).Draw(t, "to") * minute)}
		v := build(t, period, prices(), all)
		by := sums(v.Charges)
		for _, total := range v.Totals {
			sum := by[total.Asset]
			if sum == nil {
				sum = new(big.Int)
			}
			if sum.Cmp(large(total.Amount)) != 0 {
				t.Fatalf("%s: the charges are %v, the total is %v\n%+v", total.Asset, sum, total.Amount, v)
			}
		}
		for _, l := range v.Lines {
			units, late, windows := uint64(0), uint64(0), map[accounting.Window]bool{}
			for _, s := range all {
				for _, r := range s.Rows {
					if s.Window.From >= period.From && s.Window.From < period.To && l.Price.Dimension == string(s.Dimension) && l.Price.Matches(r.Labels) && l.Prepaid == s.Kind.IsPrepaid() {
						units, windows[s.Window] = units+r.Value, true
						if s.Kind.IsLate() {
							late += r.Value
						}
					}
				}
			}
			amount, err := l.Price.Amount(pricing.Quantity{Units: types.MinorUnits(units), Windows: uint64(len(windows))})
			if err != nil || l.Units != types.MinorUnits(units) || l.Late != types.MinorUnits(late) || l.Windows != uint64(len(windows)) || l.Amount != amount {
				t.Fatalf("%+v, want %d units, %d of them late, in %d windows for %v", l, units, late, len(windows), amount)
			}
		}
		postpaid := 0
		for _, s := range all {
			if s.Window.From >= period.From && s.Window.From < period.To && !s.Kind.IsPrepaid() {
				postpaid++
			}
		}
		if len(v.Postpaid) != postpaid {
			t.Fatalf("%d slices can have a charge, %d are listed", postpaid, len(v.Postpaid))
		}
		if again := build(t, period, prices(), rapid.Permutation(all).Draw(t, "order")); !reflect.DeepEqual(again, v) {
			t.Fatalf("in another order\n%+v\nwas\n%+v", again, v)
		}
	})
}

// TestLaterSlicesChangeNoCharge: what was charged stays as it is when more of the period is sealed.
func TestLaterSlicesChangeNoCharge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := anySlices(t, "requests")
		period := accounting.Window{From: 0, To: 100 * minute}
		n := rapid.IntRange(0, len(all)).Draw(t, "sealed")
		before := build(t, period, prices(), all[:n]).Charges
		after := slices.DeleteFunc(build(t, period, prices(), all).Charges, func(c invoice.Charge) bool { return c.Seq > uint64(n) })
		if !reflect.DeepEqual(before, after) && len(before)+len(after) > 0 {
			t.Fatalf("%+v\nbecame\n%+v", before, after)
		}
	})
}

// window returns a window of a minute.
func window(at int) accounting.Window {
	return accounting.Window{From: types.Time(at * minute), To: types.Time((at + 1) * minute)}
}

// slice is one slice of requests with rows of search and shop.
func slice(seq uint64, kind accounting.SliceKind, at int, search, shop uint64) accounting.Slice {
	s := accounting.Slice{Tenant: 1, Dimension: []byte("requests"), Seq: seq, Kind: kind, Digest: accounting.Digest{byte(seq)}, Window: window(at)}
	for _, r := range []accounting.Row{{Labels: []byte("service=search"), Count: accounting.Count{Value: search}}, {Labels: []byte("service=shop"), Count: accounting.Count{Value: shop}}} {
		if r.Value > 0 {
			s.Rows = append(s.Rows, r)
		}
	}
	return s
}

// TestInvoice shows lines, totals and charges of a period with a correction, and a volume price that becomes cheaper.
func TestInvoice(t *testing.T) {
	all := []accounting.Slice{
		slice(4, accounting.SliceUsage, 0, 9, 0),  // before the period
		slice(5, accounting.SliceUsage, 1, 0, 40), // 40 units for 7
		slice(6, accounting.SliceUsage, 2, 1, 0),
		slice(7, accounting.SliceCorrection, 1, 0, 1), // 41 units for 2
		slice(8, accounting.SliceCorrection, 0, 5, 5), // before the period
	}
	l := prices()[2:4]
	v := build(t, accounting.Window{From: minute, To: 3 * minute}, l, all)
	eur, points := func(n uint64) types.Amount { return types.MinorUnits(n) }, types.MinorUnits
	want := invoice.Invoice{Tenant: 1, Period: accounting.Window{From: minute, To: 3 * minute}, Prices: l,
		Lines: []invoice.Line{
			{Price: &l[0], Slices: 2, First: 5, Last: 7, Head: accounting.Digest{7}, Windows: 1, Units: eur(41), Late: eur(1), Amount: eur(82)},
			{Price: &l[1], Slices: 3, First: 5, Last: 7, Head: accounting.Digest{7}, Windows: 2, Units: eur(42), Late: eur(1), Amount: points(3)},
		},
		Totals: []invoice.Total{{"EUR/2", eur(82)}, {"POINT", points(3)}},
		Charges: []invoice.Charge{
			{Dimension: "requests", Asset: "EUR/2", Seq: 5, Digest: accounting.Digest{5}, Window: window(1), Amount: eur(280)},
			{Dimension: "requests", Asset: "EUR/2", Seq: 7, Digest: accounting.Digest{7}, Window: window(1), Amount: eur(198), Refund: true},
			{Dimension: "requests", Asset: "POINT", Seq: 5, Digest: accounting.Digest{5}, Window: window(1), Amount: points(2)},
			{Dimension: "requests", Asset: "POINT", Seq: 6, Digest: accounting.Digest{6}, Window: window(2), Amount: points(1)},
		},
		Postpaid: []invoice.Slice{{"requests", 5, accounting.Digest{5}}, {"requests", 6, accounting.Digest{6}}, {"requests", 7, accounting.Digest{7}}},
		Ranges:   []invoice.Range{{"requests", accounting.SeqRange{First: 5, Last: 7}}},
	}
	if !reflect.DeepEqual(v, want) {
		t.Errorf("%+v\nwant\n%+v", v, want)
	}
	unpriced := build(t, accounting.Window{From: 0, To: minute}, l[:1], all)
	if !reflect.DeepEqual(unpriced.Unpriced, []invoice.Unpriced{{"requests", types.MinorUnits(14)}}) {
		t.Errorf("unpriced: %+v", unpriced.Unpriced)
	}
}

// TestRejections: a slice of another tenant, and an amount that is too large.
func TestRejections(t *testing.T) {
	other := slice(1, accounting.SliceUsage, 0, 1, 0)
	other.Tenant = 2
	if err := invoice.New(1, accounting.Window{From: 0, To: minute}, nil).Add(&other); !errors.Is(err, invoice.ErrTenant) {
		t.Error(err)
	}
	l := pricing.List{{Name: "p", Dimension: "requests", Asset: "EUR/2", Model: pricing.PerUnit, Per: 1, Tiers: []pricing.Tier{{Price: pricing.MaxMicros}}}}
	b := invoice.New(1, accounting.Window{From: 0, To: minute}, l)
	most := slice(1, accounting.SliceUsage, 0, ^uint64(0), ^uint64(0))
	for i := range uint64(1 << 18) {
		most.Seq = i + 1
		if err := b.Add(&most); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Invoice(); !errors.Is(err, pricing.ErrAmount) {
		t.Error(err)
	}
	full := invoice.New(1, accounting.Window{From: 0, To: minute}, l)
	for range invoice.MaxParts / 2 { // each is a slice and a pair
		if err := full.Add(&most); err != nil {
			t.Fatal(err)
		}
	}
	if err := full.Add(&most); !errors.Is(err, invoice.ErrParts) {
		t.Error(err)
	}
}

// TestRefsDiffer: a ref follows from tenant, dimension, seq and asset, and is a valid ref of the ledger.
func TestRefsDiffer(t *testing.T) {
	base := invoice.Charge{Dimension: "requests", Asset: "EUR/2", Seq: 1, Amount: types.MinorUnits(5)}
	same := base
	same.Amount, same.Digest, same.Refund = types.MinorUnits(6), accounting.Digest{1}, true
	if same.Ref(1) != base.Ref(1) {
		t.Error("a ref depends on the amount or the digest")
	}
	seen := map[string]int{}
	for i, c := range []struct {
		tenant types.Tenant
		charge invoice.Charge
	}{
		{1, base}, {2, base}, {1, invoice.Charge{Dimension: "requests", Asset: "EUR/2", Seq: 2}}, {1, invoice.Charge{Dimension: "requests", Asset: "EUR/3", Seq: 1}},
		{1, invoice.Charge{Dimension: "requests_read", Asset: "EUR/2", Seq: 1}}, {1, invoice.Charge{Dimension: "requestsEUR", Asset: "/2", Seq: 1}}, {1, invoice.Charge{Dimension: "requests", Asset: "EUR/2", Seq: 1<<64 - 1}},
	} {
		ref := c.charge.Ref(c.tenant)
		if other, known := seen[ref]; known || types.CheckRef(ref) != nil {
			t.Errorf("%d: %s, %v, as %d", i, ref, types.CheckRef(ref), other)
		}
		seen[ref] = i
	}
}
