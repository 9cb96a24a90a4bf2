package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"macronode/adapters/httpapi"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// net/http lingers for half a second if it answered before the body was read.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

const journal = types.JournalID(0x0123456789abcdef)

// A backend is a fake node, read model and index: a simple ledger in maps. Its responses are real records,
// rendered as in production.
type backend struct {
	mu       sync.Mutex
	t        testing.TB
	status   event.Status
	keys     map[types.KeyID]event.Key
	order    []types.KeyID // of keys
	frames   []record.Sealed
	outcomes map[string]outcome
	ledger   ledger
	more     chan struct{} // closed when there is another movement
	lag      types.Seq     // the index is behind by so many movements
	coming   types.Seq     // so many movements follow right after a request was received
	waits    atomic.Int64  // how often a caller has begun to wait

	holder        httpapi.Holder        // of the last permit
	admits        []event.Admit         // all requests of admission
	permits       map[types.Ticket]bool // that are not returned
	verdict       *event.Decision       // of every request; nil: it is admitted
	byteDecision  *event.Decision       // of every reservation of bytes; nil: it is granted
	freeBytes     uint64                // bytes that need no reservation
	undecided     bool                  // no reservation is decided
	reserved      []uint64              // bytes of each reservation
	finishedBytes []uint64              // bytes with which permits were returned
	completions   []event.Completion    // with which permits were returned
	rule          uint8                 // the quota rule of admitted requests

	requests   []event.Request       // all requests that the node got
	audited    []httpapi.AuditRecord // all recorded uses of keys
	full       bool                  // the node has no room
	readError  error                 // of every frame; nil: none
	indexError error                 // of every read of the index; nil: none
	silent     bool                  // the node never replies
	reply      *event.Reply          // in place of a decision; nil: the node decides
	onFindKey  func()                // called before each lookup of a key; may be nil
	store      *objects              // nil until it is used
	book       *usageBook
}

type outcome struct {
	hash     types.RequestHash
	position types.Position
}

const now = types.Time(1_700_000_000_000)

func build(t testing.TB) *backend {
	h := &backend{t: t, keys: make(map[types.KeyID]event.Key), outcomes: make(map[string]outcome), ledger: newMoney(), more: make(chan struct{})}
	h.status = event.Status{Phase: types.Ready, Ready: true, ForRead: true, Reads: true, Writes: true, AdmittedWrites: true, At: now}
	for id, scopes := range map[types.KeyID]event.Scopes{1: event.AllScopes, 2: event.ScopeRead, 3: event.ScopeIssue} {
		h.addKey(id, types.DefaultTenant, scopes)
	}
	h.addKey(4, 2, event.AllScopes)
	return h
}

// secret returns the secret of a key.
func secret(id types.KeyID) string { return strings.Repeat(string(rune('A'+id%26)), 43) }

func bearer(id types.KeyID) string { return fmt.Sprintf("Bearer mk_%016x_%s", uint64(id), secret(id)) }

func (h *backend) addKey(id types.KeyID, t types.Tenant, s event.Scopes) {
	h.addBoundedKey(id, t, s, "", "")
}

// addBoundedKey adds a key that covers some names.
func (h *backend) addBoundedKey(id types.KeyID, t types.Tenant, s event.Scopes, accounts, assets string) {
	k := event.Key{ID: id, Tenant: t, Hash: digest.Sum([]byte(secret(id))), Scopes: s, Label: types.NewLabel("k")}
	var errs [2]error
	k.Accounts, errs[0] = types.ParsePatterns(accounts)
	k.Assets, errs[1] = types.ParsePatterns(assets)
	if err := errors.Join(errs[:]...); err != nil {
		h.t.Fatal(err)
	}
	h.putKey(k)
}

func (h *backend) putKey(k event.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.keys[k.ID]; !known {
		h.order = append(h.order, k.ID)
		slices.Sort(h.order)
	}
	h.keys[k.ID] = k
}

func (h *backend) Status() event.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.status
}

func (h *backend) set(change func(*event.Status)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(&h.status)
}

// Admit admits every request unless there is a verdict.
func (h *backend) Admit(_ context.Context, in event.Admit, holder httpapi.Holder) (event.Decision, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.admits, h.holder = append(h.admits, in), holder
	if h.verdict != nil {
		return *h.verdict, h.verdict.Reason != event.RejectNoSlots
	}
	t := types.NewTicket(0, uint32(len(h.admits)))
	if h.permits == nil {
		h.permits = make(map[types.Ticket]bool)
	}
	h.permits[t] = true
	return event.Decision{Ticket: t, Bytes: h.freeBytes, Rule: h.rule, Left: 3, Reset: 1500 * time.Millisecond}, true
}

func (h *backend) ReserveBytes(ctx context.Context, t types.Ticket, bytes uint64) (event.Decision, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reserved = append(h.reserved, bytes)
	if h.undecided {
		<-ctx.Done()
		return event.Decision{}, false
	}
	if h.byteDecision != nil {
		return *h.byteDecision, true
	}
	return event.Decision{Ticket: t, Bytes: bytes}, true
}

func (h *backend) Finish(t types.Ticket, bytes uint64, f event.Completion) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.permits[t] {
		h.t.Errorf("%v is returned and was not given", t)
	}
	delete(h.permits, t)
	h.finishedBytes, h.completions = append(h.finishedBytes, bytes), append(h.completions, f)
}

// hasPermit checks that a command names the permit of its request.
func (h *backend) hasPermit(t types.Ticket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.permits[t] {
		h.t.Errorf("a command of a request with permit %v, which it does not have", t)
	}
}

func (h *backend) Journal() types.JournalID { return journal }

func (h *backend) Submit(ctx context.Context, in *event.Request) (event.Reply, bool) {
	h.hasPermit(in.Permit)
	if h.full {
		return event.Reply{}, false
	}
	if h.silent {
		<-ctx.Done()
		return event.Reply{Problem: event.OutcomeUnknown}, true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests = append(h.requests, *in)
	if err := in.Validate(); err != nil {
		h.t.Errorf("the node got an invalid operation: %v", err)
	}
	if h.reply != nil {
		return *h.reply, true
	}
	return h.decide(in), true
}

// count is a Meter. Its counters are by name.
type count struct {
	mu sync.Mutex
	of map[string]int
}

func (c *count) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[what]++
}

func (c *count) get(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[what]
}

func (c *count) Endpoint(name, method string) (func(time.Duration, int, []byte), func()) {
	return func(_ time.Duration, _ int, id []byte) {
		if len(id) != 34 || id[0] != 'd' {
			c.add("nameless")
		}
		c.add(name + " " + method)
	}, func() { c.add("busy " + name) }
}
func (c *count) Refused(f types.Facet, p event.Problem) {
	c.add("refused " + p.Code())
	c.add(f.String() + " refused " + p.Code())
}
func (c *count) Decided(time.Duration) { c.add("decided") }
func (c *count) Rejected(of types.Class, why event.RejectReason) {
	c.add("barred " + of.String() + " " + why.String())
}
func (c *count) Replayed()                { c.add("replayed") }
func (c *count) TimedOut(p event.Problem) { c.add("timed out " + p.Code()) }
func (c *count) Panicked()                { c.add("panicked") }
func (c *count) PrepaidRejected()         { c.add("prepaid rejected") }

func (c *count) Usage(recorded, duplicate, late uint64) {
	c.add(fmt.Sprintf("usage %d %d %d", recorded, duplicate, late))
}

// A testServer is a backend with an HTTP server.
type testServer struct {
	*backend
	*count
	api    *httpapi.API
	lines  *bytes.Buffer // the log
	client *http.Client
	url    string
}

// secretOf returns the secret access key of an API key.
func secretOf(k *event.Key) string { return fmt.Sprintf("%043x", uint64(k.ID)) }

func serve(t testing.TB, h *backend, changes ...func(*httpapi.Config)) *testServer {
	t.Helper()
	s := &testServer{backend: h, count: &count{of: make(map[string]int)}, lines: new(bytes.Buffer)}
	c := httpapi.Config{MaxLargeBodies: 2, Node: node{h}, Admission: h, ReadModel: h, Index: fakeIndex{h}, Usage: h.usage(), Rows: h.objects(), Names: h.objects(), Contents: h.objects().store, Transfers: s.count, Audit: h, Meter: s.count,
		Secret: secretOf, Region: "us-east-1", Log: slog.New(slog.NewTextHandler(s.lines, nil)), Boot: 0xb007, Deadline: 50 * time.Millisecond}
	for _, change := range changes {
		change(&c)
	}
	s.api = httpapi.New(c)
	server := httptest.NewServer(s.api)
	t.Cleanup(server.Close)
	s.url = server.URL
	s.client = &http.Client{Transport: &documentChecker{t: t, of: &http.Transport{DisableCompression: true}}}
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// An answer is a response that was read completely.
type answer struct {
	status int
	header http.Header
	body   string
}

func (s *testServer) send(r *http.Request) answer {
	s.t.Helper()
	resp, err := s.client.Do(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// post returns a request for an operation with key 1.
func (s *testServer) post(op, key, body string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodPost, s.url+"/v1/"+op, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", bearer(1))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	return r
}

func (s *testServer) get(path string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", bearer(1))
	return r
}

const (
	issue    = `{"to":"a","asset":"USD/2","amount_minor":"1000"}`
	transfer = `{"from":"a","to":"b","asset":"USD/2","amount_minor":"7","nonce":1}`
	burn     = `{"from":"a","asset":"USD/2","amount_minor":"7","nonce":1}`
)
