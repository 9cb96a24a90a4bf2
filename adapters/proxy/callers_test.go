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

// A groupRecorder records the group of callers and the caller of each request.
type groupRecorder struct {
	recorder
	mu     sync.Mutex
	groups []group
}

type group struct {
	callers event.Callers
	caller  event.CallerID
}

func (r *groupRecorder) Pick(in event.Pick) event.Picked {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.groups = append(r.groups, group{in.Callers, in.Caller})
	return event.Picked{NoEndpoint: event.NoEndpointCircuitOpen}
}

// TestGroupOfCallersIsPicked: a request without a key, and each part of its response, is picked for
// anonymous callers, any other for authenticated callers, and each for its peer or tenant.
func TestGroupOfCallersIsPicked(t *testing.T) {
	for class, want := range map[types.Class]group{types.ClassInternal: {event.Authenticated, 7}, types.ClassAuthed: {event.Authenticated, 7}, types.ClassAnon: {event.Anonymous, 7}} {
		port := new(groupRecorder)
		p := newFailingProxy(t, port, HTTP1, syscall.ECONNREFUSED)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		m, _ := p.Match(r)
		trace := func() *Trace { return &Trace{Flow: types.Flow{Class: class, ID: 7}} }
		p.Serve(httptest.NewRecorder(), r, m, trace())
		m.route.Parts = []Part{{Name: "a", Path: "/"}, {Name: "b", Path: "/"}}
		p.Serve(httptest.NewRecorder(), r, m, trace())
		if !slices.Equal(port.groups, []group{want, want, want}) {
			t.Errorf("class %v: %v, want %v", class, port.groups, want)
		}
	}
}
