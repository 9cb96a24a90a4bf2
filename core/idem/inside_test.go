package idem

import (
	"strings"
	"testing"
	"time"

	"macronode/ci/flip"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/words"
)

func window(keys int) Window {
	w := New(Limits{Keys: 4, Share: 3, Tenants: 2, TTL: time.Hour, Trail: time.Minute}, 1)
	for i := range keys {
		w.Remember(Key{words.Tenant(1 + i%2), digest.Name([]byte{byte(i)}), false}, seen(words.LSN(i+1), words.Time(i)))
	}
	return w
}

func seen(at words.LSN, when words.Time) event.Seen {
	return event.Seen{Asked: words.Asked{9}, ID: words.NewTxID(5, words.Place{LSN: at}), At: when}
}

func TestHashForgetsNothing(t *testing.T) {
	k := Key{1, digest.Name([]byte("k")), true}
	flip.Every(t, &k, func() words.Hash64 { return k.Mix(1) })
	s := seen(2, 4)
	flip.Every(t, &s, func() words.Hash64 { return s.Mix(1) })
	n := count(1)
	flip.Every(t, &n, func() words.Hash64 { return n.Mix(1) })

	w := window(3)
	not := []string{"limits: configuration", "keys.head: where the ring begins", "keys.count: the number of rows, which their sum tells"}
	for _, table := range []string{"keys", "shares"} {
		not = append(not, table+".seed: places rows, and is another in every process",
			table+".index: where rows are found, which Check holds", table+".rows: held by their sum")
	}
	for _, log := range []string{"log", "mark", "marked"} {
		not = append(not, "shares."+log+": the ledger's tables are marked, this one is not")
	}
	flip.Every(t, &w, w.Hash, not...)
}

// TestCheckSees: each invariant, broken by hand, is named.
func TestCheckSees(t *testing.T) {
	for what, c := range map[string]struct {
		breaks func(*Window)
		want   string
	}{
		"a share that was lowered": {func(w *Window) { w.limits.Share = 1 }, ""},
		"nothing":                  {func(*Window) {}, ""},
		"a key that was forgotten": {func(w *Window) { w.forgot = 1 }, "I1"},
		"a key of an earlier frame": {func(w *Window) {
			w.keys.Push(Key{1, words.ID{7}, false}, seen(2, 9))
			w.shares.Put(1, 3)
		}, "I2"},
		"a key that is not counted":              {func(w *Window) { w.shares.Put(1, 1) }, "I3"},
		"a key that is counted twice":            {func(w *Window) { w.shares.Put(2, 2) }, "I3"},
		"a key older than one that is forgotten": {func(w *Window) { w.last = 1 }, "I4"},
		"a key of nobody":                        {func(w *Window) { w.keys.Push(Key{5, words.ID{7}, false}, seen(9, 9)) }, "I3"},
	} {
		w := window(3)
		c.breaks(&w)
		if err := w.Check(); err == nil && c.want != "" || err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want+":")) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
}

// TestBrokenSaysSo: what the caller must not do is a bug of ours.
func TestBrokenSaysSo(t *testing.T) {
	for what, wrong := range map[string]func(*Window){
		"a key remembered twice":     func(w *Window) { w.Remember(Key{1, digest.Name([]byte{0}), false}, seen(9, 9)) },
		"a key of a forgotten frame": func(w *Window) { w.Forget(9); w.Remember(Key{1, words.ID{7}, false}, seen(9, 9)) },
		"a key without room": func(w *Window) {
			w.Remember(Key{1, words.ID{7}, false}, seen(9, 9))
			w.Remember(Key{1, words.ID{8}, false}, seen(9, 9))
		},
	} {
		func() {
			w := window(3)
			defer func() {
				if _, broken := recover().(words.Broken); !broken {
					t.Errorf("%s is not broken", what)
				}
			}()
			wrong(&w)
		}()
	}
}

// TestNothingIsAllocated once the window is made.
func TestNothingIsAllocated(t *testing.T) {
	w, lsn := window(0), words.LSN(0)
	k := Key{1, words.ID{7}, false}
	if n := testing.AllocsPerRun(100, func() {
		lsn++
		if _, found, err := w.Look(k, words.Asked{}, event.Seen{}, 0); found || err != nil || w.Admit(1, 1) != nil {
			t.Fatal("the key is not new")
		}
		m := w.Mark()
		w.Remember(k, seen(lsn, 0))
		w.Undo(m)
		w.Remember(k, seen(lsn, 0))
		if upto, any := w.Spare(words.Time(time.Hour/time.Millisecond), lsn, 1); any {
			w.Forget(upto)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestBytes: a window tells how much it takes before it is made.
func TestBytes(t *testing.T) {
	few, many := Bytes(Limits{Keys: 10, Tenants: 1}), Bytes(Limits{Keys: 1_000_000, Tenants: 1})
	if few <= 0 || many < 64_000_000 || many > 160_000_000 {
		t.Errorf("10 keys take %d bytes, a million %d", few, many)
	}
}
