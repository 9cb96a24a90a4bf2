package export

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"macronode/adapters/nettest"
)

// TestStatusDecides checks what each status means, with a body that says something else.
func TestStatusDecides(t *testing.T) {
	var status int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/slices/default/custom:a~2Fb/1" {
			t.Errorf("a request for %s: a redirect was followed", r.URL.Path)
			return
		}
		w.Header().Set("Location", "/trap")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "the\tbody\x00is ignored")
	}))
	defer server.Close()
	sink, err := New(Config{Kind: KindHTTP, URL: server.URL, Inflight: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	for _, c := range []struct {
		status int
		want   Result
	}{
		{200, Result{Outcome: OK}}, {201, Result{Outcome: OK}}, {202, Result{Outcome: OK}}, {204, Result{Outcome: OK}},
		{208, Result{Outcome: Duplicate}},
		{400, Result{Outcome: Permanent}}, {409, Result{Outcome: Permanent}}, {422, Result{Outcome: Permanent}},
		{413, Result{Outcome: Permanent, TooLarge: true}},
		{410, Result{Outcome: Stopped}},
		{301, Result{Outcome: Retryable, RetryAfter: 7 * time.Second}}, {307, Result{Outcome: Retryable, RetryAfter: 7 * time.Second}},
		{304, Result{Outcome: Retryable, RetryAfter: 7 * time.Second}},
		{401, Result{Outcome: Retryable, RetryAfter: 7 * time.Second}}, {404, Result{Outcome: Retryable, RetryAfter: 7 * time.Second}},
		{429, Result{Outcome: Retryable, RetryAfter: 7 * time.Second}}, {500, Result{Outcome: Retryable, RetryAfter: 7 * time.Second}},
		{599, Result{Outcome: Retryable, RetryAfter: 7 * time.Second}},
	} {
		status = c.status
		got := sink.Deliver(t.Context(), item(1))
		reason := got.Reason
		got.Reason, c.want.Status = "", c.status
		if got != c.want {
			t.Errorf("%d: %+v, want %+v", c.status, got, c.want)
		}
		if taken := c.want.Outcome == OK || c.want.Outcome == Duplicate; taken != (reason == "") || strings.ContainsAny(reason, "\x00\t") {
			t.Errorf("%d: the reason is %q", c.status, reason)
		}
	}
}

// TestUnreachableReceiverIsRetried checks the reason of a receiver that is down.
func TestUnreachableReceiverIsRetried(t *testing.T) {
	address := nettest.RefusingAddress(t)
	sink, err := New(Config{Kind: KindCloudEvents, URL: address, Inflight: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	if got := sink.Deliver(t.Context(), item(1)); got.Outcome != Retryable || !strings.Contains(got.Reason, "refused") || strings.Contains(got.Reason, "http://") {
		t.Fatalf("%+v", got)
	}
}

// TestWriteIsLimited checks that each write gets a deadline.
func TestWriteIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		began := time.Now()
		if _, err := (limitedConn{near}).Write([]byte("not read")); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != writeTimeout {
			t.Fatal(err, time.Since(began))
		}
	})
}

// TestResponsesAreBounded checks that a receiver cannot fill the memory, and that its status counts however long the body is.
func TestResponsesAreBounded(t *testing.T) {
	header := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Long", header)
		for r.Context().Err() == nil { // until the client has gone
			if _, err := io.WriteString(w, strings.Repeat("x", 64<<10)); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	sink, err := New(Config{Kind: KindHTTP, URL: server.URL, Inflight: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	if got := sink.Deliver(t.Context(), item(1)); got.Outcome != OK {
		t.Fatalf("%+v", got)
	}
	header = strings.Repeat("x", 2*responseHeader)
	if got := sink.Deliver(t.Context(), item(1)); got.Outcome != Retryable {
		t.Fatalf("%+v", got)
	}
}

// TestRetryAfter checks that a receiver cannot ask for a pause without a limit.
func TestRetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "0": 0, " 12 ": 12 * time.Second, "999999999": MaxRetryAfter, "-1": 0, "Wed, 21 Oct 2015 07:28:00 GMT": 0, "9000000000": MaxRetryAfter, "99999999999999999999": MaxRetryAfter} {
		if got := retryAfter(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestWebhookSignature uses the example of the specification of Standard Webhooks.
func TestWebhookSignature(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sign := func() string {
		keys, err := secretFile(file).keys()
		if err != nil {
			t.Fatal(err)
		}
		return signatures(keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	}
	const known, first = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	write(known + "\n")
	if got := sign(); got != first {
		t.Errorf("%s, not %s", got, first)
	}
	other := "whsec_" + strings.Repeat("QUJD", 8)
	write(other + "\n\n" + known + "\r\n") // during a rotation
	if got := strings.Fields(sign()); len(got) != 2 || got[1] != first || got[0] == first {
		t.Errorf("signatures of two secrets are %q", got)
	}
	for _, bad := range []string{"", known + "\n" + known + "\n" + known, "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_QUJD", "whsec_" + strings.Repeat("QUJD", 30), "whsec_*" + strings.Repeat("QUJD", 8)} {
		write(bad)
		if _, err := secretFile(file).keys(); err == nil || strings.Contains(err.Error(), "QUJD") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := (&Config{Kind: KindWebhook, SecretFile: file}).CheckSecrets(); err == nil {
		t.Error("a missing file is accepted")
	}
}

// TestBearerToken checks the header of the kinds that sign nothing.
func TestBearerToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	got := ""
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") }))
	defer server.Close()
	for _, kind := range []string{KindHTTP, KindCloudEvents} {
		sink, err := New(Config{Kind: kind, URL: server.URL, SecretFile: file, Inflight: 1})
		if err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]string{"tok-1\n": "Bearer tok-1", "two words": "", "a\nb": "", "": ""} {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			got = ""
			if r := sink.Deliver(t.Context(), item(1)); got != want || (r.Outcome == OK) != (want != "") {
				t.Errorf("%s %q: %q, %+v", kind, text, got, r)
			}
		}
		_ = sink.Close()
	}
}
