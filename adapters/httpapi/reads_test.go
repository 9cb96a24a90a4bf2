package httpapi_test

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"macronode/adapters/httpapi"
	"macronode/adapters/httpapi/wire"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// do sends a GET with key 1 and requires a status.
func (s *testServer) do(t *testing.T, want int, path string) answer {
	t.Helper()
	a := s.send(s.get(path))
	if a.status != want {
		t.Fatalf("%s: %d %s", path, a.status, a.body)
	}
	return a
}

// pages collects the items of a listing in pages of a size, until there is no next page.
func pages[T any](t *testing.T, s *testServer, path string, limit int, of func(answer) ([]T, string)) (all []T) {
	t.Helper()
	next := ""
	for range 100 {
		list, more := of(s.do(t, 200, fmt.Sprintf("%s&limit=%d%s", path, limit, next)))
		if len(list) > limit {
			t.Fatalf("%s: %d on a page of %d", path, len(list), limit)
		}
		if all = append(all, list...); more == "" {
			return all
		}
		next = more
	}
	t.Fatalf("%s: never ends", path)
	return nil
}

func rest(cursor *string) string {
	if cursor == nil {
		return ""
	}
	return "&cursor=" + *cursor
}

// manyAccounts returns a backend with many accounts, assets, holds and movements.
func manyAccounts(t *testing.T) *backend {
	h := build(t)
	for i := range 7 {
		for _, in := range []event.Request{
			{Item: event.Item{Op: event.Issue, To: newName(fmt.Sprintf("user:%d", i)), Asset: newName(fmt.Sprintf("A%d", i%3)), Amount: types.MinorUnits(100)}},
			{Item: event.Item{Op: event.Issue, To: newName("user:0"), Asset: newName(fmt.Sprintf("A%d", i%3)), Amount: types.MinorUnits(1)}},
			{Item: event.Item{Op: event.Hold, From: newName("user:0"), Asset: newName("A0"), Amount: types.MinorUnits(1), Nonce: types.Nonce(i + 1), ExpiresAt: now.Add(time.Hour)}},
		} {
			in.Caller, in.Tenant, in.Key = 1, types.DefaultTenant, newName(fmt.Sprint("k", len(h.frames)))
			in.Seal(nil)
			if r := h.decide(&in); r.Position.LSN == 0 {
				t.Fatalf("%v", r.Problem)
			}
		}
	}
	return h
}

// A listing has the same items for every page size, without gaps and repetitions.
func TestListingsDoNotDependOnPageSize(t *testing.T) {
	s := serve(t, manyAccounts(t))
	for name, list := range map[string]func(limit int) []string{
		"accounts": func(limit int) (all []string) {
			for _, a := range pages(t, s, "/v1/accounts?prefix=", limit, func(a answer) ([]wire.AccountView, string) {
				p := parse[wire.AccountsPage](t, a)
				return p.Accounts, rest(p.NextCursor)
			}) {
				all = append(all, fmt.Sprint(a.Account, len(a.Balances), a.NextNonce))
			}
			return all
		},
		"assets": func(limit int) (all []string) {
			for _, a := range pages(t, s, "/v1/assets?prefix=A", limit, func(a answer) ([]wire.AssetView, string) {
				p := parse[wire.AssetsPage](t, a)
				return p.Assets, rest(p.NextCursor)
			}) {
				all = append(all, fmt.Sprint(a.Asset, a.IssuedMinor, a.HeldMinor))
			}
			return all
		},
		"holds": func(limit int) (all []string) {
			for _, h := range pages(t, s, "/v1/holds?account=user:0", limit, func(a answer) ([]wire.Hold, string) {
				p := parse[wire.HoldsPage](t, a)
				return p.Holds, rest(p.NextCursor)
			}) {
				all = append(all, h.HoldId)
			}
			return all
		},
		"entries": func(limit int) (all []string) {
			for _, e := range pages(t, s, "/v1/accounts/user:0/entries?format=json", limit, func(a answer) ([]wire.Entry, string) {
				p := parse[wire.EntriesPage](t, a)
				if p.NextAfterSeq == nil {
					return p.Entries, ""
				}
				return p.Entries, fmt.Sprint("&after_seq=", *p.NextAfterSeq)
			}) {
				all = append(all, e.Txid)
			}
			return all
		},
		"changes": func(limit int) (all []string) {
			last := int64(-1)
			for _, c := range pages(t, s, "/v1/changes?wait=0", limit, func(a answer) ([]wire.Change, string) {
				p := parse[wire.ChangesPage](t, a)
				if p.NextAfterSeq == last {
					return p.Changes, ""
				}
				last = p.NextAfterSeq
				return p.Changes, fmt.Sprint("&after_seq=", last)
			}) {
				all = append(all, c.Txid)
			}
			return all
		},
		"keys": func(limit int) (all []string) {
			for _, k := range pages(t, s, "/v1/keys?tenant=default", limit, func(a answer) ([]wire.Key, string) {
				p := parse[wire.KeysPage](t, a)
				return p.Keys, rest(p.NextCursor)
			}) {
				all = append(all, k.Id)
			}
			return all
		},
	} {
		whole := list(1000)
		want := map[string]int{"accounts": 7, "assets": 3, "holds": 7, "entries": 15, "changes": 21, "keys": 3}[name]
		if len(whole) != want {
			t.Errorf("%s: %d, want %d", name, len(whole), want)
		}
		for _, limit := range []int{1, 2, 3, 5, 7} {
			if got := list(limit); fmt.Sprint(got) != fmt.Sprint(whole) {
				t.Errorf("%s in pages of %d: %v, want %v", name, limit, got, whole)
			}
		}
	}
}

// TestLastPageHasNoCursor: a page after a cursor is never empty.
func TestLastPageHasNoCursor(t *testing.T) {
	s := serve(t, manyAccounts(t))
	for path, all := range map[string]int{"/v1/accounts?prefix=user": 7, "/v1/assets?prefix=A": 3, "/v1/holds?account=user:0": 7, "/v1/keys?tenant=default": 3} {
		for limit := 1; limit <= all+1; limit++ {
			shown, next := 0, ""
			for page := 1; ; page++ {
				var p struct {
					Accounts, Assets, Holds, Keys []any
					Cursor                        string `json:"next_cursor"`
				}
				a := s.do(t, 200, fmt.Sprintf("%s&limit=%d%s", path, limit, next))
				if err := json.Unmarshal([]byte(a.body), &p); err != nil {
					t.Fatal(err)
				}
				n := len(p.Accounts) + len(p.Assets) + len(p.Holds) + len(p.Keys)
				if shown += n; n == 0 || page > all {
					t.Errorf("%s in pages of %d: page %d is empty, or beyond the last", path, limit, page)
					break
				}
				if p.Cursor == "" {
					break
				}
				next = "&cursor=" + p.Cursor
			}
			if shown != all {
				t.Errorf("%s in pages of %d: %d shown, want %d", path, limit, shown, all)
			}
		}
	}
}

// A bounded key gets its part of a listing, and pages continue after what it does not cover.
func TestListingsShowWhatTheKeyCovers(t *testing.T) {
	h := manyAccounts(t)
	h.addBoundedKey(5, types.DefaultTenant, event.ScopeRead, "user:0,user:6", "A1")
	s := serve(t, h)
	ask := func(path string) answer {
		r := s.get(path)
		r.Header.Set("Authorization", bearer(5))
		return s.send(r)
	}
	var shown []string
	next := ""
	for range 10 {
		p := parse[wire.AccountsPage](t, ask("/v1/accounts?limit=2"+next))
		for _, a := range p.Accounts {
			for _, b := range a.Balances {
				shown = append(shown, a.Account+" "+b.Asset)
			}
			if len(a.Balances) == 0 {
				shown = append(shown, a.Account)
			}
		}
		if next = rest(p.NextCursor); next == "" {
			break
		}
	}
	if got := strings.Join(shown, ", "); got != "user:0 A1, user:6" {
		t.Errorf("accounts: %s", got)
	}
	if got := parse[wire.AssetsPage](t, ask("/v1/assets")).Assets; len(got) != 1 || got[0].Asset != "A1" {
		t.Errorf("assets: %+v", got)
	}
	if got := parse[wire.HoldsPage](t, ask("/v1/holds?account=user:0")).Holds; len(got) != 0 {
		t.Errorf("holds of another asset: %+v", got)
	}
	for _, e := range parse[wire.EntriesPage](t, ask("/v1/accounts/user:0/entries")).Entries {
		if *e.Asset != "A1" {
			t.Errorf("an entry of %s", *e.Asset)
		}
	}
}

// The three formats of a statement have the same entries.
func TestStatementFormatsAgree(t *testing.T) {
	s := serve(t, manyAccounts(t))
	page := parse[wire.EntriesPage](t, s.do(t, 200, "/v1/accounts/user:0/entries?limit=1000"))
	lines := strings.Split(strings.TrimSpace(s.do(t, 200, "/v1/accounts/user:0/entries?format=ndjson").body), "\n")
	rows, err := csv.NewReader(strings.NewReader(s.do(t, 200, "/v1/accounts/user:0/entries?format=csv").body)).ReadAll()
	if err != nil || len(rows) != len(lines)+1 || len(lines) != len(page.Entries) {
		t.Fatalf("%d entries, %d lines, %d rows, %v", len(page.Entries), len(lines), len(rows), err)
	}
	for i, e := range page.Entries {
		var line wire.Entry
		if err := json.Unmarshal([]byte(lines[i]), &line); err != nil || line.Txid != e.Txid || line.BalanceMinor != e.BalanceMinor {
			t.Errorf("line %d: %s, %v", i, lines[i], err)
		}
		row := strings.Join(rows[i+1], "|")
		if want := fmt.Sprintf("%d|%s|", e.Seq, e.Txid); !strings.HasPrefix(row, want) || rows[i+1][7] != e.BalanceMinor {
			t.Errorf("row %d: %s", i, row)
		}
	}
	if n := strings.Count(s.do(t, 200, "/v1/accounts/user:0/entries?format=ndjson&limit=4").body, "\n"); n != 4 {
		t.Errorf("a stream of at most 4 has %d", n)
	}
}

// A streamed statement ends at the last movement at the time of the request.
func TestStreamedStatementIsSnapshot(t *testing.T) {
	h := withMovements(t, true)
	h.coming = 1 // the third
	a := serve(t, h).do(t, 200, "/v1/accounts/mine:a/entries?format=ndjson")
	if n := strings.Count(a.body, "\n"); n != 2 || a.header.Get("X-As-Of-Seq") != "2" {
		t.Errorf("as of %s: %s", a.header.Get("X-As-Of-Seq"), a.body)
	}
}

func TestFormatNegotiation(t *testing.T) {
	s := serve(t, manyAccounts(t))
	for _, c := range []struct{ accept, query, want string }{
		{"", "", "application/json"}, {"*/*", "", "application/json"}, {"text/html", "", "application/json"}, {"", "?format=csv", "text/csv"},
		{"text/csv", "", "text/csv"}, {"text/*", "", "text/csv"}, {"application/x-ndjson", "", "application/x-ndjson"},
		{"text/csv;q=0.1, application/x-ndjson;q=0.9", "", "application/x-ndjson"}, {"text/csv;q=0", "", "application/json"},
		{"text/csv", "?format=json", "application/json"}, {"application/json;q=0.5,text/csv", "?format=ndjson", "application/x-ndjson"},
		{"text/csv;q=2, ;;, /", "", "application/json"}, {"TEXT/CSV", "", "text/csv"},
	} {
		r := s.get("/v1/accounts/user:0/entries" + c.query)
		r.Header.Set("Accept", c.accept)
		if got, _, _ := strings.Cut(s.send(r).header.Get("Content-Type"), ";"); got != c.want {
			t.Errorf("Accept %q, %q: %s, want %s", c.accept, c.query, got, c.want)
		}
	}
}

// A text of a caller must not become a formula in a spreadsheet. A leading apostrophe is always ours.
func TestCSVCellsAreNotFormulas(t *testing.T) {
	h := build(t)
	for i, memo := range []string{"=1+1", "+1", "-1", "@SUM(A1)", "  =1", "\u00a0=1", "＝1", "'=1", "'", "a=1", `say "hi", then`, "", "−1"} {
		in := event.Request{Header: command.Header{Caller: 1, Tenant: types.DefaultTenant, Key: newName(fmt.Sprint("k", i))},
			Item: event.Item{Op: event.Issue, To: newName("-a"), Asset: newName("-A"), Amount: types.MinorUnits(1), Memo: []byte(memo)}}
		in.Seal(nil)
		h.decide(&in)
	}
	rows, err := csv.NewReader(strings.NewReader(serve(t, h).do(t, 200, "/v1/accounts/-a/entries?format=csv").body)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range rows[1:] {
		if row[5] != "'-A" {
			t.Errorf("the asset is %q", row[5])
		}
		got = append(got, row[13])
	}
	if want := "'=1+1|'+1|'-1|'@SUM(A1)|'  =1|'\u00a0=1|'＝1|''=1|''|a=1|say \"hi\", then||'−1"; strings.Join(got, "|") != want {
		t.Errorf("%s, want %s", strings.Join(got, "|"), want)
	}
}

// TestIssuanceBalanceIsNegative: in a statement as in a balance.
func TestIssuanceBalanceIsNegative(t *testing.T) {
	h := build(t)
	s := serve(t, h)
	s.send(s.post("issue", "k", issue))
	for _, has := range []int64{1000, 0} {
		h.ledger.log = append(h.ledger.log, movement{id: h.ledger.log[0].id, from: has, r: record.Record{Kind: record.Posted, Op: event.Issue,
			Tenant: 1, From: newName("issuance:USD/2"), Asset: newName("USD/2"), Amount: types.MinorUnits(1000), Seq: 1}})
	}
	e := parse[wire.EntriesPage](t, s.do(t, 200, "/v1/accounts/issuance:USD%2F2/entries")).Entries
	if len(e) != 2 || e[0].BalanceMinor != "-1000" || e[1].BalanceMinor != "0" || e[0].Direction != wire.Debit {
		t.Errorf("%+v", e)
	}
}

// A past balance by seq and by time. While it can still change, the request is rejected.
func TestBalanceAt(t *testing.T) {
	h := withMovements(t, true)
	s := serve(t, h)
	then := func(t types.Time) string {
		return "&time=" + time.UnixMilli(int64(t)).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	const path = "/v1/accounts/mine:a/balance-at?asset=USD/2"
	for _, c := range []struct {
		name, query string
		change      func(*event.Status)
		lag         types.Seq
		status      int
		amount      string
	}{
		{"before anything", "&seq=0", nil, 0, 200, "0"},
		{"after the first", "&seq=1", nil, 0, 200, "100"},
		{"after the last", "&seq=3", nil, 0, 200, "90"},
		{"that has not come", "&seq=4", nil, 0, 504, ""},
		{"that the index does not have", "&seq=3", nil, 1, 503, ""},
		{"before all", then(now - 1), nil, 0, 200, "0"},
		{"now", then(now), nil, 0, 400, ""},
		{"just over, and all is there", then(now), func(s *event.Status) { s.At++ }, 0, 200, "90"},
		{"just over, and something is on its way", then(now), func(s *event.Status) { s.At++; s.LSN++ }, 0, 504, ""},
		{"before what is on its way", then(now - 1), func(s *event.Status) { s.At++; s.LSN++ }, 0, 200, "0"},
		{"both", "&seq=1" + then(now-1), nil, 0, 400, ""},
		{"neither", "", nil, 0, 400, ""},
		{"no time", "&time=yesterday", nil, 0, 400, ""},
		{"before 1970", "&time=1969-12-31T23:59:59Z", nil, 0, 400, ""},
		{"the begin of 1970", "&time=1970-01-01T00:00:00Z", nil, 0, 400, ""},
	} {
		was := h.Status()
		h.lag = c.lag
		if c.change != nil {
			s.set(c.change)
		}
		a := s.send(s.get(path + c.query))
		if a.status != c.status {
			t.Errorf("%s: %d %s", c.name, a.status, a.body)
		} else if c.status == 200 && parse[wire.PastBalance](t, a).AmountMinor != c.amount {
			t.Errorf("%s: %s", c.name, a.body)
		}
		s.set(func(st *event.Status) { *st = was })
		h.lag = 0
	}
}

// TestListsAreComplete: while the index is behind the read model, as when it is rebuilt, lists get 503 with
// Retry-After instead of an incomplete response. A movement that has not happened gets 504.
func TestListsAreComplete(t *testing.T) {
	h := withMovements(t, true)
	h.lag = 1
	s := serve(t, h)
	all := []string{"/v1/accounts/mine:a/entries?", "/v1/accounts?", "/v1/assets?", "/v1/holds?account=mine:a", "/v1/changes?", "/v1/tx?ref=r1", "/v1/holds/" + theHold + "?"}
	for _, path := range all {
		if a := s.send(s.get(path)); a.status != 503 || parse[wire.Problem](t, a).Code != wire.ProblemCodeUnavailable || a.header.Get("Retry-After") == "" {
			t.Errorf("%s, before the index has it: %d %s", path, a.status, a.body)
		}
	}
	for _, path := range all[:4] {
		for _, seq := range []string{"1", "2", "3"} {
			if a := s.send(s.get(path + "&min_seq=" + seq)); a.status != 503 {
				t.Errorf("%s at least %s: %d %s", path, seq, a.status, a.body)
			}
		}
		if a := s.send(s.get(path + "&min_seq=4")); a.status != 504 || parse[wire.Problem](t, a).Code != wire.ProblemCodeTimeout {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	h.lag = 0
	for _, path := range all {
		s.do(t, 200, path)
	}
}

// Without an index its endpoints get 503, and if it fails they get 500. Other endpoints work.
func TestWithoutIndex(t *testing.T) {
	paths := []string{"/v1/accounts/mine:a/entries", "/v1/accounts/mine:a/entries?format=csv", "/v1/accounts", "/v1/assets", "/v1/holds?account=mine:a",
		"/v1/holds/" + theHold, "/v1/tx?ref=r1", "/v1/changes", "/v1/accounts/mine:a/balance-at?asset=USD/2&seq=1"}
	none := serve(t, withMovements(t, true), func(c *httpapi.Config) { c.Index = nil })
	h := withMovements(t, true)
	h.indexError = errors.New("read: input/output error")
	torn := serve(t, h)
	for _, path := range paths {
		if a := none.send(none.get(path)); a.status != 503 {
			t.Errorf("%s without index: %d", path, a.status)
		}
		if strings.Contains(path, "csv") || path == "/v1/changes" {
			continue
		}
		if a := torn.send(torn.get(path)); a.status != 500 {
			t.Errorf("%s from a disk that fails: %d %s", path, a.status, a.body)
		}
	}
	if !strings.Contains(torn.lines.String(), "input/output error") {
		t.Errorf("logged %s", torn.lines)
	}
	for _, path := range []string{"/v1/balance?account=mine:a&asset=USD/2", "/v1/tx/" + theTx, "/v1/tx?idempotency_key=k1", "/v1/keys"} {
		none.do(t, 200, path)
	}
}

// A statement that the disk cuts short does not look complete.
func TestCutStatementEndsConnection(t *testing.T) {
	h := withMovements(t, true)
	h.indexError = errors.New("read: input/output error")
	s := serve(t, h)
	r := s.get("/v1/accounts/mine:a/entries?format=csv")
	resp, err := new(http.Transport).RoundTrip(r)
	if err == nil {
		_ = resp.Body.Close()
		t.Fatalf("answered %d", resp.StatusCode)
	}
	if s.count.get("entries GET") != 1 || s.count.get("panicked") != 0 {
		t.Errorf("counted %v", s.count.of)
	}
}

// The outcome of an idempotency key is that of the node.
func TestOutcomeOfIdempotencyKey(t *testing.T) {
	for reply, want := range map[event.Reply]int{
		{Position: types.Position{LSN: 2}}: 200, {Problem: event.NotFound}: 404, {Problem: event.OutcomeUnknown}: 504, {Problem: event.Busy}: 429,
		{Problem: event.Unavailable}: 503, {Problem: event.StaleIndexRead}: 503, {Problem: event.Forbidden}: 403, {}: 500, {Position: types.Position{LSN: 9}}: 404,
	} {
		h := withMovements(t, true)
		h.reply = &reply
		s := serve(t, h)
		if a := s.send(s.get("/v1/tx?idempotency_key=k")); a.status != want {
			t.Errorf("%+v: %d %s", reply, a.status, a.body)
		}
	}
	h := withMovements(t, true)
	h.full = true
	if s := serve(t, h); s.send(s.get("/v1/tx?idempotency_key=k1")).status != 429 {
		t.Error("no room is busy")
	}
}

// TestLostOutcomeIsNotMissing: while the journal is damaged, a key or a ref that is not found is no evidence that the write was not acknowledged.
func TestLostOutcomeIsNotMissing(t *testing.T) {
	h := withMovements(t, true)
	h.reply = &event.Reply{Problem: event.NotFound}
	s := serve(t, h)
	for fault, want := range map[event.Fault]int{0: 404, event.NoSpace: 404, event.Damaged: 503} {
		h.set(func(s *event.Status) { s.Fault = fault })
		for _, path := range []string{"/v1/tx?idempotency_key=lost", "/v1/tx?ref=lost"} {
			if a := s.send(s.get(path)); a.status != want {
				t.Errorf("%v: %s: %d %s", fault, path, a.status, a.body)
			}
		}
	}
}

// A txid of another journal is not found, even if its position has a record.
func TestRecordBelongsToItsJournal(t *testing.T) {
	h := withMovements(t, true)
	h.frames[1].Journal = 0x77 // restored from an older journal
	s := serve(t, h)
	s.do(t, 200, "/v1/tx/tx_00000000000000770000000000020000")
	s.do(t, 404, "/v1/tx/"+theTx)
	h.frames[2].Journal = 0x77
	s.do(t, 404, "/v1/tx/"+strings.Replace(theHold, "hold_", "tx_", 1))
	if a := s.send(s.post("holds/"+theHold+"/release", "k9", "{}")); a.status != 404 {
		t.Errorf("a hold under another journal's name: %d", a.status)
	}
}

// A bounded key sees the outcomes of its own requests, also rejections, and of others those that it covers.
func TestKeySeesOwnOutcomes(t *testing.T) {
	h := withMovements(t, true)
	h.addBoundedKey(5, types.DefaultTenant, event.AllScopes, "mine:b", "")
	h.addBoundedKey(6, types.DefaultTenant, event.AllScopes, "mine:c", "")
	s := serve(t, h)
	r := s.post("burn", "mine", `{"from":"mine:b","asset":"USD/2","amount_minor":"999","nonce":1}`)
	r.Header.Set("Authorization", bearer(5))
	if a := s.send(r); a.status != 409 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for _, c := range []struct {
		path string
		want map[types.KeyID]int
	}{
		{"/v1/tx?idempotency_key=mine", map[types.KeyID]int{1: 409, 5: 409, 6: 403}},
		{"/v1/tx/" + theTx, map[types.KeyID]int{1: 200, 5: 200, 6: 403}},
		{"/v1/tx?idempotency_key=k1", map[types.KeyID]int{1: 200, 5: 403, 6: 403}},
	} {
		for key, want := range c.want {
			r := s.get(c.path)
			r.Header.Set("Authorization", bearer(key))
			if a := s.send(r); a.status != want {
				t.Errorf("%s by %d: %d %s", c.path, key, a.status, a.body)
			}
		}
	}
}
