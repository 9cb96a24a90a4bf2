package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/types"
)

// The services of usage.
const (
	serviceWallet     = "wallet"
	serviceStorage    = "storage"
	serviceAccounting = "accounting"
	serviceGateway    = "gateway"
)

// serviceOf returns the service of an operation.
func serviceOf(operation string) string {
	switch {
	case strings.Contains(operation, "object"), operation == "s3_credentials":
		return serviceStorage
	case strings.Contains(operation, "usage"):
		return serviceAccounting
	}
	return serviceWallet
}

// methods are the methods of requests in usage: there are few of them, whatever clients send.
var methods = [...]string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, "other"}

// UsageLabels are the labels in usage of the requests of an endpoint or a route, by method.
type UsageLabels [len(methods)]*accounting.RequestLabels

// NewRouteUsage returns the labels of a proxy route. If its name is no label, its requests are not counted.
func NewRouteUsage(name string) *UsageLabels { return newUsageLabels(serviceGateway, name) }

// endpointUsage returns the labels of an endpoint of the API.
func endpointUsage(service, name string) *UsageLabels {
	l := newUsageLabels(service, name)
	types.Assert(l[0] != nil, "httpapi: the name of an endpoint is no label: "+name)
	return l
}

func newUsageLabels(service, route string) *UsageLabels {
	l := new(UsageLabels)
	for i, m := range methods {
		l[i] = accounting.NewRequestLabels(service, m, route)
	}
	return l
}

func (l *UsageLabels) of(method string) *accounting.RequestLabels {
	for i, m := range methods {
		if m == method {
			return l[i]
		}
	}
	return l[len(l)-1]
}

// recordUsage hands a request of an API key that was served to the meter. A replay was counted when it had its effect.
func (k *call) recordUsage() {
	if !k.isMetered() {
		return
	}
	r := k.usage()
	if r.InFrame = k.counted.isInFrame; r.InFrame {
		r.In -= k.counted.in
	}
	if !k.isServed() || k.isReplay && !r.InFrame || r.InFrame && r.In+r.Out == 0 {
		k.Metering.Cancel(k.reservation)
		return
	}
	k.Metering.Count(r, k.reservation)
}

// isServed reports whether the request counts: the response began and is not a problem of the node, or an upstream works
// for a client that did not wait. A response of an upstream counts, whatever its status.
func (k *call) isServed() bool {
	if k.trace != nil && k.trace.EndedByClient() {
		return true
	}
	return k.status != 0 && k.code == ""
}

// reserveUsage reserves what the request of a prepaid tenant will cost. It returns the problem if the account of the tenant cannot pay
// for it. The wallet and the accounting do not call it: a tenant without money must be able to see that, and to pay.
func (k *call) reserveUsage() error {
	terms := k.snapshot.Prepaid[k.key.Tenant]
	if terms == nil || !k.isMetered() {
		return nil
	}
	r := k.usage()
	r.In = uint64(max(0, k.r.ContentLength))
	of, why, lacks := k.Metering.Reserve(&r, terms)
	return k.reserved(of, why, lacks)
}

// reserveResponse reserves the size of the response too, before its first byte is sent: that of an object is known. Its problems are
// those of reserveUsage.
func (k *call) reserveResponse(size uint64) error {
	if k.snapshot.Prepaid[k.key.Tenant] == nil || !k.isMetered() {
		return nil
	}
	of, why, lacks := k.Metering.ReserveResponse(k.reservation, k.Node.Status().At, size)
	return k.reserved(of, why, lacks)
}

// reserved keeps what is reserved, or returns the problem.
func (k *call) reserved(of flow.Reservation, why event.Problem, lacks event.Shortfall) error {
	switch why {
	case event.None:
		k.reservation = of
		return nil
	case event.PrepaidExceeded:
		k.Meter.PrepaidRejected()
		return prepaidExceeded(k.snapshot.Prepaid[k.key.Tenant], lacks, "The request was not served.")
	case event.UsageCapacity:
		k.Meter.PrepaidRejected()
		return problemDetail(why, "accounting.max_prepaid_lines limits the prices and months of prepaid usage of all tenants. The request was not served.")
	default:
		return problem(why)
	}
}

// isMetered reports whether the request counts, if it is served.
func (k *call) isMetered() bool { return k.Metering != nil && k.key.ID != 0 && k.isAdmitted }

// usage returns what the request counts as, up to now.
func (k *call) usage() accounting.Request {
	labels := k.endpoint.usage
	if k.routeUsage != nil {
		labels = k.routeUsage
	}
	return accounting.Request{Tenant: k.key.Tenant, At: k.Node.Status().At, Labels: labels.of(k.r.Method), In: uint64(k.meter.forwarded.Load()), Out: k.bytesSent()}
}

// counted is what the frame of the effect has of a request.
type counted struct {
	isInFrame bool
	in        uint64 // bytes of its body
}

// execute lets the node decide a command, which counts the request if it takes effect. A request is counted once, also if it needs
// several commands.
func (k *call) execute(ctx context.Context, c command.Command) (event.Reply, bool) {
	return k.counting(c.Head(), func() (event.Reply, bool) { return k.Node.Execute(ctx, c) })
}

// submitRequest is execute of a request of the wallet.
func (k *call) submitRequest(ctx context.Context, in *event.Request) (event.Reply, bool) {
	return k.counting(&in.Header, func() (event.Reply, bool) { return k.Node.Submit(ctx, in) })
}

func (k *call) counting(h *command.Header, decide func() (event.Reply, bool)) (event.Reply, bool) {
	if r, lost := errors.AsType[*refusal](k.lossError()); lost {
		return event.Reply{Problem: r.problem}, true
	}
	var body uint64
	if k.isMetered() && !k.counted.isInFrame {
		r := k.usage()
		if u := flow.NewRequestUsage(&r, k.snapshot.Prepaid[k.key.Tenant]); u != nil {
			h.Usage, body = u, r.In
		}
	}
	reply, taken := decide()
	if !taken {
		return reply, false
	}
	if k.isReplay = reply.Replayed; reply.Counted {
		k.counted = counted{true, body}
	}
	return reply, true
}
