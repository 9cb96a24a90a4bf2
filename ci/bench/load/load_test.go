package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"macronode/ci/bench/ask"
	"macronode/ci/bench/sample"
)

// transfer is a request body.
type transfer struct {
	From, To, Asset, Memo string
	Amount                string `json:"amount_minor"`
	Nonce                 int
}

// ledger checks what a server under load must see: each key once, the nonces of each payer in
// order, and an issue for every account.
type ledger struct {
	mu    sync.Mutex
	keys  map[string]bool
	nonce map[string]int
	paid  map[string]bool
	items int
	again bool // keys may be repeated
	wrong string
	tell  func(key string) (status int, body string)
}

func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	raw, _ := io.ReadAll(r.Body)
	var in struct {
		transfer
		Atomic bool
		Items  []struct {
			Op string
			transfer
		}
	}
	key := r.Header.Get("Idempotency-Key")
	switch err := json.Unmarshal(raw, &in); {
	case err != nil:
		l.wrong = fmt.Sprintf("%s: %v", raw, err)
	case l.keys[key] && !l.again, key == "", r.Header.Get("Authorization") != "Bearer secret":
		l.wrong = fmt.Sprintf("key %q, authorization %q", key, r.Header.Get("Authorization"))
	case r.URL.Path == "/v1/issue" && l.paid[in.To] && !l.again:
		l.wrong = in.To + " is paid twice"
	}
	all := []transfer{in.transfer}
	if r.URL.Path == "/v1/batch" {
		all = all[:0]
		for _, item := range in.Items {
			all = append(all, item.transfer)
			if item.Op != "transfer" || !in.Atomic {
				l.wrong = fmt.Sprintf("a batch with %s", raw)
			}
		}
	}
	for _, one := range all {
		if r.URL.Path != "/v1/issue" && (one.Nonce != l.nonce[one.From]+1 || one.From == one.To) {
			l.wrong = fmt.Sprintf("%+v after %d", one, l.nonce[one.From])
		}
		l.nonce[one.From], l.paid[one.To] = one.Nonce, true
	}
	l.keys[key] = true
	l.items += len(all)
	if l.again && key != "new" {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	status, body := l.tell(key)
	if len(body) > 1<<14 && r.URL.Path != "/v1/batch" {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(status)
	_, _ = fmt.Fprint(w, body) // the client reports an error
}

func run1(t *testing.T, p Plan, tell func(key string) (int, string)) (*ledger, sample.Sample, error) {
	l := &ledger{again: len(p.Asks) > 0, keys: map[string]bool{}, nonce: map[string]int{}, paid: map[string]bool{}, tell: tell}
	s := httptest.NewServer(l)
	defer s.Close()
	p.Addr, p.Key, p.Salt = netip.MustParseAddrPort(strings.TrimPrefix(s.URL, "http://")), "secret", "t"
	r, err := drive(&p)
	if l.wrong != "" {
		t.Fatal(l.wrong)
	}
	return l, r, err
}

func well(key string) (int, string) {
	return 200, fmt.Sprintf(`{"idem":%q,"pad":%q}`, key, strings.Repeat("x", 600))
}

// TestCountedRun: the requested number of requests, all counted and answered.
func TestCountedRun(t *testing.T) {
	l, r, err := run1(t, Plan{Accounts: 40, Spread: 3, Conns: 7, Count: 1000}, well)
	if err != nil || r.All != 1000 || r.Counted != 1000 || len(l.keys) != 1000 || r.P50 <= 0 || r.P99 < r.P50 || r.Max < r.P999 {
		t.Fatalf("%+v, %d keys, %v", r, len(l.keys), err)
	}
	if len(l.nonce) != 21 {
		t.Fatalf("%d accounts paid", len(l.nonce))
	}
}

// TestTimedRun: requests outside of the measured time are answered and not counted.
func TestTimedRun(t *testing.T) {
	l, r, err := run1(t, Plan{Accounts: 40, Spread: 1, Conns: 4, Warm: 50 * time.Millisecond, Time: 100 * time.Millisecond}, well)
	if err != nil || r.All != uint64(len(l.keys)) || r.Counted >= r.All || r.Took != 100*time.Millisecond {
		t.Fatalf("%+v, %d keys, %v", r, len(l.keys), err)
	}
}

// TestIssue: each account gets one issue.
func TestIssue(t *testing.T) {
	l, r, err := run1(t, Plan{Issue: true, Accounts: 123, Conns: 5, Count: 123}, well)
	if err != nil || r.All != 123 || len(l.paid) != 123 || !l.paid["acct:00000000"] || !l.paid["acct:00000122"] {
		t.Fatalf("%+v, %d accounts, %v", r, len(l.paid), err)
	}
}

func receipts(n int) func(string) (int, string) {
	return func(key string) (int, string) {
		one := fmt.Sprintf(`{"txid":"tx_0","idem":%q,"pad":%q}`, key, strings.Repeat("x", 400))
		return 200, `{"receipts":[` + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + `]}`
	}
}

// TestBatch: the transfers of a batch continue after those of the previous one, and a chunked
// answer is read completely.
func TestBatch(t *testing.T) {
	l, r, err := run1(t, Plan{Accounts: 40, Spread: 3, Conns: 7, Count: 100, Batch: 50}, receipts(50))
	if err != nil || r.All != 100 || l.items != 5000 || len(l.nonce) != 21 {
		t.Fatalf("%+v, %d transfers by %d, %v", r, l.items, len(l.nonce), err)
	}
	for _, n := range []int{0, 49, 51} {
		if _, r, err := run1(t, Plan{Accounts: 40, Spread: 3, Conns: 7, Count: 100, Batch: 50}, receipts(n)); err == nil {
			t.Errorf("%d receipts: %+v", n, r)
		}
	}
}

// TestRepeatedRequestsAreCompared: a repeated request has the same bytes, and needs the same
// answer.
func TestRepeatedRequestsAreCompared(t *testing.T) {
	asks := make([]ask.Ask, 5)
	for i := range asks {
		key := fmt.Sprint("k", i)
		_, answer := well(key)
		asks[i] = ask.Ask{Path: "/v1/issue", Key: key, Body: `{"to":"acct:` + key + `"}`, Answer: answer}
	}
	l, r, err := run1(t, Plan{Accounts: 40, Spread: 1, Conns: 2, Count: 100, Asks: asks}, well)
	if err != nil || r.All != 100 || len(l.keys) != 5 || len(l.paid) != 5 {
		t.Fatalf("%+v, %d keys, %v", r, len(l.keys), err)
	}
	other := func(key string) (int, string) {
		if key == "k4" {
			return 200, `{"idem":"k4"}`
		}
		return well(key)
	}
	if _, r, err := run1(t, Plan{Accounts: 40, Spread: 1, Conns: 2, Count: 100, Asks: asks}, other); err == nil {
		t.Errorf("another answer: %+v", r)
	}
	asks[4].Key, asks[4].Answer = "new", `{"idem":"new"}`
	fresh := func(string) (int, string) { return 200, `{"idem":"new"}` }
	if _, r, err := run1(t, Plan{Accounts: 40, Spread: 1, Conns: 1, Count: 1, Asks: asks[4:]}, fresh); err == nil {
		t.Errorf("answered as if for the first time: %+v", r)
	}
}

// TestWrongAnswersEndTheRun: anything but the receipt of the request ends the run.
func TestWrongAnswersEndTheRun(t *testing.T) {
	for rule, tell := range map[string]func(string) (int, string){
		"a refusal":       func(key string) (int, string) { return 429, fmt.Sprintf(`{"idem":%q}`, key) },
		"another receipt": func(key string) (int, string) { return 200, fmt.Sprintf(`{"idem":"%s0"}`, key) },
		"no key at all":   func(string) (int, string) { return 200, `{"txid":"tx_0"}` },
		"no end that could be waited for": func(key string) (int, string) {
			return 200, fmt.Sprintf(`{"idem":%q,"pad":%q}`, key, strings.Repeat("x", 9000))
		},
		"longer than it can": func(key string) (int, string) { return 200, strings.Repeat("x", 1<<15) },
	} {
		if _, r, err := run1(t, Plan{Accounts: 9, Spread: 1, Conns: 2, Count: 10}, tell); err == nil {
			t.Errorf("%s: %+v", rule, r)
		}
	}
}

// eventServer counts the ids of events, and answers as told.
type eventServer struct {
	mu    sync.Mutex
	ids   map[string]bool
	sets  map[string]bool // of labels
	wrong string
	tell  func(events int) (status int, body string)
}

func (e *eventServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	time.Sleep(time.Millisecond) // a large request does not fit into the socket at once
	var all []struct {
		SpecVersion, Type, Source, ID string
		Data                          struct {
			Dimension string
			Value     int
			Labels    map[string]string
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&all); err != nil || r.URL.Path != "/v1/usage-events" || r.Header.Get("Authorization") != "Bearer secret" ||
		r.Header.Get("Content-Type") != "application/cloudevents-batch+json" {
		e.wrong = fmt.Sprintf("%s, %v: %v", r.URL.Path, r.Header, err)
	}
	for _, one := range all {
		if e.ids[one.ID] || one.SpecVersion != "1.0" || one.Type == "" || one.Source == "" || one.Data.Dimension != "requests" || one.Data.Value != 1 {
			e.wrong = fmt.Sprintf("%+v", one)
		}
		e.ids[one.ID], e.sets[fmt.Sprint(one.Data.Labels)] = true, true
	}
	status, body := e.tell(len(all))
	w.WriteHeader(status)
	_, _ = fmt.Fprint(w, body) // the client reports an error
}

// TestEvents: ids are new, labels are few, and all events must be recorded.
func TestEvents(t *testing.T) {
	recorded := func(n int) (int, string) { return 202, fmt.Sprintf(`{"recorded":%d,"duplicate":0,"late":0}`, n) }
	for rule, c := range map[string]struct {
		tell func(int) (int, string)
		good bool
	}{
		"recorded":          {recorded, true},
		"a duplicate":       {func(n int) (int, string) { return 202, fmt.Sprintf(`{"recorded":%d,"duplicate":1,"late":0}`, n-1) }, false},
		"one less":          {func(n int) (int, string) { return recorded(n - 1) }, false},
		"a refusal":         {func(int) (int, string) { return 429, `{}` }, false},
		"an unusual status": {func(n int) (int, string) { _, body := recorded(n); return 200, body }, false},
	} {
		e := &eventServer{ids: map[string]bool{}, sets: map[string]bool{}, tell: c.tell}
		s := httptest.NewServer(e)
		r, err := drive(&Plan{Addr: netip.MustParseAddrPort(strings.TrimPrefix(s.URL, "http://")), Key: "secret", Salt: "t", Accounts: 40, Spread: 1, Conns: 4, Count: 20, Events: 1000, Random: rule == "recorded"})
		s.Close()
		if e.wrong != "" {
			t.Fatal(e.wrong)
		}
		if c.good != (err == nil) || c.good && (r.All != 20 || len(e.ids) != 20_000 || len(e.sets) != 8) {
			t.Errorf("%s: %+v, %d ids, %d sets of labels, %v", rule, r, len(e.ids), len(e.sets), err)
		}
	}
}
