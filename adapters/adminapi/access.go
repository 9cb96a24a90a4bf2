package adminapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// An access is the credential that a route needs.
type access uint8

const (
	operate access = iota // a credential
	scrape                // a credential, but on loopback or where metrics are open
	probe                 // none, under any host name: a prober cannot be configured with one
)

// isOpen reports whether a request needs no credential.
func (a *API) isOpen(to access, r *http.Request) bool {
	switch to {
	case probe:
		return true
	case scrape:
		return onLoopback(r) || a.OpenMetrics != nil && a.OpenMetrics()
	case operate:
	}
	return false
}

// mayReadDetails reports whether a probe may show more than the node's state: the caller is on
// this machine and not a page of another origin, or has a credential.
func (a *API) mayReadDetails(r *http.Request) bool {
	if onLoopback(r) && a.isAddressed(r) {
		return true
	}
	_, ok := a.credential(r)
	return ok
}

// credential checks the bearer credential of a request, and returns its holder for the log.
func (a *API) credential(r *http.Request) (holder string, ok bool) {
	if holder, ok = a.holder(r); ok && a.Authenticated != nil {
		a.Authenticated(r.Context())
	}
	return holder, ok
}

// holder returns the holder of the bearer credential of a request.
func (a *API) holder(r *http.Request) (name string, ok bool) {
	header := r.Header["Authorization"]
	if len(header) != 1 {
		return "", false
	}
	scheme, text, _ := strings.Cut(header[0], " ")
	text = strings.TrimLeft(text, " ")
	if !strings.EqualFold(scheme, "Bearer") || text == "" {
		return "", false
	}
	sum := sha256.Sum256([]byte(text))
	if a.Token != "" && subtle.ConstantTimeCompare(sum[:], a.token[:]) == 1 {
		return "run.json", true
	}
	if a.Authorize == nil {
		return "", false
	}
	return a.Authorize(text)
}
