package access

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"macronode/ci/hashcoverage"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/table"
	"macronode/core/types"
)

func patterns(t *testing.T, text string) types.Patterns {
	t.Helper()
	p, err := types.ParsePatterns(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fullKey returns a key in which every field is set.
func fullKey(t *testing.T) event.Key {
	t.Helper()
	return event.Key{ID: 2, Tenant: 2, Hash: [32]byte{1}, Scopes: event.ScopeRead | event.ScopeTransfer, Label: types.NewLabel("till"),
		Accounts: patterns(t, "till:*,shop"), Assets: patterns(t, "EUR"), Expires: 50}
}

func ring(t *testing.T) Keys {
	t.Helper()
	r := New(4, 1)
	r.Add(event.Key{ID: 1, Tenant: 1, Hash: [32]byte{31: 9}, Scopes: event.AllScopes, Bootstrap: true})
	r.Add(fullKey(t))
	return r
}

func TestHashForgetsNothing(t *testing.T) {
	g := grant{hash: [32]byte{1, 2, 3}, tenant: 4, scopes: event.ScopeRead}
	hashcoverage.Every(t, &g, func() types.Hash64 { return g.HashInto(1) })
	full := patterns(t, strings.Repeat("a", types.MaxPatterns))
	c := restriction{types.NewLabel(strings.Repeat("a", types.MaxLabel)), full, full}
	hashcoverage.Every(t, &c, c.digest)
	r := ring(t)
	not := []string{"covers: grants have their digests, which Check holds", "bootstrapAt: the place of a row, which Check holds"}
	for field := range reflect.TypeFor[table.Table[types.KeyID, grant]]().Fields() {
		if field.Name != "sum" {
			not = append(not, "keys."+field.Name+": looked at in its own room")
		}
	}
	hashcoverage.Every(t, &r, r.Hash, not...)
}

// TestSameKeysSameHash: the order of the keys and their slots do not matter.
func TestSameKeysSameHash(t *testing.T) {
	a, b := ring(t), New(9, 77)
	for _, id := range []types.KeyID{2, 1} {
		k, _ := a.Find(id)
		b.Add(k)
	}
	if a.Hash() != b.Hash() {
		t.Errorf("%x and %x", a.Hash(), b.Hash())
	}
	a.Revoke(2)
	if a.Hash() == b.Hash() {
		t.Error("a revoked key is as one that lives")
	}
}

// TestKeysAreFoundWhole: a key is found with all its fields.
func TestKeysAreFoundWhole(t *testing.T) {
	r := ring(t)
	if k, ok := r.Find(2); !ok || k != fullKey(t) {
		t.Errorf("%v %+v", ok, k)
	}
	if k, any := r.Bootstrap(); !any || k.ID != 1 || !k.Bootstrap || k.Scopes != event.AllScopes || k.Hash[31] != 9 {
		t.Errorf("%v %+v", any, k)
	}
	want := fullKey(t)
	want.Revoked = true
	r.Revoke(2)
	if k, ok := r.Find(2); !ok || k != want {
		t.Errorf("revoked: %v %+v", ok, k)
	}
	seen := 0
	for _, id := range []types.KeyID{3, 4} {
		r.Add(event.Key{ID: id, Tenant: 2})
	}
	r.Each(2, func(k event.Key) bool { seen++; return k.ID == 2 })
	if seen != 2 {
		t.Errorf("%d keys were listed, and the second was to end it", seen)
	}
}

// TestCopies: a copy is equal and independent.
func TestCopies(t *testing.T) {
	a, b := ring(t), New(1, 7)
	b.Add(event.Key{ID: 9})
	a.CopyTo(&b)
	was := a.Hash()
	if b.Hash() != was || b.Allows(0, 9, 0, 0) || !b.Allows(0, 2, 2, event.ScopeRead) || !b.Bootstrapped() {
		t.Errorf("the copy is %x, not %x", b.Hash(), was)
	}
	if k, _ := b.Find(2); k != fullKey(t) {
		t.Errorf("copied: %+v", k)
	}
	b.RevokeAll()
	b.Add(event.Key{ID: 3})
	b.Add(event.Key{ID: 4, Label: types.NewLabel("four")})
	if a.Hash() != was || a.Allows(0, 3, 0, 0) || !a.Bootstrapped() || a.Check() != nil || a.Full() {
		t.Errorf("the original is %x, was %x", a.Hash(), was)
	}
	if !b.Full() || b.Check() != nil || b.Bootstrapped() {
		t.Errorf("the copy: %v, %v", b.Full(), b.Check())
	}
	memory := unsafe.SliceData(b.covers)
	a.CopyTo(&b)
	if unsafe.SliceData(b.covers) != memory || b.Hash() != was || !b.Bootstrapped() || b.Check() != nil {
		t.Errorf("copied again: %x, not %x: %v", b.Hash(), was, b.Check())
	}
}

func TestCheckFinds(t *testing.T) {
	set := func(id types.KeyID, change func(*grant)) func(*Keys) {
		return func(r *Keys) {
			place, _ := r.keys.Find(id)
			_, g := r.keys.Row(place)
			change(&g)
			r.keys.Set(place, g)
		}
	}
	for name, c := range map[string]struct {
		spoil func(*Keys)
		want  string
	}{
		"nothing":                       {func(*Keys) {}, ""},
		"two first keys":                {func(r *Keys) { r.Add(event.Key{ID: 3, Bootstrap: true}) }, "K1: two"},
		"a first key nobody finds":      {func(r *Keys) { r.bootstrapAt = 0 }, "K1: the first key is at 1, and looked for at 0"},
		"another's place for the first": {func(r *Keys) { r.bootstrapAt = 2 }, "K1:"},
		"a revoked key that is first":   {set(1, func(g *grant) { g.traits |= revoked }), "K1:"},
		"a cover too few":               {func(r *Keys) { r.covers = r.covers[:1] }, "K2:"},
		"a cover that nobody hashed":    {func(r *Keys) { r.covers[1].label = types.NewLabel("tilt") }, "K2:"},
		"another's cover":               {func(r *Keys) { r.covers[0], r.covers[1] = r.covers[1], r.covers[0] }, "K2:"},
		"patterns that nobody asks":     {set(2, func(g *grant) { g.traits &^= restricted }), "K3:"},
		"no patterns, and they are":     {set(1, func(g *grant) { g.traits |= restricted }), "K3:"},
		"a first key that ends":         {set(1, func(g *grant) { g.expires = 5 }), "K4:"},
		"a first key with a name": {func(r *Keys) {
			r.covers[0].label = types.NewLabel("one")
			set(1, func(g *grant) { g.restriction = r.covers[0].digest() })(r)
		}, "K4:"},
		"a grant that nobody hashed": {func(r *Keys) {
			lost := r.keys
			lost.Put(2, grant{restriction: r.covers[1].digest(), traits: restricted}) // and r's sum does not know
		}, "T2:"},
	} {
		r := ring(t)
		c.spoil(&r)
		if err := r.Check(); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestInvariantErrors: a call that breaks an invariant panics.
func TestInvariantErrors(t *testing.T) {
	for name, wrong := range map[string]func(*Keys){
		"an id used twice":         func(r *Keys) { r.Add(event.Key{ID: 2, Tenant: 1}) }, // otherwise the old secret would be valid for the ID
		"a revoked id used twice":  func(r *Keys) { r.Revoke(2); r.Add(event.Key{ID: 2, Tenant: 1}) },
		"a first key that ends":    func(r *Keys) { r.Add(event.Key{ID: 3, Bootstrap: true, Expires: 1}) },
		"a first key with bounds":  func(r *Keys) { r.Add(event.Key{ID: 3, Bootstrap: true, Assets: patterns(t, "EUR")}) },
		"revoked, and never known": func(r *Keys) { r.Revoke(3) },
	} {
		func() {
			r := ring(t)
			defer func() {
				if _, broken := recover().(types.InvariantError); !broken {
					t.Error(name)
				}
			}()
			wrong(&r)
		}()
	}
}

func TestPermitsAllocatesNothing(t *testing.T) {
	r, to := ring(t), New(4, 3)
	item := event.Item{Op: event.Transfer, From: types.Name{Text: []byte("till:1")}, To: types.Name{Text: []byte("ann")}, Asset: types.Name{Text: []byte("EUR")}}
	one := &event.Request{Header: command.Header{Caller: 2, Tenant: 2}, Item: item}
	many := &event.Request{Header: command.Header{Caller: 2, Tenant: 2}, Item: event.Item{Op: event.Batch}, Items: []event.Item{item, item, item}}
	k := event.Key{ID: 3, Tenant: 2}
	if n := testing.AllocsPerRun(100, func() {
		_, found := r.Find(2)
		_, any := r.Bootstrap()
		if !found || !any || !r.Allows(1, 1, 1, event.ScopeBurn) || !r.Authorizes(1, one) || !r.Authorizes(1, many) {
			t.Fatal("a key is lost")
		}
		r.CopyTo(&to)
		to.Add(k)
		to.Revoke(2)
		to.RevokeAll()
		if to.Authorizes(1, one) || to.Bootstrapped() || r.Check() != nil {
			t.Fatal("a key lives on")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestBytes: a keyring takes the memory that Bytes returns, and each request reads one cache line of a key.
func TestBytes(t *testing.T) {
	if size := unsafe.Sizeof(types.KeyID(0)) + unsafe.Sizeof(grant{}); size != 64 {
		t.Errorf("a row has %d bytes", size)
	}
	if size := unsafe.Sizeof(restriction{}); size != restrictionBytes {
		t.Errorf("a cover has %d bytes, and is said to have %d", size, restrictionBytes)
	}
	if got, least := Bytes(1000), int64(1000*(64+restrictionBytes)); got < least || got > least+1000*8*4+64 {
		t.Errorf("a thousand keys take %d bytes, of which %d in rows", got, least)
	}
	if r := New(1000, 0); cap(r.covers) != 1000 {
		t.Errorf("there is room for %d covers", cap(r.covers))
	}
}

func BenchmarkPermits(b *testing.B) {
	r := New(1024, 1)
	tills, _ := types.ParsePatterns("shop,bank,till:*")
	for id := range types.KeyID(1000) {
		k := event.Key{ID: id, Tenant: 1, Scopes: event.AllScopes}
		if id%2 == 1 {
			k.Accounts = tills
		}
		r.Add(k)
	}
	for name, caller := range map[string]types.KeyID{"all": 500, "patterns": 501} {
		in := &event.Request{Header: command.Header{Caller: caller, Tenant: 1}, Item: event.Item{Op: event.Transfer, From: types.Name{Text: []byte("till:1")},
			Asset: types.Name{Text: []byte("EUR")}}}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if !r.Authorizes(1, in) {
					b.Fatal("refused")
				}
			}
		})
	}
}
