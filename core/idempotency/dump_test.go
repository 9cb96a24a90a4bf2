package idempotency_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/command"
	"macronode/core/idempotency"
	"macronode/core/types"
)

type row struct {
	kind uint8
	b    []byte
}

func dumped(w *idempotency.Window) (all []row) {
	w.Dump(func(kind uint8, b []byte) { all = append(all, row{kind, bytes.Clone(b)}) })
	return all
}

// TestLoadRestoresDump: a window that is loaded from a dump, with the same limits or larger ones,
// is equal, dumps the same rows, and behaves the same.
func TestLoadRestoresDump(t *testing.T) {
	saw := map[string]int{}
	rapid.Check(t, func(r *rapid.T) {
		limits := idempotency.Limits{Keys: 8, PerTenant: 8, Tenants: 3, TTL: time.Second}
		w := idempotency.New(limits, 1)
		lsn, at := types.LSN(0), types.Time(5)
		live := func(n int, both ...*idempotency.Window) {
			for range n {
				lsn += types.LSN(rapid.IntRange(0, 2).Draw(r, "frames"))
				if lsn <= w.ForgottenTo() {
					lsn = w.ForgottenTo() + 1
				}
				at += types.Time(rapid.IntRange(0, 5).Draw(r, "time"))
				k := idempotency.Key{Tenant: types.Tenant(rapid.IntRange(1, 3).Draw(r, "tenant")), Name: types.NameHash{byte(rapid.IntRange(0, 20).Draw(r, "name"))},
					Ref: rapid.Bool().Draw(r, "ref")}
				s := command.PriorOutcome{Hash: types.RequestHash{byte(lsn)}, ID: types.NewTxID(9, types.Position{LSN: lsn, Index: 3}), At: at}
				forget := types.LSN(0)
				if rapid.IntRange(0, 5).Draw(r, "forget") == 0 {
					forget = types.LSN(rapid.IntRange(0, int(lsn)).Draw(r, "upto"))
				}
				for _, w := range both {
					if forget > 0 {
						w.Forget(forget)
					}
					if _, found := w.Find(k, command.PriorOutcome{}, at); !found && w.Fits(k.Tenant, 1) && lsn > w.ForgottenTo() {
						w.Remember(k, s)
						saw["remembered"]++
					}
				}
			}
		}
		live(rapid.IntRange(0, 30).Draw(r, "first"), &w)
		all := dumped(&w)
		saw["empty"] += min(1, max(0, 2-len(all)))
		l := limits
		l.Keys += rapid.IntRange(0, 2).Draw(r, "more keys")
		l.Tenants += rapid.IntRange(0, 2).Draw(r, "more tenants")
		back := idempotency.New(l, 2)
		for _, row := range all {
			if err := back.Load(row.kind, row.b); err != nil {
				r.Fatal(err)
			}
		}
		again := func() {
			if err := back.Check(); err != nil || back.Hash() != w.Hash() {
				r.Fatalf("%v; the hash is %x, was %x", err, back.Hash(), w.Hash())
			}
			one, two := dumped(&w), dumped(&back)
			for i := range max(len(one), len(two)) {
				if i >= len(one) || i >= len(two) || one[i].kind != two[i].kind || !bytes.Equal(one[i].b, two[i].b) {
					r.Fatalf("row %d of %d and %d is another", i, len(one), len(two))
				}
			}
		}
		again()
		if l == limits { // with equal limits, they behave the same
			live(rapid.IntRange(0, 10).Draw(r, "then"), &w, &back)
			again()
			saw["went on"]++
		}
	})
	if saw["remembered"] < 100 || saw["empty"] == 0 || saw["went on"] == 0 {
		t.Errorf("%v", saw)
	}
}

// TestLayoutIsFrozen: later versions read the snapshots of this version.
func TestLayoutIsFrozen(t *testing.T) {
	w := idempotency.New(idempotency.Limits{Keys: 2, PerTenant: 2, Tenants: 2, TTL: time.Second}, 1)
	seen := func(lsn types.LSN) command.PriorOutcome {
		return command.PriorOutcome{Hash: types.RequestHash{0x21, 15: 0x22}, ID: types.NewTxID(0x3132333435363738, types.Position{LSN: lsn, Index: 0x41}), At: 0x0102}
	}
	w.Remember(idempotency.Key{Tenant: 0x01020304, Name: types.NameHash{1}}, seen(5))
	w.Forget(6)
	w.Remember(idempotency.Key{Tenant: 2, Name: types.NameHash{0x11, 15: 0x12}, Ref: true}, seen(7))
	const sixteen = "0000000000000000000000000000"
	want := []string{"01" + "0600000000000000" + "0201000000000000", "02" + "04030201", "02" + "02000000",
		"03" + "02000000" + "11" + sixteen + "12" + "01" + "21" + sixteen + "22" + "3132333435363738" + "0000000000070041" + "0201000000000000"}
	for n, row := range dumped(&w) {
		if got := hex.EncodeToString(append([]byte{row.kind}, row.b...)); n >= len(want) || got != want[n] {
			t.Errorf("row %d is\n%s, for ever was\n%s", n, got, want[min(n, len(want)-1)])
		}
	}
}

// full returns the dump of a full window that has evicted keys.
func full() []row {
	w := idempotency.New(idempotency.Limits{Keys: 4, PerTenant: 4, Tenants: 2, TTL: time.Second}, 1)
	for n := range types.LSN(5) {
		if n == 4 {
			w.Forget(2)
		}
		w.Remember(idempotency.Key{Tenant: types.Tenant(1 + n%2), Name: types.NameHash{byte(n)}, Ref: n == 3},
			command.PriorOutcome{Hash: types.RequestHash{7}, ID: types.NewTxID(9, types.Position{LSN: n + 1, Index: 1}), At: types.Time(10 + n)})
	}
	return dumped(&w)
}

// TestLoadRejectsInvalidRows tries rows that no window dumps, and too little room.
func TestLoadRejectsInvalidRows(t *testing.T) {
	all := full() // a mark, two tenants, keys of the frames 3, 4 and 5
	if len(all) != 6 {
		t.Fatalf("%d rows", len(all))
	}
	edit := func(n int, at int, to byte) func([]row) []row {
		return func(rows []row) []row { rows[n].b[at] = to; return rows }
	}
	for what, c := range map[string]struct {
		edit func([]row) []row
		room idempotency.Limits
		want error
	}{
		"as it was":                 {func(r []row) []row { return r }, idempotency.Limits{Keys: 3, Tenants: 2}, nil},
		"a tenant too many":         {func(r []row) []row { return r }, idempotency.Limits{Keys: 3, Tenants: 1}, idempotency.ErrRoom},
		"a key too many":            {func(r []row) []row { return r }, idempotency.Limits{Keys: 2, Tenants: 2}, idempotency.ErrRoom},
		"a key without a tenant":    {edit(4, 0, 9), idempotency.Limits{Keys: 3, Tenants: 2}, idempotency.ErrRow},
		"a key again":               {func(r []row) []row { return append(r, r[5]) }, idempotency.Limits{Keys: 4, Tenants: 2}, idempotency.ErrRow},
		"a key that is forgotten":   {edit(3, 37+13, 2), idempotency.Limits{Keys: 3, Tenants: 2}, idempotency.ErrRow},
		"a key out of order":        {func(r []row) []row { r[3], r[4] = r[4], r[3]; return r }, idempotency.Limits{Keys: 3, Tenants: 2}, idempotency.ErrRow},
		"a key older than the mark": {edit(3, 53, 1), idempotency.Limits{Keys: 3, Tenants: 2}, idempotency.ErrRow},
		"an unknown bit":            {edit(3, 20, 2), idempotency.Limits{Keys: 3, Tenants: 2}, idempotency.ErrRow},
		"a tenant again":            {func(r []row) []row { r[1] = r[2]; return r }, idempotency.Limits{Keys: 3, Tenants: 2}, idempotency.ErrRow},
		"a tenant behind keys":      {func(r []row) []row { r[2], r[3] = r[3], r[2]; return r }, idempotency.Limits{Keys: 3, Tenants: 2}, idempotency.ErrRow},
		"a mark behind tenants":     {func(r []row) []row { r[0], r[1] = r[1], r[0]; return r }, idempotency.Limits{Keys: 3, Tenants: 2}, idempotency.ErrRow},
		"a mark too large":          {edit(0, 6, 1), idempotency.Limits{Keys: 3, Tenants: 2}, idempotency.ErrRow},
		"a mark before all time":    {edit(0, 15, 0x80), idempotency.Limits{Keys: 3, Tenants: 2}, idempotency.ErrRow},
		"mark 0 with a time":        {edit(0, 0, 0), idempotency.Limits{Keys: 3, Tenants: 2}, idempotency.ErrRow},
		"a kind of none":            {func(r []row) []row { r[1].kind = 4; return r }, idempotency.Limits{Keys: 3, Tenants: 2}, idempotency.ErrRow},
		"a byte less":               {func(r []row) []row { r[3].b = r[3].b[1:]; return r }, idempotency.Limits{Keys: 3, Tenants: 2}, idempotency.ErrRow},
		"a byte more":               {func(r []row) []row { r[0].b = append(r[0].b, 0); return r }, idempotency.Limits{Keys: 3, Tenants: 2}, idempotency.ErrRow},
	} {
		rows := make([]row, 0, len(all)+1)
		for _, r := range all {
			rows = append(rows, row{r.kind, bytes.Clone(r.b)})
		}
		w := idempotency.New(c.room, 3)
		var err error
		for _, r := range c.edit(rows) {
			before := w.Hash()
			if err = w.Load(r.kind, r.b); err != nil {
				if w.Hash() != before {
					t.Errorf("%s: refused, and changed", what)
				}
				break
			}
		}
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		if err := w.Check(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestLoadRejectsOtherRowKinds: a row of another kind, a shorter or a longer row is rejected;
// there is one mark, with a valid LSN.
func TestLoadRejectsOtherRowKinds(t *testing.T) {
	refused := func(what string, behind []row, r row) {
		t.Helper()
		w := idempotency.New(idempotency.Limits{Keys: 3, Tenants: 2}, 3)
		for _, b := range behind {
			if err := w.Load(b.kind, b.b); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		before := w.Hash()
		if err := w.Load(r.kind, r.b); !errors.Is(err, idempotency.ErrRow) || w.Hash() != before {
			t.Errorf("%s: %v, the same: %v", what, err, w.Hash() == before)
		}
	}
	all := full()
	for n, r := range all {
		for kind := range 256 {
			if uint8(kind) != r.kind {
				refused(fmt.Sprintf("row %d as of kind %d", n, kind), all[:n], row{uint8(kind), r.b})
			}
		}
		for size := range r.b {
			refused(fmt.Sprintf("%d bytes of row %d", size, n), all[:n], row{r.kind, r.b[:size]})
		}
		refused(fmt.Sprintf("a byte behind row %d", n), all[:n], row{r.kind, append(bytes.Clone(r.b), 0)})
	}
	refused("a mark again", all[:1], all[0])
	mark := func(forgot types.LSN) row {
		return row{all[0].kind, append(binary.LittleEndian.AppendUint64(nil, uint64(forgot)), make([]byte, 8)...)}
	}
	refused("a mark too large", nil, mark(types.MaxLSN+1))
	w := idempotency.New(idempotency.Limits{Keys: 3, Tenants: 2}, 3)
	if err := w.Load(all[0].kind, mark(types.MaxLSN).b); err != nil || w.ForgottenTo() != types.MaxLSN {
		t.Errorf("a mark of the last frame that can be: %v", err)
	}
}
