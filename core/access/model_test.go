package access_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/access"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/types"
	model "macronode/models/access"
)

// chance picks one of n.
type chance func(n int) int

func (c chance) of(all ...string) string { return all[c(len(all))] }

var (
	scopeNames = []string{"read", "issue", "transfer", "burn", "hold", "capture", "admin", "store", "meter"}
	opNames    = []string{"issue", "transfer", "burn", "hold", "capture", "release", "freeze", "unfreeze"}
)

// toItem returns an item of the model as one of the core.
func toItem(i model.Item) event.Item {
	name := func(text string) types.Name { return types.Name{Text: []byte(text)} }
	return event.Item{Op: ops[i.Op], From: name(i.From), To: name(i.To), Asset: name(i.Asset), Ref: name(i.Ref)}
}

// toKey returns a key of the model as one of the core.
func toKey(t testing.TB, k model.Key) event.Key {
	t.Helper()
	accounts, err := types.ParsePatterns(k.Accounts)
	assets, also := types.ParsePatterns(k.Assets)
	if err = errors.Join(err, also); err != nil {
		t.Fatal(err)
	}
	to := event.Key{ID: k.ID, Tenant: k.Tenant, Label: types.NewLabel(k.Label), Accounts: accounts, Assets: assets,
		Expires: k.Expires, Bootstrap: k.Boot, Revoked: k.Revoked, Hash: [32]byte{byte(k.ID), 31: 0xee}}
	for _, scope := range k.Scopes {
		to.Scopes |= scopes[scope]
	}
	return to
}

// request returns items of the model as a request: a single one, or a batch.
func request(caller types.KeyID, t types.Tenant, items ...model.Item) *event.Request {
	r := &event.Request{Header: command.Header{Caller: caller, Tenant: t}}
	if len(items) == 1 {
		r.Item = toItem(items[0])
		return r
	}
	r.Op = event.Batch
	for _, i := range items {
		r.Items = append(r.Items, toItem(i))
	}
	return r
}

// keyringPair is a keyring, its model, and a keyring with another seed that gets the same calls.
type keyringPair struct {
	testing.TB
	pick      chance
	live      access.Keys
	otherSeed access.Keys
	left      access.Keys // what live was copied from
	model     model.State
	at        types.Time
	seed      types.Hash64
	saw       map[string]int
}

func newKeyringPair(t testing.TB, pick chance) *keyringPair {
	limit := 1 + pick(12)
	seed := types.Hash64(pick(1 << 30))
	return &keyringPair{TB: t, pick: pick, seed: seed, live: access.New(limit, seed), otherSeed: access.New(limit, seed+1),
		left: access.New(0, 0), model: model.State{Limit: limit}, saw: map[string]int{}}
}

// id returns an ID that may be known.
func (w *keyringPair) id() types.KeyID { return types.KeyID(1 + w.pick(12)) }

func (w *keyringPair) key() model.Key {
	k := model.Key{ID: w.id(), Tenant: types.Tenant(1 + w.pick(2))}
	for _, s := range scopeNames {
		if w.pick(6) > 0 {
			k.Scopes = append(k.Scopes, s)
		}
	}
	if _, any := w.model.First(); !any && w.pick(3) == 0 {
		k.Boot = true
		return k
	}
	k.Label = w.pick.of("", "till", "bank.2")
	k.Accounts = w.pick.of("", "", "a", "a*", "b,a:*", "*", "c")
	k.Assets = w.pick.of("", "", "E", "E*", "U,E")
	if w.pick(2) == 0 {
		k.Expires = w.at + types.Time(w.pick(12))
	}
	return k
}

func (w *keyringPair) add() {
	if full := w.live.Full(); full != w.model.Full() {
		w.Fatalf("full: %v, the model has %v", full, w.model.Full())
	}
	k := w.key()
	switch {
	case w.model.Full():
		w.saw["full"]++
	case w.model.Known(k.ID):
		w.saw["known"]++
	default:
		w.model.Keys = append(w.model.Keys, k)
		w.live.Add(toKey(w, k))
		w.otherSeed.Add(toKey(w, k))
	}
}

func (w *keyringPair) revoke() {
	if id := w.id(); w.model.Known(id) && w.pick(6) == 0 {
		w.model.Revoke(id)
		w.live.Revoke(id)
		w.otherSeed.Revoke(id)
		w.saw["revoked"]++
	}
}

func (w *keyringPair) disown() {
	w.model.Disown()
	w.live.RevokeAll()
	w.otherSeed.RevokeAll()
	w.saw["disowned"]++
}

// move replaces the keyring by a copy, or by one that is loaded from its dump.
func (w *keyringPair) move() {
	was := w.live.Hash()
	if w.pick(2) == 0 {
		w.live.CopyTo(&w.left)
		w.live, w.left = w.left, w.live
		w.saw["copied"]++
	} else {
		loaded := access.New(w.model.Limit, w.seed+types.Hash64(w.pick(3)))
		w.live.Dump(func(kind uint8, b []byte) {
			if err := loaded.Load(kind, b); err != nil {
				w.Fatalf("%x: %v", b, err)
			}
		})
		w.live, w.left = loaded, w.live
		w.saw["loaded"]++
	}
	if w.live.Hash() != was {
		w.Fatalf("moved: %x is not %x", w.live.Hash(), was)
	}
}

func (w *keyringPair) item() model.Item {
	i := model.Item{Op: w.pick.of(opNames...), From: w.pick.of("a", "a:1", "b"), To: w.pick.of("a", "a:1", "b"), Asset: w.pick.of("E", "EU", "U")}
	switch i.Op {
	case "issue":
		i.From = ""
	case "burn", "release":
		i.To = ""
	case "freeze", "unfreeze":
		i.To, i.Asset = "", ""
	}
	i.Ref = w.pick.of("", "", "", "usage:1", "usage", "a:usage:1")
	return i
}

func (w *keyringPair) ask() {
	id, tenant := w.id(), types.Tenant(1+w.pick(2))
	scope := w.pick.of(scopeNames...)
	also := w.pick.of(scopeNames...)
	want := w.model.Allows(w.at, id, tenant, scope, also)
	if got := w.live.Allows(w.at, id, tenant, scopes[scope]|scopes[also]); got != want {
		w.Fatalf("%d of %d allows %s, %s: %v, the model has %v", id, tenant, scope, also, got, want)
	}
	end, ends := w.model.EndOf(id)
	if got, ok := w.live.EndOf(id); got != end || ok != ends {
		w.Fatalf("%d ends at %v, %v, the model has %v, %v", id, got, ok, end, ends)
	}
	w.saw[fmt.Sprint("ends ", ends)]++
	items := []model.Item{w.item()}
	for range w.pick(3) {
		items = append(items, w.item())
	}
	want = w.model.Permits(w.at, id, tenant, items...)
	if got := w.live.Authorizes(w.at, request(id, tenant, items...)); got != want {
		w.Fatalf("%d of %d at %d, %+v: %v, the model has %v", id, tenant, w.at, items, got, want)
	}
	rejects := w.model.RejectsRef(id, items...)
	if got := w.live.RejectsRef(request(id, tenant, items...)); got != rejects {
		w.Fatalf("%d rejects a ref of %+v: %v, the model has %v", id, items, got, rejects)
	}
	w.saw[fmt.Sprint("rejects a ref ", rejects)]++
	w.saw[fmt.Sprint("permits ", want, ", items ", min(len(items), 2))]++
}

// step makes one random call, and compares the keyring with the model.
func (w *keyringPair) step() {
	left := w.left.Hash()
	switch w.pick(12) {
	case 0, 1:
		w.add()
	case 2:
		w.at += types.Time(w.pick(2))
	case 3:
		w.revoke()
	case 4:
		if w.pick(30) == 0 {
			w.disown()
		}
	case 5:
		w.move()
		left = w.left.Hash()
	default:
		w.ask()
	}
	if w.left.Hash() != left {
		w.Fatalf("what was left behind has changed")
	}
	if err := errors.Join(w.live.Check(), w.left.Check()); err != nil {
		w.Fatalf("%v", err)
	}
	w.same()
}

func (w *keyringPair) same() {
	if w.live.Len() != len(w.model.Keys) || w.live.Hash() != w.otherSeed.Hash() {
		w.Fatalf("%d keys, the model has %d; hashes %x and %x", w.live.Len(), len(w.model.Keys), w.live.Hash(), w.otherSeed.Hash())
	}
	first, any := w.live.Bootstrap()
	if id, some := w.model.First(); first.ID != id || any != some || w.live.Bootstrapped() != some {
		w.Fatalf("the first is %d %v, the model has %d %v", first.ID, any, id, some)
	}
	var all, of []event.Key
	for place, k := range w.model.Keys {
		want := toKey(w, k)
		if found, ok := w.live.Find(k.ID); !ok || found != want || w.live.At(place) != want {
			w.Fatalf("%d is %v %+v, the model has %+v", k.ID, ok, found, k)
		}
		if k.Tenant == 1 {
			of = append(of, want)
		}
	}
	if w.live.Each(1, func(k event.Key) bool { all = append(all, k); return true }); !slices.Equal(all, of) {
		w.Fatalf("listed %+v, the model has %+v", all, of)
	}
}

// TestMatchesModel makes random calls to a keyring and to its model.
func TestMatchesModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newKeyringPair(t, func(n int) int { return rapid.IntRange(0, n-1).Draw(r, "pick") })
		w.TB = failing{t, r}
		r.Repeat(map[string]func(*rapid.T){"step": func(*rapid.T) { w.step() }})
	})
}

// failing reports a failure to rapid, so that it shrinks the example.
type failing struct {
	testing.TB
	rapid *rapid.T
}

func (f failing) Fatalf(format string, args ...any) { f.rapid.Fatalf(format, args...) }

// TestModelCoversAllAnswers: the random calls get every possible answer.
func TestModelCoversAllAnswers(t *testing.T) {
	saw := map[string]int{}
	for seed := range uint64(60) {
		dice := types.NewRand(seed)
		w := newKeyringPair(t, func(n int) int { return int(dice.Uint64n(uint64(n))) })
		for range 300 {
			w.step()
		}
		for what, n := range w.saw {
			saw[what] += n
		}
	}
	for _, what := range []string{"full", "known", "revoked", "disowned", "copied", "loaded",
		"ends true", "ends false", "permits true, items 1", "permits false, items 1", "permits true, items 2", "permits false, items 2"} {
		if saw[what] < 20 {
			t.Errorf("%q was said %d times: %v", what, saw[what], saw)
		}
	}
	t.Log(saw)
}

// TestScopesAreAll: the model has all scopes.
func TestScopesAreAll(t *testing.T) {
	if all := parse(t, strings.Join(scopeNames, ",")); all != event.AllScopes {
		t.Errorf("%b of %b", all, event.AllScopes)
	}
	for o := event.Issue; o.Known(); o++ {
		if known := slices.Contains(opNames, o.String()); known == (o == event.Batch) {
			t.Errorf("%v is asked for: %v", o, known)
		}
	}
}
