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
// endpoint that was none when its request came, and that is one. Places are filled, and
// never emptied.
type Endpoints struct {
	at [MaxUpstreams][MaxEndpoints]atomic.Pointer[endpoint]
}

// fill puts the endpoints of an upstream in their places.
func (e *Endpoints) fill(upstream int, of *Upstream) {
	for n, at := range of.URLs {
		if at != nil {
			e.at[upstream][n].Store(&endpoint{at, of.Protocol})
		}
	}
}

// find is an endpoint; nil: it never was one.
func (e *Endpoints) find(upstream int, n uint8) *endpoint {
	if upstream >= MaxUpstreams || n >= MaxEndpoints {
		return nil
	}
	return e.at[upstream][n].Load()
}
