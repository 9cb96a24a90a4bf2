package index

import (
	"bytes"
	"errors"
	"testing"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// A layout is a value that can be decoded and encoded.
type layout interface {
	read([]byte) bool
	put([]byte) []byte
}

func layouts() []layout {
	return []layout{&seen{}, &change{}, &entry{}, &hold{}, &end{}, marked{&mark{}}}
}

// marked is a mark with a bucket width.
type marked struct{ *mark }

func (m marked) read(b []byte) bool  { return m.mark.read(b, 900) }
func (m marked) put(b []byte) []byte { return m.mark.put(b, 900) }

// FuzzValues: bytes that decode as a value encode to the same bytes. No input makes the decoder
// panic.
func FuzzValues(f *testing.F) {
	most := types.Amount{Hi: 1 << 63, Lo: 1}
	e := entry{sets: setsBalance | setsHeld | hasHold | hasNonce | hasRef | hasMemo, op: event.Hold, place: types.Position{LSN: 1 << 40, Index: 999}, at: 1 << 40,
		amount: most, balance: types.MinorUnits(256), held: types.MinorUnits(1), nonce: 7, hold: types.TxID{1}, asset: []byte("EUR"), other: []byte("bob"), ref: []byte("r"), memo: []byte("m")}
	for _, v := range []layout{&seen{types.RequestHash{1}, types.Position{LSN: 5}, 9}, &change{types.Position{LSN: 1, Index: 1}, 3}, &e,
		&hold{1, 2, most, []byte("a"), nil, []byte("X")}, &end{event.HoldCaptured, types.Position{LSN: 2}, most},
		marked{&mark{journal: 3, lsn: 4, at: 5, first: 1, dropped: 2, lives: lives{{1, 9}, {3, 3}}}}} {
		f.Add(v.put(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, v := range layouts() {
			if v.read(b) {
				if back := v.put(nil); !bytes.Equal(back, b) {
					t.Errorf("%T: %x is written as %x", v, b, back)
				}
			}
		}
	})
}

// FuzzFrame: any frame gives readable rows or an error.
func FuzzFrame(f *testing.F) {
	name := func(s string) types.Name { return types.Name{Text: []byte(s)} }
	for _, r := range []record.Record{
		{Kind: record.Posted, Op: event.Issue, Tenant: 1, Key: name("k"), To: name("ann"), Asset: name("EUR"), Amount: types.MinorUnits(5), Seq: 1, FromBalance: types.MinorUnits(5), ToBalance: types.MinorUnits(5)},
		{Kind: record.HoldCaptured, Op: event.Capture, Tenant: 1, Key: name("k"), From: name("ann"), To: name("bob"), Asset: name("EUR"), Amount: types.MinorUnits(5), Seq: 2, Ref: name("r")},
		{Kind: record.HoldOpened, Op: event.Hold, Tenant: 1, Key: name("k"), From: name("ann"), Asset: name("EUR"), Amount: types.MinorUnits(5), Nonce: 1, ExpiresAt: 9, Seq: 3, HeldBalance: types.MinorUnits(5)},
		{Kind: record.HoldExpired, Tenant: 1, Seq: 4, Hold: types.TxID{1}},
		{Kind: record.FreezeChanged, Op: event.Freeze, Tenant: 1, Key: name("k"), From: name("ann"), Seq: 5, Memo: []byte("why")},
		{Kind: record.Batched, Op: event.Batch, Tenant: 1, Key: name("k"), Items: 3},
	} {
		body, _ := record.Add(record.Begin(nil, 7, 1_000_000), 0, &r)
		f.Add(body)
	}
	lost := errors.New("never opened")
	f.Fuzz(func(t *testing.T, body []byte) {
		known := len(body)%2 == 0
		x := newReader(250, eraBits, nil, func(types.Tenant, types.TxID) (hold, error) {
			if known {
				return hold{amount: types.MinorUnits(1), from: []byte("ann"), asset: []byte("EUR")}, nil
			}
			return hold{}, lost
		})
		var d draft
		s := record.Sealed{Journal: 3, LSN: 7, Body: body}
		if _, err := x.frame(&s, &d); err != nil {
			return
		}
		for i := range d.rows {
			key, value := d.at(i)
			if fine := readable(key, value); !fine {
				t.Errorf("row %x: %x", key, value)
			}
		}
	})
}

// readable reports whether a row has the form of its family.
func readable(key, value []byte) bool {
	sizes := map[family]int{ofKey: 1 + bucketSize + nameSize, ofRef: 1 + nameSize, ofEntry: entrySize, ofHeld: heldSize, ofChange: 1 + tenantSize + seqSize,
		ofHold: 1 + tenantSize + 16, ofHolder: 1 + nameSize + 16, ofEnd: 1 + tenantSize + 16}
	of := family(key[0])
	if n := sizes[of]; n > 0 && n != len(key) {
		return false
	}
	v := values{b: value}
	switch of {
	case ofKey:
		return new(seen).read(value)
	case ofRef:
		v.place()
		return v.whole()
	case ofEntry, ofHeld:
		return new(entry).read(value)
	case ofChange:
		return new(change).read(value)
	case ofHold:
		return new(hold).read(value)
	case ofEnd:
		return new(end).read(value)
	case ofAccount, ofAsset, ofHolder:
		return len(value) == 0
	case ofStream:
		return string(value) == "\x01"
	default:
		return false
	}
}

// TestLayoutsAreFrozen: existing tables stay readable; another layout needs another version.
func TestLayoutsAreFrozen(t *testing.T) {
	id := digest.Name([]byte("ann"))
	for _, c := range []struct {
		got  []byte
		want string
	}{
		{keyKey(nil, 5, 1, id), "\x02\xff\xff\xff\xff\xff\xff\xfa" + string(id[:]) + "\x00\x00\x00\x01"},
		{entryKey(nil, 3, 1, id, id, 9), "\x04\x00\x00\x00\x03" + string(id[:]) + "\x00\x00\x00\x01" + string(id[:]) + "\x00\x00\x00\x00\x00\x00\x00\x09"},
		{accountKey(nil, 1, []byte("ann"), []byte("EUR")), "\x07\x00\x00\x00\x01ann\x00EUR"},
		{(&change{types.Position{LSN: 300, Index: 2}, 7}).put(nil), "\xac\x02\x02\x07"},
		{appendAmount(nil, types.MinorUnits(0)), "\x00"},
		{appendAmount(nil, types.MinorUnits(256)), "\x02\x00\x01"},
		{(&end{event.HoldReleased, types.Position{LSN: 1}, types.Amount{}}).put(nil), "\x02\x01\x00\x00"},
	} {
		if string(c.got) != c.want {
			t.Errorf("%x, want %x", c.got, c.want)
		}
	}
}
