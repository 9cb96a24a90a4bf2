package adminapi

import (
	"net/http"
	"time"
)

// Applied describes the applied configuration.
type Applied struct {
	Version string    `json:"version"` // as in decisions
	Since   time.Time `json:"since"`
	Changes uint64    `json:"changes"` // applied since the start
	Refused uint64    `json:"refused"` // rejected since the start
	Last    *Attempt  `json:"last"`    // null: no attempt since the start
}

// An Attempt is the outcome of a configuration that was read while the node runs.
type Attempt struct {
	At      time.Time `json:"at"`
	Applied bool      `json:"applied"`
	Version string    `json:"version,omitzero"`           // empty: it could not be read
	Why     []string  `json:"why,omitzero"`               // why it is not applied
	Partial bool      `json:"rehearsal_partial,omitzero"` // its check ended at the limit of steps
	Changed []Changed `json:"changed"`
}

// Changed is a key with a changed value.
type Changed struct {
	Key string `json:"key"`
	Old string `json:"old"`
	New string `json:"new"`
	Hot bool   `json:"hot"` // takes effect while the node runs; otherwise at the next start
}

func (a *API) effective(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write([]byte(a.Effective())) // the client may be gone
}

func (a *API) applied(w http.ResponseWriter, _ *http.Request) { a.say(w, http.StatusOK, a.Applied()) }

// reload reloads and returns the outcome: 422 if the old configuration stays.
func (a *API) reload(w http.ResponseWriter, _ *http.Request) {
	is := a.Reload()
	status := http.StatusOK
	if !is.Last.Applied {
		status = http.StatusUnprocessableEntity
	}
	a.say(w, status, is)
}
