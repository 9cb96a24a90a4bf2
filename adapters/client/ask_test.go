package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"macronode/adapters/client"
)

// Each script of responses has an expected result and number of attempts, all with the same
// request.
func TestResponseScripts(t *testing.T) {
	done := func(error) bool { return false }
	is := func(target error) func(error) bool {
		return func(err error) bool { return errors.Is(err, target) && !errors.Is(err, client.ErrUnknown) }
	}
	doubt := func(err error) bool {
		var u *client.UnknownOutcome
		return errors.As(err, &u) && u.Key == "drawn" && errors.Is(err, client.ErrUnknown)
	}
	for _, c := range []struct {
		name    string
		answers []string
		tries   int
		fails   func(error) bool
	}{
		{"done", []string{receipt}, 1, done},
		{"busy, then done", []string{busy, receipt}, 2, done},
		{"no room, then not ready, then done", []string{full, late, receipt}, 3, done},
		{"busy to the end", []string{busy}, 3, is(client.Busy)},
		{"not ready to the end", []string{late}, 3, is(client.Unavailable)},
		{"not known, then done", []string{unclear, receipt}, 2, done},
		{"not known to the end", []string{unclear}, 3, doubt},
		{"not known, then busy to the end", []string{unclear, busy}, 3, doubt},
		{"not known, then refused for good", []string{unclear, poor}, 2, is(client.InsufficientFunds)},
		{"not known, then frozen", []string{unclear, frozen}, 2, doubt},
		{"not known, then not let in", []string{unclear, barred}, 2, doubt},
		{"cut, then done", []string{"cut", receipt}, 2, done},
		{"switched, then done", []string{"switch", receipt}, 2, done},
		{"torn, then done", []string{"torn", receipt}, 2, done},
		{"torn to the end", []string{"torn"}, 3, doubt},
		{"cut to the end", []string{"cut"}, 3, doubt},
		{"longer than is read", []string{"long"}, 1, doubt},
		{"the first is at it, then done", []string{running, receipt}, 2, done},
		{"the first is at it", []string{running}, 3, doubt},
		{"a bug", []string{internal}, 3, doubt},
		{"refused", []string{poor}, 1, is(client.InsufficientFunds)},
		{"used", []string{usedUp}, 1, is(client.NonceConflict)},
		{"ahead", []string{ahead}, 1, is(client.NonceConflict)},
		{"barred", []string{barred}, 1, is(client.Forbidden)},
		{"another question", []string{other}, 1, is(client.IdempotencyConflict)},
		{"a proxy", []string{"502 bad", "503 no", "504 late"}, 3, doubt},
		{"a stranger", []string{"404 what"}, 1, is(client.ErrWrongNode)},
		{"a stranger is glad", []string{"200 hello"}, 1, doubt},
		{"no receipt", []string{"200 {}"}, 1, doubt},
		{"sent elsewhere", []string{"307"}, 1, doubt},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := play(t, c.answers...)
			s.header.Set("Location", "http://192.0.2.1/")
			k, _ := dial(t, s, client.Options{MaxResponseBytes: 1000})
			r, err := k.Issue(t.Context(), five)
			if c.fails(err) == (err == nil) || (err == nil) != (r != nil && r.Txid == "tx_1" && string(r.Raw) == receipt[4:]) {
				t.Errorf("%v, %v", r, err)
			}
			const one = `POST /v1/issue drawn {"amount_minor":"5","asset":"EUR/2","to":"ann"}`
			if want := slices.Repeat([]string{one}, c.tries); !slices.Equal(s.asked(), want) {
				t.Errorf("asked %q", s.asked())
			}
		})
	}
}

// Delays double up to a second, and Retry-After is added.
func TestPauses(t *testing.T) {
	s := play(t, busy)
	k, time := dial(t, s, client.Options{MaxAttempts: 7})
	_, _ = k.Issue(t.Context(), five)
	if got := fmt.Sprint(time.waits); got != "[25ms 50ms 100ms 200ms 400ms 500ms]" {
		t.Errorf("waited %s", got)
	}
	s.header.Set("Retry-After", "2")
	time.waits = nil
	_, _ = k.Issue(t.Context(), five)
	if got := fmt.Sprint(time.waits[:2]); got != "[2.025s 2.05s]" {
		t.Errorf("waited %s", got)
	}
}

// If Retry-After exceeds the time that is left, there is no further attempt.
func TestLateRetryAfterEndsRetries(t *testing.T) {
	s := play(t, busy)
	s.header.Set("Retry-After", "60")
	k, time := dial(t, s, client.Options{RetryTimeout: 59e9})
	if _, err := k.Issue(t.Context(), five); !errors.Is(err, client.Busy) || len(time.waits) > 0 || len(s.asked()) != 1 {
		t.Errorf("%v, waited %v, asked %d times", err, time.waits, len(s.asked()))
	}
	k, time = dial(t, s, client.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 59e9)
	defer cancel()
	if _, err := k.Issue(ctx, five); !errors.Is(err, client.Busy) || len(time.waits) > 0 || len(s.asked()) != 2 {
		t.Errorf("%v, waited %v, asked %d times", err, time.waits, len(s.asked()))
	}
}

func TestNoAttemptAfterRetryTimeout(t *testing.T) {
	s := play(t, busy)
	s.header.Set("Retry-After", "3")
	k, _ := dial(t, s, client.Options{RetryTimeout: 10e9, MaxAttempts: -1})
	if _, err := k.Issue(t.Context(), five); !errors.Is(err, client.Busy) || len(s.asked()) != 4 {
		t.Fatalf("%v, asked %d times", err, len(s.asked()))
	}
}

// A caller that restarts repeats the call and gets the same bytes.
func TestAnotherLifeAsksUnderTheSameKey(t *testing.T) {
	s := play(t, unclear, unclear, unclear, receipt)
	k, _ := dial(t, s, client.Options{})
	_, err := k.Issue(t.Context(), five, client.WithIdempotencyKey("mine"))
	var u *client.UnknownOutcome
	if !errors.As(err, &u) || u.Key != "mine" || u.Attempts != 3 || !errors.Is(err, client.OutcomeUnknown) {
		t.Fatal(err)
	}
	s.header.Set("Idempotency-Replayed", "true")
	k, _ = dial(t, s, client.Options{})
	first, err := k.Issue(t.Context(), five, client.WithIdempotencyKey(u.Key))
	if err != nil || !first.Replayed {
		t.Fatal(first, err)
	}
	second, err := k.Issue(t.Context(), five, client.WithIdempotencyKey(u.Key))
	if err != nil || string(second.Raw) != string(first.Raw) {
		t.Fatal(second, err)
	}
	for _, one := range s.asked() {
		if one != `POST /v1/issue mine {"amount_minor":"5","asset":"EUR/2","to":"ann"}` {
			t.Errorf("asked %q", one)
		}
	}
}

// Only a caller with UntilNext waits for its nonce.
func TestUntilNext(t *testing.T) {
	s := play(t, ahead, receipt)
	k, _ := dial(t, s, client.Options{})
	if _, err := k.Burn(t.Context(), client.BurnRequest{From: "ann", Nonce: 5}, client.UntilNext()); err != nil || len(s.asked()) != 2 {
		t.Fatalf("%v, asked %q", err, s.asked())
	}
	s = play(t, ahead)
	k, _ = dial(t, s, client.Options{})
	_, err := k.Burn(t.Context(), client.BurnRequest{From: "ann", Nonce: 5})
	var p *client.Problem
	if !errors.As(err, &p) || p.ExpectedNonce != 3 || p.DecisionID != "d_1" || !p.Retryable || p.Status != 409 || p.Index != nil || len(s.asked()) != 1 {
		t.Fatalf("%v, asked %q", err, s.asked())
	}
	if err.Error() != "nonce_conflict: Ahead (the next nonce is 3)" {
		t.Error(err)
	}
}

// A request that is not idempotent is not repeated if it may have been executed.
func TestCreateKeyIsNotRetried(t *testing.T) {
	for answers, want := range map[string]int{"busy late made": 3, "busy unclear": 2, "cut": 1, "internal": 1, "gone": 1} {
		s := play(t, strings.Fields(answers)...)
		for i, name := range s.answers {
			s.answers[i] = map[string]string{"busy": busy, "late": late, "unclear": unclear, "cut": "cut", "internal": internal,
				"made": `200 {"key":"mk_1"}`, "gone": "200 hello"}[name]
		}
		k, _ := dial(t, s, client.Options{})
		_, err := k.CreateKey(t.Context(), client.KeyRequest{Name: "n"})
		var u *client.UnknownOutcome
		if len(s.asked()) != want || (want < 3) != errors.As(err, &u) || u != nil && u.Key != "" {
			t.Errorf("%s: asked %d times, %v", answers, len(s.asked()), err)
		}
	}
}

// An aborted read has no unknown outcome: it changes nothing.
func TestReadOutcomeIsNeverUnknown(t *testing.T) {
	s := play(t, "cut")
	k, _ := dial(t, s, client.Options{})
	if _, err := k.Balance(t.Context(), "ann", "EUR/2", 0); err == nil || errors.Is(err, client.ErrUnknown) || len(s.asked()) != 3 {
		t.Fatalf("%v, asked %d times", err, len(s.asked()))
	}
}

// If the connection is refused, nothing was sent, so the outcome is not unknown.
func TestRefusedConnectionIsNotUnknown(t *testing.T) {
	s := play(t, receipt)
	k, time := dial(t, s, client.Options{})
	s.Close()
	_, err := k.Issue(t.Context(), five)
	if at := s.Listener.Addr().String(); err == nil || err.Error() != "the node does not answer: dial tcp "+at+": connect: connection refused" || len(time.waits) > 0 {
		t.Fatalf("%v, waited %v", err, time.waits)
	}
}

// A cancellation by the caller leaves the outcome unknown as well.
func TestCancelledWriteIsUnknown(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hold := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel(); <-hold }))
	defer s.Close()
	defer close(hold)
	k, err := client.New(s.URL, "secret", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if _, err := k.Issue(ctx, five, client.WithIdempotencyKey("k")); !errors.Is(err, client.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := k.Issue(ctx, five, client.WithIdempotencyKey("k")); errors.Is(err, client.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Fatal("it was never sent", err)
	}
}

// Attempts to a silent node time out one by one.
func TestAttemptTimesOut(t *testing.T) {
	hold, asked := make(chan struct{}), make(chan struct{}, 9)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{}; <-hold }))
	defer s.Close()
	defer close(hold)
	k, err := client.New(s.URL, "secret", client.Options{AttemptTimeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if _, err := k.Issue(t.Context(), five); !errors.Is(err, client.ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) || len(asked) != 3 {
		t.Fatalf("%v, asked %d times", err, len(asked))
	}
}

// An attempt ends with RetryTimeout at the latest.
func TestPatienceEndsATry(t *testing.T) {
	hold := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hold }))
	defer s.Close()
	defer close(hold)
	k, err := client.New(s.URL, "secret", client.Options{AttemptTimeout: time.Hour, RetryTimeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := k.Issue(ctx, five); !errors.Is(err, client.ErrUnknown) || ctx.Err() != nil {
		t.Fatal(err)
	}
}

// An endless response is read up to the limit.
func TestEndlessResponseIsLimited(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for err := error(nil); err == nil; {
			_, err = w.Write(make([]byte, 4096))
		}
	}))
	defer s.Close()
	k, err := client.New(s.URL, "secret", client.Options{MaxResponseBytes: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := k.Balance(ctx, "ann", "EUR/2", 0); err == nil || err.Error() != "the answer is longer than is read: 10000 bytes" {
		t.Fatal(err)
	}
}

// A stored rejection is returned as an outcome, not as an error.
func TestStoredRejectionIsAnOutcome(t *testing.T) {
	for answer, kept := range map[string]bool{poor: true, usedUp: true, `403 {"code":"limits_exceeded","detail":"Over."}`: true,
		ahead: false, barred: false, frozen: false, late: false} {
		k, _ := dial(t, play(t, answer), client.Options{})
		o, err := k.TxByKey(t.Context(), "k")
		if (err == nil) != kept || kept && (o.Problem == nil || o.Receipt != nil || string(o.Raw) != answer[4:]) {
			t.Errorf("%s: %v, %v", answer, o, err)
		}
	}
}

// A batch whose response has another number of items is invalid.
func TestBatchResultsMustMatchItems(t *testing.T) {
	k, _ := dial(t, play(t, `200 {"receipts":[`+receipt[4:]+`]}`), client.Options{})
	if _, err := k.Batch(t.Context(), client.BatchRequest{Items: make([]client.BatchItem, 2)}); !errors.Is(err, client.ErrUnknown) || !errors.Is(err, client.ErrWrongNode) {
		t.Error(err)
	}
	if b, err := k.Batch(t.Context(), client.BatchRequest{Items: make([]client.BatchItem, 1)}); err != nil || len(b.Receipts) != 1 {
		t.Error(b, err)
	}
}

// The key is not sent to the target of a redirect.
func TestRedirectsAreNotFollowed(t *testing.T) {
	there := play(t, receipt)
	for _, status := range []string{"301", "302", "303", "307", "308"} {
		s := play(t, status)
		s.header.Set("Location", there.URL)
		k, _ := dial(t, s, client.Options{})
		if _, err := k.Tx(t.Context(), "tx_1"); !errors.Is(err, client.ErrWrongNode) {
			t.Errorf("%s: %v", status, err)
		}
		if _, err := k.Release(t.Context(), "hold_1"); !errors.Is(err, client.ErrUnknown) {
			t.Errorf("%s: %v", status, err)
		}
	}
	if len(there.asked()) > 0 {
		t.Errorf("followed: %q", there.asked())
	}
}

// Only the proxy of Options is used, not that of the environment.
func TestProxies(t *testing.T) {
	s := play(t, receipt)
	t.Setenv("HTTP_PROXY", s.URL)
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Options{{Proxy: http.ProxyURL(at)}, {AttemptTimeout: 20 * time.Millisecond, MaxAttempts: 1}} {
		k, err := client.New("http://192.0.2.1:1", "secret", o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Issue(t.Context(), five); (err == nil) != (o.Proxy != nil) {
			t.Errorf("%v", err)
		}
		k.Close()
	}
	if n := len(s.asked()); n != 1 {
		t.Errorf("the proxy was asked %d times", n)
	}
}

func TestConnectionsAreReused(t *testing.T) {
	s := play(t, receipt)
	k, _ := dial(t, s, client.Options{})
	for range 10 {
		if _, err := k.Issue(t.Context(), five); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.connections(); n != 1 {
		t.Fatalf("%d connections", n)
	}
}

// A reused connection that is broken costs one attempt, and the outcome is unknown.
func TestTransportDoesNotRetry(t *testing.T) {
	s := play(t, receipt, "cut", receipt)
	k, time := dial(t, s, client.Options{})
	for range 2 {
		if _, err := k.Issue(t.Context(), five); err != nil {
			t.Fatal(err)
		}
	}
	if len(time.waits) != 1 || len(s.asked()) != 3 {
		t.Fatalf("asked %d times, waited %v", len(s.asked()), time.waits)
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &script{answers: []string{receipt}, header: http.Header{}, conns: map[string]bool{}}
	s.Server = httptest.NewUnstartedServer(s)
	s.Listener = l
	s.Start()
	defer s.Close()
	k, err := client.New("unix:"+path, "secret", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if _, err := k.Issue(t.Context(), five); err != nil {
		t.Fatal(err)
	}
}

func TestAddresses(t *testing.T) {
	for address, good := range map[string]bool{
		"http://h": true, "http://h:1/": true, "https://h/under": true, "unix:/a": true, "unix:a": true,
		"": false, "unix:": false, "h:1": false, "127.0.0.1:8080": false, "ftp://h": false, "http://": false, "http://u:p@h": false,
		"http://h?a=b": false, "http://h#f": false, "http://%": false,
	} {
		if _, err := client.New(address, "k", client.Options{}); (err == nil) != good || err != nil && !errors.Is(err, client.ErrAddress) {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// Printing a client never shows its key.
func TestKeyIsNotPrinted(t *testing.T) {
	k, err := client.New("http://h/under", "mk_secret", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if printed := fmt.Sprintf("%v %+v %#v %s", k, k, k, k); strings.Contains(printed, "secret") || !strings.Contains(printed, "http://h/under/") {
		t.Error(printed)
	}
}
