package httpapi

import (
	"net/netip"

	"macronode/core/flow"
	"macronode/core/types"
)

// A ConfigSnapshot is the part of a configuration that a reload may change. A request uses the same
// snapshot from its first byte to its last.
type ConfigSnapshot struct {
	Version string                       // of the configuration, as shown in decisions
	Quotas  []Policy                     // by number, from 1; a policy without a name is not shown
	Trusted []netip.Prefix               // proxies whose forwarding fields are trusted
	Prepaid map[types.Tenant]*flow.Terms // of tenants that pay for usage as it is recorded
	Proxy   ProxyRouter                  // serves paths outside the API; nil: they are not found
}

// snapshot is a ConfigSnapshot with the header values of its quotas.
type snapshot struct {
	ConfigSnapshot
	policies []policy
}

// SetSnapshot sets the snapshot of requests that arrive from now on.
func (a *API) SetSnapshot(to ConfigSnapshot) {
	f := &snapshot{ConfigSnapshot: to}
	for _, p := range to.Quotas {
		f.policies = append(f.policies, newPolicy(p))
	}
	a.snapshot.Store(f)
}
