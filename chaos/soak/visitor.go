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

// A Visitor sends requests of one kind without ever backing off.
type Visitor struct {
	way    func(context.Context, *Visitor, *kill.Node) error
	dice   types.Rand
	client http.Client

	Whole, Problems, Cut atomic.Int64 // answers that were whole, problems, and what came to no end
}

// Visitors returns n visitors of each kind.
func Visitors(n int, seed uint64) (all []*Visitor) {
	ways := []func(context.Context, *Visitor, *kill.Node) error{cancelRandomly, sendChunked, readSlowly, useTunnel, sendKey}
	for i := range n * len(ways) {
		g := &Visitor{way: ways[i%len(ways)], dice: types.NewRand(seed + uint64(i))}
		g.client.Transport = &http.Transport{MaxIdleConns: 1, DisableCompression: true}
		all = append(all, g)
	}
	return all
}

// Run sends requests until ctx ends. It returns an error for a response that a gateway must not give.
func (g *Visitor) Run(ctx context.Context, n *kill.Node) error {
	defer g.client.CloseIdleConnections()
	for ctx.Err() == nil {
		if err := g.way(ctx, g, n); err != nil {
			return err
		}
	}
	return nil
}

// cancelRandomly cancels requests at any moment.
func cancelRandomly(ctx context.Context, g *Visitor, n *kill.Node) error {
	ctx, stop := context.WithTimeout(ctx, time.Duration(g.dice.Uint64n(8000))*time.Microsecond)
	defer stop()
	return g.request(ctx, n, http.MethodGet, "/open?chunks=2", nil, 0)
}

// sendChunked sends bodies of unknown length.
func sendChunked(ctx context.Context, g *Visitor, n *kill.Node) error {
	body := io.LimitReader(endless{}, int64(g.dice.Uint64n(1<<20)))
	return g.request(ctx, n, http.MethodPost, "/open?chunks=1", struct{ io.Reader }{body}, 0)
}

// readSlowly reads responses slowly.
func readSlowly(ctx context.Context, g *Visitor, n *kill.Node) error {
	return g.request(ctx, n, http.MethodGet, "/open?chunks=64", nil, time.Millisecond)
}

// sendKey sends an API key.
func sendKey(ctx context.Context, g *Visitor, n *kill.Node) error {
	return g.request(ctx, n, http.MethodGet, "/keyed?chunks=1", nil, 0)
}

// useTunnel sends data through a tunnel and compares the echo.
func useTunnel(ctx context.Context, g *Visitor, n *kill.Node) error {
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
		line, err := in.ReadString('\n')
		if err != nil {
			g.Cut.Add(1)
			return nil //nolint:nilerr // cut at an end
		}
		if line != "again\n" {
			return fmt.Errorf("a tunnel said %q", line)
		}
	}
	g.Whole.Add(1)
	return nil
}

// request sends one request and reads the response, with a pause after each part.
func (g *Visitor) request(ctx context.Context, n *kill.Node, method, path string, body io.Reader, pause time.Duration) error {
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

// problem counts a problem that a gateway may return.
func (g *Visitor) problem(status int) error {
	switch status {
	case http.StatusNotFound, http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		g.Problems.Add(1)
		return nil
	}
	return fmt.Errorf("a gateway said %d", status)
}

// endless is an endless body.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, chunk), nil }
