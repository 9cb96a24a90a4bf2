package httpapi_test

import (
	"strings"
	"testing"

	"macronode/adapters/httpapi"
	"macronode/adapters/httpapi/wire"
	"macronode/core/event"
	"macronode/core/types"
)

func TestBalances(t *testing.T) {
	s := serve(t, build(t))
	s.send(s.post("issue", "k1", issue))
	s.send(s.post("transfer", "k2", transfer))
	for _, c := range []struct {
		account, body string
	}{
		{"a", `{"account":"a","asset":"USD/2","amount_minor":"993","held_minor":"0","available_minor":"993","as_of_seq":2,"as_of":"2023-11-14T22:13:20.000Z","stale_ms":0,"next_nonce":2}`},
		{"b", `{"account":"b","asset":"USD/2","amount_minor":"7","held_minor":"0","available_minor":"7","as_of_seq":2,"as_of":"2023-11-14T22:13:20.000Z","stale_ms":0,"next_nonce":1}`},
		{"nobody", `{"account":"nobody","asset":"USD/2","amount_minor":"0","held_minor":"0","available_minor":"0","as_of_seq":2,"as_of":"2023-11-14T22:13:20.000Z","stale_ms":0,"next_nonce":1}`},
		{"issuance:USD/2", `{"account":"issuance:USD/2","asset":"USD/2","amount_minor":"-1000","held_minor":"0","available_minor":"-1000","as_of_seq":2,"as_of":"2023-11-14T22:13:20.000Z","stale_ms":0,"next_nonce":1}`},
	} {
		if a := s.send(s.get("/v1/balance?account=" + c.account + "&asset=USD/2")); a.status != 200 || a.body != c.body {
			t.Errorf("%s: %d %s", c.account, a.status, a.body)
		}
	}
	if a := s.send(s.get("/v1/balance?asset=USD%2F2&account=%61&min_seq=2")); parse[wire.Balance](t, a).AmountMinor != "993" {
		t.Errorf("escaped, in another order: %+v", a)
	}
}

// Queries are strict; otherwise a misspelt min_seq would silently read too early.
func TestQueriesAreStrict(t *testing.T) {
	s := serve(t, build(t))
	for _, q := range []string{
		"", "account=a", "asset=A", "account=&asset=A", "account=a&asset=", "account=a&account=a&asset=A", "account=a&asset=A&asset=B",
		"account=a&asset=A&atleast=1", "account=a&asset=A&x", "account=a&asset=A&=", "Account=a&asset=A", "account=a;asset=A", "account=%zz&asset=A",
		"account=a.b&asset=A", "account=a+b&asset=A", "account=a%00&asset=A", "account=" + strings.Repeat("a", 257) + "&asset=A", "account=a&asset=US:D",
		"account=a&asset=A&min_seq=", "account=a&asset=A&min_seq=-1", "account=a&asset=A&min_seq=01", "account=a&asset=A&min_seq=+1",
		"account=a&asset=A&min_seq=1.0", "account=a&asset=A&min_seq=9007199254740992", "account=a&asset=A&min_seq=1&min_seq=1", "account=a&asset=A&min_seq=0x1",
	} {
		if a := s.send(s.get("/v1/balance?" + q)); a.status != 400 {
			t.Errorf("%q: %d", q, a.status)
		}
	}
	for _, q := range []string{"account=a&asset=A&min_seq=0", "account=issuance:&asset=A"} {
		if a := s.send(s.get("/v1/balance?" + q)); a.status != 200 {
			t.Errorf("%q: %d", q, a.status)
		}
	}
}

func TestReadsNeedScope(t *testing.T) {
	s := serve(t, build(t))
	for _, path := range []string{"/v1/balance?account=a&asset=A", "/v1/tx/tx_0123456789abcdef0000000000010000"} {
		for authorization, want := range map[string]int{"": 401, bearer(9): 401, bearer(3): 403} {
			r := s.get(path)
			r.Header.Set("Authorization", authorization)
			if a := s.send(r); a.status != want {
				t.Errorf("%s as %q: %d", path, authorization, a.status)
			}
		}
	}
}

func TestMinSeqWaitsUntilDeadline(t *testing.T) {
	s := serve(t, build(t))
	a := s.send(s.get("/v1/balance?account=a&asset=A&min_seq=1"))
	if p := parse[wire.Problem](t, a); a.status != 504 || p.Code != wire.ProblemCodeTimeout || s.count.get("timed out timeout") != 1 {
		t.Fatalf("%+v, counted %v", a, s.count.of)
	}
}

// Balances are served while the disk stalls, and report how old they may be.
func TestBalanceReportsStaleness(t *testing.T) {
	s := serve(t, build(t))
	s.send(s.post("issue", "k1", issue))
	for _, c := range []struct {
		name   string
		change func(*event.Status)
		stale  int64
	}{
		{"nothing newer was decided", func(st *event.Status) { st.At += 3000 }, 0},
		{"something newer waits for the disk", func(st *event.Status) { st.LSN++ }, 3000},
		{"by a clock that is behind", func(st *event.Status) { st.At -= 4000 }, 0},
	} {
		s.set(c.change)
		if b := parse[wire.Balance](t, s.send(s.get("/v1/balance?account=a&asset=USD/2"))); b.StaleMs != c.stale {
			t.Errorf("%s: %d ms", c.name, b.StaleMs)
		}
	}
}

// TestMissingRecordIsNotAlways404: a txid that the journal has lost, or that is not durable yet, is not answered
// with 404, because that would deny a payment.
func TestMissingRecordIsNotAlways404(t *testing.T) {
	for _, c := range []struct {
		s    event.Status
		at   types.LSN
		want event.Problem
	}{
		{event.Status{LSN: 9, Applied: 9}, 10, event.NotFound},
		{event.Status{LSN: 9, Applied: 9}, 5, event.NotFound},
		{event.Status{LSN: 9, Applied: 7}, 8, event.OutcomeUnknown},
		{event.Status{LSN: 9, Applied: 9, Fault: event.Damaged}, 10, event.Unavailable},
		{event.Status{LSN: 9, Applied: 9, Fault: event.Damaged}, 5, event.NotFound},
	} {
		if got := httpapi.Missing(c.s, types.Position{LSN: c.at}); got != c.want {
			t.Errorf("%v of %+v: %v, want %v", c.at, c.s, got, c.want)
		}
	}
}
