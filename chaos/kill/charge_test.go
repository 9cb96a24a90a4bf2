package kill_test

import (
	"context"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"macronode/chaos/charges"
	"macronode/chaos/kill"
	"macronode/core/accounting"
	"macronode/core/pricing"
	"macronode/core/types"
)

// TestKillCharges kills the real binary while the slices of a month are charged, up to an end, and late usage makes more of them before and
// after that end. The command is repeated until it has charged all. From the journal it is certified that each slice is charged once, with what it adds to the invoice.
func TestKillCharges(t *testing.T) {
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	const payer, revenue = "customer", "shop"
	n := &kill.Node{Binary: binary, Data: t.TempDir(), Args: []string{"--set", "accounting.window=1s", "--set", "accounting.grace=0s", "--set",
		`accounting.prices=[{"name":"a","dimension":"requests","asset":"EUR/2","model":"graduated","per":700,"tiers":[{"up_to":100000,"price":"3"},{"price":"1.5"}]},` +
			`{"name":"b","dimension":"bytes_in","labels":{"route":"r1"},"asset":"EUR/2","model":"per_unit","per":900,"price":"1"}]`}}
	of := charges.Period{Tenant: types.DefaultTenant, Payer: payer, Beneficiary: revenue, Prices: pricing.List{
		{Name: "a", Dimension: "requests", Asset: "EUR/2", Model: pricing.Graduated, Per: 700, Tiers: []pricing.Tier{{UpTo: 100_000, Price: 3_000_000}, {Price: 1_500_000}}},
		centEach("b", "bytes_in", accounting.Label{Name: "route", Value: "r1"})}}
	of.Prices[1].Per = 900
	var all []*kill.UsageClient
	for i := range uint64(3) {
		all = append(all, kill.NewUsageClient(i+1))
	}
	dice := types.NewRand(*seed)
	start(t, n)
	if status, body, err := n.Post(t.Context(), "/v1/issue", "money", `{"to":"customer","asset":"EUR/2","amount_minor":"1000000000"}`); err != nil || status != http.StatusOK {
		t.Fatalf("issue: %d %s, %v", status, body, err)
	}
	killUnderLoad(t, n, all, &dice, func() {})
	month, to := loadedMonth(time.Now())
	of.From, of.To, of.Until = int64(month.From), int64(month.To), to.UnixMilli()
	from := time.UnixMilli(of.From).UTC()
	charge := func(ctx context.Context) (string, error) {
		out, err := exec.CommandContext(ctx, binary, "usage", "charge", "default", "--from", from.Format(time.RFC3339), "--to", to.Format(time.RFC3339), "--account-from", payer, "--account-to", revenue, "--data", n.Data).CombinedOutput()
		return string(out), err
	}
	cut := 0
	for rounds, round := *kills/10+1, 0; round < rounds || cut == 0 && round < 10*rounds; round++ { // a command may end before the kill
		start(t, n)
		if chargeAndKill(t, n, all, &dice, charge, revenue) {
			cut++
		}
	}
	start(t, n)
	for _, c := range all {
		if err := c.Settle(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	awaitSealed(t, n)
	if out, err := charge(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if again, err := charge(t.Context()); err != nil || !strings.Contains(again, "charges made: 0,") {
		t.Errorf("charged again: %v\n%s", err, again)
	}
	earned := balance(t, n, revenue)
	if output, code := n.Stop(); code != 0 {
		t.Fatalf("exit %d:\n%s", code, output)
	}
	j, err := kill.CertifyCharges(n.Data, charges.Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	made, err := j.Charged(of)
	if err != nil {
		t.Fatal(err)
	}
	if cut == 0 || made == 0 || earned == 0 {
		t.Fatalf("%d commands cut, %d charges: no load", cut, made)
	}
	t.Logf("%d commands cut, %d slices, %d charges certified, %d was earned", cut, j.Slices, made, earned)
}

// loadedMonth returns the month of most of the usage of the last three minutes, and the end of that usage: at the begin of a month, that is
// the month before.
func loadedMonth(now time.Time) (month accounting.Window, to time.Time) {
	now = now.UTC().Truncate(time.Second)
	month = accounting.MonthOf(types.Time(now.Add(-90 * time.Second).UnixMilli()))
	return month, time.UnixMilli(min(now.UnixMilli(), int64(month.To))).UTC()
}

// awaitSealed waits until no usage is open.
func awaitSealed(t *testing.T, n *kill.Node) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		sums, err := kill.SumUsage(t.Context(), n, "subject", "")
		if err != nil {
			t.Fatal(err)
		}
		open := uint64(0)
		for _, s := range sums {
			open += s.Open
		}
		if open == 0 {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("%d units are open", open)
		}
	}
}

// chargeAndKill kills a node while a command charges, and then the command. It reports whether that was cut.
func chargeAndKill(t *testing.T, n *kill.Node, all []*kill.UsageClient, dice *types.Rand, charge func(context.Context) (string, error), revenue string) bool {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	killUnderLoad(t, n, all, dice, func() {
		before := balance(t, n, revenue)
		go func() {
			_, err := charge(ctx)
			ended <- err
		}()
		for began := time.Now(); balance(t, n, revenue) == before && time.Since(began) < 3*time.Second && len(ended) == 0; {
			time.Sleep(time.Millisecond)
		}
	})
	stop()
	return <-ended != nil
}
