// Package idem is what idempotency keys mean, in the fewest words: a list of who
// asked what and when, oldest first. It shares no code with core/idem, so that the
// two cannot be wrong in the same way.
package idem

import (
	"time"

	"macronode/core/words"
)

// Seen is a key with its outcome.
type Seen struct {
	Tenant words.Tenant
	Name   string
	Asked  words.Asked
	Place  words.Place
	At     words.Time
}

// State is what is held, and how much of it may be.
type State struct {
	Keys, Share, Tenants int
	TTL                  time.Duration

	Held []Seen
	Met  []words.Tenant // all who ever had a key
}

// Look answers new, held or conflict, and where the outcome is.
func (s *State) Look(t words.Tenant, name string, asked words.Asked) (string, words.Place) {
	for _, h := range s.Held {
		if h.Tenant == t && h.Name == name {
			if h.Asked == asked {
				return "held", h.Place
			}
			return "conflict", h.Place
		}
	}
	return "new", words.Place{}
}

// Admit says why a new key of t is not held: full, share, or nothing.
func (s *State) Admit(t words.Tenant) string {
	own, met := 0, false
	for _, h := range s.Held {
		if h.Tenant == t {
			own++
		}
	}
	for _, other := range s.Met {
		met = met || other == t
	}
	switch {
	case len(s.Held) == s.Keys, !met && len(s.Met) == s.Tenants:
		return "full"
	case own >= s.Share:
		return "share"
	}
	return ""
}

// Remember holds a key that was new and admitted.
func (s *State) Remember(k Seen) {
	s.Held = append(s.Held, k)
	for _, t := range s.Met {
		if t == k.Tenant {
			return
		}
	}
	s.Met = append(s.Met, k.Tenant)
}

// Expired is the last frame of those, among the oldest so many keys, that have had
// their time.
func (s *State) Expired(at words.Time, most int) (upto words.LSN, any bool) {
	for i, h := range s.Held {
		if age := time.Duration(at-h.At) * time.Millisecond; i < most && age >= s.TTL {
			upto, any = h.Place.LSN, true
		}
	}
	return upto, any
}

// Forget drops the keys of all frames up to one.
func (s *State) Forget(upto words.LSN) {
	var rest []Seen
	for _, h := range s.Held {
		if h.Place.LSN > upto {
			rest = append(rest, h)
		}
	}
	s.Held = rest
}
