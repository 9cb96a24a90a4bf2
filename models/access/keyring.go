// Package access is the reference model of core/access: a list of API keys. It shares no code
// with core/access, so that both cannot have the same bug.
package access

import (
	"slices"
	"strings"

	"macronode/core/types"
)

// Key is an API key and its history.
type Key struct {
	ID               types.KeyID
	Tenant           types.Tenant
	Label            string
	Scopes           []string
	Accounts, Assets string // names separated by commas; a trailing * matches any rest; empty: all
	Expires          types.Time
	Boot, Revoked    bool
}

// Item is an operation to authorize.
type Item struct{ Op, From, To, Asset, Ref string }

// State has all keys, oldest first.
type State struct {
	Limit int
	Keys  []Key
}

// Full reports whether no further key can be added.
func (s *State) Full() bool { return len(s.Keys) == s.Limit }

// Known reports whether a key ever had this ID.
func (s *State) Known(id types.KeyID) bool {
	return slices.ContainsFunc(s.Keys, func(k Key) bool { return k.ID == id })
}

// EndOf returns when a key stops being valid: 0 if it is revoked; false if it is unknown, or never does.
func (s *State) EndOf(id types.KeyID) (types.Time, bool) {
	for _, k := range s.Keys {
		if k.ID == id && k.Revoked {
			return 0, true
		}
		if k.ID == id && k.Expires != 0 {
			return k.Expires, true
		}
	}
	return 0, false
}

// Revoke revokes one key, Disown all keys.
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

// First returns the bootstrap key, if it is not revoked.
func (s *State) First() (id types.KeyID, any bool) {
	for _, k := range s.Keys {
		if k.Boot && !k.Revoked {
			return k.ID, true
		}
	}
	return 0, false
}

// Allows reports whether a key has all the scopes in its tenant, and has not expired.
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

// Permits reports whether a key permits all items.
func (s *State) Permits(at types.Time, id types.KeyID, t types.Tenant, items ...Item) bool {
	for _, item := range items {
		scope, account := item.wants()
		if !s.Allows(at, id, t, scope) || !s.covers(id, account, item.Asset) || s.RejectsRef(id, item) {
			return false
		}
	}
	return true
}

// RejectsRef reports whether an item has a ref of charges, and the key is limited to accounts.
func (s *State) RejectsRef(id types.KeyID, items ...Item) bool {
	return slices.ContainsFunc(s.Keys, func(k Key) bool { return k.ID == id && k.Accounts != "" }) &&
		slices.ContainsFunc(items, func(i Item) bool { return strings.HasPrefix(i.Ref, "usage:") })
}

// wants returns the scope that an item needs, and the account that must be covered: the debited
// account; for an issue or a capture, the credited one.
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
