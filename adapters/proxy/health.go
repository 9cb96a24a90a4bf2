package proxy

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"time"

	"macronode/core/event"
)

// A Checkup is what one health check met.
type Checkup struct {
	Endpoint string  // its URL
	Symptom  Symptom // Fine: it answered well
	Status   int     // of its answer; 0: there was none
}

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
				p.watch(ctx, u, event.HealthChecked{Upstream: uint16(i), Endpoint: uint8(n)}, &endpoint{at, u.Protocol})
			}()
		}
	}
	return nil
}

// watch asks one endpoint, at times that chance moves by a tenth, so that many do not ask at once.
func (p *Proxy) watch(ctx context.Context, u *Upstream, told event.HealthChecked, at *endpoint) {
	for {
		met := Checkup{Endpoint: at.String()}
		met.Symptom, met.Status = p.check(ctx, u, at)
		if ctx.Err() != nil {
			return
		}
		if met.Symptom != ResourceExhausted { // else nothing is known of the endpoint
			told.Healthy = met.Symptom == Fine
			p.port.Probed(told, met)
		}
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
func (p *Proxy) check(ctx context.Context, u *Upstream, at *endpoint) (met Symptom, status int) {
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
			return ailment(ctx, err), 0
		case conn != nil:
			defer conn.Close() //nolint:errcheck // its error changes nothing
			ask = conn.RoundTrip
		case !s.choice:
			return Malformed, 0
		}
	}
	res, err := ask(out.WithContext(ctx))
	if err != nil {
		return ailment(ctx, err), 0
	}
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, size))
	_ = res.Body.Close() // it was read, or is too long to be of use
	switch {
	case res.StatusCode < 200 || res.StatusCode >= 400:
		return BadStatus, res.StatusCode
	case err != nil:
		return ailment(ctx, err), res.StatusCode
	}
	return Fine, res.StatusCode
}

// ailment is how a check failed; one that was connected and not answered in its time is late.
func ailment(ctx context.Context, err error) Symptom {
	var op *net.OpError
	if ctx.Err() != nil && (!errors.As(err, &op) || op.Op != "dial") {
		return Deadline
	}
	return symptom(err)
}
