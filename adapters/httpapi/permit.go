package httpapi

import (
	"net/http"
	"net/url"
	"strings"

	"macronode/core/types"
)

// setPermit sets the facet and the duration of the permit. Requests that may wait for a movement, and streams, use
// the facet streams, so they do not take permits from requests that are answered at once. Both facets have the
// same shares, so a client gains nothing by choosing.
func (k *call) setPermit() {
	k.facet = k.endpoint.facet
	if k.s3 != nil {
		k.permitTime = k.s3.permitDuration()
		return
	}
	accept := k.r.Header["Accept"]
	switch {
	case k.endpoint.facet == types.FacetProxy: // independent of the method, because upstreams choose what they stream
		if len(k.r.Header["Upgrade"]) > 0 || accepts(accept, eventsType[0]) {
			k.facet = types.Streams
		}
	case k.endpoint.facet == types.FacetStorage:
		k.permitTime = maxPermitTime
	case k.r.Method != http.MethodGet:
	case accepts(accept, eventsType[0], "text/csv", linesType[0]):
		k.facet, k.permitTime = types.Streams, maxPermitTime
	case mayWait(k.r.URL.RawQuery):
		k.facet = types.Streams
	}
}

// accepts reports whether an Accept header names one of some media types.
func accepts(header []string, kinds ...string) bool {
	for _, line := range header {
		for _, kind := range kinds {
			if strings.Contains(strings.ToLower(line), kind) {
				return true
			}
		}
	}
	return false
}

// mayWait reports whether a query has wait, min_seq or format, also if they are escaped.
func mayWait(query string) bool {
	if query == "" {
		return false
	}
	if !strings.Contains(query, "%") {
		return strings.Contains(query, "wait=") || strings.Contains(query, "min_seq=") || strings.Contains(query, "format=")
	}
	values, _ := url.ParseQuery(query) // an invalid query is rejected after admission
	return values.Has("wait") || values.Has("min_seq") || values.Has("format")
}
