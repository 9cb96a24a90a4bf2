// Package settings translates a configuration into what the core and the adapters need.
//
//	config.Config ─┬─► Start: read once, at the start of a node
//	               ├─► Reload: replaced by a reload, in the core (a policy) and in the adapters
//	               ├─► Memory: what the configuration can use at most
//	               └─► Files: what it can have open at most, and its share of a limit
//
// Rules, routes, upstreams and endpoints are numbers in the core. Numbers keeps these numbers stable
// over reloads. The package starts nothing and holds nothing of a running node.
package settings
