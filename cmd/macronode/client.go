package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"macronode/adapters/rundir"
)

// client speaks to one node.
type client struct {
	*console
	http    *http.Client
	wire    *http.Transport // of http
	base    string
	key     string
	timeout time.Duration
}

// request is one thing that is asked, however often it is sent.
type request struct {
	method, path string
	idem         string // the idempotency key of what moves money
	body         []byte
}

// outcome is what is known in the end.
type outcome struct {
	status   int
	body     []byte
	replayed bool
	problem  problem
	doubt    bool  // it may have been done, and nobody has said so
	err      error // why there is no answer
}

// problem is what a refusal says, as far as a person is told.
type problem struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
	Nonce  uint64 `json:"expected_nonce"`
}

const mostAnswer = 4 << 20 // bytes of an answer that are read

// newClient follows nobody who sends it elsewhere, and keeps no connection: what is
// sent again is sent by us, counted and paused for.
func (c *console) newClient(base, key string, timeout time.Duration) *client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableKeepAlives = true
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{console: c, http: &http.Client{Transport: t, CheckRedirect: stay}, wire: t, base: base, key: key, timeout: timeout}
}

// listener is a client of an address as a node of this machine tells it: host:port,
// or unix:path. No proxy stands between.
func (c *console) listener(address, key string, timeout time.Duration) *client {
	k := c.newClient("http://"+address, key, timeout)
	k.wire.Proxy = nil
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		k.base = "http://localhost"
		k.wire.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
	}
	return k
}

// client finds the node and what lets us in. The key of a directory goes to nobody
// but the node that runs on it.
func (c *console) client(r reach) (*client, error) {
	key, err := r.key()
	if err != nil {
		return nil, err
	}
	if r.URL != "" {
		at, err := url.Parse(r.URL)
		if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
			return nil, cannot(fmt.Errorf("--url %s wants http://host:port or https://host:port", r.URL))
		}
		if key == "" {
			return nil, cannot(errors.New("--url wants --api-key or --api-key-file too: the key of a directory is not sent elsewhere"))
		}
		return c.newClient(strings.TrimSuffix(r.URL, "/"), key, r.Timeout), nil
	}
	dir, is, err := c.found()
	if err != nil {
		return nil, err
	}
	if is.Listen.HTTP == "" {
		return nil, fmt.Errorf("the node on %s is starting: it does not listen yet", dir)
	}
	if key == "" {
		own, err := rundir.ReadKey(dir)
		if err != nil {
			return nil, fmt.Errorf("no API key was given, and %s has none to use: %w", dir, err)
		}
		key = own.Text()
	}
	return c.listener(is.Listen.HTTP, key, r.Timeout), nil
}

// key is the API key that was given, if one was.
func (r reach) key() (string, error) {
	if r.Timeout <= 0 {
		return "", cannot(fmt.Errorf("--timeout %v wants more than nothing", r.Timeout))
	}
	if r.APIKey != "" || r.APIKeyFile == "" {
		return r.APIKey, nil
	}
	text, err := os.ReadFile(r.APIKeyFile)
	if err != nil {
		return "", cannot(fmt.Errorf("the API key cannot be read: %w", err))
	}
	return strings.TrimSpace(string(text)), nil
}

// found is the node that runs on the directory.
func (c *console) found() (dir string, is rundir.Run, err error) {
	cfg, err := c.load()
	if err != nil {
		return "", is, err
	}
	is, err = rundir.Read(cfg.Data)
	switch {
	case errors.Is(err, rundir.ErrNobody):
		err = fmt.Errorf("no node runs on %s: macronode serve starts one", cfg.Data)
	case errors.Is(err, rundir.ErrStale):
		err = fmt.Errorf("the node that ran on %s (process %d) is dead: macronode serve starts it again", cfg.Data, is.PID)
	}
	return cfg.Data, is, err
}

// ask sends a request until there is an answer to keep, or the time is over.
func (k *client) ask(ctx context.Context, r request) outcome {
	until := k.now().Add(k.timeout)
	doubt := false
	for n := 0; ; n++ {
		left := min(until.Sub(k.now()), oneAttempt)
		a, o := k.send(ctx, r, left)
		again, still := judge(a, doubt)
		doubt, o.doubt = still, still
		wait := pause(n, a.after, k.roll())
		if !again || ctx.Err() != nil || k.now().Add(wait).After(until) || k.sleep(ctx, wait) != nil {
			return o
		}
	}
}

// send sends a request once.
func (k *client) send(ctx context.Context, r request, limit time.Duration) (a attempt, o outcome) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	q, err := http.NewRequestWithContext(ctx, r.method, k.base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return a, outcome{err: err}
	}
	q.Header.Set("Authorization", "Bearer "+k.key)
	q.Header.Set("Accept", "application/json, application/problem+json")
	if r.body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	if r.idem != "" {
		q.Header.Set("Idempotency-Key", r.idem)
	}
	resp, err := k.http.Do(q)
	if err != nil {
		a.sent = sent.Load()
		if why := new(url.Error); errors.As(err, &why) {
			err = why.Err // it names the address itself
		}
		return a, outcome{err: err}
	}
	defer resp.Body.Close() //nolint:errcheck // it has been read
	a.sent = true
	if o.body, err = io.ReadAll(io.LimitReader(resp.Body, mostAnswer)); err != nil {
		return a, outcome{err: fmt.Errorf("read the answer: %w", err)}
	}
	a.status, o.status = resp.StatusCode, resp.StatusCode
	o.replayed = resp.Header.Get("Idempotency-Replayed") == "true"
	if o.status >= 400 && json.Unmarshal(o.body, &o.problem) != nil {
		o.problem = problem{}
	}
	a.code, a.after = o.problem.Code, retryAfter(resp.Header.Get("Retry-After"), k.now())
	return a, o
}

// retryAfter reads seconds or a date; what is neither asks for nothing.
func retryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// ok reports an answer that is not a refusal.
func (o outcome) ok() bool { return o.err == nil && o.status >= 200 && o.status < 300 }

// why says in a sentence what the answer is, where it is not the wished one.
func (o outcome) why() error {
	switch {
	case o.err != nil:
		return fmt.Errorf("the node does not answer: %w", o.err)
	case o.problem.Code == "":
		return fmt.Errorf("what answers is no node of ours: %d %s", o.status, http.StatusText(o.status))
	case o.problem.Code == "nonce_conflict":
		return fmt.Errorf("%s: %s (the next nonce is %d)", o.problem.Code, strings.TrimSuffix(o.problem.Detail, "."), o.problem.Nonce)
	}
	return fmt.Errorf("%s: %s", o.problem.Code, strings.TrimSuffix(o.problem.Detail, "."))
}
