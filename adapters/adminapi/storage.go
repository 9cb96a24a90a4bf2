package adminapi

import (
	"net/http"
	"time"
)

// Storage is the state of the copies of objects.
type Storage struct {
	Copies    int        `json:"copies"`
	Required  int        `json:"copies_required"`
	Providers []Provider `json:"providers"`
	Inventory Inventory  `json:"inventory"`
	Scrub     Scrub      `json:"scrub"`
	Waiting   int        `json:"repairs_waiting"`
	Running   int        `json:"repairs_running"`
	Skipped   uint64     `json:"repairs_skipped"` // since the start; planned again by the next inventory
	Rate      uint64     `json:"bytes_per_second"`
	ETA       uint64     `json:"repair_seconds"` // for what the inventory found, at the full rate
}

// Provider is the state of a provider of objects, with the counts of the last inventory and scrub.
type Provider struct {
	Name         string `json:"name"`
	Domain       string `json:"failure_domain"`
	Bucket       bool   `json:"bucket,omitzero"`  // it is a bucket of an S3 server, else a directory
	Failed       string `json:"failure,omitzero"` // why it is not used; empty: it is healthy
	Errors       uint64 `json:"errors"`           // since the start
	Objects      uint64 `json:"objects"`
	Bytes        uint64 `json:"bytes"`
	Missing      uint64 `json:"missing_copies"`
	MissingBytes uint64 `json:"missing_bytes"`
	Damaged      uint64 `json:"damaged_copies"` // that the last scrub found
}

// Inventory is the outcome of the last comparison of files with objects.
type Inventory struct {
	At      time.Time `json:"at,omitzero"`     // zero: none since the start
	Objects uint64    `json:"objects_lacking"` // that lack a copy
	Bytes   uint64    `json:"bytes_to_repair"`
	Lost    uint64    `json:"objects_without_copy"`
}

// Scrub is the progress of the running scrub, or the outcome of the last one.
type Scrub struct {
	Running    bool      `json:"running"`
	Number     uint64    `json:"finished"` // since the start
	Done       uint64    `json:"done_bytes"`
	Total      uint64    `json:"total_bytes"`
	Damaged    uint64    `json:"damaged_copies"`
	Ended      time.Time `json:"ended,omitzero"`
	ByProvider []uint64  `json:"-"`
}

func (a *API) storage(w http.ResponseWriter, _ *http.Request) { a.say(w, http.StatusOK, a.Storage()) }

// scrub begins to read all copies; repair begins an inventory. Both answer with the state before.
func (a *API) scrub(w http.ResponseWriter, _ *http.Request) {
	is := a.Storage()
	a.Scrub()
	a.say(w, http.StatusAccepted, is)
}

func (a *API) repair(w http.ResponseWriter, _ *http.Request) {
	is := a.Storage()
	a.Repair()
	a.say(w, http.StatusAccepted, is)
}
