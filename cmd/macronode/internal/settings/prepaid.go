package settings

import (
	"slices"

	"macronode/adapters/config"
	"macronode/core/flow"
	"macronode/core/pricing"
	"macronode/core/types"
)

// Arrears are the terms by which arrears of prepaid usage are collected, and those of all prices that it can have, without accounts.
type Arrears struct {
	Collected map[types.Tenant]*flow.Terms
	Prices    *flow.Terms
}

// prepaidTerms returns the terms of tenants that pay for usage as it is recorded, and those of arrears.
func prepaidTerms(c *config.Config) (prepaid map[types.Tenant]*flow.Terms, a Arrears) {
	prepaid, a = map[types.Tenant]*flow.Terms{}, Arrears{map[types.Tenant]*flow.Terms{}, termsOf(c, "", "")}
	for _, p := range c.Usage.Prepaid {
		tenant, ok := types.ParseTenant(p.Tenant)
		types.Assert(ok, "settings: the configuration has invalid prepaid tenants")
		a.Collected[tenant] = termsOf(c, p.Payer, p.Beneficiary)
		if !p.ArrearsOnly {
			prepaid[tenant] = a.Collected[tenant]
		}
	}
	return prepaid, a
}

func termsOf(c *config.Config, payer, beneficiary string) *flow.Terms {
	prices := slices.DeleteFunc(c.PriceList(), func(p pricing.Price) bool { return p.PerWindow }) // not of prepaid usage
	terms, err := flow.NewTerms(prices, payer, beneficiary)
	types.Assert(err == nil, "settings: the configuration has invalid prepaid tenants")
	return terms
}
