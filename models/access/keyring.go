// Package access is what API keys mean, in the fewest words: a list of who was given
// what. It shares no code with core/access, so that the two cannot be wrong in the
// same way.
package access

import (
	"slices"
	"strings"

	"macronode/core/types"
)

// Key is a key, and all that is known of it.
type Key struct {
	ID               types.KeyID
	Tenant           types.Tenant
	Label            string
	Scopes           []string
	Accounts, Assets string // names with commas between; a last * stands for any rest; none: all
	Expires          types.Time
	Boot, Revoked    bool
}

// Item is something that somebody wants to do.
type Item struct{ Op, From, To, Asset string }

// State is everybody's keys, oldest first.
type State struct {
	Limit int
	Keys  []Key
}

// Full reports that no other key can be added.
func (s *State) Full() bool { return len(s.Keys) == s.Limit }

// Known reports that a key was ever called so.
func (s *State) Known(id types.KeyID) bool {
	return slices.ContainsFunc(s.Keys, func(k Key) bool { return k.ID == id })
}

// Revoke ends one key, Disown all that there are.
func (s *State) Revoke(id types.KeyID) {
	for i := range s.Keys {
		if s.Keys[i].ID == id {
			s.Keys[i].Revoked = true
		}
	}
}

func (s *State) Disown() {
	for i := range s.Keys {
		s.Keys[i].Revoked = true
	}
}

// First is the node's own first key, of those that are not revoked.
func (s *State) First() (id types.KeyID, any bool) {
	for _, k := range s.Keys {
		if k.Boot && !k.Revoked {
			return k.ID, true
		}
	}
	return 0, false
}

// Allows reports that a key has all the scopes, in its tenant and its time.
func (s *State) Allows(at types.Time, id types.KeyID, t types.Tenant, scopes ...string) bool {
	for _, k := range s.Keys {
		if k.ID != id {
			continue
		}
		over := k.Expires > 0 && at >= k.Expires
		for _, scope := range scopes {
			if !slices.Contains(k.Scopes, scope) {
				return false
			}
		}
		return !k.Revoked && !over && k.Tenant == t
	}
	return false
}

// Permits reports that a key is good for every one of the items.
func (s *State) Permits(at types.Time, id types.KeyID, t types.Tenant, items ...Item) bool {
	for _, item := range items {
		scope, account := item.wants()
		if !s.Allows(at, id, t, scope) || !s.covers(id, account, item.Asset) {
			return false
		}
	}
	return true
}

// wants is the scope that an item needs, and the account that must be covered: whose
// money it is, and of what comes in or is captured, whose it becomes.
func (i Item) wants() (scope, account string) {
	switch i.Op {
	case "issue":
		return "issue", i.To
	case "capture":
		return "capture", i.To
	case "transfer":
		return "transfer", i.From
	case "burn":
		return "burn", i.From
	case "hold", "release":
		return "hold", i.From
	case "freeze", "unfreeze":
		return "admin", i.From
	}
	return "no such thing", ""
}

func (s *State) covers(id types.KeyID, account, asset string) bool {
	for _, k := range s.Keys {
		if k.ID == id {
			return match(k.Accounts, account) && (asset == "" && k.Assets == "" || asset != "" && match(k.Assets, asset))
		}
	}
	return false
}

func match(patterns, name string) bool {
	for _, p := range strings.Split(patterns, ",") {
		if begin, any := strings.CutSuffix(p, "*"); any && strings.HasPrefix(name, begin) || p == name {
			return true
		}
	}
	return patterns == ""
}
