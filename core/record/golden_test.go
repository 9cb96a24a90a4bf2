package record

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"macronode/core/event"
	"macronode/core/types"
)

var rewrite = flag.Bool("rewrite", false, "write the golden frames that are missing; those that are there stay")

// A golden frame has one record. Its LSN and time follow from its position in the list.
type golden struct {
	name string
	rec  Record
}

func text(s string) types.Name { return types.Name{Text: []byte(s)} }
func long(n int) types.Name    { return text(strings.Repeat("z", n)) }

func bytes32(from byte) (b [32]byte) {
	for i := range b {
		b[i] = from + byte(i)
	}
	return b
}

func asked(from byte) (a types.RequestHash) {
	b := bytes32(from)
	copy(a[:], b[:])
	return a
}

func txid(lsn types.LSN, index uint16) types.TxID {
	return types.NewTxID(0x0123456789abcdef, types.Position{LSN: lsn, Index: index})
}

// cover returns a key with a label and patterns.
func cover(k event.Key, label, accounts, assets string) *event.Key {
	var errs [2]error
	k.Label = types.NewLabel(label)
	k.Accounts, errs[0] = types.ParsePatterns(accounts)
	k.Assets, errs[1] = types.ParsePatterns(assets)
	types.Assert(errs[0] == nil && errs[1] == nil, "a golden key has invalid patterns")
	return &k
}

// goldens returns every kind of version 1, with typical and with extreme fields. An entry never
// changes: a new field means a version 2 with its own goldens. New entries go to the end, because
// the position is the LSN.
func goldens() []golden {
	most := types.Amount{Hi: 1<<64 - 1, Lo: 1<<64 - 1}
	return []golden{
		{"booted", Record{Kind: Started, Journal: 0x0123456789abcdef, CutBytes: 300, TailFrames: 2}},
		{"booted-first", Record{Kind: Started, Journal: 1}},
		{"booted-most", Record{Kind: Started, Journal: 1<<64 - 1, CutBytes: 1<<64 - 1, TailFrames: 1<<32 - 1}},
		{"issue", Record{Kind: Posted, Op: event.Issue, Tenant: 1, Caller: 0xcafe, Key: text("k-1"), Hash: asked(0x10),
			To: text("ann"), Asset: text("EUR/2"), Amount: types.MinorUnits(1000), Seq: 1,
			FromBalance: types.MinorUnits(1000), ToBalance: types.MinorUnits(1000), DebitedToday: types.MinorUnits(1000)}},
		{"transfer", Record{Kind: Posted, Op: event.Transfer, Tenant: 1, Caller: 0xcafe, Key: text("k-2"), Hash: asked(0x20),
			From: text("ann"), To: text("shop:till_1"), Asset: text("EUR/2"), Amount: types.MinorUnits(250), Nonce: 1, Seq: 2,
			FromBalance: types.MinorUnits(750), ToBalance: types.MinorUnits(250), DebitedToday: types.MinorUnits(250), Memo: []byte("tea, 2 × 1.25 €")}},
		{"burn", Record{Kind: Posted, Op: event.Burn, Tenant: 1, Caller: 0xcafe, Key: text("k-3"), Hash: asked(0x30),
			From: text("ann"), Asset: text("EUR/2"), Amount: types.MinorUnits(750), Nonce: 2, Seq: 3,
			ToBalance: types.MinorUnits(750), DebitedToday: types.MinorUnits(1000)}},
		{"transfer-most", Record{Kind: Posted, Op: event.Transfer, Tenant: 1<<32 - 1, Caller: 1<<64 - 1, Key: long(types.MaxKey),
			Hash: asked(0x40), From: long(types.MaxAccount), To: long(types.MaxAccount), Asset: long(types.MaxAsset),
			Amount: most, Nonce: 1<<64 - 1, Seq: 1<<64 - 1, FromBalance: most, ToBalance: most, DebitedToday: most,
			Memo: bytes.Repeat([]byte("m"), types.MaxMemo)}},
		{"refused", Record{Kind: Rejected, Op: event.Transfer, Tenant: 1, Caller: 0xcafe, Key: text("k-4"), Hash: asked(0x50),
			Problem: event.InsufficientFunds, Nonce: 3}},
		{"refused-issue", Record{Kind: Rejected, Op: event.Issue, Tenant: 2, Caller: 0xbeef, Key: text("k:5"), Hash: asked(0x60),
			Problem: event.AmountLimitExceeded}},
		{"forgot", Record{Kind: KeysForgotten, Upto: 16383}},
		{"key-made", Record{Kind: BootstrapKeyCreated, APIKey: &event.Key{ID: 0xcafe, Tenant: 1, Hash: bytes32(0x70), Scopes: event.ScopeAdmin<<1 - 1, Bootstrap: true}}},
		{"key-made-least", Record{Kind: BootstrapKeyCreated, APIKey: &event.Key{ID: 1, Tenant: 7, Hash: bytes32(0x80), Scopes: event.ScopeRead}}},
		{"restored", Record{Kind: Restored, Journal: 0xfedcba9876543210, Upto: 1 << 40, Root: bytes32(0x90)}},

		{"issue-ref", Record{Kind: Posted, Op: event.Issue, Tenant: 1, Caller: 0xcafe, Key: text("k-6"), Hash: asked(0xa0),
			To: text("ann"), Asset: text("EUR/2"), Amount: types.MinorUnits(5), Seq: 4,
			FromBalance: types.MinorUnits(1005), ToBalance: types.MinorUnits(5), DebitedToday: types.MinorUnits(1005), Ref: text("pay:2024-17")}},
		{"transfer-ref-most", Record{Kind: Posted, Op: event.Transfer, Tenant: 1<<32 - 1, Caller: 1<<64 - 1, Key: long(types.MaxKey),
			Hash: asked(0x41), From: long(types.MaxAccount), To: long(types.MaxAccount), Asset: long(types.MaxAsset),
			Amount: most, Nonce: 1<<64 - 1, Seq: 1<<64 - 1, FromBalance: most, ToBalance: most, DebitedToday: most,
			Memo: bytes.Repeat([]byte("m"), types.MaxMemo), Ref: long(types.MaxKey)}},
		{"refused-ref", Record{Kind: Rejected, Op: event.Issue, Tenant: 1, Caller: 0xcafe, Key: text("k-7"), Hash: asked(0xa1),
			Problem: event.RefUsed, PriorRef: txid(17, 2)}},
		{"refused-most", Record{Kind: Rejected, Op: event.Unfreeze, Tenant: 1<<32 - 1, Caller: 1<<64 - 1, Key: long(types.MaxKey),
			Hash: asked(0x42), Problem: event.RefUsed, Nonce: 1<<64 - 1, PriorRef: txid(types.MaxLSN, 1<<16-1)}},
		{"batched", Record{Kind: Batched, Op: event.Batch, Tenant: 1, Caller: 0xcafe, Key: text("k-8"), Hash: asked(0xa2), Items: 3, Atomic: true}},
		{"batched-apart", Record{Kind: Batched, Op: event.Batch, Tenant: 1, Caller: 0xcafe, Key: text("k-9"), Hash: asked(0xa3), Items: types.MaxItems}},
		{"batched-refused", Record{Kind: Batched, Op: event.Batch, Tenant: 1, Caller: 0xcafe, Key: text("k-10"), Hash: asked(0xa4),
			Problem: event.InsufficientFunds, Nonce: 7, Atomic: true}},
		{"batched-refused-most", Record{Kind: Batched, Op: event.Batch, Tenant: 1<<32 - 1, Caller: 1<<64 - 1, Key: long(types.MaxKey),
			Hash: asked(0x43), Problem: event.RefUsed, Nonce: 1<<64 - 1, PriorRef: txid(types.MaxLSN, 1<<16-1), Items: types.MaxItems - 1, Atomic: true}},
		{"held", Record{Kind: HoldOpened, Op: event.Hold, Tenant: 1, Caller: 0xcafe, Key: text("k-11"), Hash: asked(0xa5),
			From: text("ann"), Asset: text("EUR/2"), Amount: types.MinorUnits(50), Nonce: 3, ExpiresAt: 1_700_000_600_000, Seq: 5, HeldBalance: types.MinorUnits(50)}},
		{"held-most", Record{Kind: HoldOpened, Op: event.Hold, Tenant: 1<<32 - 1, Caller: 1<<64 - 1, Key: long(types.MaxKey),
			Hash: asked(0x44), From: long(types.MaxAccount), To: long(types.MaxAccount), Asset: long(types.MaxAsset),
			Amount: most, Nonce: 1<<64 - 1, ExpiresAt: 1<<63 - 1, Seq: 1<<64 - 1, HeldBalance: most,
			Memo: bytes.Repeat([]byte("m"), types.MaxMemo), Ref: long(types.MaxKey)}},
		{"captured", Record{Kind: HoldCaptured, Op: event.Capture, Tenant: 1, Caller: 0xcafe, Key: text("k-12"), Hash: asked(0xa6),
			Hold: txid(22, 0), From: text("ann"), To: text("shop:till_1"), Asset: text("EUR/2"), Amount: types.MinorUnits(40), Seq: 6,
			FromBalance: types.MinorUnits(710), ToBalance: types.MinorUnits(290), HeldBalance: types.MinorUnits(2), DebitedToday: types.MinorUnits(290)}},
		{"captured-most", Record{Kind: HoldCaptured, Op: event.Capture, Tenant: 1<<32 - 1, Caller: 1<<64 - 1, Key: long(types.MaxKey),
			Hash: asked(0x45), Hold: txid(types.MaxLSN, 1<<16-1), From: long(types.MaxAccount), To: long(types.MaxAccount),
			Asset: long(types.MaxAsset), Amount: most, Seq: 1<<64 - 1, FromBalance: most, ToBalance: most, HeldBalance: most, DebitedToday: most,
			Memo: bytes.Repeat([]byte("m"), types.MaxMemo), Ref: long(types.MaxKey)}},
		{"released", Record{Kind: HoldReleased, Op: event.Release, Tenant: 1, Caller: 0xcafe, Key: text("k-13"), Hash: asked(0xa7),
			Hold: txid(22, 0), From: text("ann"), Asset: text("EUR/2"), Amount: types.MinorUnits(50), Seq: 7, Memo: []byte("no show"), Ref: text("let-go")}},
		{"released-most", Record{Kind: HoldReleased, Op: event.Release, Tenant: 1<<32 - 1, Caller: 1<<64 - 1, Key: long(types.MaxKey),
			Hash: asked(0x46), Hold: txid(types.MaxLSN, 1<<16-1), From: long(types.MaxAccount), To: long(types.MaxAccount),
			Asset: long(types.MaxAsset), Amount: most, Seq: 1<<64 - 1, HeldBalance: most,
			Memo: bytes.Repeat([]byte("m"), types.MaxMemo), Ref: long(types.MaxKey)}},
		{"lapsed", Record{Kind: HoldExpired, Tenant: 1, Seq: 8, Hold: txid(22, 0), HeldBalance: types.MinorUnits(12)}},
		{"lapsed-most", Record{Kind: HoldExpired, Tenant: 1<<32 - 1, Seq: 1<<64 - 1, Hold: txid(types.MaxLSN, 1<<16-1), HeldBalance: most}},
		{"frozen", Record{Kind: FreezeChanged, Op: event.Freeze, Tenant: 1, Caller: 0xcafe, Key: text("k-14"), Hash: asked(0xa8),
			From: text("ann"), Seq: 9, Memo: []byte("a court said so")}},
		{"unfrozen", Record{Kind: FreezeChanged, Op: event.Unfreeze, Tenant: 1, Caller: 0xcafe, Key: text("k-15"), Hash: asked(0xa9),
			From: text("ann"), Seq: 10}},
		{"frozen-most", Record{Kind: FreezeChanged, Op: event.Freeze, Tenant: 1<<32 - 1, Caller: 1<<64 - 1, Key: long(types.MaxKey),
			Hash: asked(0x47), From: long(types.MaxAccount), Seq: 1<<64 - 1,
			Memo: bytes.Repeat([]byte("m"), types.MaxMemo), Ref: long(types.MaxKey)}},
		{"granted", Record{Kind: KeyCreated, Caller: 0xcafe, APIKey: cover(event.Key{ID: 0xd00d, Tenant: 1, Hash: bytes32(0xb0),
			Scopes: event.ScopeRead | event.ScopeTransfer, Expires: 1_800_000_000_000}, "till-1", "user:17,shop:*", "EUR/2")}},
		{"granted-least", Record{Kind: KeyCreated, APIKey: cover(event.Key{ID: 1, Tenant: 7, Hash: bytes32(0xc0)}, "", "", "")}},
		{"granted-most", Record{Kind: KeyCreated, Caller: 1<<64 - 1, APIKey: cover(event.Key{ID: 1<<64 - 1, Tenant: 1<<32 - 1, Hash: bytes32(0xd0),
			Scopes: event.ScopeAdmin<<1 - 1, Bootstrap: true, Expires: 1<<63 - 1}, strings.Repeat("z", types.MaxLabel),
			strings.Repeat("z", types.MaxPatterns), strings.Repeat("z", types.MaxPatterns-1)+"*")}},
		{"revoked", Record{Kind: KeyRevoked, Caller: 0xcafe, Tenant: 1, APIKey: &event.Key{ID: 0xd00d}}},
		{"revoked-most", Record{Kind: KeyRevoked, Caller: 1<<64 - 1, Tenant: 1<<32 - 1, APIKey: &event.Key{ID: 1<<64 - 1}}},
		{"disowned", Record{Kind: AllKeysRevoked}},
	}
}

func (g *golden) head(i int) (types.LSN, types.Time) {
	if strings.HasSuffix(g.name, "-most") {
		return types.MaxLSN, 1<<63 - 1
	}
	return types.LSN(i + 1), 1_700_000_000_000 + types.Time(i)
}

func (g *golden) frame(i int) []byte {
	lsn, at := g.head(i)
	body, _ := Add(Begin(nil, lsn, at), 0, &g.rec)
	return body
}

// TestGoldenFramesAreFrozen compares the encoding with frozen bytes.
func TestGoldenFramesAreFrozen(t *testing.T) {
	var kindsSeen []Kind
	for i, g := range goldens() {
		path := filepath.Join("testdata", "v1", g.name+".hex")
		if _, err := os.Stat(path); *rewrite && os.IsNotExist(err) {
			if err := os.WriteFile(path, []byte(dump(g.frame(i))), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		frozen := read(t, path)
		if got := g.frame(i); !bytes.Equal(got, frozen) {
			t.Errorf("%s is written as\n%s", g.name, dump(got))
		}
		var r Record
		h, err := Read(frozen, 0, &r)
		if err != nil || !equal(&r, &g.rec) {
			t.Errorf("%s is read as %+v, %v", g.name, r, err)
		}
		lsn, at := g.head(i)
		if (h != Header{LSN: lsn, At: at, Count: 1}) {
			t.Errorf("%s: head %+v", g.name, h)
		}
		kindsSeen = append(kindsSeen, g.rec.Kind)
	}
	for k := Kind(1); k < numKinds; k++ {
		if !slices.Contains(kindsSeen, k) {
			t.Errorf("no golden frame of a %v", k)
		}
	}
	longest := 0
	for i, g := range goldens() {
		longest = max(longest, len(g.frame(i))-headerSize-prefixSize)
	}
	if longest > types.MaxRecord || longest < types.MaxRecord-96 {
		t.Errorf("the longest record takes %d bytes, and %d are kept for it", longest, types.MaxRecord)
	}
	files, err := filepath.Glob("testdata/v1/*.hex")
	if err != nil || len(files) != len(goldens()) {
		t.Errorf("%d golden files for %d goldens: none is ever taken away, %v", len(files), len(goldens()), err)
	}
}

// TestKindsAreFrozen: the numbers of kinds are permanent.
func TestKindsAreFrozen(t *testing.T) {
	for i, want := range []string{"started", "posted", "rejected", "keys_forgotten", "bootstrap_key_created", "restored",
		"batched", "hold_opened", "hold_captured", "hold_released", "hold_expired", "freeze_changed", "key_created", "key_revoked", "all_keys_revoked"} {
		if k := Kind(i + 1); k.String() != want {
			t.Errorf("kind %d is %v, want %s", i+1, k, want)
		}
	}
	if numKinds != 16 {
		t.Errorf("there are %d kinds, and fifteen are held here", numKinds-1)
	}
}

// equal reports whether two records are equal; a nil and an empty text are equal.
func equal(a, b *Record) bool {
	x, y := *a, *b
	for _, r := range []*Record{&x, &y} {
		for _, t := range []*[]byte{&r.Key.Text, &r.From.Text, &r.To.Text, &r.Asset.Text, &r.Ref.Text, &r.Memo} {
			*t = append([]byte{}, *t...)
		}
	}
	return reflect.DeepEqual(x, y)
}

func dump(body []byte) string {
	b := new(strings.Builder)
	fmt.Fprintln(b, "# Version 1 is frozen: never change these bytes, add a version.")
	for line := range slices.Chunk(body, 32) {
		fmt.Fprintf(b, "%x\n", line)
	}
	return b.String()
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var digits strings.Builder
	for line := range strings.Lines(string(file)) {
		if line[0] != '#' {
			digits.WriteString(strings.TrimSpace(line))
		}
	}
	body, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return body
}
