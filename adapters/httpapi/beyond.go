package httpapi

import (
	"net/http"
	"strings"
	"time"

	"macronode/core/event"
)

// Beyond sends requests on to other services.
type Beyond interface {
	// Match finds the way of a request, or says why there is none.
	Match(r *http.Request) (Way, event.Problem)
}

// A Way is where a request goes that is none of ours.
type Way struct {
	Number   uint16 // of its route, from 0
	Key      bool   // it wants an API key
	Deadline time.Duration
	Serve    func(http.ResponseWriter, *http.Request)
}

// endless is how long a permit is kept at most by an answer that has no end: nothing else
// but a bug keeps one so long.
const endless = 24 * time.Hour

// Endpoints is how many operations there are: routes of other services are numbered behind
// them.
func Endpoints() int { return len(routes()) + 1 }

// ours reports that a path is of the document, or would be.
func ours(path string) bool { return strings.HasPrefix(path, "/v1/") || path == "/openapi.json" }

// sendOn has another service answer, when its turn has come.
func (a *API) sendOn(k *call) {
	d, ok := a.away[k.r.Method]
	if !ok {
		d = a.away["other"]
	}
	s := a.Node.Status()
	k.door, k.at = d, s.At
	way, why := k.face.Beyond.Match(k.r)
	if !s.Reads {
		why = event.Unavailable
	}
	if why != event.None {
		k.fail(problem(why))
		return
	}
	numbered := *d
	numbered.number = a.numbers + 1 + way.Number // behind all endpoints
	k.door, k.most, k.keeps = &numbered, way.Deadline, endless
	err := k.arrive()
	if err == nil && way.Key {
		err = k.enter(0)
	}
	if err != nil {
		k.fail(err)
		return
	}
	if said := k.r.Header["Authorization"]; len(said) == 1 {
		if _, _, ok := parseKey(said[0]); ok {
			delete(k.r.Header, "Authorization") // a key of ours is nobody else's to know
		}
	}
	k.identify()
	k.Header()["X-Request-Id"] = []string{string(k.id[:])}
	way.Serve(k, k.r)
}

// Fail answers in the place of another service, to whoever Serve was told to.
func Fail(w http.ResponseWriter, _ *http.Request, p event.Problem) {
	w.(*call).fail(problem(p))
}
