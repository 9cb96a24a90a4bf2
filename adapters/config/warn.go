package config

import (
	"fmt"
	"time"
)

// Warnings returns settings that are valid and probably not intended: one sentence each.
func (c *Config) Warnings() (all []string) {
	for i := range c.Routes {
		r := &c.Routes[i]
		if r.Deadline > c.Node.Drain && (r.Deadline > defaultRouteDeadline || c.from["node.drain"] != "") {
			all = append(all, fmt.Sprintf("routes[%d].deadline (%s) is %s: requests that take longer than node.drain (%s), which is %s, are cut when the node ends",
				i, c.layer("routes"), duration(r.Deadline), c.layer("node.drain"), duration(c.Node.Drain)))
		}
	}
	if c.HTTP.RequestDeadline > c.Node.Drain && (c.from["http.request_deadline"] != "" || c.from["node.drain"] != "") {
		all = append(all, fmt.Sprintf("http.request_deadline (%s) is %s: requests that take longer than node.drain (%s), which is %s, are cut when the node ends",
			c.layer("http.request_deadline"), duration(c.HTTP.RequestDeadline), c.layer("node.drain"), duration(c.Node.Drain)))
	}
	return all
}

// defaultRouteDeadline is the default deadline of a route. It is longer than the default of
// node.drain, which is not worth a warning.
const defaultRouteDeadline = 5 * time.Second
