package event_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// A part is a field of an operation.
type part int

const (
	from part = iota
	to
	asset
	amount
	nonce
	until
	hold
	ref
	memo
	parts
)

// put sets the field of an item to the n-th value; 0 is the zero value.
func (p part) put(r *event.Item, n byte) {
	text := types.Name{}
	if n > 0 {
		text = name(string([]byte{'a' + byte(p), '0' + n}))
	}
	switch p {
	case from:
		r.From = text
	case to:
		r.To = text
	case asset:
		r.Asset = text
	case amount:
		r.Amount = types.MinorUnits(uint64(n))
	case nonce:
		r.Nonce = types.Nonce(n)
	case until:
		r.ExpiresAt = types.Time(n)
	case hold:
		r.Hold = types.TxID{}
		if n > 0 {
			r.Hold = types.NewTxID(7, types.Position{LSN: types.LSN(n), Index: 1})
		}
	case ref:
		r.Ref = text
	case memo:
		r.Memo = text.Text
	}
}

// why returns the error of ValidateFields for a missing or forbidden field.
func (p part) why() error {
	return [parts]error{event.ErrSide, event.ErrSide, event.ErrSide, event.ErrAmount, event.ErrNonce, event.ErrExpiry, event.ErrHold}[p]
}

// A shape has the required and the allowed fields of an operation.
type shape struct {
	op        event.Op
	must, may []part
}

func (s *shape) has(p part) bool { return slices.Contains(s.must, p) || slices.Contains(s.may, p) }

// shapes are the operations of the contract.
func shapes() []shape {
	free := []part{ref, memo}
	return []shape{
		{event.Issue, []part{to, asset, amount}, free},
		{event.Transfer, []part{from, to, asset, amount, nonce}, free},
		{event.Burn, []part{from, asset, amount, nonce}, free},
		{event.Hold, []part{from, asset, amount, nonce, until}, []part{to, ref, memo}},
		{event.Capture, []part{from, to, asset, amount, hold}, free},
		{event.Release, []part{from, asset, hold}, free},
		{event.Freeze, []part{from}, free},
		{event.Unfreeze, []part{from}, free},
	}
}

// good returns an item with all required fields.
func good(op event.Op) event.Item {
	r := event.Item{Op: op}
	for _, p := range shapes()[op-1].must {
		p.put(&r, 1)
	}
	return r
}

func single(item event.Item) *event.Request {
	r := &event.Request{Header: command.Header{Key: name("k1")}, Item: item}
	r.Seal(nil)
	return r
}

func batch(atomic bool, items ...event.Item) *event.Request {
	r := &event.Request{Header: command.Header{Key: name("k1")}, Item: event.Item{Op: event.Batch}, Items: items, Atomic: atomic}
	r.Seal(nil)
	return r
}

// TestOperationFields: with every combination of fields, an operation is valid exactly if it has the required
// fields and only allowed ones; alone, and in a batch.
func TestOperationFields(t *testing.T) {
	allowed := 0
	for _, s := range shapes() {
		for bits := range 1 << parts {
			item, wrong := event.Item{Op: s.op}, []part(nil)
			for p := range parts {
				isSet := bits>>p&1 == 1
				if isSet {
					p.put(&item, 1)
				}
				if isSet && !s.has(p) || !isSet && slices.Contains(s.must, p) {
					wrong = append(wrong, p)
				}
			}
			r := single(item)
			check, sane := r.Validate(), r.ValidateFields()
			if (check == nil) != (len(wrong) == 0) || (sane == nil) != (len(wrong) == 0) {
				t.Errorf("%v of parts %b: %v and %v, wrong are %v", s.op, bits, check, sane, wrong)
			}
			if len(wrong) == 1 && !errors.Is(sane, wrong[0].why()) {
				t.Errorf("%v of parts %b: %v, want %v", s.op, bits, sane, wrong[0].why())
			}
			if check == nil {
				allowed++
			}
			b := batch(false, good(event.Issue), item)
			if inside := b.Validate(); s.op <= event.Release && fmt.Sprint(inside) != fmt.Sprint(check) ||
				s.op > event.Release && inside == nil || (inside == nil) != (b.ValidateFields() == nil) {
				t.Errorf("%v of parts %b: alone %v, in a batch %v and %v", s.op, bits, check, inside, b.ValidateFields())
			}
		}
	}
	if allowed != 9*4 { // a hold has its beneficiary or not, each its ref and its memo
		t.Errorf("%d shapes are allowed", allowed)
	}
}

// TestItemRules: invalid values in operations with the right fields.
func TestItemRules(t *testing.T) {
	for _, c := range []struct {
		rule   string
		op     event.Op
		change func(*event.Item)
		want   error
	}{
		{"a hold for oneself", event.Hold, func(r *event.Item) { r.To = r.From }, event.ErrSelf},
		{"a hold for issuance", event.Hold, func(r *event.Item) { r.To = name("issuance:x") }, types.ErrReserved},
		{"a hold of issuance", event.Hold, func(r *event.Item) { r.From = name("issuance:x") }, types.ErrReserved},
		{"a hold until before 1970", event.Hold, func(r *event.Item) { r.ExpiresAt = -1 }, event.ErrExpiry},
		{"a transfer until before 1970", event.Transfer, func(r *event.Item) { r.ExpiresAt = -1 }, event.ErrExpiry},
		{"a capture for the holder", event.Capture, func(r *event.Item) { r.To = r.From }, event.ErrSelf},
		{"a capture into burned", event.Capture, func(r *event.Item) { r.To = name("burned:x") }, types.ErrReserved},
		{"a capture of no frame", event.Capture, func(r *event.Item) { r.Hold = types.TxID{1} }, event.ErrHold},
		{"a transfer of half a hold", event.Transfer, func(r *event.Item) { r.Hold = types.TxID{1} }, event.ErrHold},
		{"a release to nobody's account", event.Release, func(r *event.Item) { r.From = name("burned:x") }, types.ErrReserved},
		{"a release of no asset", event.Release, func(r *event.Item) { r.Asset = name("no good") }, types.ErrAsset},
		{"a freeze of issuance", event.Freeze, func(r *event.Item) { r.From = name("issuance:x") }, types.ErrReserved},
		{"a freeze for no good reason", event.Freeze, func(r *event.Item) { r.Memo = []byte("\n") }, types.ErrMemo},
		{"a freeze by no good name", event.Unfreeze, func(r *event.Item) { r.Ref = name("no good") }, types.ErrRef},
		{"a nonce beyond 2^53-1", event.Hold, func(r *event.Item) { r.Nonce = types.MaxNonce + 1 }, event.ErrNonce},
		{"the last nonce", event.Hold, func(r *event.Item) { r.Nonce = types.MaxNonce }, nil},
	} {
		item := good(c.op)
		c.change(&item)
		if err := single(item).Validate(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.rule, err, c.want)
		}
		if c.op > event.Release {
			continue
		}
		if err := batch(true, good(event.Issue), item).Validate(); !errors.Is(err, c.want) {
			t.Errorf("%s, in a batch: %v, want %v", c.rule, err, c.want)
		}
	}
}

// TestBatches: of 1 to 1,000 operations, with fields only in the items.
func TestBatches(t *testing.T) {
	issues := func(n int) []event.Item { return slices.Repeat([]event.Item{good(event.Issue)}, n) }
	for rule, c := range map[string]struct {
		r    *event.Request
		want error
	}{
		"one":                  {batch(true, issues(1)...), nil},
		"as many as there may": {batch(false, issues(types.MaxItems)...), nil},
		"nothing":              {batch(true), event.ErrItems},
		"one too many":         {batch(false, issues(types.MaxItems+1)...), event.ErrItems},
		"each of the first six": {batch(true, good(event.Issue), good(event.Transfer), good(event.Burn), good(event.Hold),
			good(event.Capture), good(event.Release)), nil},
		"a freeze within":              {batch(true, good(event.Issue), good(event.Freeze)), event.ErrItems},
		"a thaw within":                {batch(true, good(event.Unfreeze)), event.ErrItems},
		"a batch within":               {batch(true, event.Item{Op: event.Batch}), event.ErrItems},
		"no operation within":          {batch(true, event.Item{}), event.ErrOp},
		"an operation of no day":       {batch(true, event.Item{Op: 255}), event.ErrOp},
		"one operation, of all":        {&event.Request{Header: command.Header{Key: name("k1")}, Item: good(event.Issue), Atomic: true}, event.ErrItems},
		"one operation, and more":      {&event.Request{Header: command.Header{Key: name("k1")}, Item: good(event.Issue), Items: issues(1)}, event.ErrItems},
		"the last item is not good":    {batch(true, append(issues(types.MaxItems-1), event.Item{Op: event.Issue})...), types.ErrAccount},
		"a key that is none":           {&event.Request{Header: command.Header{Key: name("no good")}, Item: event.Item{Op: event.Batch}, Items: issues(1)}, types.ErrKey},
		"what it says besides: a hold": {&event.Request{Header: command.Header{Key: name("k1")}, Item: event.Item{Op: event.Batch, Hold: types.TxID{15: 1}}, Items: issues(1)}, event.ErrItems},
	} {
		if err := c.r.Validate(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", rule, err, c.want)
		}
		if err := c.r.ValidateFields(); (err == nil) != (c.want == nil) && !errors.Is(c.want, types.ErrKey) {
			t.Errorf("%s: the step says %v", rule, err)
		}
	}
	for p := range parts {
		r := batch(true, good(event.Issue))
		if p.put(&r.Item, 1); !errors.Is(r.ValidateFields(), event.ErrItems) {
			t.Errorf("a batch says part %d besides its items: %v", p, r.ValidateFields())
		}
	}
}

// TestEach: yields the only operation, or the items in their order.
func TestEach(t *testing.T) {
	one, all := single(good(event.Burn)), batch(true, good(event.Issue), good(event.Burn), good(event.Hold))
	for i, item := range one.Each {
		if i != 0 || item != &one.Item {
			t.Errorf("item %d of one", i)
		}
	}
	want := 0
	for i, item := range all.Each {
		if i != want || item != &all.Items[i] {
			t.Errorf("item %d, want %d", i, want)
		}
		if want++; want == 2 {
			break // must be heard
		}
	}
	if want != 2 {
		t.Errorf("%d of two items", want)
	}
}

// TestAuthorizedAccount: the debited account; for an issue or a capture, the credited one.
func TestAuthorizedAccount(t *testing.T) {
	for _, s := range shapes() {
		item := good(s.op)
		want := &item.From
		if s.op == event.Issue || s.op == event.Capture {
			want = &item.To
		}
		if item.AuthorizedAccount() != want || len(want.Text) == 0 {
			t.Errorf("%v: mine is %s", s.op, item.AuthorizedAccount().Text)
		}
	}
}

// TestRequestHashIsFrozen: digests are stored in records, so a key must find the same request after years. The
// first six were made before there were holds.
func TestRequestHashIsFrozen(t *testing.T) {
	most := func(op event.Op) *event.Request {
		return goodRequest(op, func(r *event.Request) {
			r.Memo, r.Amount = []byte("tea × 2"), types.MaxSupply()
			if op != event.Issue {
				r.Nonce = types.MaxNonce
			}
		})
	}
	plain := func(op event.Op) *event.Request { return goodRequest(op, func(*event.Request) {}) }
	all := func(op event.Op) event.Item {
		r := good(op)
		for _, p := range shapes()[op-1].may {
			p.put(&r, 2)
		}
		return r
	}
	for _, c := range []struct {
		what string
		r    *event.Request
		want string
	}{
		{"issue", plain(event.Issue), "605a4578337cdd8db6394e4286b8c945"},
		{"issue, most", most(event.Issue), "cad40630726eeaedfaa44b2ca05b9646"},
		{"transfer", plain(event.Transfer), "db5d735bc845aee79c3273b8a9884076"},
		{"transfer, most", most(event.Transfer), "3d29d6fddfab1b18c1bf0c0b2641f13b"},
		{"burn", plain(event.Burn), "0ea050b75751a01de66c0b8208a9b098"},
		{"burn, most", most(event.Burn), "6ec02b20556819a806321e1a42ef2dfb"},
		{"issue with a ref", single(all(event.Issue)), "c020bb5611246aecc7dc3ded9d5e0418"},
		{"hold", single(good(event.Hold)), "88085f36381b0b9d649abd8760e44abd"},
		{"hold, all of it", single(all(event.Hold)), "21322cf2a07d5dfdc8870c4f0d8e6c97"},
		{"capture", single(all(event.Capture)), "d53c2417934637464adcadec49599d21"},
		{"release", single(good(event.Release)), "49cb6ac673c5dcd958b3f56e0e0b497e"},
		{"freeze", single(all(event.Freeze)), "7c2a7763c835edf12468d7d56a3446bf"},
		{"unfreeze", single(good(event.Unfreeze)), "be4b9e006e9a8332a6cb303c5fc237b8"},
		{"batch of all", batch(true, good(event.Issue), all(event.Hold)), "ca91cdb44d269063c00ec575928b071f"},
		{"batch of each", batch(false, good(event.Issue), all(event.Hold)), "506e3311aaf5123653bbe573c8e85cce"},
	} {
		if got := fmt.Sprintf("%x", c.r.Hash); got != c.want || c.r.Validate() != nil {
			t.Errorf("%s asks %s, want %s, %v", c.what, got, c.want, c.r.Validate())
		}
	}
}

// TestEveryFieldIsHashed: another or no value in any field changes the hash; alone, and in a batch.
func TestEveryFieldIsHashed(t *testing.T) {
	for _, s := range shapes() {
		for p := range parts {
			if !s.has(p) {
				continue
			}
			seen := map[string]byte{}
			for n := range byte(3) {
				item := good(s.op)
				p.put(&item, n)
				for _, r := range []*event.Request{single(item), batch(true, item), batch(false, item), batch(true, good(event.Issue), item)} {
					asks := string(r.Hash[:])
					if was, twice := seen[asks]; twice {
						t.Errorf("%v: %d and %d in part %d ask the same", s.op, was, n, p)
					}
					seen[asks] = n
				}
			}
		}
	}
	far := good(event.Hold)
	far.Amount.Hi++
	if single(far).Hash == single(good(event.Hold)).Hash {
		t.Error("the high half of an amount is not asked")
	}
}

// anything draws a valid request over a small alphabet, so that two of them are similar.
func anything(t *rapid.T, what string) *event.Request {
	item := func(of []shape) event.Item {
		s := rapid.SampledFrom(of).Draw(t, what)
		r := event.Item{Op: s.op}
		for p := range parts {
			least := byte(0)
			switch {
			case slices.Contains(s.must, p):
				least = 1
			case !slices.Contains(s.may, p):
				continue
			}
			p.put(&r, least+rapid.Byte().Draw(t, "part")%2)
			if text := rapid.SampledFrom([]string{"", "\x01", "\x02b", "\x03\x00"}).Draw(t, "more"); p == memo && text != "" {
				r.Memo = append(r.Memo, text...) // as if it were the lengths of what follows
			}
		}
		return r
	}
	if rapid.Bool().Draw(t, "alone") {
		return single(item(shapes()))
	}
	r := &event.Request{Header: command.Header{Key: name("k")}, Item: event.Item{Op: event.Batch}, Atomic: rapid.Bool().Draw(t, "atomic")}
	for range rapid.IntRange(1, 3).Draw(t, "items") {
		r.Items = append(r.Items, item(shapes()[:event.Release]))
	}
	return r
}

// respell moves the end of a text: the next one begins with the rest.
func respell(t *rapid.T, item *event.Item) {
	texts := [...]*[]byte{&item.From.Text, &item.To.Text, &item.Asset.Text, &item.Memo, &item.Ref.Text}
	for i, text := range texts[1:] {
		if one := texts[i]; len(*one) > 1 && len(*text) > 0 && rapid.Bool().Draw(t, "cut") {
			last := len(*one) - 1
			*one, *text = (*one)[:last:last], append([]byte{(*one)[last]}, *text...)
		}
	}
}

// TestSealedRequestsAreDistinct: two requests are sealed to the same bytes if and only if they are equal.
func TestSealedRequestsAreDistinct(t *testing.T) {
	same := 0
	rapid.Check(t, func(t *rapid.T) {
		a := anything(t, "first")
		b := anything(t, "second")
		if how := rapid.SampledFrom([]string{"", "near", "each", "run together"}).Draw(t, "again"); how != "" {
			again := *a
			again.Items = slices.Clone(a.Items)
			b = &again
			switch how {
			case "near":
				for _, item := range b.Each { // with one part said otherwise, perhaps
					s := shapes()[item.Op-1]
					rapid.SampledFrom(s.must).Draw(t, "which").put(item, rapid.SampledFrom([]byte{1, 2}).Draw(t, "now"))
				}
			case "each":
				b.Atomic = a.Op == event.Batch && !a.Atomic
			case "run together":
				for _, item := range b.Each {
					respell(t, item)
				}
			}
		}
		x, y := a.Seal(nil), b.Seal(nil)
		if a.ValidateFields() != nil || b.ValidateFields() != nil {
			t.Fatalf("%v, %v", a.ValidateFields(), b.ValidateFields())
		}
		content := func(r *event.Request) string { return fmt.Sprintf("%+v %v %+v", r.Item, r.Atomic, r.Items) }
		equal := content(a) == content(b)
		if equal != bytes.Equal(x, y) || equal != (a.Hash == b.Hash) {
			t.Fatalf("equal %v:\n%x\n%x", equal, x, y)
		}
		if equal {
			same++
		}
	})
	if same == 0 {
		t.Error("no two were equal: half of it was not tested")
	}
}

// outcome returns the longest record of an item.
func outcome(r *event.Request, item *event.Item) record.Record {
	most := types.Amount{Hi: 1<<64 - 1, Lo: 1<<64 - 1}
	return record.Record{
		Kind: [...]record.Kind{0, record.Posted, record.Posted, record.Posted, record.HoldOpened, record.HoldCaptured, record.HoldReleased, record.FreezeChanged, record.FreezeChanged}[item.Op],
		Op:   item.Op, Tenant: 1<<32 - 1, Caller: 1<<64 - 1, Key: r.Key, Hash: r.Hash, From: item.From, To: item.To, Asset: item.Asset,
		Amount: most, Nonce: 1<<64 - 1, Seq: 1<<64 - 1, FromBalance: most, ToBalance: most, DebitedToday: most, HeldBalance: most, ExpiresAt: 1<<63 - 1,
		Hold: item.Hold, Ref: item.Ref, Memo: item.Memo,
	}
}

// TestCostIsEnough: no frame of an outcome is longer than its cost, including evicted keys, and none has more keys
// and refs.
func TestCostIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anything(t, "request")
		stretch := func(n *types.Name, most int) {
			if len(n.Text) > 0 && rapid.Bool().Draw(t, "long") {
				n.Text = bytes.Repeat([]byte("z"), most)
			}
		}
		stretch(&r.Key, types.MaxKey)
		for _, item := range r.Each {
			stretch(&item.From, types.MaxAccount)
			stretch(&item.To, types.MaxAccount)
			stretch(&item.Asset, types.MaxAsset)
			stretch(&item.Ref, types.MaxKey)
			if rapid.Bool().Draw(t, "long") {
				item.Memo = bytes.Repeat([]byte("m"), types.MaxMemo)
			}
		}
		if r.Op == event.Batch {
			r.Items = slices.Repeat(r.Items, rapid.IntRange(1, types.MaxItems/3).Draw(t, "times"))
		}
		r.Seal(nil)
		frame, rows := record.Begin(nil, types.MaxLSN, 1<<63-1), 1
		if r.Op == event.Batch {
			head := outcome(r, &event.Item{})
			head.Kind, head.Op, head.Items = record.Batched, event.Batch, uint16(len(r.Items))
			frame, _ = record.Add(frame, 0, &head)
		}
		for _, item := range r.Each {
			done := outcome(r, item)
			not := record.Record{Kind: record.Rejected, Op: item.Op, Key: r.Key, Problem: event.RefUsed, Nonce: 1<<64 - 1}
			before, count := len(frame), record.Count(frame, 0)
			frame, _ = record.Add(frame, 0, &done)
			if alone, _ := record.Add(record.Begin(nil, 1, 0), 0, &not); len(alone)-len(record.Begin(nil, 1, 0)) > len(frame)-before {
				record.Truncate(frame, 0, count) // of a freeze by a short name
				frame, _ = record.Add(frame[:before], 0, &not)
			}
			if len(item.Ref.Text) > 0 {
				rows++
			}
		}
		frame, _ = record.Add(frame, 0, &record.Record{Kind: record.KeysForgotten, Upto: types.MaxLSN})
		if cost := r.Cost(); cost.Rows != rows || len(frame) > cost.Bytes {
			t.Fatalf("takes %+v, and the frame has %d rows and %d bytes", cost, rows, len(frame))
		}
	})
}

// TestCostIsNotTooHigh: a small request is not rejected for its size.
func TestCostIsNotTooHigh(t *testing.T) {
	if size := single(good(event.Issue)).Cost().Bytes; size > 3*types.MaxRecord {
		t.Errorf("an issue takes %d bytes", size)
	}
	longest := good(event.Transfer)
	longest.From, longest.To = name(strings.Repeat("f", types.MaxAccount)), name(strings.Repeat("t", types.MaxAccount))
	longest.Asset, longest.Ref = name(strings.Repeat("a", types.MaxAsset)), name(strings.Repeat("r", types.MaxKey))
	longest.Memo = []byte(strings.Repeat("m", types.MaxMemo))
	r := batch(true, slices.Repeat([]event.Item{longest}, types.MaxItems)...)
	r.Key = name(strings.Repeat("k", types.MaxKey))
	if cost := r.Cost(); cost.Rows != 1+types.MaxItems || cost.Bytes > types.MaxFrame {
		t.Errorf("the longest batch takes %+v, a frame %d bytes", cost, types.MaxFrame)
	}
	captures := batch(true, slices.Repeat([]event.Item{good(event.Capture)}, types.MaxItems)...)
	frame := record.Begin(nil, 1, 0)
	for _, item := range captures.Each { // a thousand of the longest, and little to say
		rec := outcome(captures, item)
		frame, _ = record.Add(frame, 0, &rec)
	}
	if size := captures.Cost().Bytes; size < len(frame) || size > 2*len(frame) {
		t.Errorf("a thousand captures take %d bytes, and are %d", size, len(frame))
	}
}
