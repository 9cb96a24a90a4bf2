package settings

import (
	"macronode/adapters/config"
	"macronode/core/flow"
	"macronode/core/types"
)

// prepaidTerms returns the terms of tenants that pay for usage as it is recorded.
func prepaidTerms(c *config.Config) map[types.Tenant]*flow.Terms {
	all, prices := map[types.Tenant]*flow.Terms{}, c.PriceList()
	for _, p := range c.Usage.Prepaid {
		tenant, ok := types.ParseTenant(p.Tenant)
		terms, err := flow.NewTerms(prices, p.Payer, p.Beneficiary)
		types.Assert(ok && err == nil, "settings: the configuration has invalid prepaid tenants")
		all[tenant] = terms
	}
	return all
}
