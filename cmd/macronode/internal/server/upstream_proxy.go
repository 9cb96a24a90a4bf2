package server

import (
	"context"
	"net/http"

	"macronode/adapters/httpapi"
	"macronode/adapters/loop"
	"macronode/adapters/proxy"
	"macronode/cmd/macronode/internal/settings"
	"macronode/core/event"
	"macronode/core/types"
)

// upstreamQueries is the node as the proxy uses it.
type upstreamQueries struct {
	*loop.UpstreamClient
	send    func(context.Context, event.Event)
	checked func(event.HealthChecked, proxy.CheckResult) // called once the core has the result
}

// HealthChecked passes the result of a health check to the core.
func (a upstreamQueries) HealthChecked(of event.HealthChecked, met proxy.CheckResult) {
	a.send(context.Background(), of)
	a.checked(of, met)
}

// upstreamProxy is the proxy as the public API uses it.
type upstreamProxy struct {
	*proxy.Proxy
	routes []settings.Route
	usage  []*httpapi.UsageLabels // of each route
}

// Match returns the route of a request.
func (p *upstreamProxy) Match(r *http.Request) (httpapi.ProxyRoute, event.Problem) {
	m, why := p.Proxy.Match(r)
	setHeader := func(h http.Header) { m.SetHeader(h, r) }
	if why != event.None {
		return httpapi.ProxyRoute{Detail: m.Detail, SetHeader: setHeader}, why
	}
	of := &p.routes[m.Route]
	return httpapi.ProxyRoute{Name: of.Name, Usage: p.usage[m.Route], Number: uint16(of.Number), NeedsKey: of.Key, Deadline: of.Deadline, Preflight: m.Preflight,
		SetHeader: setHeader,
		Serve: func(w http.ResponseWriter, r *http.Request, of types.Flow, to *httpapi.ProxyTrace) {
			c := &proxy.Trace{Flow: of}
			*to = c
			p.Serve(w, r, m, c)
		}}, event.None
}
