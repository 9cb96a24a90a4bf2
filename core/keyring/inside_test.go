package keyring

import (
	"errors"
	"strings"
	"testing"

	"macronode/ci/flip"
	"macronode/core/event"
	"macronode/core/words"
)

func ring() Ring {
	r := New(4, 1)
	r.Add(event.Key{ID: 1, Tenant: 1, Hash: [32]byte{31: 9}, Scopes: event.AllScopes, Boot: true})
	r.Add(event.Key{ID: 2, Tenant: 2, Hash: [32]byte{1}, Scopes: event.MayRead})
	return r
}

func TestHashForgetsNothing(t *testing.T) {
	g := grant{hash: [32]byte{1, 2, 3}, tenant: 4, scopes: event.MayRead}
	flip.Every(t, &g, func() words.Hash64 { return g.Mix(1) })
	r := ring()
	flip.Every(t, &r, r.Hash, "keys.seed: places rows, and is another in every process",
		"keys.index: where rows are found, which Check holds", "keys.rows: held by their sum")
}

// TestSameKeysSameHash: in whatever order they came, and wherever they are placed.
func TestSameKeysSameHash(t *testing.T) {
	a, b := ring(), New(9, 77)
	for _, id := range []words.KeyID{2, 1} {
		k, _ := a.Find(id)
		b.Add(k)
	}
	if a.Hash() != b.Hash() {
		t.Errorf("%x and %x", a.Hash(), b.Hash())
	}
}

// TestCopies are equal, and go their own way.
func TestCopies(t *testing.T) {
	a, b := ring(), New(1, 7)
	b.Add(event.Key{ID: 9})
	a.CopyTo(&b)
	was := a.Hash()
	if b.Hash() != was || b.Allows(9, 0, 0) || !b.Allows(2, 2, event.MayRead) {
		t.Errorf("the copy is %x, not %x", b.Hash(), was)
	}
	b.Add(event.Key{ID: 3})
	b.Add(event.Key{ID: 4})
	if a.Hash() != was || a.Allows(3, 0, 0) || a.Check() != nil || a.Admit() != nil {
		t.Errorf("the original is %x, was %x", a.Hash(), was)
	}
	if !errors.Is(b.Admit(), ErrFull) || b.Check() != nil {
		t.Errorf("the copy: %v, %v", b.Admit(), b.Check())
	}
}

func TestCheckSees(t *testing.T) {
	r := ring()
	r.Add(event.Key{ID: 3, Boot: true})
	if err := r.Check(); err == nil || !strings.HasPrefix(err.Error(), "K1:") {
		t.Errorf("two first keys: %v", err)
	}
	r = ring()
	lost := r.keys
	lost.Put(2, grant{}) // and r's sum does not know
	if err := r.Check(); err == nil || !strings.Contains(err.Error(), "T2:") {
		t.Errorf("a grant that nobody hashed: %v", err)
	}
}

// TestIDsAreUsedOnce: whoever has the ID is let in with the old secret.
func TestIDsAreUsedOnce(t *testing.T) {
	r := ring()
	defer func() {
		if _, broken := recover().(words.Broken); !broken {
			t.Error("an id was used twice")
		}
	}()
	r.Add(event.Key{ID: 2, Tenant: 1})
}

func TestNothingIsAllocated(t *testing.T) {
	r := ring()
	if n := testing.AllocsPerRun(100, func() {
		if _, ok := r.Find(2); !ok || !r.Allows(1, 1, event.MayBurn) || !r.Bootstrapped() {
			t.Fatal("a key is lost")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if Bytes(1000) < 1000*48 {
		t.Errorf("a thousand keys take %d bytes", Bytes(1000))
	}
}
