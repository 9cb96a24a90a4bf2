package httpapi_test

import (
	"net/http"
	"testing"

	"macronode/adapters/httpapi"
	"macronode/adapters/httpapi/wire"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/pricing"
	"macronode/core/types"
)

// prepaidTerms returns the terms of the tenant of the tests.
func prepaidTerms(t *testing.T) *flow.Terms {
	t.Helper()
	price := func(name, asset string) pricing.Price {
		return pricing.Price{Name: name, Dimension: "requests", Asset: asset, Model: pricing.PerUnit, Per: 1, Tiers: []pricing.Tier{{Price: 1_000_000}}}
	}
	terms, err := flow.NewTerms(pricing.List{price("a", "EUR/2"), price("b", "POINT")}, "usage:prepaid", "usage:revenue")
	if err != nil {
		t.Fatal(err)
	}
	return terms
}

// TestPrepaidUsageEvents: the events of a prepaid tenant are paid in each mode, by the terms of the configuration at the
// time. The events of other tenants are not.
func TestPrepaidUsageEvents(t *testing.T) {
	h, terms := build(t), prepaidTerms(t)
	s := serve(t, h, func(c *httpapi.Config) { c.Snapshot.Prepaid = map[types.Tenant]*flow.Terms{1: terms} })
	binary := s.usageEvents("application/json", "{"+oneRequest+"}")
	for name, value := range map[string]string{"specversion": "1.0", "id": "2", "source": "s", "type": "t", "time": later(0)} {
		binary.Header.Set("Ce-"+name, value)
	}
	send := func(what string, r *http.Request, want *flow.Terms) {
		t.Helper()
		if a := s.send(r); a.status != http.StatusAccepted || h.usage().terms != want {
			t.Errorf("%s: %d %s with terms %v, want %v", what, a.status, a.body, h.usage().terms, want)
		}
	}
	send("structured", s.usageEvents(structured, usageEvent("1", "", oneRequest)), terms)
	send("binary", binary, terms)
	send("batch", s.usageEvents(batched, "["+usageEvent("3", "", oneRequest)+"]"), terms)
	next := prepaidTerms(t)
	s.api.SetSnapshot(httpapi.ConfigSnapshot{Prepaid: map[types.Tenant]*flow.Terms{1: next}})
	send("after a reload", s.usageEvents(structured, usageEvent("4", "", oneRequest)), next)
	s.api.SetSnapshot(httpapi.ConfigSnapshot{Prepaid: map[types.Tenant]*flow.Terms{2: next}})
	send("of a postpaid tenant", s.usageEvents(structured, usageEvent("5", "", oneRequest)), nil)
}

// TestPrepaidExceeded: the problem has the asset and the amount that the account lacks.
func TestPrepaidExceeded(t *testing.T) {
	h, terms := build(t), prepaidTerms(t)
	s := serve(t, h, func(c *httpapi.Config) { c.Snapshot.Prepaid = map[types.Tenant]*flow.Terms{1: terms} })
	h.usage().problem, h.usage().lacks = event.PrepaidExceeded, event.Shortfall{Asset: 2, Amount: types.Amount{Hi: 1}}
	a := s.send(s.usageEvents(structured, usageEvent("1", "", oneRequest)))
	p := parse[wire.Problem](t, a)
	if a.status != http.StatusPaymentRequired || p.Code != "insufficient_funds" || p.Retryable || p.Asset == nil || *p.Asset != "POINT" || p.MissingMinor == nil || *p.MissingMinor != "18446744073709551616" {
		t.Errorf("%d %s", a.status, a.body)
	}
	const want = "The available balance of usage:prepaid is less than the price of the usage, by 18446744073709551616 minor units of POINT. No event of the request was recorded."
	if p.Detail != want {
		t.Error(p.Detail)
	}
	if n := s.count.get("prepaid rejected"); n != 1 {
		t.Errorf("%d rejected requests were counted", n)
	}
}
