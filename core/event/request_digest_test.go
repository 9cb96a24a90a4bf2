package event_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/digest"
	"macronode/core/event"
)

// anyItem draws an item with any fields.
func anyItem(t *rapid.T) event.Item {
	s := rapid.SampledFrom(shapes()).Draw(t, "op")
	r := event.Item{Op: s.op}
	for _, p := range s.must {
		p.put(&r, byte(rapid.IntRange(1, 9).Draw(t, "must")))
	}
	for _, p := range s.may {
		p.put(&r, byte(rapid.IntRange(0, 9).Draw(t, "may")))
	}
	return r
}

// encodeContent writes the content of an operation as the contract says: the operation, its texts with their
// lengths, and its numbers. whole includes the fields that came with holds.
func encodeContent(r *event.Item, whole bool) []byte {
	var b bytes.Buffer
	text := func(t []byte) {
		var length [binary.MaxVarintLen64]byte
		b.Write(length[:binary.PutUvarint(length[:], uint64(len(t)))])
		b.Write(t)
	}
	b.WriteByte(byte(r.Op))
	for _, t := range [][]byte{r.From.Text, r.To.Text, r.Asset.Text, r.Memo} {
		text(t)
	}
	_ = binary.Write(&b, binary.LittleEndian, []uint64{r.Amount.Lo, r.Amount.Hi, uint64(r.Nonce)}) // to memory
	if whole {
		text(r.Ref.Text)
		_ = binary.Write(&b, binary.LittleEndian, uint64(r.ExpiresAt)) // to memory
		b.Write(r.Hold[:])
	}
	return b.Bytes()
}

// TestRequestHashMatchesContract: the hash is that of encodeContent. The first three operations without a ref keep
// their first format.
func TestRequestHashMatchesContract(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := anyItem(t)
		first := one.Op == event.Issue || one.Op == event.Transfer || one.Op == event.Burn
		want := digest.RequestHash(encodeContent(&one, !first || len(one.Ref.Text) > 0))
		if got := single(one).Hash; got != want {
			t.Fatalf("%+v asks %x, want %x", one, got, want)
		}
		atomic := rapid.Bool().Draw(t, "atomic")
		items := rapid.SliceOfN(rapid.Custom(anyItem), 1, 5).Draw(t, "items")
		all := []byte{byte(event.Batch), byte(len(items))}
		if atomic {
			all[0] |= 1 << 7
		}
		for i := range items {
			all = append(all, encodeContent(&items[i], true)...)
		}
		if got := batch(atomic, items...).Hash; got != digest.RequestHash(all) {
			t.Fatalf("a batch of %+v asks %x, want %x", items, got, digest.RequestHash(all))
		}
	})
}

// TestBatchDigestIgnoresItem: only the items of a batch are sealed.
func TestBatchDigestIgnoresItem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(rapid.Custom(anyItem).Filter(func(r event.Item) bool { return r.Op <= event.Release }), 1, 5).Draw(t, "items")
		r := batch(rapid.Bool().Draw(t, "atomic"), items...)
		if err := r.Validate(); err != nil {
			t.Fatalf("%+v: %v", items, err)
		}
		asked, one := r.Hash, part(rapid.IntRange(0, int(parts)-1).Draw(t, "part"))
		one.put(&r.Item, byte(rapid.IntRange(1, 9).Draw(t, "what")))
		if r.Seal(nil); r.Hash != asked {
			t.Fatalf("part %d of a batch is sealed: then it may be said", one)
		}
		if err := r.ValidateFields(); !errors.Is(err, event.ErrItems) {
			t.Fatalf("part %d beside %d items: %v", one, len(items), err)
		}
	})
}
