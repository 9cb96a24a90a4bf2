package kill_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"testing"
	"time"

	"macronode/chaos/charges"
	"macronode/chaos/kill"
	"macronode/core/accounting"
	"macronode/core/pricing"
	"macronode/core/types"
)

// TestKillPrepaidUsage kills the real binary while clients report usage that is paid as it is recorded, until the account is
// empty, and send again what was not acknowledged. No event is paid twice or recorded without its price: each unit costs
// one, and at the end what was earned is what was recorded.
func TestKillPrepaidUsage(t *testing.T) {
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	const payer, revenue = "usage:prepaid", "usage:revenue"
	price := `{"name":%q,"dimension":%q,"asset":"EUR/2","model":"per_unit","price":"1"}`
	n := &kill.Node{Binary: binary, Data: t.TempDir(), Args: []string{"--set", "accounting.window=1s", "--set", "accounting.grace=0s",
		"--set", "accounting.prices=[" + fmt.Sprintf(price, "a", "requests") + "," + fmt.Sprintf(price, "b", "bytes_in") + "]",
		"--set", fmt.Sprintf(`accounting.prepaid=[{"tenant":"default","payer":%q,"beneficiary":%q}]`, payer, revenue)}}
	var all []*kill.UsageClient
	for i := range uint64(6) {
		c := kill.NewUsageClient(i + 1)
		c.PaidFrom = payer
		all = append(all, c)
	}
	dice := types.NewRand(*seed)
	for range *kills/2 + 1 {
		start(t, n)
		killUnderLoad(t, n, all, &dice, func() {})
	}
	start(t, n)
	repeats, cut, unknown, rejected := 0, 0, 0, 0
	value, events := uint64(0), uint64(0)
	for _, c := range all {
		if err := c.Settle(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		repeats, cut, unknown, rejected, value, events = repeats+c.Repeats, cut+c.Cut, unknown+c.Unknown, rejected+c.Rejected, value+c.Value, events+c.Events
	}
	sums, err := kill.SumUsage(t.Context(), n, "subject", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if got := sums[c.Subject]; got.Value != c.Value || got.Events != c.Events {
			t.Errorf("%s reported %d in %d events, the node has %+v", c.Subject, c.Value, c.Events, got)
		}
	}
	earned, left, issued := balance(t, n, revenue), balance(t, n, payer), issuedOf(t, n)
	if earned != value || earned+left != issued {
		t.Errorf("%d units are recorded, %d were earned; %d are left of %d", value, earned, left, issued)
	}
	slices := checkChains(t, n)
	if output, code := n.Stop(); code != 0 {
		t.Fatalf("exit %d:\n%s", code, output)
	}
	if repeats == 0 || cut == 0 || unknown == 0 || rejected == 0 || slices == 0 {
		t.Fatalf("%d repeats, %d cut, %d sent again, %d rejected, %d slices: no load", repeats, cut, unknown, rejected, slices)
	}
	j := certifyCharges(t, n, charges.Config{Lists: []pricing.List{{centEach("a", "requests"), centEach("b", "bytes_in")}}}, earned)
	if uint64(j.Events) != events {
		t.Errorf("%d events are recorded, %d were acknowledged", j.Events, events)
	}
	t.Logf("%d runs, %d units for as much, %d repeats, %d cut, %d sent again, %d rejected, %d slices", *kills/2+1, value, repeats, cut, unknown, rejected, slices)
}

// TestKillPrepaidRequests kills the real binary while clients put, read and delete objects, each request for one cent, until the account
// is empty and they issue more. A request that took effect is counted. At the end all that is counted is paid, and no more: what
// was due when the node was killed as well.
func TestKillPrepaidRequests(t *testing.T) {
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	const payer, revenue = "usage:prepaid", "usage:revenue"
	n := &kill.Node{Binary: binary, Data: t.TempDir(), Args: prepaidRequests(payer, revenue, `"service":"storage"`)}
	var all []*kill.ObjectClient
	for i := range uint64(6) {
		c := kill.NewObjectClient(i + 1)
		c.PaidFrom = payer
		all = append(all, c)
	}
	dice := types.NewRand(*seed)
	var (
		after  types.LSN
		bounds []charges.Bound
	)
	begins := func() {
		start(t, n)
		upto := types.LSN(folded(t, n))
		bounds = append(bounds, kill.UsedObjects(all, after, upto)...)
		after = upto
	}
	for range *kills/2 + 1 {
		begins()
		killUnderLoad(t, n, all, &dice, func() {})
	}
	begins()
	var puts, removed, cut, rejected uint64
	for _, c := range all {
		if err := c.Hold(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		puts, removed, cut, rejected = puts+uint64(c.Puts), removed+uint64(c.Removed), cut+uint64(c.Cut), rejected+uint64(c.Rejected)
	}
	var (
		used   kill.UsageSum
		earned uint64
	)
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		sums, err := kill.SumUsage(t.Context(), n, "service", "requests")
		if err != nil {
			t.Fatal(err)
		}
		if used, earned = sums["storage"], balance(t, n, revenue); used.Prepaid == used.Value && earned == used.Value {
			break
		}
		if time.Since(began) > patience {
			t.Fatalf("%+v was used, %d was earned, %d is left", used, earned, balance(t, n, payer))
		}
	}
	if left, issued := balance(t, n, payer), issuedOf(t, n); earned+left != issued {
		t.Errorf("%d was earned, and %d is left of %d", earned, left, issued)
	}
	routes, err := kill.SumUsage(t.Context(), n, "route", "requests")
	if err != nil {
		t.Fatal(err)
	}
	for route, effects := range map[string]uint64{"put_object": puts, "delete_object": removed} {
		if got := routes[route].Value; got < effects || got > effects+cut {
			t.Errorf("%s took effect %d times, and perhaps %d times more; %d are counted", route, effects, cut, got)
		}
	}
	slices := checkChains(t, n)
	if output, code := n.Stop(); code != 0 {
		t.Fatalf("exit %d:\n%s", code, output)
	}
	if puts == 0 || removed == 0 || cut == 0 || rejected == 0 || slices == 0 {
		t.Fatalf("%d puts, %d removed, %d cut, %d rejected, %d slices: no load", puts, removed, cut, rejected, slices)
	}
	j := certifyCharges(t, n, charges.Config{Lists: []pricing.List{{centEach("calls", "requests", accounting.Label{Name: "service", Value: "storage"})}}, MetersEffects: true}, earned)
	for route, effects := range map[string]uint64{"put_object": puts, "delete_object": removed} {
		if got := uint64(j.Effects[route]); got < effects || got > effects+cut {
			t.Errorf("%s took effect %d times, and perhaps %d times more; %d are in the journal", route, effects, cut, got)
		}
	}
	if _, err := j.Bounded("storage", append(bounds, kill.UsedObjects(all, after, math.MaxUint64)...)); err != nil {
		t.Error(err)
	}
	t.Logf("%d runs, %d puts, %d removed, %d cut, %d rejected, %d requests for as much, %d slices", *kills/2+1, puts, removed, cut, rejected, earned, slices)
}

// centEach is a price of one cent for each unit.
func centEach(name, dimension string, labels ...accounting.Label) pricing.Price {
	return pricing.Price{Name: name, Dimension: dimension, Labels: labels, Asset: "EUR/2", Model: pricing.PerUnit, Per: 1, Tiers: []pricing.Tier{{Price: 1_000_000}}}
}

// certifyCharges has the journal of a stopped node certified: what was earned is paid in it. The last flush may pay more.
func certifyCharges(t *testing.T, n *kill.Node, c charges.Config, earned uint64) *charges.Journal {
	t.Helper()
	c.Payer, c.Beneficiary = "usage:prepaid", "usage:revenue"
	j, err := kill.CertifyCharges(n.Data, c, c.Lists[0])
	if err != nil {
		t.Fatal(err)
	}
	if paid := j.Paid["EUR/2"]; paid == nil || !paid.IsUint64() || paid.Uint64() < earned {
		t.Errorf("the journal pays %v, %d was earned", paid, earned)
	}
	t.Logf("certified: %d events, %d requests in the frame of their effect, %d payments, %d slices", j.Events, j.Requests, j.Payments, j.Slices)
	return j
}

// TestS3RequestsNeedCredit: the S3 interface serves a request of a prepaid tenant if its account can pay for it.
func TestS3RequestsNeedCredit(t *testing.T) {
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	n := &kill.Node{Binary: binary, Data: t.TempDir(), Args: append(prepaidRequests("usage:prepaid", "usage:revenue", `"route":"s3_list_buckets"`), "--s3", freePort(t, 2))}
	start(t, n)
	var c credential
	run(t, &c, binary, "--json", "keys", "s3", "--data", n.Data)
	client, _ := c.connect()
	var api interface{ ErrorCode() string }
	if _, err := client.ListBuckets(t.Context(), nil); !errors.As(err, &api) || api.ErrorCode() != "PaymentRequired" {
		t.Errorf("without money: %v", err)
	}
	if status, body, err := n.Post(t.Context(), "/v1/issue", "money", `{"to":"usage:prepaid","asset":"EUR/2","amount_minor":"1"}`); err != nil || status != http.StatusOK {
		t.Fatalf("issue: %d %s, %v", status, body, err)
	}
	if _, err := client.ListBuckets(t.Context(), nil); err != nil {
		t.Errorf("with money: %v", err)
	}
	if _, err := client.ListBuckets(t.Context(), nil); !errors.As(err, &api) || api.ErrorCode() != "PaymentRequired" {
		t.Errorf("after it is used up: %v", err)
	}
	if output, code := n.Stop(); code != 0 {
		t.Fatalf("exit %d:\n%s", code, output)
	}
}

// prepaidRequests are the arguments of a node whose tenant pays one cent for each request with labels.
func prepaidRequests(payer, revenue, labels string) []string {
	return []string{"--set", "accounting.window=1s", "--set", "accounting.grace=0s", "--set", "accounting.meter_requests=true", "--set", "accounting.flush_interval=100ms",
		"--set", `accounting.prices=[{"name":"calls","dimension":"requests","labels":{` + labels + `},"asset":"EUR/2","model":"per_unit","price":"1"}]`,
		"--set", fmt.Sprintf(`accounting.prepaid=[{"tenant":"default","payer":%q,"beneficiary":%q}]`, payer, revenue)}
}

// balance returns the balance of an account.
func balance(t *testing.T, n *kill.Node, account string) uint64 {
	t.Helper()
	var to struct {
		Balance uint64 `json:"amount_minor,string"`
	}
	status, body, err := n.Get(t.Context(), "/v1/balance?asset=EUR/2&account="+account)
	if err != nil || status != http.StatusOK || json.Unmarshal(body, &to) != nil {
		t.Fatalf("balance: %d %.200s %v", status, body, err)
	}
	return to.Balance
}

// issuedOf returns the money that was ever issued.
func issuedOf(t *testing.T, n *kill.Node) uint64 {
	t.Helper()
	var to struct {
		Assets []struct {
			Issued uint64 `json:"issued_minor,string"`
		}
	}
	status, body, err := n.GetIndexed(t.Context(), "/v1/assets")
	if err != nil || status != http.StatusOK || json.Unmarshal(body, &to) != nil || len(to.Assets) != 1 {
		t.Fatalf("assets: %d %.200s %v", status, body, err)
	}
	return to.Assets[0].Issued
}
