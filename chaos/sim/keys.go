package sim

import (
	"macronode/core/event"
	"macronode/core/types"
)

// clerk is an API key that the administrator creates for a client and revokes again. What was
// acknowledged holds for every later process.
type clerk struct {
	id    types.KeyID
	known bool                   // its creation was acknowledged
	ended map[types.KeyID]bool   // acknowledged revocations
	bars  map[types.Ticket]bool  // requests with a revoked key
	admin map[types.Ticket]admin // requests of the administrator
}

type admin func(event.Reply)

func newClerk() clerk { return clerk{id: 100, ended: map[types.KeyID]bool{}} }

// reset cancels all waiting requests after a crash.
func (k *clerk) reset() {
	k.bars, k.admin = map[types.Ticket]bool{}, map[types.Ticket]admin{}
}

// keys is a move of the administrator.
func (w *World) keys() {
	k, bob := &w.clerk, w.clients[1]
	switch {
	case len(k.admin) > 0, w.goal.set && w.goal.Class != Barred:
	case !k.known || k.ended[k.id]:
		if k.known = false; k.ended[k.id] || w.c.Choose("key/another", 4) == 1 {
			k.id++
		}
		id := k.id
		in := &event.CreateKey{Ticket: w.own(), Caller: boss.ID, Tenant: boss.Tenant, Key: event.Key{ID: id, Tenant: boss.Tenant,
			Scopes: event.AllScopes &^ event.ScopeAdmin, Label: types.NewLabel("clerk")}}
		in.Key.Accounts, _ = types.ParsePatterns("bob,sh*")
		w.boss(in.Ticket, in, func(r event.Reply) {
			if r.Problem == event.None {
				w.Saw["key created"]++
				k.known, bob.caller = true, id
			}
		})
	case w.c.Choose("key/end", 3) == 1:
		id := k.id
		in := &event.RevokeKey{Ticket: w.own(), Caller: boss.ID, Tenant: boss.Tenant, Key: id}
		w.boss(in.Ticket, in, func(r event.Reply) {
			if r.Problem == event.None {
				w.Saw["key revoked"]++
				k.ended[id] = true
				w.endedKeys(id)
			}
		})
	}
}

func (w *World) boss(t types.Ticket, in event.Event, then admin) {
	w.clerk.admin[t] = then
	w.late = append(w.late, in)
}

// bar notes requests with a key whose revocation was acknowledged.
func (k *clerk) bar(in *event.Request) {
	if k.ended[in.Caller] {
		k.bars[in.Ticket] = true
	}
}

// held checks, after a recovery, that revoked keys are still revoked.
func (k *clerk) held(w *World) {
	for id := range k.ended { //nolint:maporder // all of them
		if found, _ := w.fol.Find(id); !found.Revoked {
			w.fail("revoked-key-back", "key %d was revoked, and is somebody's", id)
		}
	}
	if found, ok := w.fol.Find(k.id); k.known && !ok {
		w.fail("key-lost", "key %d was made, and is not known: %+v", k.id, found)
	}
}
