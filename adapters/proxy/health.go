package proxy

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"macronode/core/event"
)

// Run asks each endpoint of an upstream that has a check how it is, until ctx ends.
func (p *Proxy) Run(ctx context.Context) error {
	defer p.running.Wait()
	for i := range p.config.Upstreams {
		u := &p.config.Upstreams[i]
		if u.Check == "" {
			continue
		}
		for n, at := range u.URLs {
			if at == nil {
				continue
			}
			p.running.Add(1)
			go func() {
				defer p.running.Done()
				p.watch(ctx, u, event.Probed{Upstream: uint16(i), Endpoint: uint8(n)}, &endpoint{at, u.Protocol})
			}()
		}
	}
	return nil
}

// watch asks one endpoint, at times that chance moves by a tenth, so that many do not ask at once.
func (p *Proxy) watch(ctx context.Context, u *Upstream, told event.Probed, at *endpoint) {
	for {
		told.Well = p.check(ctx, u, at)
		if ctx.Err() != nil {
			return
		}
		p.port.Probed(told)
		pause := time.NewTimer(u.Every - u.Every/20 + time.Duration(rand.Int64N(int64(u.Every/10)+1)))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		}
	}
}

// check asks once, over a connection of its own, by what requests are asked by.
func (p *Proxy) check(ctx context.Context, u *Upstream, at *endpoint) bool {
	ctx, cancel := context.WithTimeout(ctx, u.Wait)
	defer cancel()
	host := u.Host
	if host == "" {
		host = at.Host
	}
	out := &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: at.Scheme, Host: at.Host, Path: at.Path + u.Check}, Host: host,
		Header: http.Header{"User-Agent": {"macronode-check"}}}
	ask := p.checker.RoundTrip
	if s := p.trunks(at); s != nil {
		conn, err := s.greet(ctx)
		switch {
		case err != nil:
			return false
		case conn != nil:
			defer conn.Close() //nolint:errcheck // its error changes nothing
			ask = conn.RoundTrip
		case !s.choice:
			return false
		}
	}
	res, err := ask(out.WithContext(ctx))
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, size))
	_ = res.Body.Close() // it was read, or is too long to be of use
	return err == nil && res.StatusCode >= 200 && res.StatusCode < 400
}
