package httpapi

import (
	"net/http"
	"strings"

	"macronode/core/accounting"
)

// The services of usage.
const (
	serviceWallet     = "wallet"
	serviceStorage    = "storage"
	serviceAccounting = "accounting"
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

// recordUsage hands a request of an API key that was served to the meter: it was admitted, and the response is not a
// problem of the node. A response of an upstream counts, whatever its status.
func (k *call) recordUsage() {
	if k.Metered == nil || k.key.ID == 0 || !k.isAdmitted || k.status == 0 || k.code != "" {
		return
	}
	r := accounting.Request{Tenant: k.key.Tenant, At: k.Node.Status().At, Service: k.endpoint.service, Method: methodLabel(k.r.Method), Route: k.endpoint.name,
		In: uint64(k.meter.forwarded.Load()), Out: k.bytesSent()}
	if k.routeLabel != "" {
		r.Route = k.routeLabel
	}
	k.Metered(r)
}

// methodLabel returns a method as usage has it: there are few of them, whatever clients send.
func methodLabel(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return strings.ToLower(m)
	}
	return "other"
}
