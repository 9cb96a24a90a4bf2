package kill

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"

	"macronode/chaos/charges"
	"macronode/core/types"
)

// gatewayRoutes are the routes to an upstream that clients use, with their methods.
var gatewayRoutes = [...]struct{ name, path, method string }{{"a", "/a", http.MethodGet}, {"a", "/a", http.MethodPost}, {"b", "/b", http.MethodGet}}

// NewUpstream returns a server that answers each request with its path.
func NewUpstream() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.URL.Path) //nolint:errcheck // the node was killed
	}))
}

// GatewayArgs are the arguments of a node with routes to an upstream.
func GatewayArgs(url string) []string {
	return []string{"--set", fmt.Sprintf(`upstreams={"app":{"url":%q}}`, url), "--set", `routes=[{"name":"a","path":"/a","upstream":"app"},{"name":"b","path":"/b","upstream":"app"}]`}
}

// A GatewayClient sends requests to the routes of a node. It knows how many were answered, and of how many it does not know whether
// they were served.
type GatewayClient struct {
	PaidFrom string // account that the client fills when it cannot pay

	name              string
	dice              types.Rand
	answered, unknown map[string]uint64 // by the labels of their usage, since the last call of Served
	Rejected, Cut     int
}

// NewGatewayClient returns a client with a number.
func NewGatewayClient(number uint64) *GatewayClient {
	return &GatewayClient{name: fmt.Sprintf("gateway-%d", number), dice: types.NewRand(number), answered: map[string]uint64{}, unknown: map[string]uint64{}}
}

// Run sends requests until the node stops answering.
func (c *GatewayClient) Run(ctx context.Context, n *Node) error {
	for ctx.Err() == nil {
		if err := c.Request(ctx, n); err != nil {
			return errOrEnd(err, &c.Cut)
		}
	}
	return nil
}

// Request sends a request.
func (c *GatewayClient) Request(ctx context.Context, n *Node) error {
	route := gatewayRoutes[c.dice.Uint64n(uint64(len(gatewayRoutes)))]
	labels := "service=gateway,method=" + strings.ToLower(route.method) + ",route=" + route.name
	r, err := http.NewRequestWithContext(ctx, route.method, n.HTTP+route.path, strings.NewReader(strings.Repeat("x", int(c.dice.Uint64n(9)))))
	if err != nil {
		return err
	}
	status, body, err := n.do(r, n.Key)
	switch {
	case err != nil:
		if !errors.Is(err, syscall.ECONNREFUSED) {
			c.unknown[labels]++
		}
		return err
	case status == http.StatusPaymentRequired && c.PaidFrom != "":
		c.Rejected++
		return issue(ctx, n, fmt.Sprint(c.name, "-", c.Rejected), c.PaidFrom, 60)
	case status == http.StatusServiceUnavailable, status == http.StatusTooManyRequests:
	case status != http.StatusOK || string(body) != route.path:
		return &wrongAnswer{fmt.Sprintf("%s %s: %d %.200s", route.method, route.path, status, body)}
	default:
		c.answered[labels]++
	}
	return nil
}

// Served returns how often requests of clients were served since the last call: bounds for the frames after one, up to another. All that
// were answered are counted if the node was stopped, and any number of them if it was killed.
func Served(all []*GatewayClient, after, upto types.LSN, stopped bool) (bounds []charges.Bound) {
	for _, route := range gatewayRoutes {
		b := charges.Bound{After: after, Upto: upto, Labels: "service=gateway,method=" + strings.ToLower(route.method) + ",route=" + route.name}
		for _, c := range all {
			if b.Most += c.answered[b.Labels] + c.unknown[b.Labels]; stopped {
				b.Least += c.answered[b.Labels]
			}
		}
		bounds = append(bounds, b)
	}
	for _, c := range all {
		clear(c.answered)
		clear(c.unknown)
	}
	return bounds
}
