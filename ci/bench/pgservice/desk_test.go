package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"macronode/ci/bench/cluster"
)

// open runs the service on its own cluster.
func open(t *testing.T) (url string, pool *pgxpool.Pool) {
	if _, err := cluster.Find(); errors.Is(err, cluster.ErrMissing) {
		t.Skip("no PostgreSQL on this machine: the peer is not checked against the contract")
	}
	dir, err := os.MkdirTemp("", "pgservice-") // not t.TempDir: PostgreSQL's user needs access
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Start(t.Context(), dir+"/pg", "fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
		if log := c.Log(); strings.Contains(log, "deadlock") {
			t.Error(log)
		}
	})
	pool, err = pgxpool.New(context.Background(), c.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), "insert into account (name, asset, balance) values ('ann', 'EUR/2', 100), ('bob', 'EUR/2', 100)"); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(newDesk(pool, "secret").routes())
	t.Cleanup(s.Close)
	return s.URL, pool
}

type response struct {
	status   int
	body     string
	replayed bool
}

func post(t *testing.T, url, bearer, key, body string) response {
	return postTo(t, url+"/v1/transfer", bearer, key, body)
}

func postTo(t *testing.T, url, bearer, key, body string) response {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{resp.StatusCode, string(raw), resp.Header.Get("Idempotency-Replayed") == "true"}
}

func transfer(from, to string, amount, nonce int) string {
	return fmt.Sprintf(`{"from":%q,"to":%q,"asset":"EUR/2","amount_minor":"%d","nonce":%d}`, from, to, amount, nonce)
}

// TestContract: the service follows macronode's API.
func TestContract(t *testing.T) {
	url, pool := open(t)
	first := transfer("ann", "bob", 30, 1)
	responses := map[string]response{}
	for _, c := range []struct {
		rule, bearer, key, body string
		status                  int
		want                    string
		as                      string // the same bytes as under this earlier key
	}{
		{"a wrong key", "other", "k0", first, 401, `"unauthorized"`, ""},
		{"no key", "secret", "", first, 400, `"bad_request"`, ""},
		{"an unknown field", "secret", "k0", strings.Replace(first, "{", `{"tip":1,`, 1), 400, `"bad_request"`, ""},
		{"two values", "secret", "k0", first + first, 400, `"bad_request"`, ""},
		{"an amount with a zero in front", "secret", "k0", strings.Replace(first, `"30"`, `"030"`, 1), 400, `"bad_request"`, ""},
		{"a transfer", "secret", "k1", first, 200, `"seq":`, ""},
		{"a retry", "secret", "k1", first, 200, "", "k1"},
		{"another question", "secret", "k1", transfer("ann", "bob", 31, 1), 422, `"idempotency_conflict"`, ""},
		{"a used nonce", "secret", "k2", transfer("ann", "bob", 1, 1), 409, `"expected_nonce":2`, ""},
		{"a nonce ahead", "secret", "k3", transfer("ann", "bob", 1, 3), 409, `"expected_nonce":2`, ""},
		{"too much", "secret", "k4", transfer("ann", "bob", 71, 2), 409, `"insufficient_funds"`, ""},
		{"the whole balance, to a new account", "secret", "k5", transfer("ann", "cy", 70, 2), 200, `"cy"`, ""},
		{"the nonce that was ahead", "secret", "k3", transfer("bob", "ann", 100, 1), 200, "", ""},
		{"too much is kept", "secret", "k4", transfer("ann", "bob", 71, 2), 409, "", "k4"},
		{"used is kept", "secret", "k2", transfer("ann", "bob", 1, 1), 409, "", "k2"},
	} {
		got := post(t, url, c.bearer, c.key, c.body)
		if got.status != c.status || !strings.Contains(got.body, c.want) {
			t.Errorf("%s: %d %s", c.rule, got.status, got.body)
		}
		if c.as != "" && (got.body != responses[c.as].body || c.status == 200 && !got.replayed) {
			t.Errorf("%s: %+v, before %+v", c.rule, got, responses[c.as])
		}
		if c.as == "" {
			responses[c.key] = got
		}
	}
	hold(t, pool, "ann:100:2 bob:30:1 cy:70:0")
}

func hold(t *testing.T, pool *pgxpool.Pool, want string) {
	t.Helper()
	var got string
	row := pool.QueryRow(t.Context(), "select string_agg(name || ':' || balance || ':' || nonce, ' ' order by name) from account")
	if err := row.Scan(&got); err != nil || got != want {
		t.Fatalf("%s, want %s, %v", got, want, err)
	}
}

// TestConcurrentRetriesMoveOnce: of concurrent requests under one key, one moves money, and all
// get the same answer.
func TestConcurrentRetriesMoveOnce(t *testing.T) {
	url, pool := open(t)
	for round := range 20 {
		all := make([]response, 8)
		var wg sync.WaitGroup
		for i := range all {
			wg.Go(func() { all[i] = post(t, url, "secret", fmt.Sprintf("k%d", round), transfer("ann", "bob", 1, round+1)) })
		}
		wg.Wait()
		fresh := 0
		for _, s := range all {
			if s.status != 200 || s.body != all[0].body {
				t.Fatalf("round %d: %+v and %+v", round, all[0], s)
			}
			if !s.replayed {
				fresh++
			}
		}
		if fresh != 1 {
			t.Fatalf("round %d: %d of them moved money", round, fresh)
		}
	}
	hold(t, pool, "ann:80:20 bob:120:0")
}

// TestOppositeTransfersDoNotDeadlock: according to the log.
func TestOppositeTransfersDoNotDeadlock(t *testing.T) {
	url, pool := open(t)
	if _, err := pool.Exec(t.Context(), "update account set balance = 1000"); err != nil { // more than the largest difference
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, pair := range [][2]string{{"ann", "bob"}, {"bob", "ann"}} {
		wg.Go(func() {
			for n := range 300 {
				if s := post(t, url, "secret", fmt.Sprintf("%s%d", pair[0], n), transfer(pair[0], pair[1], 1, n+1)); s.status != 200 {
					t.Errorf("%+v", s)
				}
			}
		})
	}
	wg.Wait()
	hold(t, pool, "ann:1000:300 bob:1000:300")
}

// batch returns an atomic batch.
func batch(transfers ...string) string {
	for i, one := range transfers {
		transfers[i] = strings.Replace(one, "{", `{"op":"transfer",`, 1)
	}
	return `{"atomic":true,"items":[` + strings.Join(transfers, ",") + `]}`
}

// TestBatchIsAtomicAndOrdered: transfers of a batch are done in order, all or none.
func TestBatchIsAtomicAndOrdered(t *testing.T) {
	url, pool := open(t)
	url += "/v1/batch"
	there := batch(transfer("ann", "bob", 100, 1), transfer("bob", "cy", 150, 1), transfer("bob", "ann", 50, 2))
	first := postTo(t, url, "secret", "k1", there)
	if first.status != 200 || strings.Count(first.body, `"idem":"k1"`) != 3 {
		t.Fatalf("%+v", first)
	}
	hold(t, pool, "ann:50:1 bob:0:2 cy:150:0")
	if again := postTo(t, url, "secret", "k1", there); again.body != first.body || !again.replayed {
		t.Errorf("%+v, before %+v", again, first)
	}
	for _, c := range []struct {
		rule, key, body string
		status          int
	}{
		{"another question", "k1", batch(transfer("ann", "bob", 1, 2)), 422},
		{"the second has too little", "k2", batch(transfer("ann", "bob", 50, 2), transfer("bob", "ann", 51, 3)), 409},
		{"a nonce twice", "k3", batch(transfer("cy", "bob", 1, 1), transfer("cy", "bob", 1, 1)), 409},
		{"not atomic", "k4", strings.Replace(batch(transfer("cy", "bob", 1, 1)), "true", "false", 1), 400},
		{"no transfer", "k5", strings.Replace(batch(transfer("cy", "bob", 1, 1)), `"transfer"`, `"burn"`, 1), 400},
		{"empty", "k6", batch(), 400},
	} {
		if got := postTo(t, url, "secret", c.key, c.body); got.status != c.status {
			t.Errorf("%s: %+v", c.rule, got)
		}
	}
	hold(t, pool, "ann:50:1 bob:0:2 cy:150:0")
}
