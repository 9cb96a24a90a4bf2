package fuzz

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// A tape is bytes that decide the contents of a frame; it continues with zeros.
type tape []byte

func (b *tape) next() (c byte) {
	if len(*b) > 0 {
		c, *b = (*b)[0], (*b)[1:]
	}
	return c
}

func (b *tape) number() (n uint64) {
	for range b.next() % 9 {
		n = n<<8 | uint64(b.next())
	}
	return n
}

// text returns a text that a caller can send.
func (b *tape) text(least, most int) []byte {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	text := bytes.Repeat([]byte{letters[b.next()%64]}, least+int(b.next())%(most-least+1))
	if len(text) > 0 {
		text[0] = letters[b.next()%64]
	}
	return text
}

func (b *tape) amount() types.Amount { return types.Amount{Hi: b.number(), Lo: b.number()} }

func (b *tape) hold() types.TxID {
	return types.NewTxID(types.JournalID(b.number()), types.Position{LSN: types.LSN(b.number()), Index: uint16(b.number())})
}

// item returns a possible outcome of an operation of head's batch.
func (b *tape) item(head *record.Record) record.Record {
	r := *head
	r.Items, r.Atomic = 0, false
	ops := [...]event.Op{event.Issue, event.Transfer, event.Burn, event.Hold, event.Capture, event.Release, event.Freeze, event.Unfreeze}
	kinds := [...]record.Kind{record.Posted, record.Posted, record.Posted, record.HoldOpened, record.HoldCaptured, record.HoldReleased, record.FreezeChanged, record.FreezeChanged}
	which := b.next() % 8
	r.Op, r.Kind = ops[which], kinds[which]
	if b.next()%4 == 0 {
		r.Kind, r.Problem = record.Rejected, 1+event.Problem(b.next())%event.StaleIndexRead
		r.Nonce, r.PriorRef = types.Nonce(b.number()), b.hold()
		return r
	}
	r.From.Text, r.To.Text, r.Asset.Text = b.text(0, types.MaxAccount), b.text(0, types.MaxAccount), b.text(1, types.MaxAsset)
	r.Ref.Text, r.Memo = b.text(0, types.MaxKey), b.text(0, types.MaxMemo)
	r.Amount, r.HeldBalance, r.Seq, r.Nonce = b.amount(), b.amount(), types.Seq(b.number()), types.Nonce(b.number())
	r.ExpiresAt, r.Hold = types.Time(b.number()>>1), b.hold()
	return r
}

// FuzzBatch: a batch with any items, and any records around it, shows each item as it is shown alone, byte for
// byte, in JSON whose receipts can be hashed by clients. An atomic batch shows no rejection.
func FuzzBatch(f *testing.F) {
	f.Add([]byte{}, true, uint8(0), uint8(0))
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, true, uint8(3), uint8(0))
	f.Add(bytes.Repeat([]byte{1, 7, 200, 3, 90, 2, 255, 17, 4}, 60), false, uint8(7), uint8(2))
	f.Add(bytes.Repeat([]byte{0xff, 0xfe, 0x81}, 300), false, uint8(255), uint8(255))
	for n := range byte(4) { // of every kind
		text := []byte{n}
		for range 64 {
			sum := digest.Sum(text)
			text = append(text, sum[:]...)
		}
		f.Add(text, n == 0, n*20, n)
	}
	f.Fuzz(func(t *testing.T, decides []byte, atomic bool, items, before uint8) {
		b := tape(decides)
		head := record.Record{Kind: record.Batched, Op: event.Batch, Tenant: types.Tenant(b.number()), Caller: types.KeyID(b.number()),
			Items: 1 + uint16(items), Atomic: atomic}
		head.Key.Text = b.text(1, types.MaxKey)
		body := record.Begin(nil, 1+types.LSN(b.number()%types.MaxLSN), types.Time(b.number()>>1))
		for range before {
			body, _ = record.Add(body, 0, &record.Record{Kind: record.HoldExpired, Tenant: 1, Hold: b.hold(), Seq: types.Seq(b.number()), HeldBalance: b.amount()})
		}
		body, _ = record.Add(body, 0, &head)
		refused := false
		for range head.Items {
			r := b.item(&head)
			refused = refused || r.Kind == record.Rejected
			body, _ = record.Add(body, 0, &r)
		}
		body, _ = record.Add(body, 0, &record.Record{Kind: record.KeysForgotten, Upto: 1})
		if _, _, err := record.OpenWhole(body); err != nil {
			t.Fatalf("what was written is no frame: %v", err)
		}
		h, _, _ := record.Open(body)
		sealed := record.Sealed{Journal: types.JournalID(b.number()), LSN: h.LSN, Body: body}
		answer, status, owner, err := receipt.Render(nil, &sealed, uint16(before))
		if atomic && refused {
			if !errors.Is(err, record.ErrFrame) {
				t.Fatalf("of all or nothing, and something of it: %v, %s", err, answer)
			}
			return
		}
		if err != nil || status != 200 || owner != head.Tenant {
			t.Fatalf("%d of %d, %v", status, owner, err)
		}
		checkBatch(t, &sealed, answer, uint16(before)+1, head.Items)
	})
}

// checkBatch compares the response of a batch with those of its items.
func checkBatch(t *testing.T, s *record.Sealed, answer []byte, first, items uint16) {
	t.Helper()
	var all struct {
		Receipts []json.RawMessage
		Results  []struct {
			Status           int
			Receipt, Problem json.RawMessage
		}
	}
	if err := json.Unmarshal(answer, &all); err != nil || len(all.Receipts)+len(all.Results) != int(items) {
		t.Fatalf("%d items, %v: %s", items, err, answer)
	}
	for i := range items {
		alone, status, _, err := receipt.Render(nil, s, first+i)
		var shownItem []byte
		code := 200
		if all.Receipts != nil {
			shownItem = all.Receipts[i]
		} else {
			shownItem, code = append(all.Results[i].Receipt, all.Results[i].Problem...), all.Results[i].Status
			if (all.Results[i].Problem != nil) != (code > 200) {
				t.Fatalf("item %d, a %d, shows %s", i, code, shownItem)
			}
		}
		if err != nil || status != code || !bytes.Equal(alone, shownItem) {
			t.Fatalf("item %d is alone\n%d %s, %v, and in its batch\n%d %s", i, status, alone, err, code, shownItem)
		}
		if status == 200 {
			checkHash(t, shownItem)
		}
	}
}

// checkHash: a client that parses a receipt can compute its hash.
func checkHash(t *testing.T, one []byte) {
	t.Helper()
	exact := json.NewDecoder(bytes.NewReader(one))
	exact.UseNumber()
	var fields map[string]any
	if err := exact.Decode(&fields); err != nil {
		t.Fatal(err)
	}
	claimed, _ := fields["receipt_hash"].(string)
	delete(fields, "receipt_hash")
	canonical, err := json.Marshal(fields)
	sum := digest.Sum(canonical)
	if digits, ok := strings.CutPrefix(claimed, "b3:"); err != nil || !ok || digits != hex.EncodeToString(sum[:]) {
		t.Fatalf("says %q, and hashes to %x, %v: %s", claimed, sum, err, one)
	}
}
