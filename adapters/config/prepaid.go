package config

import "macronode/core/accounting"

// A PrepaidTenant pays for usage as it is recorded.
type PrepaidTenant struct {
	Tenant      string `key:"tenant" form:"tenant" need:"yes" doc:"Tenant: default, or its number."`
	Payer       string `key:"payer" form:"account" need:"yes" doc:"Account of the tenant that pays."`
	Beneficiary string `key:"beneficiary" form:"account" need:"yes" doc:"Account of the tenant that is credited."`
	ArrearsOnly bool   `key:"arrears_only" default:"false" doc:"The tenant is postpaid, and only what it owes for prepaid usage of before is collected."`
}

// prepaid checks a prepaid tenant, and that each price can be paid as usage is recorded.
func (c *Config) prepaid(at int, refuse refuser) {
	p, prices := &c.Usage.Prepaid[at], c.Usage.Prices
	for i := range at {
		if c.Usage.Prepaid[i].Tenant == p.Tenant {
			refuse(".tenant", "is %s again: accounting.prepaid[%d] has it", p.Tenant, i)
		}
	}
	if p.Payer == p.Beneficiary {
		refuse(".beneficiary", "is %s, which is the payer: the price moves from one account to another", p.Beneficiary)
	}
	if at > 0 {
		return // what follows is of all prepaid tenants
	}
	if len(prices) == 0 {
		refuse("", "needs prices: set accounting.prices (%s)", c.layer("accounting.prices"))
	}
	for i := range prices {
		if prices[i].Each == "window" {
			refuse("", "cannot pay for accounting.prices[%d] (%s), which is for each window: set each to invoice", i, c.layer("accounting.prices"))
		}
	}
	if need := len(c.Usage.Prepaid) * len(prices) * accounting.LineMonths; need > c.Usage.Lines {
		refuse("", "with %d tenants and %d prices in %d months needs %d lines: must be at most accounting.max_prepaid_lines (%s), which is %d",
			len(c.Usage.Prepaid), len(prices), accounting.LineMonths, need, c.layer("accounting.max_prepaid_lines"), c.Usage.Lines)
	}
}
