package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"macronode/adapters/httpapi"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/receipt"
	"macronode/core/record"
	"macronode/core/words"
)

// net/http lingers for half a second where it answered before the body was read.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

const journal = words.JournalID(0x0123456789abcdef)

// A house stands for the node and its books: a dumb ledger in maps, whose answers
// are real records, rendered as in production.
type house struct {
	mu       sync.Mutex
	t        testing.TB
	status   event.Status
	keys     map[words.KeyID]event.Key
	frames   []record.Sealed
	seen     map[string]remembered
	balances map[string]int64
	nonces   map[string]words.Nonce
	asked    []event.Request // all that came in
	full     bool            // no room for a request
	unread   error           // what the disk says of every frame
	silent   bool            // nothing is ever replied
	reply    *event.Reply    // in the place of a decision
	find     func()          // on the way to every key
}

type remembered struct {
	asked words.Asked
	place words.Place
}

func build(t testing.TB) *house {
	h := &house{t: t, keys: make(map[words.KeyID]event.Key), seen: make(map[string]remembered),
		balances: make(map[string]int64), nonces: make(map[string]words.Nonce)}
	h.status = event.Status{Phase: words.Ready, Ready: true, ForRead: true, Reads: true, Writes: true}
	for id, scopes := range map[words.KeyID]event.Scopes{1: event.AllScopes, 2: event.MayRead, 3: event.MayIssue} {
		h.enrol(id, words.DefaultTenant, scopes)
	}
	h.enrol(4, 2, event.AllScopes)
	return h
}

// secret is the part of a key that its holder alone knows.
func secret(id words.KeyID) string { return strings.Repeat(string(rune('A'+id)), 43) }

func bearer(id words.KeyID) string { return fmt.Sprintf("Bearer mk_%016x_%s", uint64(id), secret(id)) }

func (h *house) enrol(id words.KeyID, t words.Tenant, s event.Scopes) {
	h.keys[id] = event.Key{ID: id, Tenant: t, Hash: digest.Sum([]byte(secret(id))), Scopes: s}
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

func (h *house) Journal() words.JournalID { return journal }

func (h *house) Submit(ctx context.Context, in *event.Request) (event.Reply, bool) {
	if h.full {
		return event.Reply{}, false
	}
	if h.silent {
		<-ctx.Done()
		return event.Reply{Problem: event.Unknown}, true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, *in)
	if err := in.Check(); err != nil {
		h.t.Errorf("the node was asked for what is no operation: %v", err)
	}
	if h.reply != nil {
		return *h.reply, true
	}
	return h.decide(in), true
}

func (h *house) decide(in *event.Request) event.Reply {
	name := fmt.Sprintf("%d/%s", in.Tenant, in.Key.Text)
	if was, ok := h.seen[name]; ok {
		if was.asked != in.Asked {
			return event.Reply{Problem: event.IdempotencyConflict}
		}
		return event.Reply{Place: was.place, Replayed: true}
	}
	at := func(account words.Name) string {
		return fmt.Sprintf("%d/%s/%s", in.Tenant, account.Text, in.Asset.Text)
	}
	from, to, amount := at(in.From), at(in.To), int64(in.Amount.Lo)
	r := record.Record{Kind: record.Moved, Op: in.Op, Tenant: in.Tenant, Caller: in.Caller, Key: in.Key, Asked: in.Asked,
		From: in.From, To: in.To, Asset: in.Asset, Amount: in.Amount, Nonce: in.Nonce, Memo: in.Memo}
	if in.Op != event.Issue {
		whose := fmt.Sprintf("%d/%s", in.Tenant, in.From.Text)
		next := h.nonces[whose] + 1
		switch {
		case in.Nonce > next:
			return event.Reply{Problem: event.NonceAhead, Nonce: next}
		case in.Nonce < next:
			r.Kind, r.Problem, r.Nonce = record.Refused, event.NonceUsed, next
		case h.balances[from] < amount:
			r.Kind, r.Problem, r.Nonce = record.Refused, event.InsufficientFunds, 0
		default:
			h.nonces[whose] = next
		}
	}
	if r.Kind == record.Moved {
		r.Seq = words.Seq(len(h.frames) + 1)
		h.balances[from] -= amount
		h.balances[to] += amount
	}
	p := h.seal(&r)
	h.seen[name] = remembered{in.Asked, p}
	return event.Reply{Place: p}
}

// seal writes a frame of one record.
func (h *house) seal(r *record.Record) words.Place {
	lsn := words.LSN(len(h.frames) + 1)
	body, index := record.Add(record.Begin(nil, lsn, 1_700_000_000_000), 0, r)
	s := record.Sealed{Journal: journal, LSN: lsn, Body: body}
	if lsn > 1 {
		s.Prev = h.frames[lsn-2].Root
	}
	s.Root, _ = digest.Chain(nil, s.Prev, body)
	h.frames = append(h.frames, s)
	h.status.LSN, h.status.Folded, h.status.At = lsn, lsn, 1_700_000_000_000
	return words.Place{LSN: lsn, Index: index}
}

func (h *house) Find(id words.KeyID) (event.Key, bool) {
	if h.find != nil {
		h.find()
	}
	k, ok := h.keys[id]
	return k, ok
}

func (h *house) Render(to []byte, p words.Place) ([]byte, int, words.Tenant, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unread != nil {
		return to, 0, 0, h.unread
	}
	if p.LSN == 0 || int(p.LSN) > len(h.frames) {
		return to, 0, 0, receipt.ErrNone
	}
	return receipt.Render(to, &h.frames[p.LSN-1], p.Index)
}

func (h *house) Balance(t words.Tenant, account, asset []byte) event.Balance {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.balances[fmt.Sprintf("%d/%s/%s", t, account, asset)]
	b := event.Balance{At: 1_700_000_000_000, AsOf: words.Seq(len(h.frames)), Next: 1}
	b.Next += h.nonces[fmt.Sprintf("%d/%s", t, account)]
	if of, own := words.Own(account); own && string(of) == string(asset) {
		n = h.balances[fmt.Sprintf("%d//%s", t, asset)]
		b.Negative = n < 0
	}
	b.Amount = words.Units(uint64(max(n, -n)))
	b.Available = b.Amount
	return b
}

func (h *house) AwaitSeq(ctx context.Context, _ words.Tenant, seq words.Seq) bool {
	h.mu.Lock()
	there := words.Seq(len(h.frames)) >= seq
	h.mu.Unlock()
	if !there {
		<-ctx.Done()
	}
	return there
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

func (c *count) Endpoint(name, method string) (func(time.Duration, []byte), func()) {
	return func(_ time.Duration, id []byte) {
		if len(id) != 34 || id[0] != 'd' {
			c.add("nameless")
		}
		c.add(name + " " + method)
	}, func() { c.add("busy " + name) }
}
func (c *count) Refused(p event.Problem)  { c.add("refused " + p.Code()) }
func (c *count) Decided(time.Duration)    { c.add("decided") }
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

func serve(t testing.TB, h *house) *street {
	t.Helper()
	s := &street{house: h, count: &count{of: make(map[string]int)}, lines: new(bytes.Buffer)}
	api := httpapi.New(httpapi.Config{Large: 2, Node: h, Books: h, Meter: s.count, Log: slog.New(slog.NewTextHandler(s.lines, nil)),
		Boot: 0xb007, Deadline: 50 * time.Millisecond})
	server := httptest.NewServer(api)
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
