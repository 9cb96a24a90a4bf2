package proxy

import (
	"net/url"
	"sync/atomic"
)

// How many upstreams and endpoints of one there may be.
const (
	MaxUpstreams = 64
	MaxEndpoints = 16
)

// A Protocol is what the endpoints of an upstream are asked by.
type Protocol uint8

// The protocols there are.
const (
	Auto  Protocol = iota // HTTP/1.1; within TLS HTTP/2, if the endpoint chooses it
	HTTP1                 // HTTP/1.1
	HTTP2                 // HTTP/2, within TLS or without; nothing is asked first
)

// An endpoint is where one is, and what it is asked by.
type endpoint struct {
	*url.URL
	by Protocol
}

// Endpoints are where endpoints are, by the number of the upstream and their own. They are
// shared by a Proxy and those that come after it: around a change a try may be told of an
// endpoint that was none when its request came, and that is one. Places are filled by
// PublishEndpoints; to make a Proxy changes none.
type Endpoints struct {
	at [MaxUpstreams][MaxEndpoints]atomic.Pointer[endpoint]
}

// publish stores the endpoints of all upstreams in their places, and returns the function
// that stores what was there before.
func (e *Endpoints) publish(all []Upstream) (restore func()) {
	was := make([][MaxEndpoints]*endpoint, len(all))
	for i := range all {
		for n, at := range all[i].URLs {
			was[i][n] = e.at[i][n].Load()
			if at != nil {
				e.at[i][n].Store(&endpoint{at, all[i].Protocol})
			}
		}
	}
	return func() {
		for i := range all {
			for n := range all[i].URLs {
				e.at[i][n].Store(was[i][n])
			}
		}
	}
}

// PublishEndpoints makes the endpoints of p known to all proxies that share its table, so to
// requests in flight as well. It is called right before the core applies the policy that p
// belongs to. If that fails, restore takes the change back. It is not safe for concurrent use
// with another publication.
func (p *Proxy) PublishEndpoints() (restore func()) {
	return p.config.Endpoints.publish(p.config.Upstreams)
}

// find is an endpoint; nil: it never was one.
func (e *Endpoints) find(upstream int, n uint8) *endpoint {
	if upstream >= MaxUpstreams || n >= MaxEndpoints {
		return nil
	}
	return e.at[upstream][n].Load()
}
