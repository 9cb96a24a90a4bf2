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

// net/http lingers for half a second where it answered before the body was read.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

const journal = types.JournalID(0x0123456789abcdef)

// A house stands for the node, its books and its views: a dumb ledger in maps, whose
// answers are real records, rendered as in production.
type house struct {
	mu     sync.Mutex
	t      testing.TB
	status event.Status
	keys   map[types.KeyID]event.Key
	order  []types.KeyID // of keys
	frames []record.Sealed
	seen   map[string]remembered
	money  money
	more   chan struct{} // closed when there is more
	lag    types.Seq     // the views are so far behind
	coming types.Seq     // so many movements come right after a request was received
	waits  atomic.Int64  // how often somebody began to wait

	arrived  []event.Admit         // all that came to the gate
	in       map[types.Ticket]bool // with a permit
	verdict  *event.Decision       // in the place of going
	part     *event.Decision       // of each part of a body; nil: it may go
	free     uint64                // bytes that may go on before any is asked for
	streamed []uint64              // what was asked for
	settled  []uint64              // for how many bytes
	fates    []event.Completion    // of the same
	rule     uint8                 // that whoever goes is told of

	asked  []event.Request // all that came in
	uses   []httpapi.Use   // all that was noted
	full   bool            // no room for a request
	unread error           // what the disk says of every frame
	lost   error           // what the index says of everything
	silent bool            // nothing is ever replied
	reply  *event.Reply    // in the place of a decision
	find   func()          // on the way to every key
	store  *objects        // nil until it is asked for
}

type remembered struct {
	asked types.RequestHash
	place types.Position
}

const now = types.Time(1_700_000_000_000)

func build(t testing.TB) *house {
	h := &house{t: t, keys: make(map[types.KeyID]event.Key), seen: make(map[string]remembered), money: newMoney(), more: make(chan struct{})}
	h.status = event.Status{Phase: types.Ready, Ready: true, ForRead: true, Reads: true, Writes: true, At: now}
	for id, scopes := range map[types.KeyID]event.Scopes{1: event.AllScopes, 2: event.ScopeRead, 3: event.ScopeIssue} {
		h.enrol(id, types.DefaultTenant, scopes)
	}
	h.enrol(4, 2, event.AllScopes)
	return h
}

// secret is the part of a key that its holder alone knows.
func secret(id types.KeyID) string { return strings.Repeat(string(rune('A'+id%26)), 43) }

func bearer(id types.KeyID) string { return fmt.Sprintf("Bearer mk_%016x_%s", uint64(id), secret(id)) }

func (h *house) enrol(id types.KeyID, t types.Tenant, s event.Scopes) { h.bound(id, t, s, "", "") }

// bound makes a key known that covers some names alone.
func (h *house) bound(id types.KeyID, t types.Tenant, s event.Scopes, accounts, assets string) {
	k := event.Key{ID: id, Tenant: t, Hash: digest.Sum([]byte(secret(id))), Scopes: s, Label: types.NewLabel("k")}
	var errs [2]error
	k.Accounts, errs[0] = types.ParsePatterns(accounts)
	k.Assets, errs[1] = types.ParsePatterns(assets)
	if err := errors.Join(errs[:]...); err != nil {
		h.t.Fatal(err)
	}
	h.add(k)
}

func (h *house) add(k event.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.keys[k.ID]; !known {
		h.order = append(h.order, k.ID)
		slices.Sort(h.order)
	}
	h.keys[k.ID] = k
}

func (h *house) Status() event.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.status
}

func (h *house) set(change func(*event.Status)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(&h.status)
}

// Arrive lets everybody go, unless there is a verdict for all; Settle counts.
func (h *house) Arrive(_ context.Context, in event.Admit) (event.Decision, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.arrived = append(h.arrived, in)
	if h.verdict != nil {
		return *h.verdict, h.verdict.Reason != event.RejectNoSlots
	}
	t := types.NewTicket(0, uint32(len(h.arrived)))
	if h.in == nil {
		h.in = make(map[types.Ticket]bool)
	}
	h.in[t] = true
	return event.Decision{Ticket: t, Bytes: h.free, Rule: h.rule, Left: 3, Reset: 1500 * time.Millisecond}, true
}

func (h *house) Stream(_ context.Context, t types.Ticket, bytes uint64) (event.Decision, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streamed = append(h.streamed, bytes)
	if h.part != nil {
		return *h.part, true
	}
	return event.Decision{Ticket: t, Bytes: bytes}, true
}

func (h *house) Settle(t types.Ticket, bytes uint64, f event.Completion) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.in[t] {
		h.t.Errorf("%v is settled, and is not in", t)
	}
	delete(h.in, t)
	h.settled, h.fates = append(h.settled, bytes), append(h.fates, f)
}

func (h *house) Journal() types.JournalID { return journal }

func (h *house) Submit(ctx context.Context, in *event.Request) (event.Reply, bool) {
	if h.full {
		return event.Reply{}, false
	}
	if h.silent {
		<-ctx.Done()
		return event.Reply{Problem: event.OutcomeUnknown}, true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, *in)
	if err := in.Validate(); err != nil {
		h.t.Errorf("the node was asked for what is no operation: %v", err)
	}
	if h.reply != nil {
		return *h.reply, true
	}
	return h.decide(in), true
}

// count is a Meter.
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
func (c *count) Barred(of types.Class, why event.RejectReason) {
	c.add("barred " + of.String() + " " + why.String())
}
func (c *count) Replayed()                { c.add("replayed") }
func (c *count) TimedOut(p event.Problem) { c.add("timed out " + p.Code()) }
func (c *count) Panicked()                { c.add("panicked") }

// A street is a house that serves.
type street struct {
	*house
	*count
	lines  *bytes.Buffer // of the log
	client *http.Client
	url    string
}

func serve(t testing.TB, h *house, changes ...func(*httpapi.Config)) *street {
	t.Helper()
	s := &street{house: h, count: &count{of: make(map[string]int)}, lines: new(bytes.Buffer)}
	c := httpapi.Config{Large: 2, Node: node{h}, Gate: h, Books: h, Views: views{h}, Rows: h.objects(), Contents: h.objects().store, Transfers: s.count, Audit: h, Meter: s.count,
		Log: slog.New(slog.NewTextHandler(s.lines, nil)), Boot: 0xb007, Deadline: 50 * time.Millisecond}
	for _, change := range changes {
		change(&c)
	}
	server := httptest.NewServer(httpapi.New(c))
	t.Cleanup(server.Close)
	s.url = server.URL
	s.client = &http.Client{Transport: &checked{t: t, of: &http.Transport{DisableCompression: true}}}
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// An answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

func (s *street) send(r *http.Request) answer {
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

// post asks for an operation as key 1 does.
func (s *street) post(op, key, body string) *http.Request {
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

func (s *street) get(path string) *http.Request {
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
