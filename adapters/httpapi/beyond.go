package httpapi

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// Beyond sends requests on to other services.
type Beyond interface {
	// Match finds the way of a request, or says why there is none: the Way has a Detail then.
	Match(r *http.Request) (Way, event.Problem)
}

// A Way is where a request goes that is none of ours.
type Way struct {
	Name     string // of its route, as decisions tell it
	Number   uint16 // of its route, from 0
	Key      bool   // it wants an API key
	Deadline time.Duration
	Detail   string // why there is no way, as a sentence of ASCII without quotes; empty: the problem says all
	// Preflight is a browser that asks what a page may. Serve answers that here, so it is
	// nothing of its route: whoever asks is a stranger, and no key is wanted.
	Preflight bool
	// Head puts into a header what is to be said with any answer, a refusal as well.
	Head  func(http.Header)
	Serve func(w http.ResponseWriter, r *http.Request, of types.Flow, to *Course) // it puts its course there before all else
}

// A Course is what became of a request behind the gate, in the words of who sent it on.
type Course interface {
	// Cut reports that the end of the node cut it.
	Cut() bool
}

// endless is how long a permit is kept at most by an answer that has no end: nothing else
// but a bug keeps one so long.
const endless = 24 * time.Hour

// Endpoints is how many operations there are: routes of other services are numbered behind
// them.
func Endpoints() int { return len(routes()) + 1 }

// ours reports that a path is of the document, or would be.
func ours(path string) bool {
	return strings.HasPrefix(path, "/v1/") || path == "/openapi.json" || path == "/o" || strings.HasPrefix(path, "/o/")
}

// sendOn has another service answer, when its turn has come.
func (a *API) sendOn(k *call) {
	d, ok := a.away[k.r.Method]
	if !ok {
		d = a.away["other"]
	}
	s := a.Node.Status()
	k.door, k.at = d, s.At
	if asleep(&s) {
		k.fail(k.shut())
		return
	}
	way, why := k.face.Beyond.Match(k.r)
	if why != event.None {
		err := because(why, way.Detail)
		k.lacks = way.Detail
		if why == event.NotFound {
			k.lacks = "No route fits its host, path, method and header."
		}
		if why != event.Unavailable {
			no := k.arrive()
			if no == nil && why == event.NotFound && isIndex(k.r) {
				k.index()
				return
			}
			err = cmp.Or(no, err)
		}
		k.fail(err)
		return
	}
	k.way = way.Name
	if way.Head != nil {
		way.Head(k.Header())
	}
	if err := k.admit(d, &way); err != nil {
		k.fail(err)
		return
	}
	if said := k.r.Header["Authorization"]; len(said) == 1 {
		if _, _, ok := parseKey(said[0]); ok {
			delete(k.r.Header, "Authorization") // a key of ours is nobody else's to know
		}
	}
	k.identify()
	h := k.Header()
	k.nameDecision(h)
	k.r.Header["X-Request-Id"], k.r.Header["X-Decision-Id"] = h["X-Request-Id"], h["X-Decision-Id"]
	way.Serve(k, k.r, k.flow, &k.course)
}

// admit waits for the turn of a request on its way, and sees that it may go.
func (k *call) admit(d *door, way *Way) error {
	k.most = way.Deadline
	if way.Preflight {
		delete(k.r.Header, "Authorization") // a browser sends none
		return k.arrive()
	}
	numbered := *d
	numbered.number = k.numbers + 1 + way.Number // behind all endpoints
	k.door, k.keeps = &numbered, endless
	if err := k.arrive(); err != nil || !way.Key {
		return err
	}
	return k.enter(0)
}

// away is what is told of a service that nobody is sent to now.
const away = "The service behind this does not take requests now; this one was not sent to it."

// Fail answers in the place of another service, to whoever Serve was told to. Who goes nowhere
// because the node ends is told so, and not of the service.
func Fail(w http.ResponseWriter, _ *http.Request, p event.Problem) {
	k := w.(*call)
	if p == event.Unavailable && k.Node.Status().Phase < types.Draining {
		k.fail(because(p, away))
		return
	}
	k.fail(problem(p))
}
