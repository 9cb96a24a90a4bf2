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

// Endpoints are where endpoints are, by the number of the upstream and their own. They are
// shared by a Proxy and those that come after it: around a change a try may be told of an
// endpoint that was none when its request came, and that is one. Places are filled, and
// never emptied.
type Endpoints struct {
	at [MaxUpstreams][MaxEndpoints]atomic.Pointer[url.URL]
}

// fill puts the endpoints of an upstream in their places.
func (e *Endpoints) fill(upstream int, all []*url.URL) {
	for n, at := range all {
		if at != nil {
			e.at[upstream][n].Store(at)
		}
	}
}

// find is where an endpoint is; nil: it never was.
func (e *Endpoints) find(upstream int, n uint8) *url.URL {
	if upstream >= MaxUpstreams || n >= MaxEndpoints {
		return nil
	}
	return e.at[upstream][n].Load()
}
