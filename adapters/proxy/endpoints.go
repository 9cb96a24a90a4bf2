package proxy

import (
	"net/url"
	"sync/atomic"
)

// Limits of upstreams, and of endpoints of one upstream.
const (
	MaxUpstreams = 64
	MaxEndpoints = 16
)

// A Protocol is what the proxy speaks to the endpoints of an upstream.
type Protocol uint8

// The protocols.
const (
	Auto  Protocol = iota // HTTP/1.1; over TLS HTTP/2 if the endpoint chooses it by ALPN
	HTTP1                 // HTTP/1.1
	HTTP2                 // HTTP/2 with prior knowledge, over TLS or cleartext
)

// An endpoint is the URL of an endpoint and its protocol.
type endpoint struct {
	*url.URL
	protocol Protocol
}

// Endpoints is a table of endpoints, by the number of the upstream and the number of the
// endpoint. A Proxy shares it with its successors: during a reload, an attempt may be sent to an
// endpoint that was added after the request arrived. PublishEndpoints fills the table; New does
// not change it.
type Endpoints struct {
	places [MaxUpstreams][MaxEndpoints]atomic.Pointer[endpoint]
}

// publish stores the endpoints of all upstreams. The returned function restores the previous
// ones.
func (e *Endpoints) publish(all []Upstream) (restore func()) {
	was := make([][MaxEndpoints]*endpoint, len(all))
	for i := range all {
		for n, at := range all[i].URLs {
			was[i][n] = e.places[i][n].Load()
			if at != nil {
				e.places[i][n].Store(&endpoint{at, all[i].Protocol})
			}
		}
	}
	return func() {
		for i := range all {
			for n := range all[i].URLs {
				e.places[i][n].Store(was[i][n])
			}
		}
	}
}

// PublishEndpoints makes the endpoints of p visible to all proxies that share its table, and so
// to requests in flight. It is called right before the core applies the policy of p. If that
// fails, restore undoes the change. It is not safe for concurrent use with another publication.
func (p *Proxy) PublishEndpoints() (restore func()) {
	return p.config.Endpoints.publish(p.config.Upstreams)
}

// at returns an endpoint, or nil if it was never published.
func (e *Endpoints) at(upstream int, n uint8) *endpoint {
	if upstream >= MaxUpstreams || n >= MaxEndpoints {
		return nil
	}
	return e.places[upstream][n].Load()
}
