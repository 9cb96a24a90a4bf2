package cli

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"macronode/cmd/internal/usagefile"
	"macronode/core/accounting"
	"macronode/core/invoice"
	"macronode/core/pricing"
	"macronode/core/types"
)

// ledgerPeer is a fake node with slices and a ledger of transfers between ann and shop. Its faults are drawn.
type ledgerPeer struct {
	mu      sync.Mutex
	slices  []string
	faults  []string // of the next requests, one each: "", busy, cut, late_cut, stop, other
	stopped bool
	nonces  map[string]int
	byRef   map[string]string // receipts
	byKey   map[string]string
	balance map[string]int // of shop, by asset
	made    int            // transfers
	memos   map[int]string // of each, by its seq

	sealedTo string // empty: all of January
}

// fault returns the fault of the next request.
func (p *ledgerPeer) fault() (f string) {
	if len(p.faults) > 0 {
		f, p.faults = p.faults[0], p.faults[1:]
	}
	return f
}

func (p *ledgerPeer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fault := p.fault()
	answer := func(status int, body string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body) //nolint:errcheck // the client sees it
	}
	problem := func(status int, code string, retry bool) {
		answer(status, fmt.Sprintf(`{"code":%q,"detail":"Drawn.","retryable":%v,"status":%d}`, code, retry, status))
	}
	if p.stopped = p.stopped || fault == "stop"; p.stopped { // the command ends as if it was killed
		problem(403, "forbidden", false)
		return
	}
	switch {
	case fault == "busy":
		problem(429, "busy", true)
		return
	case fault == "cut":
		panic(http.ErrAbortHandler)
	case fault == "other": // another operation of ann takes the nonce
		p.nonces["ann EUR/2"]++
	}
	switch q := r.URL.Query(); {
	case r.URL.Path == "/v1/usage":
		answer(200, `{"tenant":"default","from":"2026-01-01T00:00:00.000Z","to":"2026-01-02T00:00:00.000Z","usage":[],"sealed_to":"`+cmp.Or(p.sealedTo, "2026-02-01T00:00:00.000Z")+`","as_of":"2026-01-03T00:00:00.000Z"}`)
	case r.URL.Path == "/v1/usage-slices":
		answer(200, `{"slices":[`+strings.Join(p.slices, ",")+`],"sealed_to":"2026-02-01T00:00:00.000Z","as_of":"2026-01-03T00:00:00.000Z"}`)
	case r.URL.Path == "/v1/balance":
		answer(200, fmt.Sprintf(`{"account":%q,"asset":%q,"balance_minor":"0","next_nonce":%d}`, q.Get("account"), q.Get("asset"), 1+p.nonces[q.Get("account")+" "+q.Get("asset")]))
	case r.URL.Path == "/v1/assets":
		answer(200, `{"assets":[{"asset":"EUR/2","issued_minor":"0","burned_minor":"0"},{"asset":"POINT","issued_minor":"0","burned_minor":"0"},{"asset":"USD/2","issued_minor":"0","burned_minor":"0"}],"as_of":"2026-01-03T00:00:00.000Z"}`)
	case r.URL.Path == "/v1/tx" && p.byRef[q.Get("ref")] != "":
		answer(200, p.byRef[q.Get("ref")])
	case r.URL.Path == "/v1/tx":
		problem(404, "not_found", false)
	case strings.HasSuffix(r.URL.Path, "/entries"):
		var after int
		fmt.Sscan(q.Get("after_seq"), &after) //nolint:errcheck // without it, it is 0
		answer(200, fmt.Sprintf(`{"account":"ann","entries":[{"seq":%d,"ts":"2026-01-03T00:00:00.000Z","op":"transfer","txid":"tx_1","direction":"debit","amount_minor":"1","balance_minor":"1","held_minor":"0","memo":%q}],"as_of":"2026-01-03T00:00:00.000Z"}`,
			after+1, p.memos[after+1]))
	case r.URL.Path == "/v1/transfer":
		status, body := p.transfer(r)
		if fault == "late_cut" {
			panic(http.ErrAbortHandler)
		}
		answer(status, body)
	default:
		problem(400, "bad_request", false)
	}
}

// transfer decides a transfer as a node does: by key, then ref, then nonce.
func (p *ledgerPeer) transfer(r *http.Request) (status int, body string) {
	var o struct {
		From   string `json:"from"`
		To     string `json:"to"`
		Asset  string `json:"asset"`
		Amount string `json:"amount_minor"`
		Memo   string `json:"memo"`
		Ref    string `json:"ref"`
		Nonce  int    `json:"nonce"`
	}
	if err := json.UnmarshalRead(r.Body, &o); err != nil {
		return 400, `{"code":"bad_request"}`
	}
	key := r.Header.Get("Idempotency-Key")
	if was := p.byKey[key]; was != "" {
		return 200, was
	}
	by := o.From + " " + o.Asset
	switch {
	case p.byRef[o.Ref] != "":
		return 409, `{"code":"ref_used","detail":"Used.","retryable":false,"status":409}`
	case o.Nonce != p.nonces[by]+1:
		return 409, `{"code":"nonce_conflict","detail":"Used.","retryable":false,"status":409}`
	}
	p.nonces[by]++
	p.made++
	p.memos[p.made] = o.Memo
	var amount int
	fmt.Sscan(o.Amount, &amount) //nolint:errcheck // 0 fails the test
	if o.From == "shop" {
		amount = -amount
	}
	p.balance[o.Asset] += amount
	receipt := fmt.Sprintf(`{"txid":"tx_%d","op":"transfer","from":%q,"to":%q,"asset":%q,"amount_minor":%q,"ref":%q,"nonce":%d,"seq":%d}`, p.made, o.From, o.To, o.Asset, o.Amount, o.Ref, o.Nonce, p.made)
	p.byRef[o.Ref], p.byKey[key] = receipt, receipt
	return 200, receipt
}

// A sealedValue is the value of a slice, and the minute of 2026-01-01 in which its window begins.
type sealedValue struct {
	value uint64
	at    int
}

// chainText returns a chain of slices with these values as the API returns them. A slice of a window that is not after all before it is a
// correction.
func chainText(t interface{ Fatal(...any) }, values []sealedValue) (all []string) {
	const day = types.Time(1767225600000) // 2026-01-01
	previous, next := accounting.Digest{}, 0
	for i, v := range values {
		s := accounting.Slice{Tenant: 1, Dimension: []byte("requests"), Seq: uint64(i + 1), Kind: accounting.SliceUsage, Previous: previous,
			Window: accounting.Window{From: day + types.Time(v.at*60_000), To: day + types.Time((v.at+1)*60_000)}, Rows: []accounting.Row{{Count: accounting.Count{Value: v.value, Events: 1}}}}
		kind := "usage"
		if v.at < next {
			s.Kind, kind = accounting.SliceCorrection, "correction"
		}
		next = max(next, v.at+1)
		previous = s.ContentDigest()
		text, err := json.Marshal(usagefile.Slice{Tenant: "default", Dimension: "requests", Seq: s.Seq, Kind: kind, WindowFrom: usagefile.FormatTime(s.Window.From), WindowTo: usagefile.FormatTime(s.Window.To),
			Previous: s.Previous.String(), Digest: previous.String(), Rows: []usagefile.Row{{Labels: map[string]string{}, Value: fmt.Sprint(v.value), Events: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	return all
}

// chargePrices has a volume price, so that a slice can be a transfer back, and a second asset.
const chargePrices = `accounting.prices=[{"name":"a","dimension":"requests","asset":"EUR/2","model":"volume","tiers":[{"up_to":20,"price":"5"},{"price":"2"}]},` +
	`{"name":"b","dimension":"requests","asset":"POINT","model":"flat","each":"window","price":"1.5"}]`

// reorderedPrices are chargePrices in another order.
const reorderedPrices = `accounting.prices=[{"name":"b","dimension":"requests","asset":"POINT","model":"flat","each":"window","price":"1.5"},` +
	`{"name":"a","dimension":"requests","asset":"EUR/2","model":"volume","tiers":[{"up_to":20,"price":"5"},{"price":"2"}]}]`

// TestChargeIsMadeOnce: whatever is cut, busy, stopped in the middle or done by another operation, and whatever the period ends with, each
// slice is charged once in the end, also by two commands at a time.
func TestChargeIsMadeOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var values []sealedValue
		for i, v := range rapid.SliceOfN(rapid.Uint64Range(0, 9), 1, 8).Draw(t, "values") {
			values = append(values, sealedValue{v, i - rapid.SampledFrom([]int{0, 0, 0, i}).Draw(t, "late")})
		}
		p := &ledgerPeer{slices: chainText(t, values), nonces: map[string]int{}, byRef: map[string]string{}, byKey: map[string]string{}, balance: map[string]int{}, memos: map[int]string{}}
		server := httptest.NewServer(p)
		defer server.Close()
		units, windows, want := 0, map[int]bool{}, map[string]int{}
		for _, v := range values {
			units, windows[v.at] = units+int(v.value), true
		}
		if want["EUR/2"] = 5 * units; units > 20 {
			want["EUR/2"] = 2 * units
		}
		want["POINT"] = (3*len(windows) + 1) / 2
		charge := func(n int, period billedPeriod) (int, string) {
			d := newTestConsole()
			keys := 0
			d.newKey = func() string { keys++; return fmt.Sprintf("run-%d-%d", n, keys) }
			d.tree = &tree{Set: []string{chargePrices}} // the parser would take most of the time
			period.Tenant, period.clientFlags = "default", clientFlags{URL: server.URL, APIKey: "s", Timeout: 30 * time.Second}
			v := chargeUsageCmd{billedPeriod: period, AccountFrom: "ann", AccountTo: "shop"}
			code := d.reportError(v.Run(d.Console))
			return code, d.out.String() + d.err.String()
		}
		for n := range rapid.IntRange(0, 3).Draw(t, "runs") {
			p.faults = rapid.SliceOfN(rapid.SampledFrom([]string{"", "", "", "busy", "cut", "late_cut", "stop", "other"}), 0, 40).Draw(t, "faults")
			p.stopped = false
			to := fmt.Sprintf("2026-01-01T00:%02d:00Z", rapid.IntRange(1, 9).Draw(t, "to"))
			if code, text := charge(n, billedPeriod{From: "2026-01-01", To: to}); code != 0 && !p.stopped {
				t.Fatalf("with the faults %q: exit code %d\n%s", p.faults, code, text)
			}
		}
		p.faults, p.stopped = nil, false
		var both sync.WaitGroup
		for n := range rapid.IntRange(1, 2).Draw(t, "at a time") {
			both.Go(func() {
				if code, text := charge(10+n, billedPeriod{Month: "2026-01"}); code != 0 {
					t.Errorf("exit code %d\n%s", code, text)
				}
			})
		}
		both.Wait()
		for asset, sum := range want {
			if p.balance[asset] != sum {
				t.Errorf("%v is charged with %d %s, want %d", values, p.balance[asset], asset, sum)
			}
		}
		made := p.made
		if code, text := charge(20, billedPeriod{From: "2026-01-01", To: "2026-01-31T12:00:00Z"}); code != 0 || !strings.HasSuffix(text, fmt.Sprintf("charges made: 0, made before: %d\n", made)) || p.made != made {
			t.Errorf("again: %d\n%s", code, text)
		}
	})
}

// charged gives the ledger a charge of the first slice by the prices of chargePrices.
func (p *ledgerPeer) charged(t *testing.T, asset, from, amount string) {
	t.Helper()
	var s usagefile.Slice
	if err := json.Unmarshal([]byte(p.slices[0]), &s); err != nil {
		t.Fatal(err)
	}
	p.byRef[invoice.Slice{Dimension: "requests", Seq: 1}.Ref(1, asset)] = fmt.Sprintf(`{"txid":"tx_9","op":"transfer","from":%q,"to":"shop","asset":%q,"amount_minor":%q,"seq":9}`, from, asset, amount)
	l := chargeLine{Dimension: "requests", Seq: 1, Digest: s.Digest, Prices: pricesOf(t, chargePrices).Sorted().Digest().String()}
	p.memos[9] = l.memo()
}

// pricesOf returns the prices of requests in a configuration.
func pricesOf(t *testing.T, config string) pricing.List {
	t.Helper()
	d := newTestConsole()
	d.tree = &tree{Set: []string{config}}
	cfg, err := d.load()
	if err != nil {
		t.Fatal(err)
	}
	return cfg.PriceList().Of("requests")
}

// TestChargeReportsOutcome: what the command prints if it cannot go on.
func TestChargeReportsOutcome(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		args   string
		change func(*ledgerPeer)
		code   int
		want   string
	}{
		{"preview", "--preview", func(*ledgerPeer) {}, 0, "slice 1 of requests: 2 POINT from ann to shop, due\ncharges due: 2, made before: 0; nothing was transferred\n"},
		{"unknown", "--timeout 1s", func(p *ledgerPeer) { p.faults = strings.Split(",,,,,"+strings.Repeat("late_cut,", 200), ",") }, 3, "outcome unknown"},
		{"not two accounts", "--account-from shop", func(*ledgerPeer) {}, 2, "--account-from and --account-to must be two accounts"},
		{"a reserved account", "--account-from issuance:EUR/2", func(*ledgerPeer) {}, 2, "--account-from issuance:EUR/2: account: issuance: and burned: are the ledger's own"},
		{"charged in another asset", "", func(p *ledgerPeer) {
			c := invoice.Charge{Dimension: "requests", Seq: 1, Asset: "USD/2"}
			p.byRef[c.Ref(1)] = `{"txid":"tx_9","op":"transfer","from":"ann","to":"shop","asset":"USD/2","amount_minor":"7","seq":9}`
			p.memos[9] = "usage requests 1 of other prices"
		}, 1, `slice 1 of requests was charged with 7 USD/2 from ann to shop (tx_9), and would be now with 0 USD/2 from ann to shop: it was another price list or content of the slice: the memo is "usage requests 1 of other prices", and would be "usage requests 1 `},
		{"charged, and free now", "--set " + strings.Replace(chargePrices, `"dimension":"requests"`, `"dimension":"cpu_ms"`, 2), func(p *ledgerPeer) {
			p.byRef[invoice.Slice{Dimension: "requests", Seq: 1}.Ref(1, "EUR/2")] = `{"txid":"tx_9","op":"transfer","from":"ann","to":"shop","asset":"EUR/2","amount_minor":"7","seq":9}`
		}, 1, "slice 1 of requests was charged with 7 EUR/2 from ann to shop (tx_9), and would be now with 0 EUR/2 from ann to shop: it was another price list"},
		{"charged in another period", "", func(p *ledgerPeer) { p.charged(t, "EUR/2", "ann", "25") }, 1,
			"slice 1 of requests was charged with 25 EUR/2 from ann to shop (tx_9), and would be now with 15 EUR/2 from ann to shop: the prices are the same, and were counted in another period than the month; nothing was charged now\n"},
		{"charged in another period, and free in the month", "", func(p *ledgerPeer) { p.charged(t, "USD/2", "ann", "5") }, 1,
			"and would be now with 0 USD/2 from ann to shop: the prices are the same, and were counted in another period than the month; nothing was charged now\n"},
		{"charged to another account", "", func(p *ledgerPeer) { p.charged(t, "EUR/2", "bob", "15") }, 1,
			"slice 1 of requests was charged with 15 EUR/2 from bob to shop (tx_9), and would be now with 15 EUR/2 from ann to shop: they were other accounts; nothing was charged now\n"},
		{"a later slice was charged by other prices", "--to 2026-01-01T00:00:01Z", func(p *ledgerPeer) {
			p.slices = chainText(t, []sealedValue{{3, 0}, {3, 1}})
			p.byRef[invoice.Slice{Dimension: "requests", Seq: 2}.Ref(1, "EUR/2")] = `{"txid":"tx_9","op":"transfer","from":"ann","to":"shop","asset":"EUR/2","amount_minor":"15","seq":9}`
		}, 1, "slice 2 of requests was charged with 15 EUR/2"},
		{"a later slice is not charged yet", "--to 2026-01-01T00:00:01Z", func(p *ledgerPeer) { p.slices = chainText(t, []sealedValue{{3, 0}, {3, 1}}) }, 0, "charges made: 2, made before: 0\n"},
		{"no window of the month is sealed", "--from 2026-02-01 --to 2026-03-01", func(*ledgerPeer) {}, 1, "no window of the period is sealed, so nothing was charged: charge when they are\n"},
		{"the end of the month is not sealed", "", func(p *ledgerPeer) { p.sealedTo = "2026-01-01T00:00:05.000Z" }, 1,
			"windows that begin at 2026-01-01T00:00:05.000Z or later are not sealed, so nothing was charged: charge when they are, or with --from 2026-01-01T00:00:00.000Z --to 2026-01-01T00:00:05.000Z\n"},
		{"charged with the same amount by other prices", "--preview", func(p *ledgerPeer) {
			p.byRef[invoice.Slice{Dimension: "requests", Seq: 1}.Ref(1, "EUR/2")] = `{"txid":"tx_9","op":"transfer","from":"ann","to":"shop","asset":"EUR/2","amount_minor":"15","seq":9}`
			p.memos[9] = "usage requests 1 of other prices"
		}, 1, `and would be now with 15 EUR/2 from ann to shop: it was another price list or content of the slice: the memo is "usage requests 1 of other prices", and would be "usage requests 1 `},
		{"charged by the same prices in another order", "--preview --set " + reorderedPrices, func(p *ledgerPeer) { p.charged(t, "EUR/2", "ann", "15") }, 0,
			"charges due: 1, made before: 1; nothing was transferred\n"},
		{"charged with a memo that has the order of the prices", "--preview --set " + reorderedPrices, func(p *ledgerPeer) {
			p.charged(t, "EUR/2", "ann", "15")
			p.memos[9] = strings.Replace(p.memos[9], pricesOf(t, chargePrices).Sorted().Digest().String(), pricesOf(t, reorderedPrices).Digest().String(), 1)
		}, 0, "charges due: 1, made before: 1; nothing was transferred\n"},
		{"more than one transfer", "--set wallet.limits.max_amount=1", func(*ledgerPeer) {}, 1, "slice 1 of requests costs 15 EUR/2, which is more than wallet.limits.max_amount (1); nothing was charged now\n"},
		{"more than one transfer, but charged before", "--preview --set wallet.limits.max_amount=2", func(p *ledgerPeer) {
			p.charged(t, "EUR/2", "ann", "15")
		}, 0, "charges due: 1, made before: 1; nothing was transferred\n"},
		{"no prices", "--set accounting.prices=[]", func(*ledgerPeer) {}, 2, "accounting.prices is empty in the configuration of this command: usage has no price"},
		{"an invalid slice", "", func(p *ledgerPeer) { p.slices[0] = strings.Replace(p.slices[0], `"value":"3"`, `"value":"4"`, 1) }, 1, "the node returned an invalid slice: requests of tenant default: slice 1: digest: is not that of the content"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &ledgerPeer{nonces: map[string]int{}, byRef: map[string]string{}, byKey: map[string]string{}, balance: map[string]int{}, memos: map[int]string{}}
			p.slices = chainText(t, []sealedValue{{3, 0}})
			c.change(p)
			server := httptest.NewServer(p)
			defer server.Close()
			d := newTestConsole()
			given := strings.Fields(c.args)
			args := append([]string{"usage", "charge", "default", "--url", server.URL, "--api-key", "s", "--set", chargePrices}, given...)
			for _, other := range [...][2]string{{"--from", "2026-01-01"}, {"--to", "2026-01-02"}, {"--account-from", "ann"}, {"--account-to", "shop"}} {
				if !slices.Contains(given, other[0]) {
					args = append(args, other[:]...)
				}
			}
			code := Run(args, d.Console)
			if got := d.out.String() + d.err.String(); code != c.code || !strings.Contains(got, c.want) {
				t.Errorf("exit code %d\n%s", code, got)
			}
		})
	}
}

// TestPeriodsThatCannotBeCharged: the node is asked for nothing if the period is not of a month, and the error has the times that are.
func TestPeriodsThatCannotBeCharged(t *testing.T) {
	t.Parallel()
	const times = "--from must be 2026-01-01T00:00:00.000Z, and --to a later time up to 2026-02-01T00:00:00.000Z\n"
	for args, want := range map[string]string{ //nolint:maporder // each is a run of its own
		"--from 2026-01-15 --to 2026-02-01":                "a period that is charged begins with a month (UTC) and ends within it or with it: " + times,
		"--from 2026-01-01 --to 2026-02-01T00:00:01Z":      times,
		"--from 2026-01-01 --to 2026-01-01":                times,
		"--from 2026-01-01T00:00:00-01:00 --to 2026-02-01": times,
		"--month 2026-13":                                  "--month 2026-13 must be a month such as 2026-01\n",
		"--month 1969-12":                                  "the period must have whole milliseconds since 1970\n",
		"--month 2026-01 --from 2026-01-01":                "--from and --month can't be used together",
		"--month 2026-01 --to 2026-01-01":                  "--to and --month can't be used together",
		"--from 2026-01-01":                                "missing flags: --to=TIME or --month=MONTH",
		"--from 2026-01-01T00:00:00.0001Z --to x":          "--to x must be a time",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the node is asked for %s", r.URL) }))
			defer server.Close()
			d := newTestConsole()
			code := Run(append(strings.Fields("usage charge default --account-from ann --account-to shop --api-key s --url "+server.URL+" --set "+chargePrices), strings.Fields(args)...), d.Console)
			if got := d.err.String(); code != 2 || !strings.Contains(got, want) {
				t.Errorf("exit code %d\n%s", code, got)
			}
		})
	}
}
