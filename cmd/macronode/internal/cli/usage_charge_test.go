package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"macronode/cmd/internal/usagefile"
	"macronode/core/accounting"
	"macronode/core/invoice"
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
		answer(200, `{"tenant":"default","from":"2026-01-01T00:00:00.000Z","to":"2026-01-02T00:00:00.000Z","usage":[],"sealed_to":"2026-01-03T00:00:00.000Z","as_of":"2026-01-03T00:00:00.000Z"}`)
	case r.URL.Path == "/v1/usage-slices":
		answer(200, `{"slices":[`+strings.Join(p.slices, ",")+`],"sealed_to":"2026-01-03T00:00:00.000Z","as_of":"2026-01-03T00:00:00.000Z"}`)
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

// chainText returns a chain of slices with these values as the API returns them, one window each.
func chainText(t interface{ Fatal(...any) }, values []uint64) (all []string) {
	const day = types.Time(1767225600000) // 2026-01-01
	previous := accounting.Digest{}
	for i, v := range values {
		s := accounting.Slice{Tenant: 1, Dimension: []byte("requests"), Seq: uint64(i + 1), Kind: accounting.SliceUsage, Previous: previous,
			Window: accounting.Window{From: day + types.Time(i*60_000), To: day + types.Time((i+1)*60_000)}, Rows: []accounting.Row{{Count: accounting.Count{Value: v, Events: 1}}}}
		previous = s.ContentDigest()
		text, err := json.Marshal(usagefile.Slice{Tenant: "default", Dimension: "requests", Seq: s.Seq, Kind: "usage", WindowFrom: usagefile.FormatTime(s.Window.From), WindowTo: usagefile.FormatTime(s.Window.To),
			Previous: s.Previous.String(), Digest: previous.String(), Rows: []usagefile.Row{{Labels: map[string]string{}, Value: fmt.Sprint(v), Events: 1}}})
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

// TestChargeIsMadeOnce: whatever is cut, busy, stopped in the middle or done by another operation, each slice is charged
// once in the end, also by two commands at a time.
func TestChargeIsMadeOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Uint64Range(0, 9), 1, 8).Draw(t, "values")
		p := &ledgerPeer{slices: chainText(t, values), nonces: map[string]int{}, byRef: map[string]string{}, byKey: map[string]string{}, balance: map[string]int{}, memos: map[int]string{}}
		server := httptest.NewServer(p)
		defer server.Close()
		units, want := 0, map[string]int{}
		for _, v := range values {
			units += int(v)
		}
		if want["EUR/2"] = 5 * units; units > 20 {
			want["EUR/2"] = 2 * units
		}
		want["POINT"] = (3*len(values) + 1) / 2
		charge := func(n int) (int, string) {
			d := newTestConsole()
			keys := 0
			d.newKey = func() string { keys++; return fmt.Sprintf("run-%d-%d", n, keys) }
			d.tree = &tree{Set: []string{chargePrices}} // the parser would take most of the time
			v := chargeUsageCmd{billedPeriod: billedPeriod{"default", "2026-01-01", "2026-01-02", clientFlags{URL: server.URL, APIKey: "s", Timeout: 30 * time.Second}}, AccountFrom: "ann", AccountTo: "shop"}
			code := d.reportError(v.Run(d.Console))
			return code, d.out.String() + d.err.String()
		}
		for n := range rapid.IntRange(0, 3).Draw(t, "runs") {
			p.faults = rapid.SliceOfN(rapid.SampledFrom([]string{"", "", "", "busy", "cut", "late_cut", "stop", "other"}), 0, 40).Draw(t, "faults")
			p.stopped = false
			if code, text := charge(n); code != 0 && !p.stopped {
				t.Fatalf("with the faults %q: exit code %d\n%s", p.faults, code, text)
			}
		}
		p.faults, p.stopped = nil, false
		var both sync.WaitGroup
		for n := range rapid.IntRange(1, 2).Draw(t, "at a time") {
			both.Go(func() {
				if code, text := charge(10 + n); code != 0 {
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
		if code, text := charge(20); code != 0 || !strings.HasSuffix(text, fmt.Sprintf("charges made: 0, made before: %d\n", made)) || p.made != made {
			t.Errorf("again: %d\n%s", code, text)
		}
	})
}

// digest returns that of the only slice.
func (p *ledgerPeer) digest(t *testing.T) string {
	t.Helper()
	var s usagefile.Slice
	if err := json.Unmarshal([]byte(p.slices[0]), &s); err != nil {
		t.Fatal(err)
	}
	return s.Digest
}

// chargeDigest returns the digest of chargePrices.
func chargeDigest(t *testing.T) string {
	t.Helper()
	d := newTestConsole()
	d.tree = &tree{Set: []string{chargePrices}}
	cfg, err := d.load()
	if err != nil {
		t.Fatal(err)
	}
	return cfg.PriceList().Of("requests").Digest().String()
}

// TestChargeReportsOutcome: what the command prints if it cannot go on.
func TestChargeReportsOutcome(t *testing.T) {
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
			p.byRef[c.Ref(1)] = `{"txid":"tx_9","op":"transfer","from":"ann","to":"shop","asset":"USD/2","amount_minor":"7"}`
		}, 1, "slice 1 of requests was charged with 7 USD/2 (tx_9), and costs nothing in USD/2 now: it was another price list; nothing was charged now"},
		{"charged, and free now", "--set " + strings.Replace(chargePrices, `"dimension":"requests"`, `"dimension":"cpu_ms"`, 2), func(p *ledgerPeer) {
			p.byRef[invoice.Slice{Dimension: "requests", Seq: 1}.Ref(1, "EUR/2")] = `{"txid":"tx_9","op":"transfer","from":"ann","to":"shop","asset":"EUR/2","amount_minor":"7"}`
		}, 1, "slice 1 of requests was charged with 7 EUR/2 (tx_9), and costs nothing in EUR/2 now: it was another price list; nothing was charged now"},
		{"charged with the same amount by other prices", "--preview", func(p *ledgerPeer) {
			p.byRef[invoice.Slice{Dimension: "requests", Seq: 1}.Ref(1, "EUR/2")] = `{"txid":"tx_9","op":"transfer","from":"ann","to":"shop","asset":"EUR/2","amount_minor":"15","seq":9}`
			p.memos[9] = "usage requests 1 of other prices"
		}, 1, `slice 1 of requests was charged by other prices or content (tx_9): the memo is "usage requests 1 of other prices", and would be "usage requests 1 `},
		{"more than one transfer", "--set wallet.limits.max_amount=1", func(*ledgerPeer) {}, 1, "slice 1 of requests costs 15 EUR/2, which is more than wallet.limits.max_amount (1); nothing was charged now\n"},
		{"more than one transfer, but charged before", "--preview --set wallet.limits.max_amount=2", func(p *ledgerPeer) {
			c := invoice.Charge{Dimension: "requests", Seq: 1, Asset: "EUR/2"}
			p.byRef[c.Ref(1)] = `{"txid":"tx_9","op":"transfer","from":"ann","to":"shop","asset":"EUR/2","amount_minor":"15","seq":9}`
			l := chargeLine{Dimension: "requests", Seq: 1, Digest: p.digest(t), Prices: chargeDigest(t)}
			p.memos[9] = l.memo()
		}, 0, "charges due: 1, made before: 1; nothing was transferred\n"},
		{"no prices", "--set accounting.prices=[]", func(*ledgerPeer) {}, 2, "accounting.prices is empty in the configuration of this command: usage has no price"},
		{"an invalid slice", "", func(p *ledgerPeer) { p.slices[0] = strings.Replace(p.slices[0], `"value":"3"`, `"value":"4"`, 1) }, 1, "the node returned an invalid slice: requests of tenant default: slice 1: digest: is not that of the content"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &ledgerPeer{nonces: map[string]int{}, byRef: map[string]string{}, byKey: map[string]string{}, balance: map[string]int{}, memos: map[int]string{}}
			p.slices = chainText(t, []uint64{3})
			c.change(p)
			server := httptest.NewServer(p)
			defer server.Close()
			d := newTestConsole()
			args := []string{"usage", "charge", "default", "--from", "2026-01-01", "--to", "2026-01-02", "--account-from", "ann", "--account-to", "shop", "--url", server.URL, "--api-key", "s", "--set", chargePrices}
			code := Run(append(args, strings.Fields(c.args)...), d.Console)
			if got := d.out.String() + d.err.String(); code != c.code || !strings.Contains(got, c.want) {
				t.Errorf("exit code %d\n%s", code, got)
			}
		})
	}
}
