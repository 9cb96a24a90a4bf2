// Package idempotency is the reference model of core/idempotency: a list of requests with their
// keys and times, oldest first. It shares no code with core/idempotency, so that both cannot have
// the same bug.
package idempotency

import (
	"time"

	"macronode/core/types"
)

// Seen is a key or a ref with its outcome.
type Seen struct {
	Tenant types.Tenant
	Name   string
	Ref    bool
	Asked  types.RequestHash
	Place  types.Position
	At     types.Time
}

// State has all outcomes ever stored, which of them are in the window, and the limits.
type State struct {
	Keys, Share, Tenants int
	TTL, Trail           time.Duration

	All    []Seen
	Held   []Seen
	Forgot types.LSN
	Met    []types.Tenant // tenants that ever had a key
}

// Truth returns the last outcome of a key among frames up to upto and those in the window.
func (s *State) Truth(t types.Tenant, name string, ref bool, upto types.LSN) (last Seen, any bool) {
	for _, list := range [][]Seen{s.All, s.Held} {
		for _, h := range list {
			known := h.Place.LSN <= upto || h.Place.LSN > s.Forgot
			if h.Tenant == t && h.Name == name && h.Ref == ref && known {
				last, any = h, true
			}
		}
	}
	return last, any
}

// Lives reports whether a key is within its TTL.
func (s *State) Lives(k Seen, at types.Time) bool {
	return k.Ref || time.Duration(at-k.At)*time.Millisecond < s.TTL
}

// Look returns new, held, conflict or again, and the position of the outcome, for an index that
// has all frames up to one.
func (s *State) Look(t types.Tenant, name string, asked types.RequestHash, upto types.LSN, at types.Time) (string, types.Position) {
	last, any := s.Truth(t, name, false, upto)
	held := any && last.Place.LSN > s.Forgot
	switch {
	case any && (held || s.Lives(last, at)):
		if last.Asked == asked {
			return "held", last.Place
		}
		return "conflict", last.Place
	case !s.Fresh(upto, at, false):
		return "again", types.Position{}
	}
	return "new", types.Position{}
}

// Fresh reports whether an index with all frames up to one has every evicted key within its TTL,
// and every evicted ref if refs are needed.
func (s *State) Fresh(upto types.LSN, at types.Time, refs bool) bool {
	if upto >= s.Forgot {
		return true
	}
	for _, h := range s.All {
		if !refs && !h.Ref && h.Place.LSN <= s.Forgot && s.Lives(h, at) {
			return false
		}
		if !refs && h.Ref && h.Place.LSN <= s.Forgot && time.Duration(at-h.At)*time.Millisecond < s.TTL {
			return false // conservative: some key of this age may be within its TTL
		}
	}
	return !refs
}

// Admit returns why a number of new keys of t do not fit: full, share or "".
func (s *State) Admit(t types.Tenant, more int) string {
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
	case len(s.Held)+more > s.Keys, !met && len(s.Met) == s.Tenants:
		return "full"
	case own+more > s.Share:
		return "share"
	}
	return ""
}

// AdmitLowPriority returns why a number of new keys of t do not fit beside the quarter that others have: too many,
// reserved, share, full or "". Too many keys never fit: the window keeps half of its keys.
func (s *State) AdmitLowPriority(t types.Tenant, more int) string {
	own := 0
	for _, h := range s.Held {
		if h.Tenant == t {
			own++
		}
	}
	exceeds := func(n, limit int) bool { return 4*n > 3*limit }
	switch {
	case exceeds(s.Keys/2+more, s.Keys), exceeds(more, s.Share):
		return "too many"
	case exceeds(len(s.Held)+more, s.Keys):
		return "reserved"
	case exceeds(own+more, s.Share):
		return "share"
	}
	return s.Admit(t, more)
}

// Remember stores a new key.
func (s *State) Remember(k Seen) {
	s.Held, s.All = append(s.Held, k), append(s.All, k)
	for _, t := range s.Met {
		if t == k.Tenant {
			return
		}
	}
	s.Met = append(s.Met, k.Tenant)
}

// Spare returns the last frame, among the oldest keys, that the index has and whose keys are
// older than MinRetention and either expired or too many.
func (s *State) Spare(at types.Time, indexed types.LSN, most int) (upto types.LSN, any bool) {
	for i, h := range s.Held {
		age := time.Duration(at-h.At) * time.Millisecond
		if i >= most || h.Place.LSN > indexed || age < s.Trail || age < s.TTL && len(s.Held)-i <= s.Keys/2 {
			break
		}
		upto, any = h.Place.LSN, true
	}
	return upto, any
}

// Forget evicts the keys of all frames up to one.
func (s *State) Forget(upto types.LSN) {
	var rest []Seen
	for _, h := range s.Held {
		if h.Place.LSN > upto {
			rest = append(rest, h)
		}
	}
	s.Held, s.Forgot = rest, max(s.Forgot, upto)
}
