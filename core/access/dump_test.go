package access_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/access"
	"macronode/core/event"
	"macronode/core/types"
	model "macronode/models/access"
)

// dumped returns the rows of a keyring.
func dumped(r *access.Keys) (rows [][]byte) {
	r.Dump(func(kind uint8, b []byte) { rows = append(rows, append([]byte{kind}, b...)) })
	return rows
}

// anyKey returns a key with random fields.
func anyKey(t *rapid.T, tb testing.TB, id types.KeyID) event.Key {
	name := rapid.StringMatching(`[a-zA-Z0-9_:.-]{1,64}`)
	list := rapid.StringMatching(`[a-zA-Z0-9_:/-]{1,40}\*?(,[a-z]{1,40}\*?){0,5}`)
	k := toKey(tb, model.Key{ID: id, Tenant: types.Tenant(rapid.Uint32().Draw(t, "tenant")), Revoked: rapid.Bool().Draw(t, "revoked"),
		Label: rapid.OneOf(rapid.Just(""), name).Draw(t, "label"), Accounts: rapid.OneOf(rapid.Just(""), list).Draw(t, "accounts"),
		Assets: rapid.OneOf(rapid.Just(""), list).Draw(t, "assets"), Expires: types.Time(rapid.Int64().Draw(t, "expires"))})
	k.Scopes = event.Scopes(rapid.Uint16Range(0, uint16(event.AllScopes)).Draw(t, "scopes"))
	copy(k.Hash[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "hash"))
	return k
}

// TestDumpsAreLoaded: a loaded dump has the same keys in the same order, and dumps to the same bytes.
func TestDumpsAreLoaded(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.Uint64(), 0, 6, rapid.ID).Draw(r, "ids")
		ring := access.New(8, 1)
		for _, id := range ids {
			ring.Add(anyKey(r, t, types.KeyID(id)))
		}
		if rapid.Bool().Draw(r, "boot") {
			ring.Add(event.Key{ID: ^types.KeyID(0) - 1, Tenant: 1, Scopes: event.AllScopes, Bootstrap: true, Revoked: rapid.Bool().Draw(r, "ended")})
		}
		back := reload(t, &ring, 2)
		if err := back.Check(); err != nil {
			r.Fatal(err)
		}
		for place := range ring.Len() {
			if back.At(place) != ring.At(place) {
				r.Fatalf("%+v was loaded as %+v", ring.At(place), back.At(place))
			}
		}
		rows, again := dumped(&ring), dumped(&back)
		for i := range rows {
			if !bytes.Equal(rows[i], again[i]) {
				r.Fatalf("%x was dumped again as %x", rows[i], again[i])
			}
		}
	})
}

// TestLayout: the layout never changes, because later versions read snapshots of this one.
func TestLayout(t *testing.T) {
	ring := access.New(2, 1)
	ring.Add(event.Key{ID: 0x0102030405060708, Tenant: 0x11121314, Hash: [32]byte{0x21, 31: 0x22}, Scopes: event.AllScopes, Bootstrap: true, Revoked: true})
	ring.Add(toKey(t, model.Key{ID: 9, Tenant: 2, Label: "till", Accounts: "a,b:*", Assets: "EUR", Scopes: []string{"read", "hold"}, Expires: 0x0102}))
	const (
		first  = "01" + "0807060504030201" + "14131211" + "21" + "000000000000000000000000000000000000000000000000000000000000" + "22" + "ff01" + "03" + "0000000000000000" + "000000"
		second = "01" + "0900000000000000" + "02000000" + "09" + "000000000000000000000000000000000000000000000000000000000000" + "ee" + "1100" + "00" + "0201000000000000" +
			"04" + "74696c6c" + "05" + "612c623a2a" + "03" + "455552"
	)
	for i, want := range []string{first, second} {
		if got := hex.EncodeToString(dumped(&ring)[i]); got != want {
			t.Errorf("row %d is\n%s, want\n%s", i, got, want)
		}
	}
}

// TestDamageIsNotLoaded: bytes that Dump did not write are an error, and change nothing.
func TestDamagedDumpIsNotLoaded(t *testing.T) {
	from := access.New(3, 1)
	from.Add(event.Key{ID: 1, Tenant: 1, Scopes: event.AllScopes, Bootstrap: true})
	from.Add(toKey(t, model.Key{ID: 2, Tenant: 2, Label: "till", Accounts: "a,b:*", Assets: "EUR", Expires: 5}))
	row := dumped(&from)[1][1:]
	const bitsAt, labelAt = 46, 55
	set := func(at int, to byte) []byte { b := bytes.Clone(row); b[at] = to; return b }
	for name, c := range map[string]struct {
		kind uint8
		b    []byte
	}{
		"nothing":               {1, nil},
		"another kind":          {2, row},
		"a byte more":           {1, append(bytes.Clone(row), 0)},
		"a scope of tomorrow":   {1, set(bitsAt-1, 0x80)},
		"a bit of tomorrow":     {1, set(bitsAt, 4)},
		"a first key with name": {1, set(bitsAt, 1)},
		"a name that is none":   {1, set(labelAt+1, ' ')},
		"patterns of no name":   {1, set(labelAt+6, ',')},
		"a length beyond":       {1, set(labelAt, 0xff)},
	} {
		to := access.New(3, 1)
		if err := to.Load(c.kind, c.b); !errors.Is(err, access.ErrRow) || to.Len() != 0 {
			t.Errorf("%s: %v, %d keys", name, err, to.Len())
		}
	}
	for n := range row {
		to := access.New(3, 1)
		if err := to.Load(1, row[:n]); !errors.Is(err, access.ErrRow) || to.Len() != 0 {
			t.Errorf("%d bytes of %d: %v", n, len(row), err)
		}
	}
	rows := dumped(&from)
	second := bytes.Clone(rows[0][1:])
	second[0] = 7
	for name, b := range map[string][]byte{"the same id": rows[0][1:], "a second first key": second} {
		to := access.New(2, 1)
		if err := to.Load(1, rows[0][1:]); err != nil {
			t.Fatal(err)
		}
		was := to.Hash()
		if err := to.Load(1, b); !errors.Is(err, access.ErrRow) || to.Hash() != was {
			t.Errorf("%s: %v", name, err)
		}
	}
	full := access.New(1, 1)
	if err := full.Load(1, rows[0][1:]); err != nil {
		t.Fatal(err)
	}
	if err := full.Load(1, row); !errors.Is(err, access.ErrFull) {
		t.Errorf("no room: %v", err)
	}
}

// TestAnyBytes: any bytes are no row, or a row that dumps to the same bytes.
func TestAnyBytes(t *testing.T) {
	from := access.New(1, 1)
	from.Add(toKey(t, model.Key{ID: 2, Tenant: 2, Label: "till", Accounts: "a,b:*", Assets: "EUR", Expires: 5}))
	row := dumped(&from)[0][1:]
	rapid.Check(t, func(r *rapid.T) {
		b := bytes.Clone(row)
		for range rapid.IntRange(1, 3).Draw(r, "edits") {
			b[rapid.IntRange(0, len(b)-1).Draw(r, "at")] = rapid.Byte().Draw(r, "to")
		}
		to := access.New(1, 1)
		if err := to.Load(1, b); err == nil && !bytes.Equal(dumped(&to)[0][1:], b) || to.Check() != nil {
			r.Fatalf("%x was loaded as %x: %v", b, dumped(&to), to.Check())
		}
	})
}
