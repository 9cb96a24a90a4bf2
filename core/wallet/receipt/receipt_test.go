package receipt_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

var rewrite = flag.Bool("rewrite", false, "add the golden vectors that are missing; those that are there stay")

const goldenPath = "testdata/golden.txt"

// A vector is the complete input of an answer, and the answer: enough to test a renderer in any
// language.
type vector struct {
	Name    string `json:"name"`
	Journal string `json:"journal"`   // its ID, hexadecimal
	Prev    string `json:"prev_root"` // hexadecimal
	Body    string `json:"body"`      // of the frame, hexadecimal
	Index   uint16 `json:"index"`     // of the record in the frame
	Tenant  uint32 `json:"tenant"`    // owner of the answer
	Status  int    `json:"status"`    // HTTP status; 0: no caller, rendered as a change
	Answer  string `json:"answer"`
}

// show renders v.
func (v *vector) show(to []byte, s *record.Sealed) ([]byte, int, types.Tenant, error) {
	answer, status, owner, err := receipt.Render(to, s, v.Index)
	if errors.Is(err, receipt.ErrNoAnswer) {
		answer, owner, err = receipt.Change(to, s, v.Index)
	}
	return answer, status, owner, err
}

func (v *vector) sealed(t *testing.T) *record.Sealed {
	t.Helper()
	unhex := func(s string, want int) []byte {
		b, err := hex.DecodeString(s)
		if err != nil || want > 0 && len(b) != want {
			t.Fatalf("%s: %q is not of %d bytes: %v", v.Name, s, want, err)
		}
		return b
	}
	var journal types.JournalID
	for _, b := range unhex(v.Journal, 8) {
		journal = journal<<8 | types.JournalID(b)
	}
	s := seal(journal, types.Root(unhex(v.Prev, 32)), unhex(v.Body, 0))
	return &s
}

func seal(journal types.JournalID, prev types.Root, body []byte) record.Sealed {
	h, _, err := record.Open(body)
	types.Assert(err == nil, "a vector is not a valid frame")
	root, _ := digest.Chain(nil, prev, body)
	return record.Sealed{Journal: journal, LSN: h.LSN, Body: body, Prev: prev, Root: root}
}

// goldens reads the frozen vectors.
func goldens(t *testing.T) (frozen []vector) {
	t.Helper()
	file, err := os.ReadFile(goldenPath)
	if err != nil && !*rewrite {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(file)) {
		if line[0] == '#' {
			continue
		}
		var v vector
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		frozen = append(frozen, v)
	}
	return frozen
}

// TestAnswersAreFrozen: an answer may be replayed for years, so its bytes never change.
func TestAnswersAreFrozen(t *testing.T) {
	if *rewrite {
		extend(t)
	}
	frozen := goldens(t)
	names := map[string]bool{}
	for _, v := range frozen {
		names[v.Name] = true
		got, status, owner, err := v.show([]byte("before "), v.sealed(t))
		if err != nil || status != v.Status || owner != types.Tenant(v.Tenant) {
			t.Errorf("%s: %d of tenant %d, %v", v.Name, status, owner, err)
		}
		if string(got) != "before "+v.Answer {
			t.Errorf("%s is now\n%s", v.Name, got)
		}
	}
	for _, s := range scenes() {
		if !names[s.name] {
			t.Errorf("no golden vector of %s", s.name)
		}
	}
	if len(frozen) != len(scenes()) || len(frozen) < 10 {
		t.Errorf("%d golden vectors, %d scenes: none is ever taken away", len(frozen), len(scenes()))
	}
}

// extend writes the missing vectors.
func extend(t *testing.T) {
	t.Helper()
	frozen := goldens(t)
	var out bytes.Buffer
	out.WriteString("# Version 1 is frozen: never change a line, add one. An answer is a function of what stands beside it.\n")
	for _, s := range scenes() {
		if !slices.ContainsFunc(frozen, func(v vector) bool { return v.Name == s.name }) {
			frozen = append(frozen, s.vector(t))
		}
	}
	lines := json.NewEncoder(&out)
	for _, v := range frozen {
		if err := lines.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(goldenPath, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A scene is a frame and a record in it.
type scene struct {
	name    string
	journal types.JournalID
	prev    types.Root
	lsn     types.LSN
	at      types.Time
	records []record.Record
	index   uint16
}

func (s *scene) body() []byte {
	body := record.Begin(nil, s.lsn, s.at)
	for i := range s.records {
		body, _ = record.Add(body, 0, &s.records[i])
	}
	return body
}

func (s *scene) vector(t *testing.T) vector {
	t.Helper()
	v := vector{Name: s.name, Journal: hex.EncodeToString([]byte{byte(s.journal >> 56), byte(s.journal >> 48),
		byte(s.journal >> 40), byte(s.journal >> 32), byte(s.journal >> 24), byte(s.journal >> 16), byte(s.journal >> 8), byte(s.journal)}),
		Prev: hex.EncodeToString(s.prev[:]), Body: hex.EncodeToString(s.body()), Index: s.index}
	answer, status, owner, err := v.show(nil, v.sealed(t))
	if err != nil {
		t.Fatal(err)
	}
	v.Answer, v.Status, v.Tenant = string(answer), status, uint32(owner)
	return v
}

func name(s string) types.Name { return types.Name{Text: []byte(s)} }

func most() types.Amount { return types.Amount{Hi: 1<<64 - 1, Lo: 1<<64 - 1} }

// money returns a record of an operation.
func money(op event.Op, change func(*record.Record)) record.Record {
	r := record.Record{Kind: record.Posted, Op: op, Tenant: 1, Caller: 0xcafe, Key: name("order-17"), Hash: types.RequestHash{9},
		Asset: name("EUR/2"), Amount: types.MinorUnits(1250), Seq: 3, FromBalance: types.MinorUnits(8), ToBalance: types.MinorUnits(9), DebitedToday: types.MinorUnits(10)}
	if op != event.Issue {
		r.From, r.Nonce = name("ann"), 2
	}
	if op != event.Burn {
		r.To = name("shop:till_1")
	}
	change(&r)
	return r
}

func refusal(op event.Op, why event.Problem, nonce types.Nonce) record.Record {
	return record.Record{Kind: record.Rejected, Op: op, Tenant: 5, Caller: 0xcafe, Key: name("order-18"), Hash: types.RequestHash{9},
		Problem: why, Nonce: nonce}
}

// scenes returns every shape of an answer. A scene never changes.
func scenes() []scene {
	const noon = 1_700_000_000_123
	plain := func(*record.Record) {}
	one := func(name string, r record.Record) scene {
		return scene{name, 0x0123456789abcdef, types.Root{1, 2, 3}, 17, noon, []record.Record{r}, 0}
	}
	longest := money(event.Transfer, func(r *record.Record) {
		r.From, r.To = name(strings.Repeat("f", types.MaxAccount)), name(strings.Repeat("t", types.MaxAccount))
		r.Asset, r.Key = name(strings.Repeat("A", types.MaxAsset)), name(strings.Repeat("k", types.MaxKey))
		r.Memo = []byte(strings.Repeat("m", types.MaxMemo))
	})
	biggest := money(event.Transfer, func(r *record.Record) {
		r.Tenant, r.Amount, r.Nonce, r.Seq = 1<<32-1, most(), types.MaxNonce, types.MaxNonce
	})
	batch := []record.Record{
		{Kind: record.KeysForgotten, Upto: 3},
		refusal(event.Transfer, event.InsufficientFunds, 2),
		money(event.Transfer, func(r *record.Record) { r.Tenant = 3 }),
	}
	var crowd []record.Record
	for seq := types.Seq(1); seq <= 260; seq++ {
		crowd = append(crowd, money(event.Issue, func(r *record.Record) { r.Seq, r.Key, r.To = seq, name("k"), name("a") }))
	}
	return append([]scene{
		one("issue", money(event.Issue, plain)),
		one("transfer", money(event.Transfer, plain)),
		one("burn", money(event.Burn, plain)),
		one("transfer with a memo, which is no part of the receipt", money(event.Transfer, func(r *record.Record) { r.Memo = []byte(`"tea"`) })),
		one("the longest names", longest),
		one("every character that names may have", money(event.Transfer, func(r *record.Record) {
			r.From, r.To = name("ABCDEFGHIJKLMNOPQRSTUVWXYZ:/_-"), name("abcdefghijklmnopqrstuvwxyz0123456789")
			r.Asset, r.Key = name("a/B_9-"), name("_:.-")
		})),
		{"the first frame of all", 1, types.Root{}, 1, 0, []record.Record{money(event.Issue, func(r *record.Record) { r.Seq, r.Amount = 1, types.MinorUnits(1) })}, 0},
		{"the biggest numbers", 1<<64 - 1, types.Root(bytes.Repeat([]byte{0xff}, 32)), types.MaxLSN, 253402300799999, []record.Record{biggest}, 0},
		{"a batch, its refusal", 0x10, types.Root{7}, 256, noon, batch, 1},
		{"a batch, its transfer", 0x10, types.Root{7}, 256, noon, batch, 2},
		{"far behind in a batch", 0x10, types.Root{7}, 256, noon, crowd, 259},
		one("refused: over the amount", refusal(event.Transfer, event.AmountLimitExceeded, 2)),
		one("refused: over the supply", refusal(event.Issue, event.SupplyLimitExceeded, 0)),
		one("refused: insufficient funds", refusal(event.Burn, event.InsufficientFunds, 1)),
		one("refused: nonce used", refusal(event.Transfer, event.NonceUsed, types.MaxNonce)),
	}, later()...)
}

// TestGoldenMatchesScenes: the frozen vectors are the scenes.
func TestGoldenMatchesScenes(t *testing.T) {
	frozen := goldens(t)
	for _, s := range scenes() {
		at := slices.IndexFunc(frozen, func(v vector) bool { return v.Name == s.name })
		if at < 0 {
			t.Fatalf("no golden vector of %s", s.name)
		}
		if now := s.vector(t); now != frozen[at] {
			t.Errorf("%s is now\n%+v", s.name, now)
		}
	}
}

// TestEveryStoredProblemIsGolden: every problem that a key may store, as an answer or as that of
// an item.
func TestEveryStoredProblemIsGolden(t *testing.T) {
	shown := map[event.Problem]bool{}
	for _, s := range scenes() {
		p := s.records[s.index].Problem
		shown[p] = true
		if !p.Stored() && !slices.ContainsFunc(s.records, func(r record.Record) bool { return r.Kind == record.Batched && !r.Atomic }) {
			t.Errorf("%s: no key keeps it", s.name)
		}
	}
	for p := event.Problem(1); p.Known(); p++ {
		if p.Stored() && !shown[p] {
			t.Errorf("%v: stored, and not golden", p.Detail())
		}
	}
}

// receipts returns the receipts in an answer.
func receipts(t *testing.T, v *vector) (all []string) {
	t.Helper()
	var is struct {
		Hash     string `json:"receipt_hash"`
		Receipts []json.RawMessage
		Results  []struct{ Receipt json.RawMessage }
	}
	if err := json.Unmarshal([]byte(v.Answer), &is); err != nil {
		t.Fatalf("%s: %v", v.Name, err)
	}
	if is.Hash != "" {
		all = append(all, v.Answer)
	}
	for _, r := range is.Receipts {
		all = append(all, string(r))
	}
	for _, r := range is.Results {
		if r.Receipt != nil {
			all = append(all, string(r.Receipt))
		}
	}
	return all
}

// TestReceiptHashIsReproducible: a parsed receipt without its hash, sorted by name, hashes to
// receipt_hash (RFC 8785; no name or text needs more).
func TestReceiptHashIsReproducible(t *testing.T) {
	count, ops := 0, map[any]bool{}
	for _, v := range goldens(t) {
		all := receipts(t, &v)
		if (len(all) == 0) != (v.Status > 200) {
			t.Errorf("%s, a %d, shows %d receipts", v.Name, v.Status, len(all))
		}
		for _, one := range all {
			count++
			exact := json.NewDecoder(strings.NewReader(one))
			exact.UseNumber()
			var fields map[string]any
			if err := exact.Decode(&fields); err != nil {
				t.Fatalf("%s: %v", v.Name, err)
			}
			reported := fields["receipt_hash"]
			delete(fields, "receipt_hash")
			canonical, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			if sum := digest.Sum(canonical); reported != "b3:"+hex.EncodeToString(sum[:]) {
				t.Errorf("%s has %v, but its fields hash to %x:\n%s", v.Name, reported, sum, canonical)
			}
			ops[fields["op"]] = true
		}
	}
	if count < 30 || len(ops) != 9 {
		t.Errorf("%d receipts of %v", count, ops)
	}
}

// TestFieldsAreInContractOrder: absent fields are omitted.
func TestFieldsAreInContractOrder(t *testing.T) {
	plain := func(*record.Record) {}
	all := func(r *record.Record) { r.To, r.Ref, r.Nonce = name("bob"), name("r"), 3 }
	for _, c := range []struct {
		what record.Record
		want string
	}{
		{money(event.Issue, plain), "txid op to asset amount_minor idem ts seq index prev_root root receipt_hash"},
		{money(event.Transfer, plain), "txid op from to asset amount_minor nonce idem ts seq index prev_root root receipt_hash"},
		{money(event.Transfer, all), "txid op from to asset amount_minor nonce idem ref ts seq index prev_root root receipt_hash"},
		{money(event.Burn, plain), "txid op from asset amount_minor nonce idem ts seq index prev_root root receipt_hash"},
		{held(record.HoldOpened, event.Hold, plain), "txid op from asset amount_minor nonce idem ts seq index prev_root root receipt_hash hold_id expires_at"},
		{held(record.HoldOpened, event.Hold, all), "txid op from to asset amount_minor nonce idem ref ts seq index prev_root root receipt_hash hold_id expires_at"},
		{held(record.HoldCaptured, event.Capture, plain), "txid op from to asset amount_minor idem ts seq index prev_root root receipt_hash hold_id"},
		{held(record.HoldReleased, event.Release, plain), "txid op from asset amount_minor idem ts seq index prev_root root receipt_hash hold_id"},
		{held(record.FreezeChanged, event.Freeze, plain), "txid op from idem ts seq index prev_root root receipt_hash"},
		{held(record.HoldExpired, 0, plain), "txid op hold_id held_minor ts seq index prev_root root receipt_hash"},
	} {
		s := scene{lsn: 1, records: []record.Record{c.what}}
		if got := strings.Join(fields(t, s.vector(t).Answer), " "); got != c.want {
			t.Errorf("a %v of %v has the fields\n%s, want\n%s", c.what.Kind, c.what.Op, got, c.want)
		}
	}
}

// fields returns the names of a flat JSON object in order.
func fields(t *testing.T, object string) (names []string) {
	t.Helper()
	tokens := json.NewDecoder(strings.NewReader(object))
	if open, err := tokens.Token(); err != nil || open != json.Delim('{') {
		t.Fatalf("%v, %v: %s", open, err, object)
	}
	for tokens.More() {
		name, err := tokens.Token()
		if err != nil {
			t.Fatalf("%v: %s", err, object)
		}
		value, err := tokens.Token()
		if _, nested := value.(json.Delim); nested || err != nil {
			t.Fatalf("%v: %v, %v", name, value, err)
		}
		names = append(names, name.(string))
	}
	if _, err := tokens.Token(); err != nil || tokens.InputOffset() != int64(len(object)) {
		t.Fatalf("%v, and more behind it: %s", err, object)
	}
	return names
}

// TestReceiptMatchesRecord compares every field with the record.
func TestReceiptMatchesRecord(t *testing.T) {
	s := scenes()[1]
	body := s.body()
	sealed := seal(s.journal, s.prev, body)
	v := s.vector(t)
	var got map[string]any
	if err := json.Unmarshal([]byte(v.Answer), &got); err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]any{
		"txid": "tx_0123456789abcdef0000000000110000", "op": "transfer", "from": "ann", "to": "shop:till_1", "asset": "EUR/2",
		"amount_minor": "1250", "nonce": 2., "idem": "order-17", "ts": "2023-11-14T22:13:20.123Z", "seq": 3., "index": 0.,
		"prev_root": hex.EncodeToString(s.prev[:]), "root": hex.EncodeToString(sealed.Root[:]),
	} {
		if got[field] != want {
			t.Errorf("%s is %v, want %v", field, got[field], want)
		}
	}
	if again := digest.Sum(append(s.prev[:], body...)); types.Root(again) != sealed.Root {
		t.Errorf("the root is %x, BLAKE3 over the one before and the body %x", sealed.Root, again)
	}
}

// TestRecordsWithoutAnswer: a record that is not an outcome, or missing, has no answer; earlier
// output is kept.
func TestRecordsWithoutAnswer(t *testing.T) {
	frame := func(r record.Record) []byte { return (&scene{lsn: 1, records: []record.Record{r}}).body() }
	issue := frame(money(event.Issue, func(*record.Record) {}))
	for what, c := range map[string]struct {
		body  []byte
		index uint16
		err   error
	}{
		"a start":         {frame(record.Record{Kind: record.Started}), 0, receipt.ErrNoAnswer},
		"forgetting":      {frame(record.Record{Kind: record.KeysForgotten}), 0, receipt.ErrNoAnswer},
		"a first key":     {frame(record.Record{Kind: record.BootstrapKeyCreated, APIKey: new(event.Key)}), 0, receipt.ErrNoAnswer},
		"a key":           {frame(record.Record{Kind: record.KeyCreated, APIKey: new(event.Key)}), 0, receipt.ErrNoAnswer},
		"its end":         {frame(record.Record{Kind: record.KeyRevoked, APIKey: new(event.Key)}), 0, receipt.ErrNoAnswer},
		"the end of all":  {frame(record.Record{Kind: record.AllKeysRevoked}), 0, receipt.ErrNoAnswer},
		"an expiry":       {frame(record.Record{Kind: record.HoldExpired, Seq: 1, Hold: opened()}), 0, receipt.ErrNoAnswer},
		"a restore":       {frame(record.Record{Kind: record.Restored}), 0, receipt.ErrNoAnswer},
		"a time frame":    {record.Begin(nil, 1, 0), 0, receipt.ErrNoAnswer},
		"the one after":   {issue, 1, receipt.ErrNoAnswer},
		"a torn frame":    {issue[:len(issue)-1], 0, record.ErrFrame},
		"no frame at all": {nil, 0, record.ErrFrame},
	} {
		answer, status, owner, err := receipt.Render([]byte("before"), &record.Sealed{LSN: 1, Body: c.body}, c.index)
		if !errors.Is(err, c.err) || string(answer) != "before" || status != 0 || owner != 0 {
			t.Errorf("%s: %q, %d of tenant %d, %v", what, answer, status, owner, err)
		}
		if what == "an expiry" {
			continue // it is a change
		}
		if change, owner, err := receipt.Change([]byte("before"), &record.Sealed{LSN: 1, Body: c.body}, c.index); !errors.Is(err, c.err) || string(change) != "before" || owner != 0 {
			t.Errorf("%s: changed %q of tenant %d, %v", what, change, owner, err)
		}
	}
}

// TestRenderDoesNotAllocate renders into a large buffer.
func TestRenderDoesNotAllocate(t *testing.T) {
	for _, s := range scenes() {
		sealed, room, v := seal(s.journal, s.prev, s.body()), make([]byte, 0, 8192), vector{Index: s.index}
		if n := testing.AllocsPerRun(1000, func() {
			if _, _, _, err := v.show(room, &sealed); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", s.name, n)
		}
	}
}
