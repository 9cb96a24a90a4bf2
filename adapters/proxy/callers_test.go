package proxy

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"syscall"
	"testing"

	"macronode/core/event"
	"macronode/core/types"
)

// A groupRecorder records the group of callers of each request.
type groupRecorder struct {
	recorder
	mu     sync.Mutex
	groups []event.Callers
}

func (r *groupRecorder) Pick(in event.Pick) event.Picked {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.groups = append(r.groups, in.Callers)
	return event.Picked{NoEndpoint: event.NoEndpointCircuitOpen}
}

// TestGroupOfCallersIsPicked: a request without a key, and each part of its response, is picked for
// anonymous callers, any other for authenticated callers.
func TestGroupOfCallersIsPicked(t *testing.T) {
	for class, want := range map[types.Class]event.Callers{types.ClassInternal: event.Authenticated, types.ClassAuthed: event.Authenticated, types.ClassAnon: event.Anonymous} {
		port := new(groupRecorder)
		p := newFailingProxy(t, port, HTTP1, syscall.ECONNREFUSED)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		m, _ := p.Match(r)
		trace := func() *Trace { return &Trace{Flow: types.Flow{Class: class}} }
		p.Serve(httptest.NewRecorder(), r, m, trace())
		m.route.Parts = []Part{{Name: "a", Path: "/"}, {Name: "b", Path: "/"}}
		p.Serve(httptest.NewRecorder(), r, m, trace())
		if !slices.Equal(port.groups, []event.Callers{want, want, want}) {
			t.Errorf("class %v: %v, want %v", class, port.groups, want)
		}
	}
}
