package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"macronode/adapters/httpapi/wire"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

var (
	hold    = `{"from":"mine:a","asset":"USD/2","amount_minor":"1","nonce":3,"expires_at":"` + later(time.Hour) + `"}`
	capture = `{"amount_minor":"1","to":"mine:b"}`
	reason  = `{"reason":"r"}`
)

const (
	capturePath = "holds/" + theHold + "/capture"
	releasePath = "holds/" + theHold + "/release"
	freezePath  = "accounts/mine:a/freeze"
)

func bundle(atomic string, items ...string) string {
	return `{"atomic":` + atomic + `,"items":[` + strings.Join(items, ",") + `]}`
}

// An invalidBody is a valid body with one thing wrong, and the detail of its problem. at is the item of a batch,
// from 1.
type invalidBody struct {
	path, body, detail string
	at                 int
}

// kind has the details for members of another JSON type.
var kind = map[string]string{
	"amount_minor": "amount_minor: must be a JSON string", "beneficiary": "beneficiary: must be a JSON string", "memo": "memo: must be a JSON string",
	"op": "op: must be a JSON string", "reason": "reason: must be a JSON string", "nonce": "nonce: must be a whole JSON number",
	"atomic": "atomic: must be true or false", "items": "items: must be a JSON array", "expires_at": "expires_at: must be a JSON string with a time as in RFC 3339",
}

func invalidBodies() []invalidBody {
	unknown := func(member string) string { return member + ": is not accepted by this operation" }
	long := strings.Repeat("x", 300)
	in := func(of, old, now string) string { return strings.Replace(of, old, now, 1) }
	one := `{"op":"issue","to":"a","asset":"A","amount_minor":"1"}`
	account, asset, amount := ": must be 1..256 of A-Z a-z 0-9 : / _ -", "asset: must be 1..32 of A-Z a-z 0-9 / _ -",
		"amount_minor: must be a whole number of at most 128 bits, more than 0, without sign and leading zeros"
	all := []invalidBody{
		{"transfer", in(transfer, `"a"`, `"a.b"`), "from" + account, 0}, {"transfer", in(transfer, `"b"`, `"a.b"`), "to" + account, 0},
		{"transfer", in(transfer, `"b"`, `"burned:A"`), "to: issuance: and burned: are the ledger's own", 0},
		{"transfer", in(transfer, `"from":"a",`, ``), "from" + account, 0}, {"transfer", in(transfer, `"to":"b"`, `"to":"a"`), "to: is the account that it comes from", 0},
		{"transfer", in(transfer, `USD/2`, `USD 2`), asset, 0}, {"transfer", in(transfer, `"7"`, `"07"`), amount, 0}, {"transfer", in(transfer, `"7"`, `"0"`), amount, 0},
		{"transfer", in(transfer, `"7"`, `7`), kind["amount_minor"], 0}, {"transfer", in(transfer, `1}`, `0}`), "nonce: must be 1..2^53-1", 0},
		{"transfer", in(transfer, `1}`, `"1"}`), kind["nonce"], 0}, {"transfer", in(transfer, `}`, `,"ref":"a b"}`), "ref: must be 1..64 of A-Z a-z 0-9 _ : . -", 0},
		{"transfer", in(transfer, `}`, `,"ref":""}`), "ref: is empty", 0}, {"transfer", in(transfer, `}`, `,"memo":"\n"}`), "memo: must be at most 256 bytes of UTF-8 without control characters", 0},
		{"issue", in(issue, `"a"`, `"a.b"`), "to" + account, 0}, {"burn", in(burn, `"a"`, `""`), "from" + account, 0},
		{"issue", in(issue, `}`, `,"from":"a"}`), unknown("from"), 0}, {"issue", in(issue, `}`, `,"to":"a"}`), "to: occurs twice", 0},
		{"issue", in(issue, `}`, `,"amountMinor2":1}`), unknown("amountMinor2"), 0}, {"issue", in(issue, `}`, `,"<b>":1}`), "The body has a member that this operation does not accept.", 0},
		{"issue", in(issue, `}`, `,"`+long+`":1}`), "The body has a member that this operation does not accept.", 0}, {"issue", in(issue, `{`, `{"a b":1,"a b":1,`), "The body has a member that this operation does not accept.", 0},
		{"holds", in(hold, `}`, `,"memo":"m","memo":"m"}`), "memo: occurs twice", 0},

		{"holds", ``, "The body is not the JSON that this operation takes.", 0}, {"holds", `{}`, amount, 0},
		{"holds", in(hold, `mine:a`, `mine.a`), "from" + account, 0}, {"holds", in(hold, `}`, `,"beneficiary":"a.b"}`), "beneficiary" + account, 0},
		{"holds", in(hold, `}`, `,"beneficiary":""}`), "beneficiary: is empty", 0}, {"holds", in(hold, `}`, `,"beneficiary":null}`), "beneficiary: must not be null", 0},
		{"holds", in(hold, `}`, `,"beneficiary":"mine:a"}`), "beneficiary: is the account that it comes from", 0},
		{"holds", in(hold, `}`, `,"beneficiary":"issuance:A"}`), "beneficiary: issuance: and burned: are the ledger's own", 0},
		{"holds", in(hold, `}`, `,"to":"b"}`), unknown("to"), 0}, {"holds", in(hold, `}`, `,"ref":"r"}`), unknown("ref"), 0}, {"holds", in(hold, `"nonce":3,`, ``), "nonce: must be 1..2^53-1", 0},
		{"holds", in(hold, later(time.Hour), "soon"), kind["expires_at"], 0}, {"holds", in(hold, `"`+later(time.Hour)+`"`, "1700000000000"), kind["expires_at"], 0},
		{"holds", in(hold, later(time.Hour), "1969-12-31T23:59:59Z"), "expires_at: must be a time", 0}, {"holds", in(hold, `,"expires_at":"`+later(time.Hour)+`"`, ""), "expires_at: must be a time", 0},
		{"holds", in(hold, later(time.Hour), "2023-11-14 23:13:20Z"), kind["expires_at"], 0}, {"holds", in(hold, later(time.Hour), "2023-11-14T24:00:00Z"), kind["expires_at"], 0},
		{"holds", in(hold, `"`+later(time.Hour)+`"`, "null"), "expires_at: must not be null", 0},

		{capturePath, `{}`, amount, 0}, {capturePath, in(capture, `"1"`, `"0"`), amount, 0}, {capturePath, in(capture, `mine:b`, `mine:a`), "to: is the account that it comes from", 0},
		{capturePath, in(capture, `,"to":"mine:b"`, ``), "to" + account, 0}, {capturePath, in(capture, `}`, `,"memo":"m"}`), unknown("memo"), 0}, {capturePath, in(capture, `}`, `,"nonce":1}`), unknown("nonce"), 0},
		{"holds/hold_1/capture", capture, "hold_id: must be hold_ and 32 hexadecimal digits", 0}, {"holds/" + theTx + "/release", `{}`, "hold_id: must be hold_ and 32 hexadecimal digits", 0},
		{"holds/%zz/release", `{}`, "", 0}, {"holds/" + strings.ToUpper(theHold) + "/release", `{}`, "hold_id: must be hold_ and 32 hexadecimal digits", 0},
		{releasePath, `{"amount_minor":"1"}`, unknown("amount_minor"), 0}, {releasePath, `null`, "The body is not the JSON that this operation takes.", 0}, {releasePath, `[]`, "The body is not the JSON that this operation takes.", 0},
		{freezePath, `{}`, "reason: must be 1..256 bytes of UTF-8 without control characters", 0}, {freezePath, `{"reason":""}`, "reason: must be 1..256 bytes of UTF-8 without control characters", 0},
		{freezePath, `{"reason":"` + long + `"}`, "reason: must be at most 256 bytes of UTF-8 without control characters", 0}, {freezePath, `{"reason":null}`, "reason: must not be null", 0},
		{"accounts/burned:A/freeze", reason, "account: issuance: and burned: are the ledger's own", 0}, {"accounts/a.b/unfreeze", reason, "account" + account, 0},
		{"accounts/%20/unfreeze", reason, "account" + account, 0}, {"accounts/" + long + "/freeze", reason, "account" + account, 0},

		{"batch", `{}`, "atomic: must be true or false", 0}, {"batch", `{"items":[` + one + `]}`, "atomic: must be true or false", 0}, {"batch", bundle(`null`, one), "atomic: must not be null", 0},
		{"batch", bundle(`"true"`, one), kind["atomic"], 0}, {"batch", bundle(`true`), "items: must be 1..1000 operations", 0}, {"batch", `{"atomic":true}`, "items: must be 1..1000 operations", 0},
		{"batch", `{"atomic":true,"items":null}`, "items: must not be null", 0}, {"batch", `{"atomic":true,"items":{}}`, kind["items"], 0}, {"batch", bundle(`true`, `null`), "", 1},
		{"batch", bundle(`true`, one, `[]`), "", 2}, {"batch", bundle(`true`, one, `{}`), "op: is not an operation of a batch", 2},
		{"batch", bundle(`true`, one, one, `{"op":"freeze","from":"a"}`), "op: is not an operation of a batch", 3}, {"batch", bundle(`true`, `{"op":"batch"}`), "op: is not an operation of a batch", 1},
		{"batch", bundle(`true`, `{"op":"Issue","to":"a","asset":"A","amount_minor":"1"}`), "op: is not an operation of a batch", 1}, {"batch", bundle(`true`, `{"op":1}`), kind["op"], 1},
		{"batch", bundle(`true`, one, in(one, `}`, `,"nonce":1}`)), "nonce: is not accepted by this operation", 2}, {"batch", bundle(`true`, one, in(one, `}`, `,"from":"b"}`)), "from: is not accepted by this operation", 2},
		{"batch", bundle(`true`, in(one, `}`, `,"hold_id":"`+theHold+`"}`)), "hold_id: is not accepted by this operation", 1}, {"batch", bundle(`true`, in(one, `"1"`, `"-1"`)), amount, 1},
		{"batch", bundle(`true`, one, in(one, `"a"`, `"a.b"`)), "to" + account, 2}, {"batch", bundle(`true`, one, in(one, `}`, `,"idempotency_key":"k"}`)), unknown("idempotency_key"), 2},
		{"batch", bundle(`true`, one, in(one, `}`, `,"op":"issue"}`)), "op: occurs twice", 2}, {"batch", bundle(`true`, in(one, `}`, `,"ref":""}`)), "ref: is empty", 1}, {"batch", bundle(`true`, in(one, `}`, `,"memo":null}`)), "memo: must not be null", 1},
		{"batch", bundle(`true`, `{"op":"capture","amount_minor":"1","to":"b"}`), "hold_id: is missing", 1}, {"batch", bundle(`true`, `{"op":"release","hold_id":"hold_1"}`), "hold_id: must be hold_ and 32 hexadecimal digits", 1},
		{"batch", bundle(`true`, `{"op":"release","hold_id":"`+theHold+`","amount_minor":"1"}`), "amount_minor: is not accepted by this operation", 1},
		{"batch", bundle(`true`, `{"op":"capture","hold_id":"`+theHold+`","from":"mine:a","amount_minor":"1","to":"b"}`), "from: is not accepted by this operation", 1},
		{"batch", bundle(`true`, `{"op":"transfer","from":"a","to":"a","asset":"A","amount_minor":"1","nonce":1}`), "to: is the account that it comes from", 1},
		{"batch", bundle(`true`, `{"op":"hold","from":"a","asset":"A","amount_minor":"1","nonce":1}`), "expires_at: must be a time", 1},
		{"batch", bundle(`true`, one) + "x", "", 0}, {"batch", bundle(`true`, one+`,`), "", 0}, {"batch", in(bundle(`true`, one), `}`, `,"deep":[[[[[[[[[]]]]]]]]]}`), unknown("deep"), 1},
		{"batch", bundle(`true`, strings.Split(strings.Repeat(one+" ", 1001), " ")[:1001]...), "items: must be at most 1000", 0},
		{"batch", bundle(`true`, strings.Split(strings.Repeat("{} ", 1001), " ")[:1001]...), "items: must be at most 1000", 0},
		{"batch", bundle(`true`, strings.Repeat("[", 5000)), "", 1},
	}
	return all
}

// Each body is rejected, and its problem names the member and the item. The node is not asked.
func TestInvalidMemberIsNamed(t *testing.T) {
	h := withMovements(t, true)
	s := serve(t, h)
	for _, c := range invalidBodies() {
		if strings.Contains(c.path, "%zz") {
			continue // Go's client does not send it
		}
		a := s.send(s.post(c.path, "k", c.body))
		p := parse[wire.Problem](t, a)
		at := 0
		if p.Index != nil {
			at = *p.Index + 1
		}
		if a.status != 400 || p.Code != wire.ProblemCodeBadRequest || c.detail != "" && p.Detail != c.detail || at != c.at {
			t.Errorf("%s %.200s: %d %s", c.path, c.body, a.status, a.body)
		}
	}
	if len(s.requests) > 0 {
		t.Fatalf("the node got %+v", s.requests[0])
	}
}

// A batch of 1000 items, with a large body, gets a result for each.
func TestLargeBatch(t *testing.T) {
	h := build(t)
	s := serve(t, h)
	var items []string
	for i := range types.MaxItems {
		items = append(items, fmt.Sprintf(`{"op":"issue","to":"account:%d","asset":"A","amount_minor":"%d","ref":"r-%d","memo":%q}`, i, i+1, i, strings.Repeat("m", 200)))
	}
	for _, atomic := range []string{"true", "false"} {
		a := s.send(s.post("batch", "k"+atomic, bundle(atomic, items...)))
		b := parse[wire.Batch](t, a)
		if a.status != 200 && atomic == "true" {
			t.Fatalf("%d %.300s", a.status, a.body)
		}
		if atomic == "true" && (len(*b.Receipts) != types.MaxItems || (*b.Receipts)[999].AmountMinor != "1000" || *(*b.Receipts)[999].Ref != "r-999") {
			t.Fatalf("%d receipts", len(*b.Receipts))
		}
		if atomic == "false" { // the refs are used
			if len(*b.Results) != types.MaxItems {
				t.Fatalf("%d results", len(*b.Results))
			}
			for i, r := range *b.Results {
				if r.Status != 409 || r.Receipt != nil || r.Problem.Code != wire.ProblemCodeRefUsed || *r.Problem.Txid != (*parse[wire.Batch](t, s.do(t, 200, "/v1/tx?idempotency_key=ktrue")).Receipts)[i].Txid {
					t.Fatalf("%d: %+v", i, r)
				}
				if i > 2 {
					break
				}
			}
		}
	}
	in := &h.requests[0]
	for i := range in.Items {
		if got := fmt.Sprintf("%s %s %s", in.Items[i].To.Text, in.Items[i].Ref.Text, in.Items[i].Amount); got != fmt.Sprintf("account:%d r-%d %d", i, i, i+1) {
			t.Fatalf("item %d is now %s", i, got)
		}
	}
}

// A hold that is unknown or of another tenant is 404, and one that the disk cannot read is 500. The node is not
// asked.
func TestMissingHolds(t *testing.T) {
	h := withMovements(t, true)
	h.seal(&record.Record{Kind: record.KeysForgotten, Upto: 1})
	s := serve(t, h)
	for name, c := range map[string]struct {
		id     string
		key    types.KeyID
		change func()
		status int
	}{
		"a transfer's record":       {strings.Replace(theTx, "tx_", "hold_", 1), 1, nil, 404},
		"no answer":                 {"hold_0123456789abcdef0000000000040000", 1, nil, 404},
		"no frame":                  {"hold_0123456789abcdef0000000000990000", 1, nil, 404},
		"no record":                 {"hold_0123456789abcdef0000000000030001", 1, nil, 404},
		"another journal":           {"hold_0123456789abcdee0000000000030000", 1, nil, 404},
		"another journal, no frame": {"hold_0123456789abcdee0000000000990000", 1, nil, 404},
		"another tenant":            {theHold, 4, nil, 404},
		"what is on its way":        {"hold_0123456789abcdef0000000000050000", 1, func() { h.set(func(s *event.Status) { s.LSN = 5 }) }, 504},
		"what is lost":              {"hold_0123456789abcdef0000000000050000", 1, func() { h.set(func(s *event.Status) { s.Fault = event.Damaged }) }, 503},
		"what the disk cannot read": {theHold, 1, func() { h.readError = http.ErrBodyNotAllowed }, 500},
	} {
		was := h.Status()
		if c.change != nil {
			c.change()
		}
		for _, r := range []*http.Request{s.post("holds/"+c.id+"/capture", "k", capture), s.post("holds/"+c.id+"/release", "k", ""),
			s.post("batch", "k", bundle("true", `{"op":"issue","to":"a","asset":"A","amount_minor":"1"}`, `{"op":"release","hold_id":"`+c.id+`"}`))} {
			r.Header.Set("Authorization", bearer(c.key))
			a := s.send(r)
			if a.status != c.status {
				t.Errorf("%s: %s: %d %s", name, r.URL.Path, a.status, a.body)
			}
			if p := parse[wire.Problem](t, a); c.status != 500 && (p.Index != nil) != strings.HasSuffix(r.URL.Path, "batch") {
				t.Errorf("%s: %s: %s", name, r.URL.Path, a.body)
			}
		}
		h.readError = nil
		h.set(func(s *event.Status) { *s = was })
	}
	if len(s.requests) > 0 {
		t.Fatalf("the node got %+v", s.requests[0])
	}
}

// A release needs no body, with or without a media type. A body that is sent is read.
func TestReleaseNeedsNoBody(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"an object":             body("{}"),
		"nothing, of a kind":    body(""),
		"nothing, of no kind":   func(r *http.Request) { r.Body, r.ContentLength = http.NoBody, 0; r.Header.Del("Content-Type") },
		"nothing, of no length": all(body(" {} "), chunked),
	} {
		s := serve(t, withMovements(t, true))
		r := s.post(releasePath, "k", "{}")
		if change != nil {
			change(r)
		}
		if a := s.send(r); a.status != 200 || parse[wire.Receipt](t, a).AmountMinor != "5" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	s := serve(t, withMovements(t, true))
	for _, path := range []string{"issue", "transfer", "holds", capturePath, freezePath, "batch"} {
		r := s.post(path, "k", "")
		r.Body, r.ContentLength = http.NoBody, 0
		r.Header.Del("Content-Type")
		if a := s.send(r); a.status != 415 {
			t.Errorf("%s without a body: %d", path, a.status)
		}
	}
}

// The scopes of the items are checked in the step, but a key without any of these scopes is rejected before its
// body is read.
func TestBatchNeedsAnItemScope(t *testing.T) {
	h := build(t)
	h.addKey(5, types.DefaultTenant, event.ScopeRead|event.ScopeAdmin)
	s := serve(t, h)
	for key, want := range map[types.KeyID]int{2: 403, 3: 400, 5: 403} {
		r := s.post("batch", "k", "{")
		r.Header.Set("Authorization", bearer(key))
		if a := s.send(r); a.status != want {
			t.Errorf("%d: %d", key, a.status)
		}
	}
}

// The name of an account can contain a slash, which is escaped in a path.
func TestNamesInAPathAreEscaped(t *testing.T) {
	h := withMovements(t, true)
	s := serve(t, h)
	for path, want := range map[string]int{"a%2Fb": 200, "a%2fb": 200, "%61%2Fb": 200, "a/b": 404, "a%2": 400, "a%2Fb%00": 400, "a%252Fb": 400, "%C3%B6": 400, "": 400, "%2F": 200} {
		r := s.get("/")
		r.URL.Path, r.URL.RawPath = "", ""
		r.URL.Opaque = "/v1/accounts/" + path + "/entries"
		resp, err := new(http.Transport).RoundTrip(r)
		if path == "a%2" {
			if err == nil { // net/http rejects the request line
				want = resp.StatusCode
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want || resp.StatusCode < 400 && path == "a%2" {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	a := s.send(s.post("accounts/x%2Fy/freeze", "k", reason))
	if r := parse[wire.AccountReceipt](t, a); a.status != 200 || r.From != "x/y" || r.Op != wire.OpFreeze {
		t.Errorf("%d %s", a.status, a.body)
	}
}
