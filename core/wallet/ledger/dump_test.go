package ledger

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/event"
	"macronode/core/types"
)

// row is a row of a dump.
type row struct {
	kind uint8
	b    []byte
}

func dump(l *Ledger) (rows []row) {
	l.Dump(func(kind uint8, b []byte) { rows = append(rows, row{kind, append([]byte(nil), b...)}) })
	return rows
}

func load(l *Ledger, rows []row) error {
	for _, r := range rows {
		if err := l.Load(r.kind, r.b); err != nil {
			return err
		}
	}
	return nil
}

// full returns a ledger with every kind of row.
func full(t *testing.T) Ledger {
	l := small()
	moves(&l, 2, event.Issue, "", "bob", "USD", 1)
	moves(&l, 1, event.Issue, "", "ann", "EUR", 10)
	moves(&l, 1, event.Transfer, "ann", "bob", "EUR", 2)
	moves(&l, 1, event.Burn, "bob", "", "EUR", 1)
	openHold(t, &l, types.TxID{1}, "ann", 3, 2, 7)
	openHold(t, &l, types.TxID{2}, "ann", 2, 3, 5)
	freezes(t, &l, "bob")
	freezes(t, &l, "cy")
	return l
}

// TestDumpFormatIsFrozen compares a dump with its frozen bytes.
func TestDumpFormatIsFrozen(t *testing.T) {
	l := full(t)
	bob, ann, cy := hex.EncodeToString(id("bob")), hex.EncodeToString(id("ann")), hex.EncodeToString(id("cy"))
	eur, usd := hex.EncodeToString(id("EUR")), hex.EncodeToString(id("USD"))
	n := func(n byte, size int) string { return hex.EncodeToString(append([]byte{n}, make([]byte, size-1)...)) }
	want := []row{
		{1, bytesOf(t, n(2, 4), n(1, 8))},
		{1, bytesOf(t, n(1, 4), n(7, 8))},
		{2, bytesOf(t, n(2, 4), bob, n(0, 8), "00")},
		{2, bytesOf(t, n(1, 4), ann, n(3, 8), "00")},
		{2, bytesOf(t, n(1, 4), bob, n(1, 8), "01")},
		{2, bytesOf(t, n(1, 4), cy, n(0, 8), "01")},
		{3, bytesOf(t, n(2, 4), usd, n(1, 16), n(0, 16), n(1, 16), n(0, 4))},
		{3, bytesOf(t, n(1, 4), eur, n(10, 16), n(1, 16), n(10, 16), n(0, 4))},
		{4, bytesOf(t, n(0, 4), n(0, 4), n(1, 16), n(0, 16), n(0, 4))},
		{4, bytesOf(t, n(1, 4), n(1, 4), n(8, 16), n(2, 16), n(0, 4))},
		{4, bytesOf(t, n(2, 4), n(1, 4), n(1, 16), n(1, 16), n(0, 4))},
		{5, bytesOf(t, n(2, 16), n(1, 4), n(1, 4), n(2, 16), n(5, 8), n(0, 16))},
		{5, bytesOf(t, n(1, 16), n(1, 4), n(1, 4), n(3, 16), n(7, 8), n(0, 16))},
	}
	if got := dump(&l); !reflect.DeepEqual(got, want) {
		t.Errorf("dumped %x\nwant   %x", got, want)
	}
}

func id(s string) []byte { n := named(s).ID; return n[:] }

func bytesOf(t *testing.T, parts ...string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(parts, ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestLoadRestoresDump loads a dump into ledgers with other limits and places.
func TestLoadRestoresDump(t *testing.T) {
	l := full(t)
	rows := dump(&l)
	larger := l.limits
	larger.Accounts, larger.Holdings, larger.Assets, larger.Tenants, larger.Holds = 100, 100, 100, 100, 100
	for what, limits := range map[string]Limits{"as large": l.limits, "larger": larger, "as large as need be": {Accounts: 4, Holdings: 3, Assets: 2, Tenants: 2, Holds: 2}} {
		fresh := New(limits, 7)
		if err := load(&fresh, rows); err != nil || fresh.Hash() != l.Hash() || fresh.Check() != nil || !reflect.DeepEqual(dump(&fresh), rows) {
			t.Errorf("%s: %v, %x is not %x; %v", what, err, fresh.Hash(), l.Hash(), fresh.Check())
		}
	}
	turned := New(larger, 7) // drawHold in another order are equal
	if err := load(&turned, append(append([]row(nil), rows[:11]...), rows[12], rows[11])); err != nil || turned.Hash() != l.Hash() || turned.Check() != nil {
		t.Errorf("turned: %v, %x is not %x; %v", err, turned.Hash(), l.Hash(), turned.Check())
	}
	for name, limit := range map[string]func(*Limits) *int{"accounts": func(l *Limits) *int { return &l.Accounts },
		"holdings": func(l *Limits) *int { return &l.Holdings }, "assets": func(l *Limits) *int { return &l.Assets },
		"tenants": func(l *Limits) *int { return &l.Tenants }, "holds": func(l *Limits) *int { return &l.Holds }} {
		short := Limits{Accounts: 4, Holdings: 3, Assets: 2, Tenants: 2, Holds: 2}
		*limit(&short)--
		fresh := New(short, 7)
		if err := load(&fresh, rows); !errors.Is(err, ErrRoom) {
			t.Errorf("too few %s: %v", name, err)
		}
	}
}

// TestLoadRejectsInvalidRows tries rows that no ledger dumps.
func TestLoadRejectsInvalidRows(t *testing.T) {
	most := strings.Repeat("ff", 16)
	zeros := func(n int) string { return strings.Repeat("00", n) }
	ann, eur := hex.EncodeToString(id("ann")), hex.EncodeToString(id("EUR"))
	for what, r := range map[string]row{
		"no kind":                    {0, nil},
		"a kind of another day":      {6, nil},
		"a tenant twice":             {1, bytesOf(t, "01000000", zeros(8))},
		"a seq too large":            {1, bytesOf(t, "09000000", "0000000000002000")},
		"an account twice":           {2, bytesOf(t, "01000000", ann, zeros(9))},
		"an account, no tenant":      {2, bytesOf(t, "09000000", ann, zeros(9))},
		"a nonce too large":          {2, bytesOf(t, "01000000", eur, "0000000000002000", "00")},
		"frozen otherwise":           {2, bytesOf(t, "01000000", eur, zeros(8), "02")},
		"an asset twice":             {3, bytesOf(t, "01000000", eur, zeros(52))},
		"an asset, no tenant":        {3, bytesOf(t, "09000000", eur, zeros(52))},
		"more burned than issued":    {3, bytesOf(t, "01000000", ann, zeros(16), "01", zeros(35))},
		"more issued than may be":    {3, bytesOf(t, "01000000", ann, most, zeros(36))},
		"a holding twice":            {4, bytesOf(t, "01000000", "01000000", zeros(36))},
		"a holding of no account":    {4, bytesOf(t, "04000000", "01000000", zeros(36))},
		"a holding of no asset":      {4, bytesOf(t, "03000000", "02000000", zeros(36))},
		"a holding across tenants":   {4, bytesOf(t, "03000000", "00000000", zeros(36))},
		"a holding of too much":      {4, bytesOf(t, "03000000", "01000000", most, zeros(20))},
		"a hold twice":               {5, bytesOf(t, "01", zeros(15), "01000000", "01000000", "01", zeros(15), "01", zeros(23))},
		"a hold of no account":       {5, bytesOf(t, "09", zeros(15), "04000000", "01000000", "01", zeros(15), "01", zeros(23))},
		"a hold of no holding":       {5, bytesOf(t, "09", zeros(15), "03000000", "01000000", "01", zeros(15), "01", zeros(23))},
		"a hold of 0":                {5, bytesOf(t, "09", zeros(15), "01000000", "01000000", zeros(16), "01", zeros(23))},
		"a hold of no time":          {5, bytesOf(t, "09", zeros(15), "01000000", "01000000", "01", zeros(15), zeros(24))},
		"a hold from before 1970":    {5, bytesOf(t, "09", zeros(15), "01000000", "01000000", "01", zeros(15), strings.Repeat("ff", 8), zeros(16))},
		"more held than there is":    {5, bytesOf(t, "09", zeros(15), "01000000", "01000000", "04", zeros(15), "01", zeros(23))},
		"a row that is too short":    {1, bytesOf(t, "09000000", zeros(7))},
		"a row that is too long":     {1, bytesOf(t, "09000000", zeros(9))},
		"a hold that is too long":    {5, bytesOf(t, "09", zeros(15), "01000000", "01000000", "01", zeros(15), "01", zeros(24))},
		"an account that is shorter": {2, bytesOf(t, "01000000", eur)},
	} {
		l := full(t)
		l.limits.Tenants = 9
		fresh := New(Limits{Accounts: 9, Holdings: 9, Assets: 9, Tenants: 9, Holds: 9}, 3)
		if err := load(&fresh, dump(&l)); err != nil {
			t.Fatal(err)
		}
		was := fresh.Hash()
		if err := fresh.Load(r.kind, r.b); !errors.Is(err, ErrRow) || fresh.Hash() != was || fresh.Check() != nil {
			t.Errorf("%s: %v, %v", what, err, fresh.Check())
		}
	}
}

// TestLoadSurvivesDamage: changed, dropped, doubled or moved rows are rejected, or found by
// Check, or form a valid ledger. None panics.
func TestLoadSurvivesDamage(t *testing.T) {
	l := full(t)
	whole := dump(&l)
	rapid.Check(t, func(t *rapid.T) {
		var rows []row
		for _, r := range whole {
			rows = append(rows, row{r.kind, append([]byte(nil), r.b...)})
		}
		for range rapid.IntRange(1, 4).Draw(t, "damages") {
			i := rapid.IntRange(0, len(rows)-1).Draw(t, "row")
			switch rapid.IntRange(0, 5).Draw(t, "damage") {
			case 0:
				rows[i].kind = rapid.Uint8Range(0, 7).Draw(t, "kind")
			case 1:
				rows[i].b = rows[i].b[:rapid.IntRange(0, len(rows[i].b)).Draw(t, "short")]
			case 2:
				j := rapid.IntRange(0, len(rows)-1).Draw(t, "other")
				rows[i], rows[j] = rows[j], rows[i]
			case 3:
				rows = append(rows, rows[i])
			default:
				if len(rows[i].b) > 0 {
					rows[i].b[rapid.IntRange(0, len(rows[i].b)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
				}
			}
		}
		fresh := New(Limits{Accounts: 4, Holdings: 4, Assets: 3, Tenants: 3, Holds: 3}, 5)
		err := load(&fresh, rows)
		if err == nil {
			err = fresh.Check()
		}
		if err == nil && !reflect.DeepEqual(rows, whole) {
			again := New(fresh.limits, 6)
			if err := load(&again, dump(&fresh)); err != nil || again.Hash() != fresh.Hash() {
				t.Fatalf("a damaged dump was accepted: %v", err)
			}
		}
	})
}

// TestLoadAcceptsLargestNumbers loads the largest seq and nonce.
func TestLoadAcceptsLargestNumbers(t *testing.T) {
	l, most := New(Limits{Accounts: 1, Holdings: 1, Assets: 1, Tenants: 1, Holds: 1}, 3), hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, types.MaxNonce))
	for _, r := range []row{{1, bytesOf(t, "01000000", most)}, {2, bytesOf(t, "01000000", hex.EncodeToString(id("ann")), most, "01")}} {
		if err := l.Load(r.kind, r.b); err != nil {
			t.Errorf("kind %d: %v", r.kind, err)
		}
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}
