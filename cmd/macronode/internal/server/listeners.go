package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"macronode/adapters/httpserver"
	"macronode/adapters/metrics"
	"macronode/adapters/nodedir"
	"macronode/adapters/services"
	"macronode/cmd/macronode/internal/settings"
	"macronode/core/types"
)

// listenerServices start before the journal is recovered: requests then get the answer that the node is starting.
var listenerServices = [...]types.Service{types.ServiceAdmin, types.ServiceHTTP}

// listeners are the public and the admin listener.
type listeners struct {
	settings     settings.Listeners
	certificates *certificates
	applied      *currentConfig
	metrics      *metrics.Metrics
	runFile      *runFile
	log          *slog.Logger
}

// public returns the configuration of the public listener.
func (l *listeners) public() httpserver.Config {
	c := l.settings.Public
	c.TLS = l.certificates.tls
	return c
}

// s3 returns the configuration of the S3 listener. If its address is empty, there is none.
func (l *listeners) s3() httpserver.Config {
	c := l.public()
	c.Address = l.settings.S3
	return c
}

// admin returns the configuration of the admin listener.
func (l *listeners) admin() httpserver.Config {
	c := l.settings.Admin
	if l.settings.TLS.Admin {
		c.TLS = l.certificates.tls
	}
	return c
}

// addresses returns the addresses of all listeners.
func (l *listeners) addresses() []string {
	all := []string{l.settings.Public.Address, l.settings.Admin.Address}
	if l.settings.S3 != "" {
		all = append(all, l.settings.S3)
	}
	return all
}

// service returns the work of a service that listens. If the configuration leaves the port open, a restart takes the same port again. Address is the
// field of run.json. Drain runs while the listener stops.
func (l *listeners) service(c httpserver.Config, of listenerGauges, handler func() http.Handler, address func(*nodedir.Run) *string, drain func(context.Context)) services.Run {
	once := sync.OnceValue(handler)
	return func(ctx context.Context, up func()) error {
		hooks := l.hooks(of)
		hooks.PeerShare = func(from netip.Addr) int { return l.applied.Load().PeerShare(c.MaxConns, from) }
		hooks.Listening = func(a net.Addr) {
			c.Address = dialAddress(a)
			l.runFile.update(func(r *nodedir.Run) { *address(r) = dialAddress(a) })
			up()
		}
		s := httpserver.New(c, once(), hooks, l.log)
		stopped := make(chan struct{})
		running := context.AfterFunc(ctx, func() {
			defer close(stopped)
			s.Stop()
			drain(services.Hard(ctx))
		})
		err := s.Run(services.Hard(ctx))
		if !running() {
			<-stopped
		}
		return err
	}
}

// hooks count what happens at a listener.
func (l *listeners) hooks(of listenerGauges) httpserver.Hooks {
	m := l.metrics
	return httpserver.Hooks{Refused: m.Crowded, AmbiguousRequest: m.Smuggled, Flooded: m.Flooded, RejectedFlood: m.RejectedFlood, Delayed: m.Delayed, HandshakeDone: func(g httpserver.HandshakeResult) { m.Greeted(g.String()) },
		PeerRefused: m.PeerCrowded, IdleClosed: func(by httpserver.ConnLimit) { m.IdleClosed(by.String()) },
		Open: func(by int) { of.connections.Add(int64(by)) }, Stream: func(by int) { of.requests.Add(int64(by)) }}
}

// dialAddress returns an address as clients dial it.
func dialAddress(a net.Addr) string {
	if a.Network() == "unix" {
		return "unix:" + a.String()
	}
	return a.String()
}
