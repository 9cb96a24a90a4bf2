package charges

import (
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/accounting"
	"macronode/core/invoice"
	"macronode/core/pricing"
	"macronode/core/types"
)

var testPrices = pricing.List{
	{Name: "a", Dimension: "requests", Asset: "EUR", Model: pricing.Graduated, Per: 7, Tiers: []pricing.Tier{{UpTo: 20, Price: 3_000_000, Flat: 500_000}, {Price: 1_500_000}}},
	{Name: "b", Dimension: "requests", Labels: []accounting.Label{{Name: "service", Value: "shop"}}, Asset: "EUR", Model: pricing.Volume, Per: 3, Tiers: []pricing.Tier{{UpTo: 9, Price: 4_000_000}, {Price: 1_000_000}}},
	{Name: "c", Dimension: "bytes_in", Asset: "USD", Model: pricing.PerUnit, Per: 5, Tiers: []pricing.Tier{{Price: 2_000_000}}},
	{Name: "d", Dimension: "bytes_in", Asset: "EUR", Model: pricing.Flat, Per: 1, Tiers: []pricing.Tier{{Price: 2_500_000}}},
}

// TestChargesAgreeWithInvoice: the charges of the product are certified. A charge that is missing, of another amount, to another account
// or of another slice is not.
func TestChargesAgreeWithInvoice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Period{Tenant: 3, From: 1000, To: 9000, Prices: testPrices, Payer: "ann", Beneficiary: "shop"}
		b := invoice.New(p.Tenant, accounting.Window{From: 1000, To: 9000}, p.Prices)
		j := New(Config{})
		seqs := map[string]uint64{}
		for range rapid.IntRange(1, 12).Draw(t, "slices") {
			dimension := rapid.SampledFrom([]string{"requests", "bytes_in"}).Draw(t, "dimension")
			seqs[dimension]++
			from := rapid.Int64Range(0, 9).Draw(t, "window") * 1000
			s := slice{tenant: p.Tenant, dimension: dimension, seq: seqs[dimension]}
			of := accounting.Slice{Tenant: p.Tenant, Dimension: []byte(dimension), Seq: s.seq, Kind: accounting.SliceUsage, Window: accounting.Window{From: types.Time(from), To: types.Time(from + 1000)}}
			for _, labels := range []string{"", "service=shop,method=get"}[rapid.IntRange(0, 1).Draw(t, "rows"):] {
				value := rapid.Uint64Range(0, 30).Draw(t, "value")
				s.rows = append(s.rows, Row{Tenant: p.Tenant, Dimension: dimension, Labels: labels, From: from, Value: value, Events: 1})
				of.Rows = append(of.Rows, accounting.Row{Labels: []byte(labels), Count: accounting.Count{Value: value, Events: 1}})
			}
			if j.postpaid = append(j.postpaid, s); b.Add(&of) != nil {
				t.Fatal("the slice is not added")
			}
		}
		bill, err := b.Invoice()
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "is partial") {
			p.Until = rapid.Int64Range(1, 9).Draw(t, "until") * 1000
			bill.Charges = slices.DeleteFunc(bill.Charges, func(c invoice.Charge) bool { return c.Window.From >= types.Time(p.Until) })
		}
		for i := range bill.Charges {
			c := &bill.Charges[i]
			is := payment{c.Ref(p.Tenant), p.Payer, p.Beneficiary, c.Asset, new(big.Int).SetUint64(c.Amount.Lo)}
			if c.Refund {
				is.from, is.to = is.to, is.from
			}
			j.charges[is.key] = is
		}
		if made, err := j.Charged(p); err != nil || made != len(bill.Charges) {
			t.Fatalf("%d charges of %d: %v", made, len(bill.Charges), err)
		}
		if len(bill.Charges) == 0 {
			return
		}
		ref := bill.Charges[rapid.IntRange(0, len(bill.Charges)-1).Draw(t, "charge")].Ref(p.Tenant)
		was := j.charges[ref]
		for i, spoil := range []func(){
			func() { delete(j.charges, ref) },
			func() { was.amount = new(big.Int).Add(was.amount, big.NewInt(1)); j.charges[ref] = was },
			func() { was.to = "else"; j.charges[ref] = was },
			func() { was.asset = "JPY"; j.charges[ref] = was },
			func() { j.charges["usage:99:"] = was },
		} {
			right := j.charges[ref]
			was = right
			spoil()
			if _, err := j.Charged(p); err == nil {
				t.Fatalf("spoiled by %d, and certified", i)
			}
			j.charges[ref] = right
			delete(j.charges, "usage:99:")
		}
		if j.readCharges(&frame{charges: []payment{j.charges[ref]}}) == nil {
			t.Fatal("a slice is charged again")
		}
	})
}

// TestReadFrameRejectsDamage: bytes that are no frame are an error, and no panic.
func TestReadFrameRejectsDamage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.Byte().Draw(t, "kind")
		payload := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "payload")
		body := append([]byte{1, 1, 0}, make([]byte, 16)...)
		body = append(append(body, kind, byte(len(payload)), 0), payload...)
		if f, err := readFrame(body); err == nil && f.lsn != 0 {
			t.Fatalf("a frame of %v", f.lsn)
		}
	})
}
