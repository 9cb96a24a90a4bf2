package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"macronode/adapters/httpapi/wire"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

func parse[T any](t *testing.T, a answer) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	return v
}

func TestWalletOperations(t *testing.T) {
	s := serve(t, build(t))
	issued := parse[wire.Receipt](t, s.send(s.post("issue", "k1", issue)))
	moved := s.send(s.post("transfer", "k2", transfer))
	burned := parse[wire.Receipt](t, s.send(s.post("burn", "k3", `{"from":"b","asset":"USD/2","amount_minor":"3","nonce":1,"memo":"ö"}`)))
	if moved.status != 200 || issued.Op != wire.OpIssue || burned.Op != wire.OpBurn || burned.Seq != 3 {
		t.Fatalf("%v, %v, %v", issued, moved, burned)
	}
	r := parse[wire.Receipt](t, moved)
	if *r.From != "a" || *r.To != "b" || *r.Nonce != 1 || r.AmountMinor != "7" || r.Idem != "k2" {
		t.Fatalf("receipt %+v", r)
	}
	if string(s.requests[2].Memo) != "ö" {
		t.Fatalf("memo %q", s.requests[2].Memo)
	}
	// The decision ID of a first outcome is that of its record.
	if moved.header.Get("X-Request-Id")[2:] != r.Txid[3:] || moved.header.Get("Idempotency-Replayed") != "" {
		t.Fatalf("txid %s, headers %v", r.Txid, moved.header)
	}
	// A lookup returns the same bytes, with a decision ID of its own.
	again := s.send(s.get("/v1/tx/" + r.Txid))
	if again.status != 200 || again.body != moved.body || again.header.Get("X-Request-Id")[2:] == r.Txid[3:] {
		t.Fatalf("looked up: %+v", again)
	}
	if s.count.get("decided") != 3 || s.count.get("transfer POST") != 1 || s.count.get("tx GET") != 1 || s.count.get("nameless") != 0 {
		t.Fatalf("counted %v", s.count.of)
	}
}

// A repeated request returns the same bytes, also if it was rejected.
func TestReplayReturnsSameBytes(t *testing.T) {
	s := serve(t, build(t))
	s.send(s.post("issue", "k1", issue))
	for _, c := range []struct {
		key, body string
		status    int
	}{
		{"k2", transfer, 200},
		{"k3", `{"from":"a","to":"b","asset":"USD/2","amount_minor":"7000","nonce":2}`, 409},
		{"k4", `{"from":"a","to":"b","asset":"USD/2","amount_minor":"7","nonce":1}`, 409},
	} {
		first, again := s.send(s.post("transfer", c.key, c.body)), s.send(s.post("transfer", c.key, " "+c.body+"\n"))
		switch {
		case first.status != c.status || again.status != c.status || first.body != again.body:
			t.Errorf("%s: %d %s, then %d %s", c.key, first.status, first.body, again.status, again.body)
		case first.header.Get("Idempotency-Replayed") != "" || again.header.Get("Idempotency-Replayed") != "true":
			t.Errorf("%s: replayed %v, then %v", c.key, first.header, again.header)
		case first.header.Get("X-Request-Id") == again.header.Get("X-Request-Id"):
			t.Errorf("%s: two decisions with one id", c.key)
		}
	}
	other := s.send(s.post("transfer", "k2", strings.Replace(transfer, `"7"`, `"8"`, 1)))
	if other.status != 422 {
		t.Fatalf("another request with the same key: %d %s", other.status, other.body)
	}
	if s.count.get("replayed") != 3 {
		t.Fatalf("counted %v", s.count.of)
	}
}

func TestNonceAheadReportsExpectedNonce(t *testing.T) {
	s := serve(t, build(t))
	p := parse[wire.Problem](t, s.send(s.post("transfer", "k", strings.Replace(transfer, `"nonce":1`, `"nonce":9`, 1))))
	if p.Status != 409 || p.ExpectedNonce == nil || *p.ExpectedNonce != 1 || !p.Retryable {
		t.Fatalf("%+v", p)
	}
}

// A reply without a record is answered with its problem.
func TestReplyProblemsAreReturned(t *testing.T) {
	for p := event.None + 1; p.Known(); p++ {
		h := build(t)
		if p == event.NotFound || p == event.MethodNotAllowed || p == event.BadGateway || p == event.PrepaidExceeded || p == event.PaymentExpired || p >= event.QuotaExceeded && p <= event.PaymentRequired { // not a problem of an issue
			continue
		}
		h.reply = &event.Reply{Problem: p}
		s := serve(t, h)
		a := s.send(s.post("issue", "k", issue))
		problem := parse[wire.Problem](t, a)
		if a.status != p.Status() || string(problem.Code) != p.Code() || problem.DecisionId != a.header.Get("X-Request-Id") {
			t.Errorf("%v: %d %s", p, a.status, a.body)
		}
	}
}

// A reply without a record and without a problem, or with a missing record, is a bug, and is answered as one.
func TestReplyWithoutRecordIsInternal(t *testing.T) {
	for name, reply := range map[string]event.Reply{
		"nothing":   {},
		"no record": {Position: types.Position{LSN: 99}, Replayed: true},
	} {
		h := build(t)
		h.reply = &reply
		s := serve(t, h)
		a := s.send(s.post("issue", "k", issue))
		if a.status != 500 || a.header.Get("Idempotency-Replayed") != "" || !strings.Contains(s.lines.String(), "request failed") {
			t.Errorf("%s: %+v, logged %s", name, a, s.lines)
		}
	}
}

func TestNoRoomIsBusy(t *testing.T) {
	h := build(t)
	h.full = true
	s := serve(t, h)
	a := s.send(s.post("issue", "k", issue))
	if a.status != 429 || a.header.Get("Retry-After") != "1" || s.count.get("busy issue") != 1 || s.count.get("refused busy") != 1 {
		t.Fatalf("%+v, counted %v", a, s.count.of)
	}
}

func TestNoReplyInTimeIsUnknown(t *testing.T) {
	h := build(t)
	h.silent = true
	s := serve(t, h)
	a := s.send(s.post("issue", "k", issue))
	if p := parse[wire.Problem](t, a); a.status != 504 || p.Code != wire.ProblemCodeOutcomeUnknown || !p.Retryable || s.count.get("timed out outcome_unknown") != 1 {
		t.Fatalf("%+v, counted %v", a, s.count.of)
	}
}

// A request does not change before the reply, although its caller has left and others follow. It must not point
// into reused memory.
func TestRequestOutlivesCaller(t *testing.T) {
	h := build(t)
	s := serve(t, h)
	for i := range 50 {
		key, memo := fmt.Sprintf("key-%d", i), fmt.Sprintf("memo %d %s", i, strings.Repeat("m", i))
		s.send(s.post("issue", key, fmt.Sprintf(`{"to":"account-%d","asset":"A%d","amount_minor":"1","memo":%q}`, i, i, memo)))
	}
	for i := range h.requests {
		in := &h.requests[i]
		want := fmt.Sprintf("key-%d account-%d A%d memo %d %s", i, i, i, i, strings.Repeat("m", i))
		if got := fmt.Sprintf("%s %s %s %s", in.Key.Text, in.To.Text, in.Asset.Text, in.Memo); got != want {
			t.Fatalf("the request is now %q", got)
		}
	}
}

// A panic is answered, counted and logged, and the next request is served.
func TestPanicIsContained(t *testing.T) {
	h := build(t)
	h.onFindKey = func() { panic("a bug") }
	s := serve(t, h)
	a := s.send(s.post("issue", "k", issue))
	if a.status != 500 || s.count.get("panicked") != 1 || strings.Contains(a.body, "bug") {
		t.Fatalf("%+v, counted %v", a, s.count.of)
	}
	if lines := s.lines.String(); !strings.Contains(lines, "a bug") || !strings.Contains(lines, "admission.go") {
		t.Fatalf("logged %s", lines)
	}
	h.onFindKey = nil
	if a := s.send(s.get("/openapi.json")); a.status != 200 {
		t.Fatalf("then %d", a.status)
	}
}

// Before the node is ready and while it drains, every request is rejected before anything else. If it only reads,
// the node rejects writes itself.
func TestStateTable(t *testing.T) {
	for _, c := range []struct {
		name          string
		reads, writes bool
	}{{"starting, draining", false, false}, {"journal failed", true, false}, {"ready", true, true}} {
		s := serve(t, build(t))
		s.set(func(st *event.Status) { st.Reads, st.Writes = c.reads, c.writes })
		for _, path := range []string{"/v1/balance?account=a&asset=A", "/openapi.json"} {
			if got := s.send(s.get(path)).status; (got == 200) != c.reads || got != 200 && got != 503 {
				t.Errorf("%s: GET %s: %d", c.name, path, got)
			}
		}
		for _, op := range []string{"issue", "transfer", "burn"} {
			r := s.post(op, "k", "not even JSON")
			r.Header.Del("Authorization")
			want := map[bool]int{true: 401, false: 503}[c.reads]
			if got := s.send(r).status; got != want {
				t.Errorf("%s: POST %s: %d", c.name, op, got)
			}
		}
	}
}

func zipped(t testing.TB, s string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCompressedBody(t *testing.T) {
	s := serve(t, build(t))
	for range 3 { // decompressors are reused
		r := s.post("issue", "k", zipped(t, issue))
		r.Header.Set("Content-Encoding", "gzip")
		if a := s.send(r); a.status != 200 {
			t.Fatalf("%+v", a)
		}
	}
}

// A tenant does not see the movements of another.
func TestTenantsDoNotSeeEachOther(t *testing.T) {
	s := serve(t, build(t))
	r := parse[wire.Receipt](t, s.send(s.post("issue", "k", issue)))
	q := s.get("/v1/tx/" + r.Txid)
	q.Header.Set("Authorization", bearer(4))
	if a := s.send(q); a.status != 404 {
		t.Fatalf("the receipt: %+v", a)
	}
	q = s.get("/v1/balance?account=a&asset=USD/2")
	q.Header.Set("Authorization", bearer(4))
	if b := parse[wire.Balance](t, s.send(q)); b.AmountMinor != "0" {
		t.Fatalf("the balance: %+v", b)
	}
}

func TestTxLookup(t *testing.T) {
	s := serve(t, build(t))
	s.send(s.post("issue", "k1", issue))
	refused := s.send(s.post("transfer", "k2", strings.Replace(transfer, `"7"`, `"7000"`, 1)))
	at := func(j types.JournalID, lsn types.LSN, index uint16) string {
		id := receipt.TxID(types.NewTxID(j, types.Position{LSN: lsn, Index: index}))
		return string(id[:])
	}
	h := s.backend
	h.mu.Lock()
	h.seal(&record.Record{Kind: record.KeysForgotten, Upto: 1})
	h.mu.Unlock()
	for _, c := range []struct {
		name, txid string
		status     int
	}{
		{"a receipt", at(journal, 1, 0), 200},
		{"a refusal that its key keeps", at(journal, 2, 0), 409},
		{"a record that is no answer", at(journal, 3, 0), 404},
		{"a record that is not there", at(journal, 1, 1), 404},
		{"a frame that is not there", at(journal, 4, 0), 404},
		{"another journal", at(journal+1, 1, 0), 404},
		{"no frame", "tx_0123456789abcdef0000000000000000", 400},
		{"capitals", strings.ToUpper(at(journal, 1, 0)), 400},
		{"too short", "tx_1", 400},
		{"nothing", "", 404},
	} {
		a := s.send(s.get("/v1/tx/" + c.txid))
		if a.status != c.status {
			t.Errorf("%s: %d %s", c.name, a.status, a.body)
		}
		if c.status == 409 && a.body != refused.body {
			t.Errorf("%s: %s, not %s", c.name, a.body, refused.body)
		}
	}
	if a := s.send(s.get("/v1/tx/" + at(journal, 1, 0) + "?x=1")); a.status != http.StatusBadRequest {
		t.Errorf("with a query: %d", a.status)
	}
}
