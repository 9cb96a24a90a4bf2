package receipt_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// opened returns the hold of the scenes.
func opened() types.TxID {
	return types.NewTxID(0x0123456789abcdef, types.Position{LSN: 9, Index: 3})
}

// held returns the record of a hold or an account after an operation.
func held(kind record.Kind, op event.Op, change func(*record.Record)) record.Record {
	r := record.Record{Kind: kind, Op: op, Tenant: 1, Caller: 0xcafe, Key: name("order-17"), Hash: types.RequestHash{9},
		From: name("ann"), Asset: name("EUR/2"), Amount: types.MinorUnits(1250), Seq: 3, HeldBalance: types.MinorUnits(1300)}
	switch kind {
	case record.HoldOpened:
		r.Nonce, r.ExpiresAt = 2, 1_700_000_600_000
	case record.HoldCaptured:
		r.Hold, r.To, r.FromBalance, r.ToBalance, r.DebitedToday = opened(), name("shop:till_1"), types.MinorUnits(8), types.MinorUnits(9), types.MinorUnits(10)
	case record.HoldReleased:
		r.Hold = opened()
	case record.HoldExpired:
		r = record.Record{Kind: kind, Tenant: 1, Seq: 4, Hold: opened(), HeldBalance: types.MinorUnits(50)}
	case record.FreezeChanged:
		r.Asset, r.Amount, r.HeldBalance, r.Memo = types.Name{}, types.Amount{}, types.Amount{}, []byte("a court said so")
	}
	change(&r)
	return r
}

// batch returns a header and its items: one answer to one key.
func batch(atomic bool, items ...record.Record) []record.Record {
	head := record.Record{Kind: record.Batched, Op: event.Batch, Tenant: 1, Caller: 0xcafe, Key: name("order-17"),
		Hash: types.RequestHash{9}, Items: uint16(len(items)), Atomic: atomic}
	return append([]record.Record{head}, items...)
}

// rejectedBatch returns an atomic batch that was rejected because of one item.
func rejectedBatch(why event.Problem, nonce types.Nonce, used types.TxID, item uint16) record.Record {
	return record.Record{Kind: record.Batched, Op: event.Batch, Tenant: 1, Caller: 0xcafe, Key: name("order-17"), Hash: types.RequestHash{9},
		Atomic: true, Problem: why, Nonce: nonce, PriorRef: used, Items: item}
}

// mixed returns an item of every kind that a batch may have.
func mixed(atomic bool) []record.Record {
	plain := func(*record.Record) {}
	items := []record.Record{
		money(event.Issue, func(r *record.Record) { r.Ref = name("pay:1") }),
		money(event.Transfer, plain),
		held(record.HoldOpened, event.Hold, func(r *record.Record) { r.Nonce = 3 }),
		held(record.HoldCaptured, event.Capture, plain),
		held(record.HoldReleased, event.Release, plain),
		money(event.Burn, plain),
	}
	if !atomic {
		used := refusal(event.Issue, event.RefUsed, 0)
		used.Tenant, used.PriorRef = 1, opened()
		ahead := refusal(event.Transfer, event.NonceAhead, 5)
		frozen := refusal(event.Hold, event.AccountFrozen, 4)
		ahead.Tenant, frozen.Tenant = 1, 1
		items = append([]record.Record{used, ahead}, append(items, frozen)...)
	}
	return batch(atomic, items...)
}

// later returns the answers that were added with holds, batches, freezes and refs.
func later() []scene {
	const noon = 1_700_000_000_123
	plain := func(*record.Record) {}
	at := func(name string, index uint16, all ...record.Record) scene {
		return scene{name, 0x0123456789abcdef, types.Root{1, 2, 3}, 17, noon, all, index}
	}
	one := func(name string, r record.Record) scene { return at(name, 0, r) }
	used := refusal(event.Issue, event.RefUsed, 0)
	used.PriorRef = opened()
	among := append([]record.Record{held(record.HoldExpired, 0, plain)}, append(mixed(false), record.Record{Kind: record.KeysForgotten, Upto: 3})...)
	longest := held(record.HoldOpened, event.Hold, func(r *record.Record) {
		r.From, r.To = name(strings.Repeat("f", types.MaxAccount)), name(strings.Repeat("t", types.MaxAccount))
		r.Asset, r.Key = name(strings.Repeat("A", types.MaxAsset)), name(strings.Repeat("k", types.MaxKey))
		r.Ref, r.Memo = name(strings.Repeat("r", types.MaxKey)), []byte(strings.Repeat("m", types.MaxMemo))
		r.Amount, r.Nonce, r.Seq, r.ExpiresAt = most(), types.MaxNonce, types.MaxNonce, 253402300799999
	})
	return []scene{
		one("hold", held(record.HoldOpened, event.Hold, plain)),
		one("hold for somebody", held(record.HoldOpened, event.Hold, func(r *record.Record) { r.To, r.Memo = name("shop:till_1"), []byte("a table") })),
		at("hold, not the first of its frame", 1, held(record.HoldExpired, 0, plain), held(record.HoldOpened, event.Hold, plain)),
		one("the longest receipt", longest),
		one("capture", held(record.HoldCaptured, event.Capture, plain)),
		one("release", held(record.HoldReleased, event.Release, plain)),
		one("freeze", held(record.FreezeChanged, event.Freeze, plain)),
		one("unfreeze", held(record.FreezeChanged, event.Unfreeze, func(r *record.Record) { r.Memo = nil })),
		one("issue with a ref", money(event.Issue, func(r *record.Record) { r.Ref = name("pay:2024-17") })),
		one("transfer with a ref and a memo", money(event.Transfer, func(r *record.Record) { r.Ref, r.Memo = name("pay.1_2"), []byte("tea") })),
		one("capture with a ref", held(record.HoldCaptured, event.Capture, func(r *record.Record) { r.Ref = name("r") })),
		one("refused: ref used", used),
		one("refused: what became of the hold", refusal(event.Capture, event.HoldNotActive, 0)),
		one("refused: another than the beneficiary", refusal(event.Capture, event.NotBeneficiary, 0)),
		one("refused: more than the hold has", refusal(event.Capture, event.HoldAmountExceeded, 0)),
		at("batch of all or nothing", 0, mixed(true)...),
		at("batch of all or nothing, its hold", 3, mixed(true)...),
		at("batch of one", 0, batch(true, money(event.Issue, plain))...),
		one("batch refused: funds", rejectedBatch(event.InsufficientFunds, 7, types.TxID{}, 0)),
		one("batch refused: ref used", rejectedBatch(event.RefUsed, 0, opened(), 999)),
		at("batch of each alone", 0, mixed(false)...),
		at("batch of each alone, after an expiry", 1, among...),
		at("batch of each alone, its refusal that no key keeps", 3, among...),
		at("batch of each alone, its last", 10, among...),
		one("expiry", held(record.HoldExpired, 0, plain)),
		at("the biggest expiry", 1, held(record.HoldExpired, 0, plain), held(record.HoldExpired, 0, func(r *record.Record) {
			r.Tenant, r.Seq, r.HeldBalance, r.Hold = 1<<32-1, types.MaxNonce, most(), types.NewTxID(1<<64-1, types.Position{LSN: types.MaxLSN, Index: 1<<16 - 1})
		})),
	}
}

// sealing returns the frame of a scene.
func sealing(s *scene) *record.Sealed {
	sealed := seal(s.journal, s.prev, s.body())
	return &sealed
}

// TestChangeMatchesReceipt: the change feed shows the receipts of callers, and in addition only
// the records without a caller.
func TestChangeMatchesReceipt(t *testing.T) {
	receipts, expiries, others := 0, 0, 0
	for _, s := range scenes() {
		sealed := sealing(&s)
		for i := range s.records {
			r, index := &s.records[i], uint16(i)
			answer, _, owner, err := receipt.Render([]byte("before "), sealed, index)
			change, whose, not := receipt.Change([]byte("before "), sealed, index)
			switch {
			case r.Kind == record.HoldExpired:
				expiries++
				if !errors.Is(err, receipt.ErrNoAnswer) || not != nil || whose != r.Tenant {
					t.Errorf("%s, %d: %v; %v of %d", s.name, i, err, not, whose)
				}
			case r.IsMovement():
				receipts++
				if err != nil || not != nil || !bytes.Equal(answer, change) || owner != whose {
					t.Errorf("%s, %d: answered %s, changed %s, %v", s.name, i, answer, change, not)
				}
			default:
				others++
				if !errors.Is(not, receipt.ErrNoAnswer) || string(change) != "before " || whose != 0 {
					t.Errorf("%s, %d, a %v, changed %s, %v", s.name, i, r.Kind, change, not)
				}
			}
		}
	}
	if receipts == 0 || expiries == 0 || others == 0 {
		t.Errorf("%d receipts, %d expiries, %d others", receipts, expiries, others)
	}
}

// results returns the items of a batch's answer, in bytes, each with its status.
func results(t *testing.T, answer []byte, atomic bool) (shown [][]byte, status []int) {
	t.Helper()
	var all struct {
		Receipts []json.RawMessage
		Results  []struct {
			Status           int
			Receipt, Problem json.RawMessage
		}
	}
	strict := json.NewDecoder(bytes.NewReader(answer))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&all); err != nil || (all.Receipts != nil) != atomic || (all.Results != nil) == atomic {
		t.Fatalf("%v: %s", err, answer)
	}
	for _, r := range all.Receipts {
		shown, status = append(shown, r), append(status, 200)
	}
	for _, r := range all.Results {
		if (r.Receipt == nil) == (r.Problem == nil) || (r.Receipt == nil) == (r.Status == 200) {
			t.Fatalf("%d, %s, %s", r.Status, r.Receipt, r.Problem)
		}
		shown, status = append(shown, append(r.Receipt, r.Problem...)), append(status, r.Status)
	}
	return shown, status
}

// TestBatchShowsItemsAsSingleAnswers: each item is byte for byte the single answer, with its own
// ID.
func TestBatchShowsItemsAsSingleAnswers(t *testing.T) {
	batches := 0
	for _, s := range scenes() {
		head := s.records[s.index]
		if head.Kind != record.Batched || head.Problem != event.None {
			continue
		}
		batches++
		sealed := sealing(&s)
		answer, _, _, err := receipt.Render(nil, sealed, s.index)
		if err != nil {
			t.Fatal(err)
		}
		shown, status := results(t, answer, head.Atomic)
		if len(shown) != int(head.Items) {
			t.Fatalf("%s shows %d of %d items", s.name, len(shown), head.Items)
		}
		for i := range shown {
			index := s.index + 1 + uint16(i)
			alone, want, _, err := receipt.Render(nil, sealed, index)
			if err != nil || !bytes.Equal(alone, shown[i]) || status[i] != want {
				t.Errorf("%s, item %d, is alone\n%d %s, %v, and in its batch\n%d %s", s.name, i, want, alone, err, status[i], shown[i])
			}
			id := receipt.RecordID(s.journal, types.Position{LSN: s.lsn, Index: index})
			if !bytes.Contains(shown[i], id[2:]) {
				t.Errorf("%s, item %d, does not say %s:\n%s", s.name, i, id, shown[i])
			}
		}
	}
	if batches < 3 {
		t.Errorf("%d batches", batches)
	}
}

// TestLargestBatchRendersWithoutAllocation renders a batch of 1,000 items into a large buffer. It
// averages over ten runs, because allocations of the runtime count too.
func TestLargestBatchRendersWithoutAllocation(t *testing.T) {
	items := make([]record.Record, types.MaxItems)
	for i := range items {
		items[i] = money(event.Transfer, func(r *record.Record) { r.Seq, r.Nonce = types.Seq(i+1), types.Nonce(i+1) })
	}
	s := scene{lsn: 3, records: batch(false, items...)}
	sealed := sealing(&s)
	answer, _, _, err := receipt.Render(nil, sealed, 0)
	if err != nil {
		t.Fatal(err)
	}
	shown, _ := results(t, answer, false)
	for i := range shown {
		alone, _, _, err := receipt.Render(nil, sealed, uint16(i+1))
		if err != nil || !bytes.Equal(alone, shown[i]) {
			t.Fatalf("item %d is alone %s, %v, and in its batch %s", i, alone, err, shown[i])
		}
	}
	if room := make([]byte, 0, len(answer)); len(shown) != types.MaxItems || testing.AllocsPerRun(100, func() {
		if _, _, _, err := receipt.Render(room, sealed, 0); err != nil {
			t.Fatal(err)
		}
	}) != 0 {
		t.Errorf("%d items, or rendering them allocates", len(shown))
	}
}

// TestBatchWithoutItemsHasNoAnswer: if a frame lacks the items of its batch, there is no answer;
// items of another tenant are never shown.
func TestBatchWithoutItemsHasNoAnswer(t *testing.T) {
	plain := func(*record.Record) {}
	good := func() []record.Record { return batch(true, money(event.Issue, plain), money(event.Issue, plain)) }
	for what, change := range map[string]func(all []record.Record) []record.Record{
		"one too few":        func(all []record.Record) []record.Record { return all[:2] },
		"none":               func(all []record.Record) []record.Record { return all[:1] },
		"of another tenant":  func(all []record.Record) []record.Record { all[2].Tenant++; return all },
		"a batch in a batch": func(all []record.Record) []record.Record { return append(all[:2], good()...) },
		"not an outcome": func(all []record.Record) []record.Record {
			all[1] = record.Record{Kind: record.KeysForgotten}
			return all
		},
		"an expiry":           func(all []record.Record) []record.Record { all[2] = held(record.HoldExpired, 0, plain); return all },
		"a refusal, of a sum": func(all []record.Record) []record.Record { all[2] = mixed(false)[1]; return all },
	} {
		s := scene{lsn: 3, records: change(good())}
		answer, status, owner, err := receipt.Render([]byte("before"), sealing(&s), 0)
		if !errors.Is(err, record.ErrFrame) || string(answer) != "before" || status != 0 || owner != 0 {
			t.Errorf("%s: %q, %d of tenant %d, %v", what, answer, status, owner, err)
		}
	}
	s := scene{lsn: 3, records: good()}
	sealed := sealing(&s)
	record.Truncate(sealed.Body, 0, 2) // the last item is past the end of the frame
	if answer, _, _, err := receipt.Render([]byte("before"), sealed, 0); !errors.Is(err, record.ErrFrame) || string(answer) != "before" {
		t.Errorf("an item behind the end: %q, %v", answer, err)
	}
	sealed = sealing(&s)
	sealed.Body[len(s.body())-1] = 0xff // the last item has unknown flags
	if answer, _, _, err := receipt.Render([]byte("before"), sealed, 0); !errors.Is(err, record.ErrFrame) || string(answer) != "before" {
		t.Errorf("an item that cannot be read: %q, %v", answer, err)
	}
}

// TestLaterReceiptsMatchRecords: the fields that were added later, as a caller reads them.
func TestLaterReceiptsMatchRecords(t *testing.T) {
	const place, hold = "0123456789abcdef0000000000110000", "hold_0123456789abcdef0000000000090003"
	for scene, want := range map[string]map[string]any{
		"hold": {"op": "hold", "from": "ann", "to": nil, "asset": "EUR/2", "amount_minor": "1250", "nonce": 2.,
			"txid": "tx_" + place, "hold_id": "hold_" + place, "expires_at": "2023-11-14T22:23:20.000Z", "held_minor": nil},
		"hold for somebody":                {"op": "hold", "to": "shop:till_1"},
		"hold, not the first of its frame": {"hold_id": "hold_0123456789abcdef0000000000110001", "index": 1.},
		"capture": {"op": "capture", "from": "ann", "to": "shop:till_1", "asset": "EUR/2", "amount_minor": "1250", "nonce": nil,
			"hold_id": hold, "expires_at": nil},
		"release":                 {"op": "release", "from": "ann", "to": nil, "asset": "EUR/2", "amount_minor": "1250", "hold_id": hold},
		"freeze":                  {"op": "freeze", "from": "ann", "asset": nil, "amount_minor": nil, "hold_id": nil, "idem": "order-17"},
		"unfreeze":                {"op": "unfreeze", "from": "ann", "seq": 3.},
		"issue with a ref":        {"op": "issue", "ref": "pay:2024-17", "hold_id": nil},
		"refused: ref used":       {"code": "ref_used", "txid": "tx_" + hold[5:], "index": nil, "expected_nonce": nil},
		"batch refused: funds":    {"code": "insufficient_funds", "index": 0., "expected_nonce": 7., "decision_id": "d_" + place, "txid": nil},
		"batch refused: ref used": {"code": "ref_used", "index": 999., "txid": "tx_" + hold[5:], "expected_nonce": nil},
		"expiry":                  {"op": "expire", "hold_id": hold, "held_minor": "50", "seq": 4., "from": nil, "idem": nil, "amount_minor": nil},
	} {
		found := false
		for _, s := range scenes() {
			if s.name != scene {
				continue
			}
			found = true
			v := s.vector(t)
			var got map[string]any
			if err := json.Unmarshal([]byte(v.Answer), &got); err != nil {
				t.Fatal(err)
			}
			for field, want := range want {
				if got[field] != want {
					t.Errorf("%s: %s is %v, want %v", scene, field, got[field], want)
				}
			}
		}
		if !found {
			t.Errorf("no scene %s", scene)
		}
	}
}
