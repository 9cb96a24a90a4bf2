package server

import (
	"context"
	"log/slog"
	"sync/atomic"

	"macronode/adapters/config"
	"macronode/adapters/httpapi"
	"macronode/adapters/httpserver"
	"macronode/adapters/loop"
	"macronode/adapters/proxy"
	"macronode/cmd/macronode/internal/settings"
)

// appliedConfig is a configuration with all that a reload replaces.
type appliedConfig struct {
	config *config.Config
	settings.Reload
	proxy       *upstreamProxy          // nil: there are no routes
	certificate *httpserver.Certificate // nil: the listeners do not use TLS
	stop        context.CancelFunc      // ends the health checks
}

// currentConfig is the configuration that is applied now.
type currentConfig struct{ atomic.Pointer[appliedConfig] }

// upstreamNames returns the names of upstreams; bit n of the set is upstream n.
func (c *currentConfig) upstreamNames(set uint64) (names []string) {
	for i, name := range c.Load().Numbers.Upstreams.Names {
		if set>>i&1 == 1 {
			names = append(names, name)
		}
	}
	return names
}

// publishEndpoints makes the endpoints known to requests in progress, and returns a function that
// takes that back.
func (c *appliedConfig) publishEndpoints() (restore func()) {
	if c.proxy == nil {
		return func() {}
	}
	return c.proxy.PublishEndpoints()
}

// start starts the health checks.
func (c *appliedConfig) start(ctx context.Context) {
	ctx, c.stop = context.WithCancel(ctx)
	if c.proxy != nil {
		go c.proxy.Run(ctx) //nolint:errcheck // it ends with ctx
	}
}

// retire ends the health checks and closes idle connections. Requests in progress continue.
func (c *appliedConfig) retire() {
	c.stop()
	c.closeIdle()
}

// closeIdle closes the connections to upstreams that no request uses.
func (c *appliedConfig) closeIdle() {
	if c.proxy != nil {
		c.proxy.Retire()
	}
}

// configBuilder makes an appliedConfig of a configuration. It connects the proxy to the parts of the node that stay over a reload.
type configBuilder struct {
	conns      *proxy.Conns
	tunnels    *proxy.Tunnels
	inflaters  *proxy.Inflaters
	endpoints  proxy.Endpoints
	dispatcher *loop.Dispatcher
	inbox      *eventInbox
	health     *endpointHealth
	log        *slog.Logger
}

// build returns the applied form of a configuration that follows another one. It applies nothing.
func (b *configBuilder) build(c *config.Config, before *appliedConfig) (next *appliedConfig, err error) {
	next = &appliedConfig{config: c}
	if next.certificate, err = settings.ReadCertificate(c); err != nil {
		return nil, err
	}
	if next.Reload, err = before.Reload.Next(c); err != nil {
		return nil, err
	}
	if len(next.Routes) == 0 {
		return next, nil
	}
	if next.proxy, err = b.proxy(&next.Reload); err != nil {
		return nil, err
	}
	next.Face.Proxy = next.proxy
	return next, nil
}

// proxy returns the proxy of the routes.
func (b *configBuilder) proxy(is *settings.Reload) (*upstreamProxy, error) {
	of := is.Proxy
	of.Fail, of.Log, of.Conns, of.Tunnels, of.Endpoints, of.Inflaters = httpapi.WriteProblem, b.log, b.conns, b.tunnels, &b.endpoints, b.inflaters
	of.ShutdownCause = httpserver.ErrShutdown
	p, err := proxy.New(of, upstreamQueries{b.dispatcher.Upstreams, b.inbox.send, b.health.checked})
	usage := make([]*httpapi.UsageLabels, len(is.Routes))
	for i := range is.Routes {
		usage[i] = httpapi.NewRouteUsage(is.Routes[i].Label)
	}
	return &upstreamProxy{p, is.Routes, usage}, err
}
