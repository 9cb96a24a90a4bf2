package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"macronode/adapters/client"
	"macronode/adapters/fs"
	"macronode/adapters/nodedir"
	"macronode/cmd/macronode/internal/exit"
)

const (
	attemptTimeout   = 10 * time.Second
	reloadTimeout    = time.Minute // of a reload: a policy that changes is simulated before
	maxAdminResponse = 4 << 20     // limit of a response of the admin listener, in bytes
)

// newClient returns a client of the node that is named by --url, or of the one that runs on the data directory.
// The key of a directory is only sent to its own node. A node of this machine is reached without a proxy.
func (c nodeAccess) newClient(r clientFlags) (*client.Client, error) {
	key, err := r.key()
	if err != nil {
		return nil, err
	}
	o := c.clientOptions(r)
	if r.URL != "" {
		if key == "" {
			return nil, exit.Unable(errors.New("--url needs --api-key or --api-key-file: the key of a data directory is not sent to other addresses"))
		}
		k, err := client.New(r.URL, key, o)
		if err != nil {
			return nil, exit.Unable(fmt.Errorf("--url %s must be http://host:port, https://host:port or unix:path", r.URL))
		}
		return k, nil
	}
	dir, is, err := c.findNode()
	if err != nil {
		return nil, err
	}
	if is.Listen.HTTP == "" {
		return nil, fmt.Errorf("the node on %s is starting and does not listen yet", dir)
	}
	if key == "" {
		own, err := nodedir.ReadKey(dir)
		if err != nil {
			return nil, fmt.Errorf("no API key was given, and there is none in %s: %w", dir, err)
		}
		key = own.Text()
	}
	if is.Listen.TLS.HTTP {
		o.TLS = pinnedTLS(is.Listen.TLS.Certificate)
	}
	return client.New(clientURL(is.Listen.HTTP, is.Listen.TLS.HTTP), key, o)
}

// clientOptions returns the options for the node that r names.
func (c nodeAccess) clientOptions(r clientFlags) client.Options {
	o := client.Options{MaxAttempts: -1, AttemptTimeout: attemptTimeout, RetryTimeout: r.Timeout, Executed: c.addExecution,
		Environment: client.Environment{Now: c.now, Sleep: c.sleep, Rand: c.random, NewIdempotencyKey: c.newKey}}
	if r.URL != "" {
		o.Proxy = http.ProxyFromEnvironment
	}
	return o
}

// clientURL returns the URL of an address that a node of this machine has written, host:port or unix:path.
func clientURL(address string, tls bool) string {
	if strings.HasPrefix(address, "unix:") {
		return address
	}
	return scheme(tls) + address
}

func scheme(tls bool) string {
	if tls {
		return "https://"
	}
	return "http://"
}

// key returns the API key of the flags; empty: none.
func (r clientFlags) key() (string, error) {
	if r.Timeout <= 0 {
		return "", exit.Unable(fmt.Errorf("--timeout %v must be more than 0", r.Timeout))
	}
	if r.APIKey != "" || r.APIKeyFile == "" {
		return r.APIKey, nil
	}
	text, err := fs.ReadRegular(r.APIKeyFile)
	if err != nil {
		return "", exit.Unable(fmt.Errorf("cannot read the API key: %w", err))
	}
	return strings.TrimSpace(string(text)), nil
}

// findNode returns the node that runs on the data directory.
func (c nodeAccess) findNode() (dir string, is nodedir.Run, err error) {
	dir, err = c.dataDir()
	if err != nil {
		return "", is, err
	}
	is, err = nodedir.Read(dir)
	gone := errors.Is(err, nodedir.ErrNotRunning) || errors.Is(err, nodedir.ErrStale)
	switch holder := fs.Holder(fs.Dir(dir)); {
	case gone && holder != "":
		err = fmt.Errorf("no node answers on %s, but %s uses it: a node that is starting or stopping, or another command", dir, holder)
	case errors.Is(err, nodedir.ErrNotRunning):
		err = fmt.Errorf("no node is running on %s: start one with macronode serve", dir)
	case errors.Is(err, nodedir.ErrStale):
		err = fmt.Errorf("the node on %s (process %d) is not running any more: start it again with macronode serve", dir, is.PID)
	}
	return dir, is, err
}

// withClient calls ask with a client, until an interrupt.
func (c nodeAccess) withClient(r clientFlags, ask func(context.Context, *client.Client) error) error {
	k, err := c.newClient(r)
	if err != nil {
		return err
	}
	defer k.Close()
	ctx, stop := interruptible()
	defer stop()
	return ask(ctx, k)
}

// askAgain adds to an unknown outcome what finds it out. Other errors stay as they are.
func askAgain(err error, how string) error {
	if u, ok := errors.AsType[*client.UnknownOutcome](err); ok {
		return exit.New(exit.CodeUnknown, fmt.Errorf("outcome unknown (%w): %s", u.Err, how))
	}
	return err
}

// adminResponse is a response of the admin listener.
type adminResponse struct {
	status int
	body   []byte
}

func (t adminResponse) ok() bool { return t.status >= 200 && t.status < 300 }

// callAdmin sends one request to the admin listener of a node, with the token of its directory. A request that may have changed
// something and has no response has an unknown outcome.
func (c nodeAccess) callAdmin(ctx context.Context, is nodedir.Run, method, path string, limit time.Duration) (t adminResponse, err error) {
	if is.Listen.Admin == "" {
		return t, fmt.Errorf("the node (process %d) is starting: its admin listener is not up yet", is.PID)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	wire, base := &http.Transport{DisableKeepAlives: true}, scheme(is.Listen.TLS.Admin)+is.Listen.Admin
	if is.Listen.TLS.Admin {
		wire.TLSClientConfig = pinnedTLS(is.Listen.TLS.Certificate)
	}
	if socket, ok := strings.CutPrefix(is.Listen.Admin, "unix:"); ok {
		base = "http://localhost"
		wire.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}
	}
	q, err := http.NewRequestWithContext(ctx, method, base+path, nil)
	if err != nil {
		return t, err
	}
	var sent atomic.Bool
	q = q.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }}))
	q.Host = "localhost" // the listener may have the address of all interfaces, which is no name of a node
	q.Header.Set("Authorization", "Bearer "+is.Token)
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := (&http.Client{Transport: wire, CheckRedirect: stay}).Do(q)
	if why := new(url.Error); errors.As(err, &why) {
		err = why.Err // it names the address itself
	}
	if err == nil {
		defer resp.Body.Close() //nolint:errcheck // it was read
		t.status = resp.StatusCode
		t.body, err = io.ReadAll(io.LimitReader(resp.Body, maxAdminResponse))
	}
	if err == nil {
		if method != http.MethodGet && t.ok() {
			c.addExecution(client.Execution{Method: method, Path: q.URL.Path})
		}
		return t, nil
	}
	err = fmt.Errorf("the node does not answer: %w", err)
	if sent.Load() && method != http.MethodGet {
		err = &client.UnknownOutcome{Attempts: 1, Err: err}
	}
	return t, err
}

// problem returns the error of an unexpected response.
func (t adminResponse) problem() error {
	if p, ok := client.ParseProblem(t.body); ok {
		if p.Code == client.OutcomeUnknown {
			return &client.UnknownOutcome{Attempts: 1, Err: p}
		}
		return p
	}
	return fmt.Errorf("%w: %d %s", client.ErrWrongNode, t.status, http.StatusText(t.status))
}
