package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"macronode/core/event"
	"macronode/core/types"
)

// a body with one record, said in bytes: what a writer of another mind could write.
func body(kind byte, fields ...[]byte) []byte {
	rec := bytes.Join(fields, nil)
	b := append(Begin(nil, 7, 9), kind, byte(len(rec)), byte(len(rec)>>8))
	b[1] = 1
	return append(b, rec...)
}

func n(b ...byte) []byte { return b }

func zeros(n int) []byte { return make([]byte, n) }

// A sentence is what a frame says in bytes, and whether it may.
type sentence struct {
	rule string
	good bool
	body []byte
}

const issue = byte(event.Issue)

func k(k Kind) byte { return byte(k) }

func grant(scopes []byte, boot byte) []byte {
	return bytes.Join([][]byte{zeros(8 + 4 + 32), scopes, n(boot)}, nil)
}

// questioned is op, tenant, caller, key "k", asked.
func questioned(op byte) []byte {
	return bytes.Join([][]byte{n(op), zeros(4 + 8), n(1, 'k'), zeros(16)}, nil)
}

// transferred is from "a", to "b", asset "E", an amount, nonce, seq, three more amounts.
func transferred(amount []byte) []byte {
	return bytes.Join([][]byte{n(1, 'a', 1, 'b', 1, 'E'), amount, n(1, 1), n(0, 0, 0)}, nil)
}

func overlong(most int) []byte {
	return append(binary.AppendUvarint(nil, uint64(most+1)), strings.Repeat("a", most+1)...)
}

// frames are about heads, kinds and lengths.
func frames() []sentence {
	return []sentence{
		{"a time frame", true, Begin(nil, 1, 0)},
		{"a key", true, body(k(BootstrapKeyCreated), grant(n(0x7f), 1))},
		{"forgetting", true, body(k(KeysForgotten), n(0x80, 1))},
		{"as many as a frame takes", true, crowd(types.MaxRecords)},

		{"nothing", false, nil},
		{"a head cut short", false, Begin(nil, 1, 0)[:headerSize-1]},
		{"version 0", false, patch(0, 0)},
		{"version 2", false, patch(0, 2)},
		{"more records than a frame takes", false, crowd(types.MaxRecords + 1)},
		{"no LSN", false, patch(3, 0)},
		{"an LSN of 49 bits", false, patch(3+6, 1)},
		{"a time before 1970", false, patch(11+7, 0x80)},
		{"longer than any frame", false, append(Begin(nil, 1, 0), zeros(types.MaxFrame)...)},

		{"no kind", false, body(0)},
		{"a kind of tomorrow", false, body(byte(numKinds))},
		{"a kind far away", false, body(255)},
		{"one byte more than its fields", false, body(k(KeysForgotten), n(0x80, 1, 0))},
		{"one byte less", false, body(k(KeysForgotten), n(0x80))},
		{"longer than any record", false, body(k(KeysForgotten), zeros(types.MaxRecord+1))},
	}
}

// fields are about what stands in records.
func fields() []sentence {
	return []sentence{
		{"a movement with a ref", true, body(k(Posted), questioned(issue), transferred(n(1, 5)), n(2, 1, 'r'))},
		{"with a memo and a ref", true, body(k(Posted), questioned(issue), transferred(n(1, 5)), n(3, 1, 'm', 1, 'r'))},
		{"a movement", true, body(k(Posted), questioned(issue), transferred(n(1, 5)), n(0))},
		{"with a memo", true, body(k(Posted), questioned(issue), transferred(n(1, 5)), n(1, 1, 'm'))},
		{"a refusal", true, body(k(Rejected), questioned(issue), n(byte(event.AmountLimitExceeded), 0))},

		{"no operation", false, body(k(Posted), questioned(0), transferred(n(1, 5)), n(0))},
		{"an operation of tomorrow", false, body(k(Posted), questioned(byte(event.Batch)+1), transferred(n(1, 5)), n(0))},
		{"a refused operation of tomorrow", false, body(k(Rejected), questioned(byte(event.Batch)+1), n(byte(event.AmountLimitExceeded), 0))},
		{"no problem", false, body(k(Rejected), questioned(issue), n(0, 0))},
		{"a problem of tomorrow", false, body(k(Rejected), questioned(issue), n(byte(event.ObjectUnreadable)+1, 0))},

		{"an amount with a zero on top", false, body(k(Posted), questioned(issue), transferred(n(2, 5, 0)), n(0))},
		{"an amount of 136 bits", false, body(k(Posted), questioned(issue), transferred(append(n(17), bytes.Repeat(n(1), 17)...)), n(0))},
		{"a number in more bytes than it takes", false, body(k(KeysForgotten), n(0x81, 0))},
		{"a number of 65 bits", false, body(k(KeysForgotten), n(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2))},
		{"a tail of 33 bits", false, body(k(Started), zeros(8), n(0), n(0x80, 0x80, 0x80, 0x80, 0x10))},
		{"scopes of 17 bits", false, body(k(BootstrapKeyCreated), grant(n(0x80, 0x80, 4), 1))},
		{"a scope of tomorrow", false, body(k(BootstrapKeyCreated), grant(n(0x80, 2), 1))},
		{"a truth that is neither", false, body(k(BootstrapKeyCreated), grant(n(0x7f), 2))},

		{"a memo that is said and not there", false, body(k(Posted), questioned(issue), transferred(n(1, 5)), n(1))},
		{"an empty memo", false, body(k(Posted), questioned(issue), transferred(n(1, 5)), n(1, 0))},
		{"a flag of tomorrow", false, body(k(Posted), questioned(issue), transferred(n(1, 5)), n(4))},
		{"a memo and a flag of tomorrow", false, body(k(Posted), questioned(issue), transferred(n(1, 5)), n(5, 1, 'm'))},
		{"a ref that is said and not there", false, body(k(Posted), questioned(issue), transferred(n(1, 5)), n(2))},
		{"an empty ref", false, body(k(Posted), questioned(issue), transferred(n(1, 5)), n(2, 0))},
		{"a ref beyond its limit", false, body(k(Posted), questioned(issue), transferred(n(1, 5)), n(2), overlong(types.MaxKey))},
		{"a memo, and an empty ref", false, body(k(Posted), questioned(issue), transferred(n(1, 5)), n(3, 1, 'm', 0))},
		{"a memo beyond its limit", false, body(k(Posted), questioned(issue), transferred(n(1, 5)), n(1), overlong(types.MaxMemo))},
		{"a key beyond its limit", false, body(k(Rejected), n(issue), zeros(12), overlong(types.MaxKey), zeros(16), n(byte(event.AmountLimitExceeded), 0))},
		{"an account beyond its limit", false, body(k(Posted), questioned(issue), overlong(types.MaxAccount), n(1, 'b', 1, 'E', 1, 5, 1, 1, 0, 0, 0, 0))},
		{"an asset beyond its limit", false, body(k(Posted), questioned(issue), n(0, 1, 'b'), overlong(types.MaxAsset), n(1, 5, 1, 1, 0, 0, 0, 0))},
		{"a text longer than all", false, body(k(Posted), questioned(issue), n(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1))},
	}
}

// kept is from "a", to "b", asset "E", 5, nonce 1, until, seq 1, all of it held.
func kept(until ...byte) []byte {
	return bytes.Join([][]byte{n(1, 'a', 1, 'b', 1, 'E', 1, 5, 1), until, n(1, 1, 5)}, nil)
}

// granted is a key, its label, its accounts, its assets, and that it never expires.
func granted(label, accounts, assets string) []byte {
	b := append(zeros(8), grant(n(0x7f), 0)...)
	for _, text := range []string{label, accounts, assets} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return append(b, 0)
}

// later are about the kinds that came with holds and batches.
func later() []sentence {
	batch, hold, free := byte(event.Batch), byte(event.Hold), byte(event.Freeze)
	funds, used := byte(event.InsufficientFunds), byte(event.RefUsed)
	captured := bytes.Join([][]byte{zeros(16), n(1, 'a', 1, 'b', 1, 'E', 1, 5, 1), n(0, 0, 0, 0), n(0)}, nil)
	released := bytes.Join([][]byte{zeros(16), n(1, 'a', 0, 1, 'E', 1, 5, 1), n(0), n(0)}, nil)
	return []sentence{
		{"a batch", true, body(k(Batched), questioned(batch), n(0, 1, 0))},
		{"of all or nothing", true, body(k(Batched), questioned(batch), n(1, 0xe8, 7, 0))},
		{"nothing of it", true, body(k(Batched), questioned(batch), n(1, 0, funds, 3))},
		{"for a ref", true, body(k(Batched), questioned(batch), n(1, 0xe7, 7, used, 0), zeros(16))},
		{"a batch of nothing", false, body(k(Batched), questioned(batch), n(0, 0, 0))},
		{"of too much", false, body(k(Batched), questioned(batch), n(1, 0xe9, 7, 0))},
		{"refused because of an item that there is not", false, body(k(Batched), questioned(batch), n(1, 0xe8, 7, funds, 3))},
		{"refused, and each item is alone", false, body(k(Batched), questioned(batch), n(0, 0, funds, 3))},
		{"refused for a ref that nobody has", false, body(k(Batched), questioned(batch), n(1, 0, used, 0))},
		{"refused for what is no problem", false, body(k(Batched), questioned(batch), n(1, 0, byte(event.ObjectUnreadable)+1, 0))},
		{"a batch of one operation", false, body(k(Batched), questioned(issue), n(0, 1, 0))},
		{"neither all nor each", false, body(k(Batched), questioned(batch), n(2, 1, 0))},

		{"a refused ref", true, body(k(Rejected), questioned(issue), n(used, 0), zeros(16))},
		{"a ref that nobody has", false, body(k(Rejected), questioned(issue), n(used, 0))},
		{"funds that somebody has", false, body(k(Rejected), questioned(issue), n(funds, 0), zeros(16))},
		{"a batch that is refused as if it were one operation", false, body(k(Rejected), questioned(batch), n(funds, 0))},

		{"a hold", true, body(k(HoldOpened), questioned(hold), kept(9), n(0))},
		{"a hold of somebody else's making", false, body(k(HoldOpened), questioned(free), kept(9), n(0))},
		{"a hold that was over before 1970", false, body(k(HoldOpened), questioned(hold), kept(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), n(0))},
		{"a movement that is a hold", false, body(k(Posted), questioned(hold), transferred(n(1, 5)), n(0))},
		{"a capture", true, body(k(HoldCaptured), questioned(byte(event.Capture)), captured)},
		{"a capture that is a release", false, body(k(HoldCaptured), questioned(byte(event.Release)), captured)},
		{"a capture of half a hold", false, body(k(HoldCaptured), questioned(byte(event.Capture)), captured[8:])},
		{"a release", true, body(k(HoldReleased), questioned(byte(event.Release)), released)},
		{"a release that is a capture", false, body(k(HoldReleased), questioned(byte(event.Capture)), released)},
		{"a hold that is over", true, body(k(HoldExpired), zeros(4), n(1), zeros(16), n(0))},
		{"a hold that is half over", false, body(k(HoldExpired), zeros(4), n(1), zeros(15))},

		{"a freeze", true, body(k(FreezeChanged), questioned(free), n(1, 'a', 1, 0))},
		{"a thaw", true, body(k(FreezeChanged), questioned(byte(event.Unfreeze)), n(1, 'a', 1, 0))},
		{"a freeze that is an issue", false, body(k(FreezeChanged), questioned(issue), n(1, 'a', 1, 0))},

		{"a key that covers all", true, body(k(KeyCreated), granted("", "", ""))},
		{"one with a name and patterns", true, body(k(KeyCreated), granted("a.b:c_d-1", "a,b*,*", "E/2"))},
		{"a key with no good name", false, body(k(KeyCreated), granted("no good", "", ""))},
		{"a long name", false, body(k(KeyCreated), granted(strings.Repeat("a", types.MaxLabel+1), "", ""))},
		{"no pattern between two commas", false, body(k(KeyCreated), granted("", "a,,b", ""))},
		{"a star within", false, body(k(KeyCreated), granted("", "", "a*b"))},
		{"more patterns than there is room for", false, body(k(KeyCreated), granted("", strings.Repeat("a", types.MaxPatterns+1), ""))},
		{"a revocation", true, body(k(KeyRevoked), zeros(8+4+8))},
		{"half a revocation", false, body(k(KeyRevoked), zeros(8+4+4))},
		{"the end of all keys", true, body(k(AllKeysRevoked))},
		{"and more", false, body(k(AllKeysRevoked), n(0))},
	}
}

// TestRefuses: what no version 1 node writes is no frame of version 1, and each
// refusal is told from the good record beside it.
func TestRefuses(t *testing.T) {
	for _, c := range slices.Concat(frames(), fields(), later()) {
		written, err := again(c.body)
		if _, _, whole := OpenWhole(c.body); !errors.Is(whole, err) {
			t.Errorf("%s: whole says %v, reading %v", c.rule, whole, err)
		}
		switch {
		case c.good && (err != nil || !bytes.Equal(written, c.body)):
			t.Errorf("%s: %v, written as\n%x, want\n%x", c.rule, err, written, c.body)
		case !c.good && !errors.Is(err, ErrFrame):
			t.Errorf("%s: %v", c.rule, err)
		}
	}
}

// crowd is a frame with so many records.
func crowd(count int) []byte {
	b := binary.LittleEndian.AppendUint16([]byte{Version}, uint16(count))
	b = append(b, Begin(nil, 1, 0)[len(b):]...)
	return append(b, bytes.Repeat([]byte{byte(KeysForgotten), 1, 0, 5}, count)...)
}

// patch is a time frame with other bytes from a place on.
func patch(at int, with ...byte) []byte {
	b := Begin(nil, 1, 0)
	copy(b[at:], with)
	return b
}

// TestWhole: nothing is missing, nothing stands behind.
func TestWhole(t *testing.T) {
	frame := crowd(3)
	h, rest, err := OpenWhole(frame)
	if err != nil || h.Count != 3 || !bytes.Equal(rest, frame[headerSize:]) {
		t.Errorf("%+v, %x, %v", h, rest, err)
	}
	for rule, frame := range map[string][]byte{
		"a byte behind":  append(crowd(3), 0),
		"a record more":  append(crowd(3), byte(KeysForgotten), 1, 0, 5),
		"a record less":  crowd(3)[:headerSize+2*(prefixSize+1)],
		"a byte less":    crowd(3)[:headerSize+3*(prefixSize+1)-1],
		"only its head":  crowd(3)[:headerSize],
		"time and more":  append(Begin(nil, 1, 0), 0),
		"nothing at all": nil,
	} {
		if h, rest, err := OpenWhole(frame); !errors.Is(err, ErrFrame) || h != (Header{}) || rest != nil {
			t.Errorf("%s: %+v, %x, %v", rule, h, rest, err)
		}
	}
}

// TestWritesNothingUnreadable: what could not be read back is a bug of ours before it
// is in the journal, not after.
func TestWritesNothingUnreadable(t *testing.T) {
	good := func(change func(*Record)) *Record {
		r := goldens()[4].rec // a transfer
		change(&r)
		return &r
	}
	for rule, r := range map[string]*Record{
		"no kind":                  {},
		"a rejection's payload":    {Kind: PlaneKind(types.PlaneExample, 1), Key: types.Name{Text: []byte("k")}, Problem: event.BadRequest, Payload: []byte{1}},
		"a problem of tomorrow":    {Kind: PlaneKind(types.PlaneExample, 1), Key: types.Name{Text: []byte("k")}, Problem: 255},
		"a problem of no command":  {Kind: PlaneKind(types.PlaneExample, 1), Problem: event.BadRequest},
		"a large payload":          {Kind: PlaneKind(types.PlaneExample, 1), Payload: make([]byte, types.MaxRecord)},
		"no operation":             good(func(r *Record) { r.Op = 0 }),
		"an operation of tomorrow": good(func(r *Record) { r.Op = event.Batch + 1 }),
		"a transfer that is held":  good(func(r *Record) { r.Op = event.Hold }),
		"a long ref":               good(func(r *Record) { r.Ref = long(types.MaxKey + 1) }),
		"a batch of nothing":       good(func(r *Record) { r.Kind, r.Op = Batched, event.Batch }),
		"a batch of too much":      good(func(r *Record) { r.Kind, r.Op, r.Items = Batched, event.Batch, types.MaxItems+1 }),
		"half of a batch refused":  good(func(r *Record) { r.Kind, r.Op, r.Problem = Batched, event.Batch, event.RefUsed }),
		"a key of no good name":    {Kind: KeyCreated, APIKey: &event.Key{Label: types.NewLabel("no good")}},
		"a long key":               good(func(r *Record) { r.Key = long(types.MaxKey + 1) }),
		"a long from":              good(func(r *Record) { r.From = long(types.MaxAccount + 1) }),
		"a long to":                good(func(r *Record) { r.To = long(types.MaxAccount + 1) }),
		"a long asset":             good(func(r *Record) { r.Asset = long(types.MaxAsset + 1) }),
		"a long memo":              good(func(r *Record) { r.Memo = make([]byte, types.MaxMemo+1) }),
		"no problem":               good(func(r *Record) { r.Kind = Rejected }),
		"a scope of tomorrow":      {Kind: BootstrapKeyCreated, APIKey: &event.Key{Scopes: event.AllScopes + 1}},
	} {
		if why := broken(func() { Add(Begin(nil, 1, 0), 0, r) }); why != "record: one that could not be read back" {
			t.Errorf("%s: %q", rule, why)
		}
	}
	for _, k := range []Kind{BootstrapKeyCreated, KeyCreated, KeyRevoked} {
		if why := broken(func() { Add(Begin(nil, 1, 0), 0, &Record{Kind: k}) }); why != "record: a key that nobody said" {
			t.Errorf("%v of nobody: %q", k, why)
		}
	}
	if why := broken(func() { Add(Begin(nil, 1, 0), 0, good(func(*Record) {})) }); why != "" {
		t.Errorf("a good one: %q", why)
	}
	for rule, begin := range map[string]func(){
		"no LSN":             func() { Begin(nil, 0, 0) },
		"an LSN of 49 bits":  func() { Begin(nil, types.MaxLSN+1, 0) },
		"a time before 1970": func() { Begin(nil, 1, -1) },
	} {
		if broken(begin) == "" {
			t.Errorf("%s is begun", rule)
		}
	}
}
