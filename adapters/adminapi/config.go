package adminapi

import (
	"net/http"
	"time"
)

// Applied is which configuration is applied.
type Applied struct {
	Version string    `json:"version"` // as decisions tell it
	Since   time.Time `json:"since"`
	Changes uint64    `json:"changes"` // that were applied since the start
	Refused uint64    `json:"refused"` // that were not
	Last    *Attempt  `json:"last"`    // null: nobody has tried another since the start
}

// An Attempt is what became of a configuration that was read while the node runs.
type Attempt struct {
	At      time.Time `json:"at"`
	Applied bool      `json:"applied"`
	Version string    `json:"version,omitzero"`           // empty: it could not be read
	Why     []string  `json:"why,omitzero"`               // it is not applied
	Partial bool      `json:"rehearsal_partial,omitzero"` // its rehearsal ended at the limit of steps
	Changed []Changed `json:"changed"`
}

// Changed is a key whose value is another.
type Changed struct {
	Key string `json:"key"`
	Old string `json:"old"`
	New string `json:"new"`
	Hot bool   `json:"hot"` // it takes effect while the node runs; otherwise at its next start
}

func (a *API) effective(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write([]byte(a.Effective())) // nobody is left to tell
}

func (a *API) applied(w http.ResponseWriter, _ *http.Request) { a.say(w, http.StatusOK, a.Applied()) }

// reload tells the same of what it has done itself: 422 where the old one stays.
func (a *API) reload(w http.ResponseWriter, _ *http.Request) {
	is := a.Reload()
	status := http.StatusOK
	if !is.Last.Applied {
		status = http.StatusUnprocessableEntity
	}
	a.say(w, status, is)
}
