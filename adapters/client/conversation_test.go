package client_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/go-json-experiment/json/jsontext"

	"macronode/adapters/client"
)

// The golden conversation contains the responses of a node to all requests. A stand serves them
// and validates each request against the OpenAPI document. A request that is invalid or differs
// from the golden one is a failure.
type stand struct {
	*httptest.Server
	t      *testing.T
	doc    *openapi3.T
	router routers.Router
	golden map[string]golden // by "METHOD path key"

	mu  sync.Mutex
	met map[string]bool // operation ids
}

type golden struct {
	body, head, answer string
}

func open(t *testing.T) *stand {
	s := &stand{t: t, golden: map[string]golden{}, met: map[string]bool{}}
	text, err := os.ReadFile("../httpapi/testdata/wire")
	if err != nil {
		t.Fatal(err)
	}
	for pair := range strings.SplitSeq(string(text), "\n\n") {
		var g golden
		var asks []string
		for line := range strings.Lines(pair) {
			line = strings.TrimSuffix(line, "\n")
			switch expected, isAnswer := strings.CutPrefix(line, "< "); {
			case strings.HasPrefix(line, "> "):
				asks = append(asks, line[2:])
			case isAnswer && g.head == "":
				g.head = expected
			case isAnswer:
				g.answer += expected
			}
		}
		if len(asks) == 0 {
			continue
		}
		if g.body = strings.Join(asks[1:], ""); g.body == "" && strings.HasSuffix(strings.Fields(asks[0])[1], "/release") {
			g.body = "{}" // the same as none
		}
		if _, twice := s.golden[strings.TrimSpace(asks[0])]; !twice { // a replay returns the same
			s.golden[strings.TrimSpace(asks[0])] = g
		}
	}
	if s.doc, err = openapi3.NewLoader().LoadFromFile("../httpapi/openapi.json"); err != nil {
		t.Fatal(err)
	}
	if s.router, err = gorillamux.NewRouter(s.doc); err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *stand) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	route, params, err := s.router.FindRoute(r)
	if err != nil {
		s.t.Errorf("%s %s: %v", r.Method, r.URL, err)
		return
	}
	for name, raw := range params {
		params[name], _ = url.PathUnescape(raw)
	}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, MultiError: true}}
	if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil {
		s.t.Errorf("%s %s %s: the document forbids it: %v", r.Method, r.URL, body, err)
	}
	s.mu.Lock()
	s.met[route.Operation.OperationID] = true
	s.mu.Unlock()
	expected := strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Method, strings.ReplaceAll(r.URL.String(), "%3A", ":"), r.Header.Get("Idempotency-Key")))
	expected = strings.ReplaceAll(expected, "asset=USD%2F2", "asset=USD/2")
	if strings.Contains(expected, "/uploads/") { // an upload names its bucket
		expected = strings.TrimSuffix(expected, "?bucket=default")
	}
	g, known := s.golden[expected]
	if !known {
		s.t.Errorf("the conversation has no %s", expected)
		w.WriteHeader(http.StatusTeapot)
		return
	}
	if canon(body) != canon([]byte(g.body)) {
		s.t.Errorf("%s: asked\n%s, not\n%s", expected, body, g.body)
	}
	var status int
	_, _ = fmt.Sscanf(g.head, "%d", &status)
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Length", "5")
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, g.answer)
}

func canon(body []byte) string {
	v := jsontext.Value(slices.Clone(body))
	_ = v.Canonicalize() // text that is not JSON stays
	return string(v)
}

const (
	hold1 = "hold_0123456789abcdef0000000000040000"
	hold2 = "hold_0123456789abcdef0000000000080000"
)

// All operations are called as in the document, and their responses are parsed.
func TestConversation(t *testing.T) {
	s := open(t)
	k, err := client.New(s.URL, "secret", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	money(t, s, k)
	reads(t, s, k)
	keys(t, s, k)
	objects(t, s, k)
	usage(t, s, k)
	for path, item := range s.doc.Paths.Map() {
		for _, op := range item.Operations() {
			if !s.met[op.OperationID] && op.OperationID != "openapi" && op.OperationID != "head_object_upload" { // get_object_upload says the same
				t.Errorf("nobody has asked %s %s", op.OperationID, path)
			}
		}
	}
}

// objects puts, lists, reads and deletes.
func objects(t *testing.T, s *stand, k *client.Client) {
	t.Helper()
	text := func(s string) client.Content {
		return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(s)), nil }
	}
	hello, size, err := client.Address(strings.NewReader("hello"))
	if err != nil || size != 5 {
		t.Fatal(hello, size, err)
	}
	if o, err := k.PutObject(t.Context(), hello, "", 5, text("hello")); err != nil || o.Address != hello || string(o.Raw) != s.was("PUT /o/"+hello) {
		t.Errorf("put: %v %v", o, err)
	}
	hi, err := k.PutObject(t.Context(), "", "photos", 2, text("hi"))
	if err != nil || hi.Bucket != "photos" || hi.Size != "2" {
		t.Errorf("post: %v %v", hi, err)
	}
	listed := 0
	for o, err := range k.Objects(t.Context(), "photos", client.ListOptions{}) {
		if listed++; err != nil || o.Address != hi.Address {
			t.Errorf("list: %v %v", o, err)
		}
	}
	if o, err := k.StatObject(t.Context(), hello, ""); err != nil || o.Address != hello {
		t.Errorf("stat: %v %v", o, err)
	}
	var got strings.Builder
	if size, err := k.GetObject(t.Context(), hello, "", 0, nil, &got); err != nil || size != 5 || got.String() != "hello" || listed != 1 {
		t.Errorf("get: %d %v %q, %d listed", size, err, &got, listed)
	}
	if o, err := k.DeleteObject(t.Context(), hello, ""); err != nil || !bool(o.Deleted) {
		t.Errorf("delete: %v %v", o, err)
	}
	uploads(t, s, hello, hi.Address)
}

// uploads begins an upload, completes it, and cancels another one.
func uploads(t *testing.T, s *stand, hello, hi string) {
	t.Helper()
	number := 0
	k, err := client.New(s.URL, "secret", client.Options{Environment: client.Environment{NewIdempotencyKey: func() string { number++; return fmt.Sprint("upload-", number) }}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	u, err := k.BeginUpload(t.Context(), hello, "", 5)
	if err != nil || u.Offset != "0" || u.Complete || u.Address != hello {
		t.Fatalf("begin: %+v %v", u, err)
	}
	if got, err := k.GetUpload(t.Context(), hello, u.Bucket, u.UploadID); err != nil || got.UploadID != u.UploadID {
		t.Errorf("state: %+v %v", got, err)
	}
	var at []uint64
	o, err := k.SendUpload(t.Context(), u, 5, strings.NewReader("hello"), func(offset uint64) { at = append(at, offset) })
	if err != nil || o.Address != hello || !o.Created || at[0] != 0 || at[len(at)-1] != 5 {
		t.Errorf("send: %+v %v, at %v", o, err, at)
	}
	if u, err = k.BeginUpload(t.Context(), hi, "", 2); err != nil {
		t.Fatal(err)
	}
	if err := k.CancelUpload(t.Context(), hi, "", u.UploadID); err != nil {
		t.Errorf("cancel: %v", err)
	}
}

// usage records, sums and lists.
func usage(t *testing.T, s *stand, k *client.Client) {
	t.Helper()
	const from, to = "2023-11-14T22:00:00Z", "2023-11-14T23:00:00Z"
	s.golden["POST /v1/usage-events"] = golden{head: "202", answer: `{"recorded":1,"duplicate":1,"late":0}`,
		body: `[{"specversion":"1.0","type":"usage","source":"gw-1","id":"e1","data":{"dimension":"requests","value":"18446744073709551615","labels":{"service":"shop"}}},` +
			`{"specversion":"1.0","type":"usage","source":"gw-1","id":"e2","time":"2023-11-14T22:13:20Z","data":{"dimension":"requests","value":"2"}}]`}
	s.golden["GET /v1/usage?from="+from+"&to="+to+"&dimension=requests&group=window%2Cservice&format=json"] = golden{head: "200",
		answer: `{"from":"` + from + `","to":"` + to + `","group":["window","service"],"usage":[{"dimension":"requests","window_from":"2023-11-14T22:10:00.000Z",` +
			`"window_to":"2023-11-14T22:15:00.000Z","labels":{"service":"shop"},"value":"3","late":"0","open":"3","events":2}],"sealed_to":"` + from + `","as_of":"` + to + `"}`}
	s.golden["GET /v1/usage?from="+from+"&to="+to+"&as_of=2023-11-15T00:00:00Z&format=json"] = golden{head: "200",
		answer: `{"from":"` + from + `","to":"` + to + `","usage":[{"dimension":"requests","labels":{},"value":"3","late":"1","open":"0","events":2}],"as_of":"2023-11-15T00:00:00.000Z"}`}
	s.golden["GET /v1/usage-slices?limit=1000"] = golden{head: "200", answer: `{"slices":[{"tenant":"default","dimension":"requests","seq":1,"kind":"usage",` +
		`"window_from":"2023-11-14T22:10:00.000Z","window_to":"2023-11-14T22:15:00.000Z","previous":"` + strings.Repeat("0", 64) + `","digest":"` + strings.Repeat("a", 64) +
		`","rows":[{"labels":{"service":"shop"},"value":"3","events":2}]}],"sealed_to":"` + to + `","as_of":"` + to + `"}`}
	late := client.NewUsageEvent("gw-1", "e2", "requests", 2, client.Labels{})
	late.Time = time.Date(2023, 11, 14, 22, 13, 20, 0, time.UTC)
	events := []client.UsageEvent{client.NewUsageEvent("gw-1", "e1", "requests", math.MaxUint64, client.Labels{Service: "shop"}), late}
	if n, err := k.RecordUsage(t.Context(), events); err != nil || n != (client.UsageRecorded{Recorded: 1, Duplicate: 1}) {
		t.Errorf("record: %+v %v", n, err)
	}
	q := client.UsageQuery{From: time.Date(2023, 11, 14, 22, 0, 0, 0, time.UTC), To: time.Date(2023, 11, 14, 23, 0, 0, 0, time.UTC), Dimension: "requests", Group: []string{"window", "service"}}
	if p, err := k.Usage(t.Context(), q); err != nil || len(p.Usage) != 1 || p.Usage[0].Value != "3" || p.Usage[0].Labels.Service != "shop" || p.Raw == nil {
		t.Errorf("sum: %+v %v", p, err)
	}
	past := client.UsageQuery{From: q.From, To: q.To, AsOf: time.Date(2023, 11, 15, 0, 0, 0, 0, time.UTC)}
	if p, err := k.Usage(t.Context(), past); err != nil || len(p.Usage) != 1 || p.Usage[0].Late != "1" || !p.AsOf.Equal(past.AsOf) || !p.SealedTo.IsZero() {
		t.Errorf("sum as of a time: %+v %v", p, err)
	}
	n := 0
	for one, err := range k.UsageSlices(t.Context(), client.UsageQuery{}, client.ListOptions{Page: client.MaxPage}) {
		if n++; err != nil || one.Seq != 1 || len(one.Rows) != 1 || one.Raw == nil {
			t.Errorf("slices: %+v %v", one, err)
		}
	}
	body := s.doc.Paths.Value("/v1/usage-events").Post.RequestBody.Value.Content["application/cloudevents-batch+json"].Schema.Value
	if n != 1 || *body.MaxItems != client.MaxUsageEvents {
		t.Errorf("%d slices; a request takes %d events", n, *body.MaxItems)
	}
}

// was is the golden response to a request.
func (s *stand) was(expected string) string { return s.golden[expected].answer }

// shows compares a receipt with its golden bytes, and verifies its hash.
func (s *stand) shows(r *client.Receipt, err error, expected string) *client.Receipt {
	s.t.Helper()
	if err != nil || string(r.Raw) != s.was(expected) || r.Replayed {
		s.t.Fatalf("%s: %v %v", expected, r, err)
	}
	if err := r.Verify(); err != nil {
		s.t.Errorf("%s: %v", expected, err)
	}
	return r
}

// refuses compares the code of a problem.
func refuses(t *testing.T, err error, code client.Code) *client.Problem {
	t.Helper()
	var p *client.Problem
	if !errors.As(err, &p) || !errors.Is(err, code) || p.DecisionID == "" || p.Status < 400 {
		t.Fatalf("%v is not %s", err, code)
	}
	return p
}

func money(t *testing.T, s *stand, k *client.Client) {
	ctx, until := t.Context(), time.Date(2023, 11, 14, 23, 13, 20, 0, time.UTC)
	r, err := k.Issue(ctx, client.IssueRequest{To: "shop:1", Asset: "USD/2", AmountMinor: "1000", Ref: "pay-1", Memo: `say "hi"`}, client.WithIdempotencyKey("k1"))
	if s.shows(r, err, "POST /v1/issue k1"); r.AmountMinor != "1000" || r.From != "" || r.Ref != "pay-1" || r.Seq != 1 || r.TS.Unix() != 1_700_000_000 {
		t.Error(r)
	}
	_, err = k.Issue(ctx, client.IssueRequest{To: "shop:1", Asset: "USD/2", AmountMinor: "1000", Ref: "pay-1"}, client.WithIdempotencyKey("k2"))
	if p := refuses(t, err, client.RefUsed); p.TxID != r.Txid || string(p.Raw) != s.was("POST /v1/issue k2") {
		t.Error(p)
	}
	r, err = k.Transfer(ctx, client.TransferRequest{From: "shop:1", To: "ann/2", Asset: "USD/2", AmountMinor: "300", Nonce: 1, Ref: "pay-2"}, client.WithIdempotencyKey("k3"))
	s.shows(r, err, "POST /v1/transfer k3")
	r, err = k.Hold(ctx, client.HoldRequest{From: "shop:1", Asset: "USD/2", AmountMinor: "200", Nonce: 2, Beneficiary: "bob", ExpiresAt: until, Memo: "trip"}, client.WithIdempotencyKey("k4"))
	if s.shows(r, err, "POST /v1/holds k4"); r.HoldID != hold1 || !r.ExpiresAt.Equal(until) {
		t.Error(r)
	}
	r, err = k.Capture(ctx, hold1, client.CaptureRequest{AmountMinor: "150", To: "bob"}, client.WithIdempotencyKey("k7"))
	s.shows(r, err, "POST /v1/holds/"+hold1+"/capture k7")
	_, err = k.Release(ctx, hold1, client.WithIdempotencyKey("k8"))
	_ = refuses(t, err, client.HoldNotActive)
	r, err = k.Release(ctx, hold2, client.WithIdempotencyKey("k10"))
	s.shows(r, err, "POST /v1/holds/"+hold2+"/release k10")
	batches(t, s, k, until)
	r, err = k.Freeze(ctx, "ann/2", "court order 7", client.WithIdempotencyKey("k16"))
	if s.shows(r, err, "POST /v1/accounts/ann%2F2/freeze k16"); r.Asset != "" || r.From != "ann/2" {
		t.Error(r)
	}
	_, err = k.Burn(ctx, client.BurnRequest{From: "ann/2", Asset: "USD/2", AmountMinor: "1", Nonce: 3}, client.WithIdempotencyKey("k17"))
	_ = refuses(t, err, client.AccountFrozen)
	r, err = k.Unfreeze(ctx, "ann/2", "paid", client.WithIdempotencyKey("k18"))
	s.shows(r, err, "POST /v1/accounts/ann%2F2/unfreeze k18")
}

func batches(t *testing.T, s *stand, k *client.Client, until time.Time) {
	ctx := t.Context()
	b, err := k.Batch(ctx, client.BatchRequest{Atomic: true, Items: []client.BatchItem{{Op: "issue", To: "shop:1", Asset: "EUR", AmountMinor: "5"},
		{Op: "burn", From: "ann/2", Asset: "USD/2", AmountMinor: "1", Nonce: 2}}}, client.WithIdempotencyKey("k12"))
	if err != nil || len(b.Receipts) != 2 || b.Results != nil || string(b.Raw) != s.was("POST /v1/batch k12") {
		t.Fatal(b, err)
	}
	for _, r := range b.Receipts {
		if err := r.Verify(); err != nil {
			t.Error(err)
		}
	}
	b, err = k.Batch(ctx, client.BatchRequest{Items: []client.BatchItem{
		{Op: "hold", From: "shop:1", Asset: "EUR", AmountMinor: "4", Nonce: 3, ExpiresAt: until},
		{Op: "transfer", From: "shop:1", To: "bob", Asset: "EUR", AmountMinor: "2", Nonce: 4},
		{Op: "issue", To: "bob", Asset: "EUR", AmountMinor: "1", Ref: "pay-2"}}}, client.WithIdempotencyKey("k13"))
	if err != nil || len(b.Results) != 3 || b.Receipts != nil {
		t.Fatal(b, err)
	}
	if r := b.Results[0]; r.Status != 200 || r.Problem != nil || r.Receipt.HoldID == "" || r.Receipt.Verify() != nil {
		t.Error(r)
	}
	if r := b.Results[2]; r.Status != 409 || r.Receipt != nil || r.Problem.Code != client.RefUsed {
		t.Error(r)
	}
	_, err = k.Batch(ctx, client.BatchRequest{Atomic: true, Items: []client.BatchItem{{Op: "issue", To: "bob", Asset: "EUR", AmountMinor: "1"},
		{Op: "burn", From: "bob", Asset: "EUR", AmountMinor: "9", Nonce: 1}}}, client.WithIdempotencyKey("k15"))
	if p := refuses(t, err, client.InsufficientFunds); p.Index == nil || *p.Index != 1 {
		t.Error(p)
	}
}

func reads(t *testing.T, s *stand, k *client.Client) {
	ctx := t.Context()
	b, err := k.Balance(ctx, "shop:1", "USD/2", 0)
	if err != nil || b.AvailableMinor != "500" || b.NextNonce != 3 || string(b.Raw) != s.was("GET /v1/balance?account=shop:1&asset=USD/2") {
		t.Error(b, err)
	}
	past, err := k.BalanceAt(ctx, "shop:1", "USD/2", client.At{Seq: 3})
	if err != nil || past.HeldMinor != "200" {
		t.Error(past, err)
	}
	o, err := k.Tx(ctx, "tx_0123456789abcdef0000000000010000")
	if err != nil || o.Receipt == nil || o.Receipt.Verify() != nil || string(o.Raw) != s.was("POST /v1/issue k1") {
		t.Error(o, err)
	}
	o, err = k.TxByRef(ctx, "pay-2")
	if err != nil || o.Receipt == nil || string(o.Raw) != s.was("POST /v1/transfer k3") {
		t.Error(o, err)
	}
	o, err = k.TxByKey(ctx, "k12")
	if err != nil || o.Batch == nil || len(o.Batch.Receipts) != 2 || o.Receipt != nil {
		t.Error(o, err)
	}
	_, err = k.TxByKey(ctx, "k99")
	_ = refuses(t, err, client.NotFound)
	h, err := k.GetHold(ctx, hold1)
	if err != nil || h.State != "captured" || string(h.Raw) != s.was("GET /v1/holds/"+hold1) {
		t.Error(h, err)
	}
	lists(t, s, k)
}

// lists requests as much as the conversation contains: one page each.
func lists(t *testing.T, s *stand, k *client.Client) {
	ctx := t.Context()
	s.golden["GET /v1/holds?account=shop:1&limit=2"] = s.golden["GET /v1/holds?account=shop:1"]
	s.golden["GET /v1/assets?limit=2"] = s.golden["GET /v1/assets"]
	two := client.ListOptions{Limit: 2}
	var n int
	for e, err := range k.Entries(ctx, "shop:1", 0, two) {
		if n++; err != nil || e.Seq != int64(n) || e.Raw == nil {
			t.Error(e, err)
		}
	}
	for h, err := range k.Holds(ctx, "shop:1", "", two) {
		if n++; err != nil || h.From != "shop:1" || h.Raw == nil {
			t.Error(h, err)
		}
	}
	for a, err := range k.Accounts(ctx, "", two) {
		if n++; err != nil || a.Account == "" || a.Raw == nil {
			t.Error(a, err)
		}
	}
	for a, err := range k.Assets(ctx, "", two) {
		if n++; err != nil || a.Asset == "" || a.Raw == nil {
			t.Error(a, err)
		}
	}
	s.golden["GET /v1/changes?after_seq=3&limit=1000"] = s.golden["GET /v1/changes?after_seq=3&limit=2"]
	s.golden["GET /v1/changes?after_seq=5&limit=1000"] = golden{head: "200", answer: `{"changes":[],"next_after_seq":5}`}
	for ch, err := range k.Changes(ctx, client.FeedOptions{After: 3}) {
		if n++; err != nil || ch.Verify() != nil {
			t.Error(ch, err)
		}
	}
	if n != 10 {
		t.Errorf("%d items", n)
	}
}

func keys(t *testing.T, s *stand, k *client.Client) {
	ctx := t.Context()
	made, err := k.CreateKey(ctx, client.KeyRequest{Name: "till-4", Scopes: []client.Scope{"read", "transfer"}, Accounts: []string{"shop:*", "ann/2"},
		Assets: []string{"USD/2"}, ExpiresAt: time.Date(2023, 11, 14, 23, 13, 20, 0, time.UTC)})
	if err != nil || made.ID != "0102030405060708" || !strings.HasPrefix(made.Key, "mk_0102030405060708_") {
		t.Fatal(made, err)
	}
	signed, err := k.S3Credentials(ctx)
	if err != nil || !strings.HasPrefix(signed.AccessKeyID, "MK") || len(signed.SecretAccessKey) != 43 || signed.Region != "us-east-1" {
		t.Error(signed, err)
	}
	n := 0
	for one, err := range k.Keys(ctx, "", client.ListOptions{Limit: 2}) {
		if n++; err != nil || one.State != "active" {
			t.Error(one, err)
		}
	}
	ended, err := k.RevokeKey(ctx, "0000000000000003")
	if err != nil || ended.State != "revoked" || n != 2 {
		t.Error(ended, err, n)
	}
	_, err = k.RevokeKey(ctx, "00000000000000ff")
	_ = refuses(t, err, client.NotFound)
}

// Each code of the document has a constant.
func TestCodesMatchDocument(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromFile("../httpapi/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	ours := []client.Code{client.AccountFrozen, client.BadRequest, client.Busy, client.RateLimited, client.Timeout, client.Forbidden, client.HoldNotActive,
		client.IdempotencyConflict, client.IdempotencyCapacity, client.InProgress, client.InsufficientFunds, client.Internal, client.LimitsExceeded,
		client.MethodNotAllowed, client.NonceConflict, client.NotBeneficiary, client.NotFound, client.PayloadTooLarge, client.RefUsed, client.Unauthorized,
		client.Unavailable, client.OutcomeUnknown, client.RecordUnreadable, client.UnsupportedMedia,
		client.QuotaExceeded, client.DigestMismatch, client.PreconditionFailed, client.RangeNotSatisfiable, client.ObjectUnreadable, client.PaymentRequired, client.PaymentExpired,
		client.EventConflict, client.EventTooOld, client.EventInFuture, client.EventInvalid, client.UsageOverflow, client.UsageCapacity,
		client.LaneMoved, client.ExportCapacity, client.UploadMoved}
	all := doc.Components.Schemas["Problem"].Value.Properties["code"].Value.Enum
	for _, code := range all {
		if !slices.Contains(ours, client.Code(code.(string))) {
			t.Errorf("we do not know %v", code)
		}
	}
	if len(ours) != len(all) {
		t.Errorf("%d codes, %d in the document", len(ours), len(all))
	}
}
