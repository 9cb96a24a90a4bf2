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

	"macronode/ci/bench/sample"
)

// ledger checks what a server under load must see: each key once, each payer's nonces
// one by one, and money for every account.
type ledger struct {
	mu    sync.Mutex
	keys  map[string]bool
	nonce map[string]int
	paid  map[string]bool
	wrong string
	tell  func(key string) (status int, body string)
}

func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	raw, _ := io.ReadAll(r.Body)
	var in struct {
		From, To, Asset, Memo string
		Amount                string `json:"amount_minor"`
		Nonce                 int
	}
	key := r.Header.Get("Idempotency-Key")
	switch err := json.Unmarshal(raw, &in); {
	case err != nil:
		l.wrong = fmt.Sprintf("%s: %v", raw, err)
	case l.keys[key], key == "", r.Header.Get("Authorization") != "Bearer secret":
		l.wrong = fmt.Sprintf("key %q, authorization %q", key, r.Header.Get("Authorization"))
	case r.URL.Path == "/v1/transfer" && in.Nonce != l.nonce[in.From]+1, r.URL.Path == "/v1/transfer" && in.From == in.To:
		l.wrong = fmt.Sprintf("%s after %d", raw, l.nonce[in.From])
	case r.URL.Path == "/v1/issue" && l.paid[in.To]:
		l.wrong = in.To + " is paid twice"
	}
	l.keys[key], l.nonce[in.From] = true, in.Nonce
	l.paid[in.To] = true
	status, body := l.tell(key)
	if len(body) > 1<<13 {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

func run1(t *testing.T, p Plan, tell func(key string) (int, string)) (*ledger, sample.Sample, error) {
	l := &ledger{keys: map[string]bool{}, nonce: map[string]int{}, paid: map[string]bool{}, tell: tell}
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

// TestCount: as many requests as asked for, all counted, all answered.
func TestCount(t *testing.T) {
	l, r, err := run1(t, Plan{Accounts: 40, Spread: 3, Conns: 7, Count: 1000}, well)
	if err != nil || r.All != 1000 || r.Counted != 1000 || len(l.keys) != 1000 || r.P50 <= 0 || r.P99 < r.P50 || r.Max < r.P999 {
		t.Fatalf("%+v, %d keys, %v", r, len(l.keys), err)
	}
	if len(l.nonce) != 21 {
		t.Fatalf("%d accounts paid", len(l.nonce))
	}
}

// TestTime: what lies outside of the measured time is answered and not counted.
func TestTime(t *testing.T) {
	l, r, err := run1(t, Plan{Accounts: 40, Spread: 1, Conns: 4, Warm: 50 * time.Millisecond, Time: 100 * time.Millisecond}, well)
	if err != nil || r.All != uint64(len(l.keys)) || r.Counted >= r.All || r.Took != 100*time.Millisecond {
		t.Fatalf("%+v, %d keys, %v", r, len(l.keys), err)
	}
}

// TestIssue: each account gets its money once.
func TestIssue(t *testing.T) {
	l, r, err := run1(t, Plan{Issue: true, Accounts: 123, Conns: 5, Count: 123}, well)
	if err != nil || r.All != 123 || len(l.paid) != 123 || !l.paid["acct:00000000"] || !l.paid["acct:00000122"] {
		t.Fatalf("%+v, %d accounts, %v", r, len(l.paid), err)
	}
}

// TestWrongAnswers: anything but this request's receipt ends the run.
func TestWrongAnswers(t *testing.T) {
	for rule, tell := range map[string]func(string) (int, string){
		"a refusal":         func(key string) (int, string) { return 429, fmt.Sprintf(`{"idem":%q}`, key) },
		"another's receipt": func(key string) (int, string) { return 200, fmt.Sprintf(`{"idem":"%s0"}`, key) },
		"no key at all":     func(string) (int, string) { return 200, `{"txid":"tx_0"}` },
		"no length": func(key string) (int, string) {
			return 200, fmt.Sprintf(`{"idem":%q,"pad":%q}`, key, make([]byte, 3000))
		},
		"longer than it can": func(key string) (int, string) { return 200, strings.Repeat("x", 1<<14) },
	} {
		if _, r, err := run1(t, Plan{Accounts: 9, Spread: 1, Conns: 2, Count: 10}, tell); err == nil {
			t.Errorf("%s: %+v", rule, r)
		}
	}
}
