package soak

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"macronode/chaos/kill"
	"macronode/core/types"
)

// A Guest asks the gateway, in his own way, without ever backing off.
type Guest struct {
	way    func(context.Context, *Guest, *kill.Node) error
	dice   types.Rand
	client http.Client

	Whole, Told, Cut atomic.Int64 // answers that were whole, problems, and what came to no end
}

// Guests are one of each way, times n.
func Guests(n int, seed uint64) (all []*Guest) {
	ways := []func(context.Context, *Guest, *kill.Node) error{hurries, pours, sips, tunnels, shows}
	for i := range n * len(ways) {
		g := &Guest{way: ways[i%len(ways)], dice: types.NewRand(seed + uint64(i))}
		g.client.Transport = &http.Transport{MaxIdleConns: 1, DisableCompression: true}
		all = append(all, g)
	}
	return all
}

// Run asks until ctx ends. It fails where an answer is none that a gateway gives.
func (g *Guest) Run(ctx context.Context, n *kill.Node) error {
	defer g.client.CloseIdleConnections()
	for ctx.Err() == nil {
		if err := g.way(ctx, g, n); err != nil {
			return err
		}
	}
	return nil
}

// hurries gives up at any moment.
func hurries(ctx context.Context, g *Guest, n *kill.Node) error {
	ctx, stop := context.WithTimeout(ctx, time.Duration(g.dice.Uint64n(8000))*time.Microsecond)
	defer stop()
	return g.asks(ctx, n, http.MethodGet, "/open?chunks=2", nil, 0)
}

// pours sends what it has not said how long it is.
func pours(ctx context.Context, g *Guest, n *kill.Node) error {
	body := io.LimitReader(endless{}, int64(g.dice.Uint64n(1<<20)))
	return g.asks(ctx, n, http.MethodPost, "/open?chunks=1", struct{ io.Reader }{body}, 0)
}

// sips reads slowly.
func sips(ctx context.Context, g *Guest, n *kill.Node) error {
	return g.asks(ctx, n, http.MethodGet, "/open?chunks=64", nil, time.Millisecond)
}

// shows has a key.
func shows(ctx context.Context, g *Guest, n *kill.Node) error {
	return g.asks(ctx, n, http.MethodGet, "/keyed?chunks=1", nil, 0)
}

// tunnels says something through a tunnel, and hears it again.
func tunnels(ctx context.Context, g *Guest, n *kill.Node) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(n.HTTP, "http://"))
	if err != nil {
		g.Cut.Add(1)
		return nil //nolint:nilerr // the node is gone
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, _ = io.WriteString(conn, "GET /open HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		g.Cut.Add(1)
		return nil //nolint:nilerr // the same
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return g.problem(resp.StatusCode)
	}
	for range 1 + g.dice.Uint64n(20) {
		_, _ = io.WriteString(conn, "again\n")
		said, err := in.ReadString('\n')
		if err != nil {
			g.Cut.Add(1)
			return nil //nolint:nilerr // cut at an end
		}
		if said != "again\n" {
			return fmt.Errorf("a tunnel said %q", said)
		}
	}
	g.Whole.Add(1)
	return nil
}

// asks makes one request, and reads what comes, with a pause after each part.
func (g *Guest) asks(ctx context.Context, n *kill.Node, method, path string, body io.Reader, pause time.Duration) error {
	req, err := http.NewRequestWithContext(ctx, method, n.HTTP+path, body)
	if err != nil {
		return err
	}
	if strings.HasPrefix(path, "/keyed") {
		req.Header.Set("Authorization", "Bearer "+n.Key)
	}
	resp, err := g.client.Do(req)
	if err != nil {
		g.Cut.Add(1)
		return nil //nolint:nilerr // given up, or the node is gone
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return g.problem(resp.StatusCode)
	}
	length, part := int64(0), make([]byte, len(chunk))
	for {
		got, err := resp.Body.Read(part)
		length += int64(got)
		switch {
		case errors.Is(err, io.EOF) && length != resp.ContentLength:
			return fmt.Errorf("%s: %d bytes of %d, and no error", path, length, resp.ContentLength)
		case errors.Is(err, io.EOF):
			g.Whole.Add(1)
			return nil
		case err != nil:
			g.Cut.Add(1)
			return nil
		}
		time.Sleep(pause) // a slow reader is what it is
	}
}

// problem notes what a gateway may say instead of an answer.
func (g *Guest) problem(status int) error {
	switch status {
	case http.StatusNotFound, http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		g.Told.Add(1)
		return nil
	}
	return fmt.Errorf("a gateway said %d", status)
}

// endless has something to say for ever.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, chunk), nil }
