package httpapi

import "net/netip"

// A Face is what of a configuration may change while requests are served. A request sees
// one of them, from its first byte to its last.
type Face struct {
	Version string         // of the configuration, as decisions tell it
	Quotas  []Policy       // by their numbers, from 1; one without a name is told to nobody
	Trusted []netip.Prefix // of proxies whose word about who asks is taken
	Beyond  Beyond         // serves what is no path of ours; nil: nobody does
}

// face is a Face with what is said of its quotas.
type face struct {
	Face
	policies []policy
}

// Change shows another face to all requests that come from now on.
func (a *API) Change(to Face) {
	f := &face{Face: to}
	for _, p := range to.Quotas {
		f.policies = append(f.policies, newPolicy(p))
	}
	a.face.Store(f)
}
