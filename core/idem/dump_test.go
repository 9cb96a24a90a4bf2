package idem_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/event"
	"macronode/core/idem"
	"macronode/core/words"
)

type row struct {
	kind uint8
	b    []byte
}

func dumped(w *idem.Window) (all []row) {
	w.Dump(func(kind uint8, b []byte) { all = append(all, row{kind, bytes.Clone(b)}) })
	return all
}

// TestDumped: a window that is dumped and loaded, into as much room or more, is the same,
// says the same again, and goes on as the other does.
func TestDumped(t *testing.T) {
	saw := map[string]int{}
	rapid.Check(t, func(r *rapid.T) {
		limits := idem.Limits{Keys: 8, Share: 8, Tenants: 3, TTL: time.Second}
		w := idem.New(limits, 1)
		lsn, at := words.LSN(0), words.Time(5)
		live := func(n int, both ...*idem.Window) {
			for range n {
				lsn += words.LSN(rapid.IntRange(0, 2).Draw(r, "frames"))
				if lsn <= w.Forgot() {
					lsn = w.Forgot() + 1
				}
				at += words.Time(rapid.IntRange(0, 5).Draw(r, "time"))
				k := idem.Key{Tenant: words.Tenant(rapid.IntRange(1, 3).Draw(r, "tenant")), Name: words.ID{byte(rapid.IntRange(0, 20).Draw(r, "name"))},
					Ref: rapid.Bool().Draw(r, "ref")}
				s := event.Seen{Asked: words.Asked{byte(lsn)}, ID: words.NewTxID(9, words.Place{LSN: lsn, Index: 3}), At: at}
				forget := words.LSN(0)
				if rapid.IntRange(0, 5).Draw(r, "forget") == 0 {
					forget = words.LSN(rapid.IntRange(0, int(lsn)).Draw(r, "upto"))
				}
				for _, w := range both {
					if forget > 0 {
						w.Forget(forget)
					}
					if _, found := w.Find(k, event.Seen{}, at); !found && w.Fits(k.Tenant, 1) && lsn > w.Forgot() {
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
		back := idem.New(l, 2)
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
		if l == limits { // where there is as much room, they go on alike
			live(rapid.IntRange(0, 10).Draw(r, "then"), &w, &back)
			again()
			saw["went on"]++
		}
	})
	if saw["remembered"] < 100 || saw["empty"] == 0 || saw["went on"] == 0 {
		t.Errorf("%v", saw)
	}
}

// TestLayout is for ever: snapshots of this version are read by all that follow.
func TestLayout(t *testing.T) {
	w := idem.New(idem.Limits{Keys: 2, Share: 2, Tenants: 2, TTL: time.Second}, 1)
	seen := func(lsn words.LSN) event.Seen {
		return event.Seen{Asked: words.Asked{0x21, 15: 0x22}, ID: words.NewTxID(0x3132333435363738, words.Place{LSN: lsn, Index: 0x41}), At: 0x0102}
	}
	w.Remember(idem.Key{Tenant: 0x01020304, Name: words.ID{1}}, seen(5))
	w.Forget(6)
	w.Remember(idem.Key{Tenant: 2, Name: words.ID{0x11, 15: 0x12}, Ref: true}, seen(7))
	const sixteen = "0000000000000000000000000000"
	want := []string{"01" + "0600000000000000" + "0201000000000000", "02" + "04030201", "02" + "02000000",
		"03" + "02000000" + "11" + sixteen + "12" + "01" + "21" + sixteen + "22" + "3132333435363738" + "0000000000070041" + "0201000000000000"}
	for n, row := range dumped(&w) {
		if got := hex.EncodeToString(append([]byte{row.kind}, row.b...)); n >= len(want) || got != want[n] {
			t.Errorf("row %d is\n%s, for ever was\n%s", n, got, want[min(n, len(want)-1)])
		}
	}
}

// full is a window without room, that has forgotten something, and its dump.
func full() []row {
	w := idem.New(idem.Limits{Keys: 4, Share: 4, Tenants: 2, TTL: time.Second}, 1)
	for n := range words.LSN(5) {
		if n == 4 {
			w.Forget(2)
		}
		w.Remember(idem.Key{Tenant: words.Tenant(1 + n%2), Name: words.ID{byte(n)}, Ref: n == 3},
			event.Seen{Asked: words.Asked{7}, ID: words.NewTxID(9, words.Place{LSN: n + 1, Index: 1}), At: words.Time(10 + n)})
	}
	return dumped(&w)
}

// TestLoadRefuses what no dump said, and what there is no room for.
func TestLoadRefuses(t *testing.T) {
	all := full() // a mark, two tenants, keys of the frames 3, 4 and 5
	if len(all) != 6 {
		t.Fatalf("%d rows", len(all))
	}
	edit := func(n int, at int, to byte) func([]row) []row {
		return func(rows []row) []row { rows[n].b[at] = to; return rows }
	}
	for what, c := range map[string]struct {
		edit func([]row) []row
		room idem.Limits
		want error
	}{
		"as it was":                      {func(r []row) []row { return r }, idem.Limits{Keys: 3, Tenants: 2}, nil},
		"a tenant too many":              {func(r []row) []row { return r }, idem.Limits{Keys: 3, Tenants: 1}, idem.ErrRoom},
		"a key too many":                 {func(r []row) []row { return r }, idem.Limits{Keys: 2, Tenants: 2}, idem.ErrRoom},
		"a key of nobody":                {edit(4, 0, 9), idem.Limits{Keys: 3, Tenants: 2}, idem.ErrRow},
		"a key again":                    {func(r []row) []row { return append(r, r[5]) }, idem.Limits{Keys: 4, Tenants: 2}, idem.ErrRow},
		"a key that is forgotten":        {edit(3, 37+13, 2), idem.Limits{Keys: 3, Tenants: 2}, idem.ErrRow},
		"a key out of order":             {func(r []row) []row { r[3], r[4] = r[4], r[3]; return r }, idem.Limits{Keys: 3, Tenants: 2}, idem.ErrRow},
		"a key older than the mark":      {edit(3, 53, 1), idem.Limits{Keys: 3, Tenants: 2}, idem.ErrRow},
		"a bit that means nothing":       {edit(3, 20, 2), idem.Limits{Keys: 3, Tenants: 2}, idem.ErrRow},
		"a tenant again":                 {func(r []row) []row { r[1] = r[2]; return r }, idem.Limits{Keys: 3, Tenants: 2}, idem.ErrRow},
		"a tenant behind keys":           {func(r []row) []row { r[2], r[3] = r[3], r[2]; return r }, idem.Limits{Keys: 3, Tenants: 2}, idem.ErrRow},
		"a mark behind tenants":          {func(r []row) []row { r[0], r[1] = r[1], r[0]; return r }, idem.Limits{Keys: 3, Tenants: 2}, idem.ErrRow},
		"a mark beyond all":              {edit(0, 6, 1), idem.Limits{Keys: 3, Tenants: 2}, idem.ErrRow},
		"a mark before all time":         {edit(0, 15, 0x80), idem.Limits{Keys: 3, Tenants: 2}, idem.ErrRow},
		"a mark of nothing, with a time": {edit(0, 0, 0), idem.Limits{Keys: 3, Tenants: 2}, idem.ErrRow},
		"a kind of none":                 {func(r []row) []row { r[1].kind = 4; return r }, idem.Limits{Keys: 3, Tenants: 2}, idem.ErrRow},
		"a byte less":                    {func(r []row) []row { r[3].b = r[3].b[1:]; return r }, idem.Limits{Keys: 3, Tenants: 2}, idem.ErrRow},
		"a byte more":                    {func(r []row) []row { r[0].b = append(r[0].b, 0); return r }, idem.Limits{Keys: 3, Tenants: 2}, idem.ErrRow},
	} {
		rows := make([]row, 0, len(all)+1)
		for _, r := range all {
			rows = append(rows, row{r.kind, bytes.Clone(r.b)})
		}
		w := idem.New(c.room, 3)
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

// TestEachRowIsItsOwn: no row is taken for one of another kind, none is cut or drawn out, and
// there is one mark, of a frame that can be.
func TestEachRowIsItsOwn(t *testing.T) {
	refused := func(what string, behind []row, r row) {
		t.Helper()
		w := idem.New(idem.Limits{Keys: 3, Tenants: 2}, 3)
		for _, b := range behind {
			if err := w.Load(b.kind, b.b); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		before := w.Hash()
		if err := w.Load(r.kind, r.b); !errors.Is(err, idem.ErrRow) || w.Hash() != before {
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
	mark := func(forgot words.LSN) row {
		return row{all[0].kind, append(binary.LittleEndian.AppendUint64(nil, uint64(forgot)), make([]byte, 8)...)}
	}
	refused("a mark beyond all", nil, mark(words.MaxLSN+1))
	w := idem.New(idem.Limits{Keys: 3, Tenants: 2}, 3)
	if err := w.Load(all[0].kind, mark(words.MaxLSN).b); err != nil || w.Forgot() != words.MaxLSN {
		t.Errorf("a mark of the last frame that can be: %v", err)
	}
}
