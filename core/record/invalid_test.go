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

// body returns a body with one record, made from bytes.
func body(kind byte, fields ...[]byte) []byte {
	rec := bytes.Join(fields, nil)
	b := append(Begin(nil, 7, 9), kind, byte(len(rec)), byte(len(rec)>>8))
	b[1] = 1
	return append(b, rec...)
}

func n(b ...byte) []byte { return b }

func zeros(n int) []byte { return make([]byte, n) }

// A sentence is a frame in bytes, and whether it is valid.
type testCase struct {
	rule string
	good bool
	body []byte
}

const issue = byte(event.Issue)

func k(k Kind) byte { return byte(k) }

func grant(scopes []byte, boot byte) []byte {
	return bytes.Join([][]byte{zeros(8 + 4 + 32), scopes, n(boot)}, nil)
}

// command is op, tenant, caller, key "k", request hash.
func command(op byte) []byte {
	return bytes.Join([][]byte{n(op), zeros(4 + 8), n(1, 'k'), zeros(16)}, nil)
}

// transferFields is from "a", to "b", asset "E", an amount, nonce, seq, three more amounts.
func transferFields(amount []byte) []byte {
	return bytes.Join([][]byte{n(1, 'a', 1, 'b', 1, 'E'), amount, n(1, 1), n(0, 0, 0)}, nil)
}

func overlong(most int) []byte {
	return append(binary.AppendUvarint(nil, uint64(most+1)), strings.Repeat("a", most+1)...)
}

// frames are cases of headers, kinds and lengths.
func frames() []testCase {
	return []testCase{
		{"a time frame", true, Begin(nil, 1, 0)},
		{"a key", true, body(k(BootstrapKeyCreated), grant(n(0x7f), 1))},
		{"forgetting", true, body(k(KeysForgotten), n(0x80, 1))},
		{"as many as a frame takes", true, crowd(types.MaxRecords)},

		{"empty", false, nil},
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
		{"longer than any record of a plane", false, body(byte(PlaneKind(types.PlaneExample, 1)), n(1, 0, 0, 0, 0), zeros(types.MaxPlaneRecord))},
	}
}

// fields are cases of the fields of records.
func fields() []testCase {
	return []testCase{
		{"a movement with a ref", true, body(k(Posted), command(issue), transferFields(n(1, 5)), n(2, 1, 'r'))},
		{"with a memo and a ref", true, body(k(Posted), command(issue), transferFields(n(1, 5)), n(3, 1, 'm', 1, 'r'))},
		{"a movement", true, body(k(Posted), command(issue), transferFields(n(1, 5)), n(0))},
		{"with a memo", true, body(k(Posted), command(issue), transferFields(n(1, 5)), n(1, 1, 'm'))},
		{"a refusal", true, body(k(Rejected), command(issue), n(byte(event.AmountLimitExceeded), 0))},

		{"no operation", false, body(k(Posted), command(0), transferFields(n(1, 5)), n(0))},
		{"an operation of tomorrow", false, body(k(Posted), command(byte(event.Batch)+1), transferFields(n(1, 5)), n(0))},
		{"a refused operation of tomorrow", false, body(k(Rejected), command(byte(event.Batch)+1), n(byte(event.AmountLimitExceeded), 0))},
		{"no problem", false, body(k(Rejected), command(issue), n(0, 0))},
		{"a problem of tomorrow", false, body(k(Rejected), command(issue), n(byte(event.RefReserved)+1, 0))},

		{"an amount with a zero on top", false, body(k(Posted), command(issue), transferFields(n(2, 5, 0)), n(0))},
		{"an amount of 136 bits", false, body(k(Posted), command(issue), transferFields(append(n(17), bytes.Repeat(n(1), 17)...)), n(0))},
		{"a number in more bytes than it takes", false, body(k(KeysForgotten), n(0x81, 0))},
		{"a number of 65 bits", false, body(k(KeysForgotten), n(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2))},
		{"a tail of 33 bits", false, body(k(Started), zeros(8), n(0), n(0x80, 0x80, 0x80, 0x80, 0x10))},
		{"scopes of 17 bits", false, body(k(BootstrapKeyCreated), grant(n(0x80, 0x80, 4), 1))},
		{"a scope of tomorrow", false, body(k(BootstrapKeyCreated), grant(n(0x80, 4), 1))},
		{"a truth that is neither", false, body(k(BootstrapKeyCreated), grant(n(0x7f), 2))},

		{"a memo that is flagged and missing", false, body(k(Posted), command(issue), transferFields(n(1, 5)), n(1))},
		{"an empty memo", false, body(k(Posted), command(issue), transferFields(n(1, 5)), n(1, 0))},
		{"a flag of tomorrow", false, body(k(Posted), command(issue), transferFields(n(1, 5)), n(4))},
		{"a memo and a flag of tomorrow", false, body(k(Posted), command(issue), transferFields(n(1, 5)), n(5, 1, 'm'))},
		{"a ref that is flagged and missing", false, body(k(Posted), command(issue), transferFields(n(1, 5)), n(2))},
		{"an empty ref", false, body(k(Posted), command(issue), transferFields(n(1, 5)), n(2, 0))},
		{"a ref too long", false, body(k(Posted), command(issue), transferFields(n(1, 5)), n(2), overlong(types.MaxKey))},
		{"a memo, and an empty ref", false, body(k(Posted), command(issue), transferFields(n(1, 5)), n(3, 1, 'm', 0))},
		{"a memo too long", false, body(k(Posted), command(issue), transferFields(n(1, 5)), n(1), overlong(types.MaxMemo))},
		{"a key too long", false, body(k(Rejected), n(issue), zeros(12), overlong(types.MaxKey), zeros(16), n(byte(event.AmountLimitExceeded), 0))},
		{"an account too long", false, body(k(Posted), command(issue), overlong(types.MaxAccount), n(1, 'b', 1, 'E', 1, 5, 1, 1, 0, 0, 0, 0))},
		{"an asset too long", false, body(k(Posted), command(issue), n(0, 1, 'b'), overlong(types.MaxAsset), n(1, 5, 1, 1, 0, 0, 0, 0))},
		{"a text longer than all", false, body(k(Posted), command(issue), n(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1))},
	}
}

// holdFields is from "a", to "b", asset "E", 5, nonce 1, expiry, seq 1, all of it held.
func holdFields(until ...byte) []byte {
	return bytes.Join([][]byte{n(1, 'a', 1, 'b', 1, 'E', 1, 5, 1), until, n(1, 1, 5)}, nil)
}

// keyFields is a key, its label, its accounts, its assets, without expiry.
func keyFields(label, accounts, assets string) []byte {
	b := append(zeros(8), grant(n(0x7f), 0)...)
	for _, text := range []string{label, accounts, assets} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return append(b, 0)
}

// later are cases of the kinds that were added with holds and batches.
func later() []testCase {
	batch, hold, free := byte(event.Batch), byte(event.Hold), byte(event.Freeze)
	funds, used := byte(event.InsufficientFunds), byte(event.RefUsed)
	captured := bytes.Join([][]byte{zeros(16), n(1, 'a', 1, 'b', 1, 'E', 1, 5, 1), n(0, 0, 0, 0), n(0)}, nil)
	released := bytes.Join([][]byte{zeros(16), n(1, 'a', 0, 1, 'E', 1, 5, 1), n(0), n(0)}, nil)
	return []testCase{
		{"a batch", true, body(k(Batched), command(batch), n(0, 1, 0))},
		{"an atomic batch", true, body(k(Batched), command(batch), n(1, 0xe8, 7, 0))},
		{"a rejected batch", true, body(k(Batched), command(batch), n(1, 0, funds, 3))},
		{"for a ref", true, body(k(Batched), command(batch), n(1, 0xe7, 7, used, 0), zeros(16))},
		{"a batch without items", false, body(k(Batched), command(batch), n(0, 0, 0))},
		{"of too much", false, body(k(Batched), command(batch), n(1, 0xe9, 7, 0))},
		{"refused because of an item that there is not", false, body(k(Batched), command(batch), n(1, 0xe8, 7, funds, 3))},
		{"refused, and each item is alone", false, body(k(Batched), command(batch), n(0, 0, funds, 3))},
		{"rejected for a ref without a record", false, body(k(Batched), command(batch), n(1, 0, used, 0))},
		{"rejected with an invalid problem", false, body(k(Batched), command(batch), n(1, 0, byte(event.RefReserved)+1, 0))},
		{"a batch of one operation", false, body(k(Batched), command(issue), n(0, 1, 0))},
		{"neither all nor each", false, body(k(Batched), command(batch), n(2, 1, 0))},

		{"a refused ref", true, body(k(Rejected), command(issue), n(used, 0), zeros(16))},
		{"a used ref without a record", false, body(k(Rejected), command(issue), n(used, 0))},
		{"insufficient funds with a record", false, body(k(Rejected), command(issue), n(funds, 0), zeros(16))},
		{"a batch that is refused as if it were one operation", false, body(k(Rejected), command(batch), n(funds, 0))},

		{"a hold", true, body(k(HoldOpened), command(hold), holdFields(9), n(0))},
		{"a hold by a release operation", false, body(k(HoldOpened), command(free), holdFields(9), n(0))},
		{"a hold that was over before 1970", false, body(k(HoldOpened), command(hold), holdFields(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), n(0))},
		{"a movement that is a hold", false, body(k(Posted), command(hold), transferFields(n(1, 5)), n(0))},
		{"a capture", true, body(k(HoldCaptured), command(byte(event.Capture)), captured)},
		{"a capture that is a release", false, body(k(HoldCaptured), command(byte(event.Release)), captured)},
		{"a capture of half a hold", false, body(k(HoldCaptured), command(byte(event.Capture)), captured[8:])},
		{"a release", true, body(k(HoldReleased), command(byte(event.Release)), released)},
		{"a release that is a capture", false, body(k(HoldReleased), command(byte(event.Capture)), released)},
		{"a hold that is over", true, body(k(HoldExpired), zeros(4), n(1), zeros(16), n(0))},
		{"a hold that is half over", false, body(k(HoldExpired), zeros(4), n(1), zeros(15))},

		{"a freeze", true, body(k(FreezeChanged), command(free), n(1, 'a', 1, 0))},
		{"a thaw", true, body(k(FreezeChanged), command(byte(event.Unfreeze)), n(1, 'a', 1, 0))},
		{"a freeze that is an issue", false, body(k(FreezeChanged), command(issue), n(1, 'a', 1, 0))},

		{"a key that covers all", true, body(k(KeyCreated), keyFields("", "", ""))},
		{"one with a name and patterns", true, body(k(KeyCreated), keyFields("a.b:c_d-1", "a,b*,*", "E/2"))},
		{"a key with no good name", false, body(k(KeyCreated), keyFields("no good", "", ""))},
		{"a long name", false, body(k(KeyCreated), keyFields(strings.Repeat("a", types.MaxLabel+1), "", ""))},
		{"no pattern between two commas", false, body(k(KeyCreated), keyFields("", "a,,b", ""))},
		{"a star within", false, body(k(KeyCreated), keyFields("", "", "a*b"))},
		{"more patterns than there is room for", false, body(k(KeyCreated), keyFields("", strings.Repeat("a", types.MaxPatterns+1), ""))},
		{"a revocation", true, body(k(KeyRevoked), zeros(8+4+8))},
		{"half a revocation", false, body(k(KeyRevoked), zeros(8+4+4))},
		{"the end of all keys", true, body(k(AllKeysRevoked))},
		{"and more", false, body(k(AllKeysRevoked), n(0))},
	}
}

// TestReadRejectsInvalidRecords: bytes that no version 1 node writes are rejected. Each case
// differs from a valid record in one respect.
func TestReadRejectsInvalidRecords(t *testing.T) {
	for _, c := range slices.Concat(frames(), fields(), later()) {
		written, err := again(c.body)
		if _, _, whole := OpenWhole(c.body); !errors.Is(whole, err) {
			t.Errorf("%s: OpenWhole returns %v, reading %v", c.rule, whole, err)
		}
		switch {
		case c.good && (err != nil || !bytes.Equal(written, c.body)):
			t.Errorf("%s: %v, written as\n%x, want\n%x", c.rule, err, written, c.body)
		case !c.good && !errors.Is(err, ErrFrame):
			t.Errorf("%s: %v", c.rule, err)
		}
	}
}

// crowd returns a frame with a number of records.
func crowd(count int) []byte {
	b := binary.LittleEndian.AppendUint16([]byte{Version}, uint16(count))
	b = append(b, Begin(nil, 1, 0)[len(b):]...)
	return append(b, bytes.Repeat([]byte{byte(KeysForgotten), 1, 0, 5}, count)...)
}

// patch returns a heartbeat frame with some bytes replaced.
func patch(at int, with ...byte) []byte {
	b := Begin(nil, 1, 0)
	copy(b[at:], with)
	return b
}

// TestOpenWholeRejectsExtraAndMissingBytes tries missing and additional bytes.
func TestOpenWholeRejectsExtraAndMissingBytes(t *testing.T) {
	frame := crowd(3)
	h, rest, err := OpenWhole(frame)
	if err != nil || h.Count != 3 || !bytes.Equal(rest, frame[headerSize:]) {
		t.Errorf("%+v, %x, %v", h, rest, err)
	}
	for rule, frame := range map[string][]byte{
		"a byte behind": append(crowd(3), 0),
		"a record more": append(crowd(3), byte(KeysForgotten), 1, 0, 5),
		"a record less": crowd(3)[:headerSize+2*(prefixSize+1)],
		"a byte less":   crowd(3)[:headerSize+3*(prefixSize+1)-1],
		"only its head": crowd(3)[:headerSize],
		"time and more": append(Begin(nil, 1, 0), 0),
		"empty":         nil,
	} {
		if h, rest, err := OpenWhole(frame); !errors.Is(err, ErrFrame) || h != (Header{}) || rest != nil {
			t.Errorf("%s: %+v, %x, %v", rule, h, rest, err)
		}
	}
}

// TestAddPanicsOnUnreadableRecord: a record that could not be read back panics before it is
// written.
func TestAddPanicsOnUnreadableRecord(t *testing.T) {
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
		"a large payload":          {Kind: PlaneKind(types.PlaneExample, 1), Payload: make([]byte, types.MaxPlaneRecord)},
		"no operation":             good(func(r *Record) { r.Op = 0 }),
		"an operation of tomorrow": good(func(r *Record) { r.Op = event.Batch + 1 }),
		"a transfer that is held":  good(func(r *Record) { r.Op = event.Hold }),
		"a long ref":               good(func(r *Record) { r.Ref = long(types.MaxKey + 1) }),
		"a batch without items":    good(func(r *Record) { r.Kind, r.Op = Batched, event.Batch }),
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
		if why := broken(func() { Add(Begin(nil, 1, 0), 0, &Record{Kind: k}) }); why != "record: the API key is missing" {
			t.Errorf("%v without a key: %q", k, why)
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
