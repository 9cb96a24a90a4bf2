package httpapi

import (
	"net/http"
	"net/url"
	"strings"

	"macronode/core/types"
)

// lasts gives a call the facet whose permit it wants. What may wait for a movement, and what
// has no end, wants one of the facet streams, so that it keeps none from what is answered at
// once. Who only says so gets no more by it: the shares of that facet are the same.
func (k *call) lasts() {
	k.facet = k.door.facet
	accept := k.r.Header["Accept"]
	switch {
	case k.door.facet == types.FacetProxy: // whatever its method: what a service streams is its own affair
		if len(k.r.Header["Upgrade"]) > 0 || accepts(accept, eventsType[0]) {
			k.facet = types.Streams
		}
	case k.door.facet == types.FacetStorage:
		k.keeps = endless
	case k.r.Method != http.MethodGet:
	case accepts(accept, eventsType[0], "text/csv", linesType[0]):
		k.facet, k.keeps = types.Streams, endless
	case asksToWait(k.r.URL.RawQuery):
		k.facet = types.Streams
	}
}

// accepts reports that an Accept header names one of these types.
func accepts(said []string, kinds ...string) bool {
	for _, line := range said {
		for _, kind := range kinds {
			if strings.Contains(strings.ToLower(line), kind) {
				return true
			}
		}
	}
	return false
}

// asksToWait reports that a query has wait, min_seq or the format of an export, however they
// are escaped.
func asksToWait(query string) bool {
	if query == "" {
		return false
	}
	if !strings.Contains(query, "%") {
		return strings.Contains(query, "wait=") || strings.Contains(query, "min_seq=") || strings.Contains(query, "format=")
	}
	values, _ := url.ParseQuery(query) // what is wrong with it is told to who was let in
	return values.Has("wait") || values.Has("min_seq") || values.Has("format")
}
