package config

import (
	"reflect"
	"testing"

	"macronode/core/accounting"
	"macronode/core/pricing"
)

// TestPriceList: the prices of a file are those of the list.
func TestPriceList(t *testing.T) {
	c, err := Load(sources(t, `accounting:
  prices:
    - { name: base, dimension: requests, asset: EUR/2, model: flat, price: "500" }
    - { name: calls, dimension: requests, labels: { route: /v1, service: shop }, asset: EUR/2, model: per_unit, price: "0.25", per: 1000 }
    - { name: out, dimension: bytes_out, asset: POINT, model: graduated, per: 1GiB, tiers: [{ up_to: 5, price: "2", flat: "0.5" }, { price: "1" }] }
    - { name: days, dimension: custom:days, asset: EUR/2, model: flat, price: "7", each: window }
`, nil))
	if err != nil {
		t.Fatal(err)
	}
	want := pricing.List{
		{Name: "base", Dimension: "requests", Asset: "EUR/2", Model: pricing.Flat, Per: 1, Tiers: []pricing.Tier{{Price: 500_000_000}}},
		{Name: "calls", Dimension: "requests", Labels: []accounting.Label{{Name: "service", Value: "shop"}, {Name: "route", Value: "/v1"}}, Asset: "EUR/2",
			Model: pricing.PerUnit, Per: 1000, Tiers: []pricing.Tier{{Price: 250_000}}},
		{Name: "out", Dimension: "bytes_out", Asset: "POINT", Model: pricing.Graduated, Per: 1 << 30, Tiers: []pricing.Tier{{UpTo: 5, Price: 2_000_000, Flat: 500_000}, {Price: 1_000_000}}},
		{Name: "days", Dimension: "custom:days", Asset: "EUR/2", Model: pricing.Flat, PerWindow: true, Per: 1, Tiers: []pricing.Tier{{Price: 7_000_000}}},
	}
	if got := c.PriceList(); !reflect.DeepEqual(got, want) || got.Check() != nil {
		t.Errorf("%+v, %v\nwant\n%+v", got, got.Check(), want)
	}
}
