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

	"macronode/adapters/httpcheck"
	"macronode/core/event"
)

// A CheckResult is the result of one health check.
type CheckResult struct {
	Endpoint string        // its URL
	Reason   FailureReason // NoFailure: healthy
	Status   int           // of the response; 0: there was none
}

// Run checks the endpoints of all upstreams that have a health check, until ctx ends.
func (p *Proxy) Run(ctx context.Context) error {
	defer p.running.Wait()
	for i := range p.config.Upstreams {
		u := &p.config.Upstreams[i]
		if u.HealthPath == "" {
			continue
		}
		for n, at := range u.URLs {
			if at == nil {
				continue
			}
			p.running.Add(1)
			go func() {
				defer p.running.Done()
				p.watchEndpoint(ctx, u, event.HealthChecked{Upstream: uint16(i), Endpoint: uint8(n)}, &endpoint{at, u.Protocol})
			}()
		}
	}
	return nil
}

// watchEndpoint checks one endpoint periodically. The interval varies by 5 % in each direction,
// so that checks do not coincide.
func (p *Proxy) watchEndpoint(ctx context.Context, u *Upstream, result event.HealthChecked, at *endpoint) {
	for {
		check := CheckResult{Endpoint: at.String()}
		check.Reason, check.Status = p.checkEndpoint(ctx, u, at)
		if ctx.Err() != nil {
			return
		}
		if check.Reason != ResourceExhausted { // otherwise the state of the endpoint is unknown
			result.Healthy = check.Reason == NoFailure
			p.port.HealthChecked(result, check)
		}
		pause := time.NewTimer(u.CheckInterval - u.CheckInterval/20 + time.Duration(rand.Int64N(int64(u.CheckInterval/10)+1)))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		}
	}
}

// checkEndpoint sends one check over its own connection, with the protocol of requests.
func (p *Proxy) checkEndpoint(ctx context.Context, u *Upstream, at *endpoint) (reason FailureReason, status int) {
	ctx, cancel := context.WithTimeout(ctx, u.CheckTimeout)
	defer cancel()
	host := u.Host
	if host == "" {
		host = at.Host
	}
	out := &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: at.Scheme, Host: at.Host, Path: at.Path + u.HealthPath}, Host: host,
		Header: http.Header{"User-Agent": {"macronode-check"}}}
	send := httpcheck.Unswitched(p.checker).RoundTrip
	if s := p.h2PoolOf(at); s != nil {
		conn, err := s.connect(ctx)
		switch {
		case err != nil:
			return checkFailure(ctx, err), 0
		case conn != nil:
			defer conn.Close() //nolint:errcheck // its error changes nothing
			send = conn.RoundTrip
		case !s.mayChooseHTTP1:
			return ProtocolError, 0
		}
	}
	res, err := send(out.WithContext(ctx))
	if err != nil {
		return checkFailure(ctx, err), 0
	}
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, bufferSize))
	_ = res.Body.Close() // it was read, or is too long
	switch {
	case res.StatusCode < 200 || res.StatusCode >= 400:
		return BadStatus, res.StatusCode
	case err != nil:
		return checkFailure(ctx, err), res.StatusCode
	}
	return NoFailure, res.StatusCode
}

// checkFailure returns why a check failed. A timeout after the connection was opened is
// DeadlineExceeded.
func checkFailure(ctx context.Context, err error) FailureReason {
	var op *net.OpError
	if ctx.Err() != nil && (!errors.As(err, &op) || op.Op != "dial") {
		return DeadlineExceeded
	}
	return failureReason(err)
}
