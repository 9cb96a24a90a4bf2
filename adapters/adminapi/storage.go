package adminapi

import (
	"net/http"
	"time"
)

// Storage is the state of the copies of objects.
type Storage struct {
	Copies     int        `json:"copies"`
	Required   int        `json:"copies_required"`
	Coding     string     `json:"coding,omitzero"`            // shards of data and of parity that larger objects have instead
	CodedAbove uint64     `json:"coded_above_bytes,omitzero"` // the size up to which objects have copies
	Providers  []Provider `json:"providers"`
	Inventory  Inventory  `json:"inventory"`
	Scrub      Scrub      `json:"scrub"`
	Scrubs     []Scrub    `json:"ended_scrubs,omitzero"`    // the results of the last scrubs, the oldest first
	Requested  uint64     `json:"requested_scrub,omitzero"` // in the answer to a request for a scrub: the number of the one that reads all copies after it
	Rebalance  Rebalance  `json:"rebalance"`

	Lost      []LostObject `json:"lost_objects"`       // those of which the node keeps the addresses, the oldest finding first
	OtherLost int          `json:"other_lost_objects"` // lost objects that were found when there was no room for them

	Waiting  int    `json:"repairs_waiting"`
	Running  int    `json:"repairs_running"`
	Skipped  uint64 `json:"repairs_skipped"` // since the start; planned again by the next inventory
	Restored uint64 `json:"restored_bytes"`  // of copies and shards that were written since the start
	Rate     uint64 `json:"bytes_per_second"`
	ETA      uint64 `json:"repair_seconds"` // for what the inventory found, at the full rate
}

// Provider is the state of a provider of objects, with the counts of the last inventory and scrub.
type Provider struct {
	Name         string `json:"name"`
	Domain       string `json:"failure_domain"`
	Bucket       bool   `json:"bucket,omitzero"`          // it is a bucket of an S3 server, else a directory
	Failed       string `json:"failure,omitzero"`         // why it is not used; empty: it is healthy
	Full         string `json:"full,omitzero"`            // why it has no space for uploads; empty: it has
	Refused      string `json:"restore_failure,omitzero"` // why the last copy could not be restored into it; empty: it was, or all objects have their copies
	Errors       uint64 `json:"errors"`                   // since the start
	Objects      uint64 `json:"objects"`
	Bytes        uint64 `json:"bytes"`
	Unknown      bool   `json:"objects_unknown,omitzero"` // it could not be listed: it may have other objects
	Missing      uint64 `json:"missing_copies"`
	MissingBytes uint64 `json:"missing_bytes"`
	Unreached    uint64 `json:"unreached_copies,omitzero"` // it had failed: copies that others lack and it may have
	Damaged      uint64 `json:"damaged_copies"`            // that the last scrub found
	Unread       uint64 `json:"unread_copies"`             // that the last scrub could not read
	UnreadBytes  uint64 `json:"unread_bytes"`
}

// A LostObject is an object that no repair can make whole: all its copies are missing or damaged, or too many of its shards are.
type LostObject struct {
	Address string `json:"address"`
	Bytes   uint64 `json:"bytes"`
}

// LostCount returns how many objects are lost.
func (s *Storage) LostCount() int { return len(s.Lost) + s.OtherLost }

// Inventory is the outcome of the last comparison of files with objects.
type Inventory struct {
	At      time.Time `json:"at,omitzero"`      // zero: none since the start
	Number  uint64    `json:"finished"`         // since the start, with those that failed
	Failure string    `json:"failure,omitzero"` // why the last one failed; all else is of the one before
	Objects uint64    `json:"objects_lacking"`  // that lack a copy
	Bytes   uint64    `json:"bytes_to_repair"`
	Lost    uint64    `json:"objects_without_copy"`   // that cannot be read: no copy is there, or fewer shards than of data
	Coded   uint64    `json:"coded_objects,omitzero"` // that have shards

	Unreached uint64 `json:"unreached_objects,omitzero"` // that cannot be read until the providers that have failed can be used: nothing is known of them
}

// Scrub is the progress of the running scrub, or the outcome of the last one.
type Scrub struct {
	Running     bool      `json:"running"`
	Number      uint64    `json:"finished"`         // since the start; of one of ended_scrubs, its number
	Failure     string    `json:"failure,omitzero"` // why the last one did not read all copies
	Done        uint64    `json:"done_bytes"`
	Total       uint64    `json:"total_bytes"`
	Damaged     uint64    `json:"damaged_copies"`
	Before      uint64    `json:"damaged_before,omitzero"` // damaged copies that the scrub before has found since this one was requested
	Unread      uint64    `json:"unread_copies"`           // of providers that have failed, without permission, or while the node had too many open files
	UnreadBytes uint64    `json:"unread_bytes"`
	Unrestored  string    `json:"unrestored,omitzero"` // why the last copy could not be restored that was found damaged since it began; empty: each was, or its repair waits or runs
	Ended       time.Time `json:"ended,omitzero"`

	ByProvider []ScrubOfProvider `json:"by_provider,omitzero"` // of one of ended_scrubs that has read all copies, in the order of the providers
}

// ScrubOfProvider is what a scrub found in a provider.
type ScrubOfProvider struct {
	Damaged     uint64 `json:"damaged_copies"`
	Unread      uint64 `json:"unread_copies"`
	UnreadBytes uint64 `json:"unread_bytes"`
}

// SetFound sets what a scrub has found in the providers.
func (s *Storage) SetFound(all []ScrubOfProvider) {
	for i, found := range all[:min(len(all), len(s.Providers))] {
		p := &s.Providers[i]
		p.Damaged, p.Unread, p.UnreadBytes = found.Damaged, found.Unread, found.UnreadBytes
	}
}

// ShowScrub shows the result of the scrub with a number instead of the last one. It returns false if the result is not kept.
func (s *Storage) ShowScrub(number uint64) (ok bool) {
	for _, ended := range s.Scrubs {
		if ended.Number == number {
			s.Scrub = ended
			s.SetFound(ended.ByProvider)
			return true
		}
	}
	return false
}

// Rebalance is the progress of the running rebalance, or the outcome of the last one.
type Rebalance struct {
	Running bool      `json:"running"`
	Number  uint64    `json:"finished"` // since the start
	Objects uint64    `json:"objects"`  // with a copy or a shard elsewhere than their placement
	Moved   uint64    `json:"moved_objects"`
	Done    uint64    `json:"done_bytes"` // of copies and shards that were written
	Total   uint64    `json:"total_bytes"`
	Ended   time.Time `json:"ended,omitzero"`
	Failure string    `json:"failure,omitzero"` // why nothing was moved, or not all
}

func (a *API) storage(w http.ResponseWriter, _ *http.Request) { a.say(w, http.StatusOK, a.Storage()) }

// requestScrub requests a scrub, and answers with the state before, and the number of the scrub.
func (a *API) requestScrub(w http.ResponseWriter, _ *http.Request) {
	is := a.Storage()
	is.Requested = a.Scrub()
	a.say(w, http.StatusAccepted, is)
}

// beginStorage begins work on the copies of objects, and answers with the state before.
func (a *API) beginStorage(begin func()) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		is := a.Storage()
		begin()
		a.say(w, http.StatusAccepted, is)
	}
}
