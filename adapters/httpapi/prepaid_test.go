package httpapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"macronode/adapters/httpapi"
	"macronode/adapters/httpapi/wire"
	"macronode/core/accounting"
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

// TestPrepaidRequests: objects, the S3 interface and upstreams serve a request of a prepaid tenant only if its account can pay for it.
// The wallet and the accounting serve it always.
func TestPrepaidRequests(t *testing.T) {
	h, terms := build(t), prepaidTerms(t)
	m := &meteredRequests{usage: make(chan accounting.Request, 9)}
	s := serve(t, h, func(c *httpapi.Config) {
		c.Snapshot.Prepaid, c.Metering, c.Snapshot.Proxy = map[types.Tenant]*flow.Terms{1: terms}, m, echoProxy{}
	})
	upstream := func() *http.Request {
		r := s.post("issue", "k", "four")
		r.URL.Path = "/echo"
		return r
	}
	if a := s.send(upstream()); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if r := <-m.usage; len(m.reserved) != 1 || m.reserved[0].In != 4 || m.reserved[0].Labels.Service != "gateway" || r.In != 4 || m.canceled != 0 {
		t.Errorf("reserved %+v, used %+v, canceled %d", m.reserved, r, m.canceled)
	}
	m.why, m.lacks = event.PrepaidExceeded, event.Shortfall{Asset: 1, Amount: types.MinorUnits(7)}
	for what, r := range map[string]*http.Request{"upstream": upstream(), "object": s.get("/o/b3:" + strings.Repeat("0", 63) + "1"), "objects": s.get("/o")} {
		a := s.send(r)
		p := parse[wire.Problem](t, a)
		const want = "The available balance of usage:prepaid is less than the price of the usage, by 7 minor units of EUR/2. The request was not served."
		if a.status != http.StatusPaymentRequired || p.Code != "insufficient_funds" || p.Detail != want || *p.MissingMinor != "7" {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	if n := s.count.get("prepaid rejected"); n != 3 || m.canceled != 3 || len(m.usage) != 0 {
		t.Errorf("%d rejected requests were counted, %d canceled, %d have usage", n, m.canceled, len(m.usage))
	}
	m.why = event.AccountFrozen
	if a := s.send(upstream()); a.status != http.StatusForbidden || parse[wire.Problem](t, a).Code != "account_frozen" {
		t.Errorf("%d %s", a.status, a.body)
	}
	m.why = event.UsageCapacity
	if a := s.send(upstream()); a.status != http.StatusTooManyRequests || !strings.HasPrefix(parse[wire.Problem](t, a).Detail, "accounting.max_prepaid_lines limits") {
		t.Errorf("%d %s", a.status, a.body)
	}
	reserved := len(m.reserved)
	for what, r := range map[string]*http.Request{"balance": s.get("/v1/balance?account=a&asset=EUR"), "issue": s.post("issue", "k", issue), "usage": s.get("/v1/usage?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z")} {
		if a := s.send(r); a.status != http.StatusOK {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	if len(m.reserved) != reserved {
		t.Errorf("reserved %+v", m.reserved[reserved:])
	}
	s.api.SetSnapshot(httpapi.ConfigSnapshot{Proxy: echoProxy{}})
	if a := s.send(upstream()); a.status != http.StatusOK || len(m.reserved) != reserved {
		t.Errorf("of a postpaid tenant: %d %s, reserved %+v", a.status, a.body, m.reserved[reserved:])
	}
}

// TestPrepaidDownloads: the size of an object, or of a range, is reserved before the first byte is sent. A HEAD sends none.
func TestPrepaidDownloads(t *testing.T) {
	h, terms := build(t), prepaidTerms(t)
	m := &meteredRequests{usage: make(chan accounting.Request, 9)}
	s := serve(t, h, func(c *httpapi.Config) {
		c.Snapshot.Prepaid, c.Metering = map[types.Tenant]*flow.Terms{1: terms}, m
	})
	at := "/o/" + addressOf(large)
	for _, r := range []*http.Request{s.request("PUT", at, large), s.request("HEAD", at, ""), s.request("GET", at, ""), s.request("GET", at, "", "Range", "bytes=5-9")} {
		if a := s.send(r); a.status/100 != 2 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	if want := []uint64{160_000, 5}; !slices.Equal(m.sizes, want) {
		t.Errorf("reserved %v, want %v", m.sizes, want)
	}
	m.unpaid, m.lacks = event.PrepaidExceeded, event.Shortfall{Asset: 1, Amount: types.MinorUnits(7)}
	canceled, counted := m.canceled, len(m.usage)
	a := s.send(s.request("GET", at, ""))
	if p := parse[wire.Problem](t, a); a.status != http.StatusPaymentRequired || p.Code != "insufficient_funds" || *p.MissingMinor != "7" || a.header.Get("Etag") != "" {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	if m.canceled != canceled+1 || len(m.usage) != counted {
		t.Errorf("canceled %d, counted %d", m.canceled-canceled, len(m.usage)-counted)
	}
}
