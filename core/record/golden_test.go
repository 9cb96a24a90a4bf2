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
	"macronode/core/words"
)

var rewrite = flag.Bool("rewrite", false, "write the golden frames that are missing; those that are there stay")

// A golden frame is one record, at the LSN and the time that its place gives it.
type golden struct {
	name string
	rec  Record
}

func text(s string) words.Name { return words.Name{Text: []byte(s)} }
func long(n int) words.Name    { return text(strings.Repeat("z", n)) }

func bytes32(from byte) (b [32]byte) {
	for i := range b {
		b[i] = from + byte(i)
	}
	return b
}

func asked(from byte) (a words.Asked) {
	b := bytes32(from)
	copy(a[:], b[:])
	return a
}

func txid(lsn words.LSN, index uint16) words.TxID {
	return words.NewTxID(0x0123456789abcdef, words.Place{LSN: lsn, Index: index})
}

// cover is a key with all that one covers.
func cover(k event.Key, label, accounts, assets string) *event.Key {
	var errs [2]error
	k.Label = words.NewLabel(label)
	k.Accounts, errs[0] = words.ParsePatterns(accounts)
	k.Assets, errs[1] = words.ParsePatterns(assets)
	words.Assert(errs[0] == nil && errs[1] == nil, "a golden key that covers nothing")
	return &k
}

// goldens has every kind of version 1, plain and at its limits. Nothing here ever
// changes: a field that version 1 lacks makes version 2, with goldens of its own. What
// comes, comes at the end: a frame's LSN is its place here.
func goldens() []golden {
	most := words.Amount{Hi: 1<<64 - 1, Lo: 1<<64 - 1}
	return []golden{
		{"booted", Record{Kind: Booted, Journal: 0x0123456789abcdef, Cut: 300, Tail: 2}},
		{"booted-first", Record{Kind: Booted, Journal: 1}},
		{"booted-most", Record{Kind: Booted, Journal: 1<<64 - 1, Cut: 1<<64 - 1, Tail: 1<<32 - 1}},
		{"issue", Record{Kind: Moved, Op: event.Issue, Tenant: 1, Caller: 0xcafe, Key: text("k-1"), Asked: asked(0x10),
			To: text("ann"), Asset: text("EUR/2"), Amount: words.Units(1000), Seq: 1,
			FromNow: words.Units(1000), ToNow: words.Units(1000), Spent: words.Units(1000)}},
		{"transfer", Record{Kind: Moved, Op: event.Transfer, Tenant: 1, Caller: 0xcafe, Key: text("k-2"), Asked: asked(0x20),
			From: text("ann"), To: text("shop:till_1"), Asset: text("EUR/2"), Amount: words.Units(250), Nonce: 1, Seq: 2,
			FromNow: words.Units(750), ToNow: words.Units(250), Spent: words.Units(250), Memo: []byte("tea, 2 × 1.25 €")}},
		{"burn", Record{Kind: Moved, Op: event.Burn, Tenant: 1, Caller: 0xcafe, Key: text("k-3"), Asked: asked(0x30),
			From: text("ann"), Asset: text("EUR/2"), Amount: words.Units(750), Nonce: 2, Seq: 3,
			ToNow: words.Units(750), Spent: words.Units(1000)}},
		{"transfer-most", Record{Kind: Moved, Op: event.Transfer, Tenant: 1<<32 - 1, Caller: 1<<64 - 1, Key: long(words.MaxKey),
			Asked: asked(0x40), From: long(words.MaxAccount), To: long(words.MaxAccount), Asset: long(words.MaxAsset),
			Amount: most, Nonce: 1<<64 - 1, Seq: 1<<64 - 1, FromNow: most, ToNow: most, Spent: most,
			Memo: bytes.Repeat([]byte("m"), words.MaxMemo)}},
		{"refused", Record{Kind: Refused, Op: event.Transfer, Tenant: 1, Caller: 0xcafe, Key: text("k-4"), Asked: asked(0x50),
			Problem: event.InsufficientFunds, Nonce: 3}},
		{"refused-issue", Record{Kind: Refused, Op: event.Issue, Tenant: 2, Caller: 0xbeef, Key: text("k:5"), Asked: asked(0x60),
			Problem: event.OverAmount}},
		{"forgot", Record{Kind: Forgot, Upto: 16383}},
		{"key-made", Record{Kind: KeyMade, Grant: &event.Key{ID: 0xcafe, Tenant: 1, Hash: bytes32(0x70), Scopes: event.AllScopes, Boot: true}}},
		{"key-made-least", Record{Kind: KeyMade, Grant: &event.Key{ID: 1, Tenant: 7, Hash: bytes32(0x80), Scopes: event.MayRead}}},
		{"restored", Record{Kind: Restored, Journal: 0xfedcba9876543210, Upto: 1 << 40, Root: bytes32(0x90)}},

		{"issue-ref", Record{Kind: Moved, Op: event.Issue, Tenant: 1, Caller: 0xcafe, Key: text("k-6"), Asked: asked(0xa0),
			To: text("ann"), Asset: text("EUR/2"), Amount: words.Units(5), Seq: 4,
			FromNow: words.Units(1005), ToNow: words.Units(5), Spent: words.Units(1005), Ref: text("pay:2024-17")}},
		{"transfer-ref-most", Record{Kind: Moved, Op: event.Transfer, Tenant: 1<<32 - 1, Caller: 1<<64 - 1, Key: long(words.MaxKey),
			Asked: asked(0x41), From: long(words.MaxAccount), To: long(words.MaxAccount), Asset: long(words.MaxAsset),
			Amount: most, Nonce: 1<<64 - 1, Seq: 1<<64 - 1, FromNow: most, ToNow: most, Spent: most,
			Memo: bytes.Repeat([]byte("m"), words.MaxMemo), Ref: long(words.MaxKey)}},
		{"refused-ref", Record{Kind: Refused, Op: event.Issue, Tenant: 1, Caller: 0xcafe, Key: text("k-7"), Asked: asked(0xa1),
			Problem: event.RefUsed, Used: txid(17, 2)}},
		{"refused-most", Record{Kind: Refused, Op: event.Unfreeze, Tenant: 1<<32 - 1, Caller: 1<<64 - 1, Key: long(words.MaxKey),
			Asked: asked(0x42), Problem: event.RefUsed, Nonce: 1<<64 - 1, Used: txid(words.MaxLSN, 1<<16-1)}},
		{"batched", Record{Kind: Batched, Op: event.Batch, Tenant: 1, Caller: 0xcafe, Key: text("k-8"), Asked: asked(0xa2), Items: 3, Atomic: true}},
		{"batched-apart", Record{Kind: Batched, Op: event.Batch, Tenant: 1, Caller: 0xcafe, Key: text("k-9"), Asked: asked(0xa3), Items: words.MaxItems}},
		{"batched-refused", Record{Kind: Batched, Op: event.Batch, Tenant: 1, Caller: 0xcafe, Key: text("k-10"), Asked: asked(0xa4),
			Problem: event.InsufficientFunds, Nonce: 7, Atomic: true}},
		{"batched-refused-most", Record{Kind: Batched, Op: event.Batch, Tenant: 1<<32 - 1, Caller: 1<<64 - 1, Key: long(words.MaxKey),
			Asked: asked(0x43), Problem: event.RefUsed, Nonce: 1<<64 - 1, Used: txid(words.MaxLSN, 1<<16-1), Items: words.MaxItems - 1, Atomic: true}},
		{"held", Record{Kind: Held, Op: event.Hold, Tenant: 1, Caller: 0xcafe, Key: text("k-11"), Asked: asked(0xa5),
			From: text("ann"), Asset: text("EUR/2"), Amount: words.Units(50), Nonce: 3, Until: 1_700_000_600_000, Seq: 5, HeldNow: words.Units(50)}},
		{"held-most", Record{Kind: Held, Op: event.Hold, Tenant: 1<<32 - 1, Caller: 1<<64 - 1, Key: long(words.MaxKey),
			Asked: asked(0x44), From: long(words.MaxAccount), To: long(words.MaxAccount), Asset: long(words.MaxAsset),
			Amount: most, Nonce: 1<<64 - 1, Until: 1<<63 - 1, Seq: 1<<64 - 1, HeldNow: most,
			Memo: bytes.Repeat([]byte("m"), words.MaxMemo), Ref: long(words.MaxKey)}},
		{"captured", Record{Kind: Captured, Op: event.Capture, Tenant: 1, Caller: 0xcafe, Key: text("k-12"), Asked: asked(0xa6),
			Hold: txid(22, 0), From: text("ann"), To: text("shop:till_1"), Asset: text("EUR/2"), Amount: words.Units(40), Seq: 6,
			FromNow: words.Units(710), ToNow: words.Units(290), HeldNow: words.Units(2), Spent: words.Units(290)}},
		{"captured-most", Record{Kind: Captured, Op: event.Capture, Tenant: 1<<32 - 1, Caller: 1<<64 - 1, Key: long(words.MaxKey),
			Asked: asked(0x45), Hold: txid(words.MaxLSN, 1<<16-1), From: long(words.MaxAccount), To: long(words.MaxAccount),
			Asset: long(words.MaxAsset), Amount: most, Seq: 1<<64 - 1, FromNow: most, ToNow: most, HeldNow: most, Spent: most,
			Memo: bytes.Repeat([]byte("m"), words.MaxMemo), Ref: long(words.MaxKey)}},
		{"released", Record{Kind: Released, Op: event.Release, Tenant: 1, Caller: 0xcafe, Key: text("k-13"), Asked: asked(0xa7),
			Hold: txid(22, 0), From: text("ann"), Asset: text("EUR/2"), Amount: words.Units(50), Seq: 7, Memo: []byte("no show"), Ref: text("let-go")}},
		{"released-most", Record{Kind: Released, Op: event.Release, Tenant: 1<<32 - 1, Caller: 1<<64 - 1, Key: long(words.MaxKey),
			Asked: asked(0x46), Hold: txid(words.MaxLSN, 1<<16-1), From: long(words.MaxAccount), To: long(words.MaxAccount),
			Asset: long(words.MaxAsset), Amount: most, Seq: 1<<64 - 1, HeldNow: most,
			Memo: bytes.Repeat([]byte("m"), words.MaxMemo), Ref: long(words.MaxKey)}},
		{"lapsed", Record{Kind: Lapsed, Tenant: 1, Seq: 8, Hold: txid(22, 0), HeldNow: words.Units(12)}},
		{"lapsed-most", Record{Kind: Lapsed, Tenant: 1<<32 - 1, Seq: 1<<64 - 1, Hold: txid(words.MaxLSN, 1<<16-1), HeldNow: most}},
		{"frozen", Record{Kind: Frozen, Op: event.Freeze, Tenant: 1, Caller: 0xcafe, Key: text("k-14"), Asked: asked(0xa8),
			From: text("ann"), Seq: 9, Memo: []byte("a court said so")}},
		{"unfrozen", Record{Kind: Frozen, Op: event.Unfreeze, Tenant: 1, Caller: 0xcafe, Key: text("k-15"), Asked: asked(0xa9),
			From: text("ann"), Seq: 10}},
		{"frozen-most", Record{Kind: Frozen, Op: event.Freeze, Tenant: 1<<32 - 1, Caller: 1<<64 - 1, Key: long(words.MaxKey),
			Asked: asked(0x47), From: long(words.MaxAccount), Seq: 1<<64 - 1,
			Memo: bytes.Repeat([]byte("m"), words.MaxMemo), Ref: long(words.MaxKey)}},
		{"granted", Record{Kind: Granted, Caller: 0xcafe, Grant: cover(event.Key{ID: 0xd00d, Tenant: 1, Hash: bytes32(0xb0),
			Scopes: event.MayRead | event.MayTransfer, Expires: 1_800_000_000_000}, "till-1", "user:17,shop:*", "EUR/2")}},
		{"granted-least", Record{Kind: Granted, Grant: cover(event.Key{ID: 1, Tenant: 7, Hash: bytes32(0xc0)}, "", "", "")}},
		{"granted-most", Record{Kind: Granted, Caller: 1<<64 - 1, Grant: cover(event.Key{ID: 1<<64 - 1, Tenant: 1<<32 - 1, Hash: bytes32(0xd0),
			Scopes: event.AllScopes, Boot: true, Expires: 1<<63 - 1}, strings.Repeat("z", words.MaxLabel),
			strings.Repeat("z", words.MaxPatterns), strings.Repeat("z", words.MaxPatterns-1)+"*")}},
		{"revoked", Record{Kind: Revoked, Caller: 0xcafe, Tenant: 1, Grant: &event.Key{ID: 0xd00d}}},
		{"revoked-most", Record{Kind: Revoked, Caller: 1<<64 - 1, Tenant: 1<<32 - 1, Grant: &event.Key{ID: 1<<64 - 1}}},
		{"disowned", Record{Kind: Disowned}},
	}
}

func (g *golden) head(i int) (words.LSN, words.Time) {
	if strings.HasSuffix(g.name, "-most") {
		return words.MaxLSN, 1<<63 - 1
	}
	return words.LSN(i + 1), 1_700_000_000_000 + words.Time(i)
}

func (g *golden) frame(i int) []byte {
	lsn, at := g.head(i)
	body, _ := Add(Begin(nil, lsn, at), 0, &g.rec)
	return body
}

// TestGolden: a journal is read for ever, so these bytes are for ever.
func TestGolden(t *testing.T) {
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
		if (h != Head{LSN: lsn, At: at, Count: 1}) {
			t.Errorf("%s: head %+v", g.name, h)
		}
		kindsSeen = append(kindsSeen, g.rec.Kind)
	}
	for k := Kind(1); k < kinds; k++ {
		if !slices.Contains(kindsSeen, k) {
			t.Errorf("no golden frame of a %v", k)
		}
	}
	longest := 0
	for i, g := range goldens() {
		longest = max(longest, len(g.frame(i))-headSize-prefixSize)
	}
	if longest > words.MaxRecord || longest < words.MaxRecord-96 {
		t.Errorf("the longest record takes %d bytes, and %d are kept for it", longest, words.MaxRecord)
	}
	files, err := filepath.Glob("testdata/v1/*.hex")
	if err != nil || len(files) != len(goldens()) {
		t.Errorf("%d golden files for %d goldens: none is ever taken away, %v", len(files), len(goldens()), err)
	}
}

// TestKindsAreFrozen: their numbers stand in journals.
func TestKindsAreFrozen(t *testing.T) {
	for i, want := range []string{"booted", "moved", "refused", "forgot", "key_made", "restored",
		"batched", "held", "captured", "released", "lapsed", "frozen", "granted", "revoked", "disowned"} {
		if k := Kind(i + 1); k.String() != want {
			t.Errorf("kind %d is %v, want %s", i+1, k, want)
		}
	}
	if kinds != 16 {
		t.Errorf("there are %d kinds, and fifteen are held here", kinds-1)
	}
}

// equal holds that both say the same: no text and an empty one are one.
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
