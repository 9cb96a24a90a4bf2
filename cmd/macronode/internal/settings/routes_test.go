package settings

import (
	"testing"

	"macronode/adapters/config"
)

// TestRouteName: a route is shown with its name, if it has one, and its place in the configuration.
func TestRouteName(t *testing.T) {
	c := &config.Config{Routes: []config.Route{{Name: "shop"}, {}}}
	if routeName(c, 0) != "shop, routes[0]" || routeName(c, 1) != "routes[1]" {
		t.Errorf("%s, %s", routeName(c, 0), routeName(c, 1))
	}
}
