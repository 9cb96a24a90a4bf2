package idempotency

import (
	"strings"
	"testing"
	"time"

	"macronode/ci/hashcoverage"
	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/types"
)

func window(keys int) Window {
	w := New(Limits{Keys: 4, PerTenant: 3, Tenants: 2, TTL: time.Hour, MinRetention: time.Minute}, 1)
	for i := range keys {
		w.Remember(Key{types.Tenant(1 + i%2), digest.Name([]byte{byte(i)}), false}, seen(types.LSN(i+1), types.Time(i)))
	}
	return w
}

func seen(at types.LSN, when types.Time) command.PriorOutcome {
	return command.PriorOutcome{Hash: types.RequestHash{9}, ID: types.NewTxID(5, types.Position{LSN: at}), At: when}
}

func TestHashCoversEveryField(t *testing.T) {
	k := Key{1, digest.Name([]byte("k")), true}
	hashcoverage.Every(t, &k, func() types.Hash64 { return k.HashInto(1) })
	s := seen(2, 4)
	hashcoverage.Every(t, &s, func() types.Hash64 { return s.HashInto(1) })
	n := keyCount(1)
	hashcoverage.Every(t, &n, func() types.Hash64 { return n.HashInto(1) })

	w := window(3)
	not := []string{"limits: configuration", "keys.head: position in the ring", "keys.count: covered by the sum"}
	for _, table := range []string{"keys", "tenants"} {
		not = append(not, table+".seed: places rows, and is another in every process",
			table+".index: where rows are found, which Check holds", table+".rows: held by their sum")
	}
	for _, log := range []string{"undoLog", "savepointRows", "inSavepoint"} {
		not = append(not, "tenants."+log+": only the tables of the ledger use savepoints")
	}
	hashcoverage.Every(t, &w, w.Hash, not...)
}

// TestCheckReportsBrokenInvariants breaks each invariant.
func TestCheckReportsBrokenInvariants(t *testing.T) {
	for what, c := range map[string]struct {
		breaks func(*Window)
		want   string
	}{
		"a share that was lowered": {func(w *Window) { w.limits.PerTenant = 1 }, ""},
		"unchanged":                {func(*Window) {}, ""},
		"a key that was forgotten": {func(w *Window) { w.forgottenTo = 1 }, "I1"},
		"a key of an earlier frame": {func(w *Window) {
			w.keys.Push(Key{1, types.NameHash{7}, false}, seen(2, 9))
			w.tenants.Put(1, 3)
		}, "I2"},
		"a key that is not counted":              {func(w *Window) { w.tenants.Put(1, 1) }, "I3"},
		"a key that is counted twice":            {func(w *Window) { w.tenants.Put(2, 2) }, "I3"},
		"a key older than one that is forgotten": {func(w *Window) { w.newestForgotten = 1 }, "I4"},
		"a key without a tenant":                 {func(w *Window) { w.keys.Push(Key{5, types.NameHash{7}, false}, seen(9, 9)) }, "I3"},
	} {
		w := window(3)
		c.breaks(&w)
		if err := w.Check(); err == nil && c.want != "" || err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want+":")) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
}

// TestMisusePanics shows that misuse panics with an InvariantError.
func TestMisusePanics(t *testing.T) {
	for what, wrong := range map[string]func(*Window){
		"a key remembered twice":     func(w *Window) { w.Remember(Key{1, digest.Name([]byte{0}), false}, seen(9, 9)) },
		"a key of a forgotten frame": func(w *Window) { w.Forget(9); w.Remember(Key{1, types.NameHash{7}, false}, seen(9, 9)) },
		"a key without room": func(w *Window) {
			w.Remember(Key{1, types.NameHash{7}, false}, seen(9, 9))
			w.Remember(Key{1, types.NameHash{8}, false}, seen(9, 9))
		},
	} {
		func() {
			w := window(3)
			defer func() {
				if _, broken := recover().(types.InvariantError); !broken {
					t.Errorf("%s is not broken", what)
				}
			}()
			wrong(&w)
		}()
	}
}

// TestOperationsDoNotAllocate runs after New.
func TestOperationsDoNotAllocate(t *testing.T) {
	w, lsn := window(0), types.LSN(0)
	k := Key{1, types.NameHash{7}, false}
	if n := testing.AllocsPerRun(100, func() {
		lsn++
		if _, found, err := w.Resolve(k, types.RequestHash{}, command.PriorOutcome{}, 0); found || err != nil || w.Admit(1, 1) != nil {
			t.Fatal("the key is not new")
		}
		m := w.Savepoint()
		w.Remember(k, seen(lsn, 0))
		w.Undo(m)
		w.Remember(k, seen(lsn, 0))
		if upto, any := w.Evictable(types.Time(time.Hour/time.Millisecond), lsn, 1); any {
			w.Forget(upto)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestBytesMatchesMemory of a new window.
func TestBytesMatchesMemory(t *testing.T) {
	few, many := Bytes(Limits{Keys: 10, Tenants: 1}), Bytes(Limits{Keys: 1_000_000, Tenants: 1})
	if few <= 0 || many < 64_000_000 || many > 160_000_000 {
		t.Errorf("10 keys take %d bytes, a million %d", few, many)
	}
}
