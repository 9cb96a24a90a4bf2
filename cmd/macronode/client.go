package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"macronode/adapters/client"
	"macronode/adapters/fs"
	"macronode/adapters/nodedir"
)

const (
	oneAttempt = 10 * time.Second
	mostAnswer = 4 << 20 // bytes of the admin listener's answer that are read
)

// node is a client of the node that was named, or of the one that runs on the
// directory. The key of a directory goes to nobody but the node that runs on it, and no
// proxy stands between us and a node of this machine.
func (c *console) node(r reach) (*client.Client, error) {
	key, err := r.key()
	if err != nil {
		return nil, err
	}
	o := c.options(r)
	if r.URL != "" {
		if key == "" {
			return nil, cannot(errors.New("--url needs --api-key or --api-key-file: the key of a data directory is not sent to other addresses"))
		}
		k, err := client.New(r.URL, key, o)
		if err != nil {
			return nil, cannot(fmt.Errorf("--url %s must be http://host:port, https://host:port or unix:path", r.URL))
		}
		return k, nil
	}
	dir, is, err := c.found()
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
		o.TLS = only(is.Listen.TLS.Certificate)
	}
	return client.New(dialed(is.Listen.HTTP, is.Listen.TLS.HTTP), key, o)
}

// options are how the node that r names is spoken to.
func (c *console) options(r reach) client.Options {
	o := client.Options{Tries: -1, Try: oneAttempt, Patience: r.Timeout, World: client.World{Now: c.now, Sleep: c.sleep, Roll: c.roll, Draw: c.draw}}
	if r.URL != "" {
		o.Proxy = http.ProxyFromEnvironment
	}
	return o
}

// dialed is an address as a node of this machine tells it, host:port or unix:path, as
// clients take it.
func dialed(address string, tls bool) string {
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

// key is the API key that was given, if one was.
func (r reach) key() (string, error) {
	if r.Timeout <= 0 {
		return "", cannot(fmt.Errorf("--timeout %v must be more than 0", r.Timeout))
	}
	if r.APIKey != "" || r.APIKeyFile == "" {
		return r.APIKey, nil
	}
	text, err := os.ReadFile(r.APIKeyFile)
	if err != nil {
		return "", cannot(fmt.Errorf("cannot read the API key: %w", err))
	}
	return strings.TrimSpace(string(text)), nil
}

// found is the node that runs on the directory.
func (c *console) found() (dir string, is nodedir.Run, err error) {
	cfg, err := c.load()
	if err != nil {
		return "", is, err
	}
	is, err = nodedir.Read(cfg.Data)
	gone := errors.Is(err, nodedir.ErrNobody) || errors.Is(err, nodedir.ErrStale)
	switch holder := fs.Holder(fs.Dir(cfg.Data)); {
	case gone && holder != "":
		err = fmt.Errorf("no node answers on %s, but %s uses it: a node that is starting or stopping, or another command", cfg.Data, holder)
	case errors.Is(err, nodedir.ErrNobody):
		err = fmt.Errorf("no node is running on %s: start one with macronode serve", cfg.Data)
	case errors.Is(err, nodedir.ErrStale):
		err = fmt.Errorf("the node on %s (process %d) is not running any more: start it again with macronode serve", cfg.Data, is.PID)
	}
	return cfg.Data, is, err
}

// asked is with a client for as long as ask takes, or until an interrupt.
func (c *console) asked(r reach, ask func(context.Context, *client.Client) error) error {
	k, err := c.node(r)
	if err != nil {
		return err
	}
	defer k.Close()
	ctx, stop := interruptible()
	defer stop()
	return ask(ctx, k)
}

// told is what the admin listener answered.
type told struct {
	status int
	body   []byte
}

func (t told) ok() bool { return t.status >= 200 && t.status < 300 }

// admin asks the admin listener of the node that runs, once, by the token it left.
func (c *console) admin(ctx context.Context, is nodedir.Run, method, path string, limit time.Duration) (t told, err error) {
	if is.Listen.Admin == "" {
		return t, fmt.Errorf("the node (process %d) is starting: its admin listener is not up yet", is.PID)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	wire, base := &http.Transport{DisableKeepAlives: true}, scheme(is.Listen.TLS.Admin)+is.Listen.Admin
	if is.Listen.TLS.Admin {
		wire.TLSClientConfig = only(is.Listen.TLS.Certificate)
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
	q.Header.Set("Authorization", "Bearer "+is.Token)
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := (&http.Client{Transport: wire, CheckRedirect: stay}).Do(q)
	if why := new(url.Error); errors.As(err, &why) {
		err = why.Err // it names the address itself
	}
	if err == nil {
		defer resp.Body.Close() //nolint:errcheck // it has been read
		t.status = resp.StatusCode
		t.body, err = io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	}
	if err != nil {
		return t, fmt.Errorf("the node does not answer: %w", err)
	}
	return t, nil
}

// why says what an answer is that is not the wished one.
func (t told) why() error {
	if p, ok := client.ParseProblem(t.body); ok {
		return p
	}
	return fmt.Errorf("%w: %d %s", client.ErrStranger, t.status, http.StatusText(t.status))
}
