package node_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"macronode/ci/hashcoverage"
	"macronode/ci/transcript"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/gateway/quota"
	"macronode/core/gateway/upstream"
	"macronode/core/node"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

// stage is the node of a transcript.
type stage struct {
	t      *testing.T
	node   *node.Node
	other  *node.Node // the next one: each step's node is a copy of the last one's
	config node.Config
	now    types.Now
	ticket types.Ticket
	out    event.Effects
	index  types.LSN // the last LSN of the index, as callers know it
	text   strings.Builder
	sizes  []event.Frame // emitted, not durable
	trip   types.Ticket  // of the last request that was sent on
	counts bool          // decisions have bytes
	permit types.Ticket  // of the admitted request that commands belong to
}

func newStage(t *testing.T) *stage {
	l := limits(8, 4)
	c := config(l)
	c.MaxHeldReplies, c.MaxReplayWaiters = 3, 1
	c.MaxUpstreamCalls, c.Upstreams = 4, []upstream.Rules{upstream.Default(2), upstream.Default(1)}
	c.Quotas, c.QuotaLimits, c.MaxPacingDelay = nil, quota.Limits{Peers: 2, Keys: 2, Tenants: 2}, 10*time.Millisecond
	s := &stage{t: t, config: c, now: types.Now{Wall: 1_700_000_000_000, Synced: true}}
	s.enter(c, state.New(l, 1))
	return s
}

// early checks on a copy that a tick before its time does nothing.
func (s *stage) early() {
	due, any := s.other.Due()
	gone := time.Duration(due-s.now.Mono) - 1
	if !any {
		gone = 24 * time.Hour
	}
	if gone < 0 || standing(s.other).DegradedBy.Has(types.ClockUntrusted) { // which ends when it is looked at
		return
	}
	was, now, out := standing(s.other), s.now, event.Effects{}
	now.Mono, now.Wall = now.Mono.Add(gone), now.Wall.Add(gone)
	s.other.Step(now, event.Tick{}, &out)
	if is := standing(s.other); is != was || len(out.Frames)+len(out.Replies)+len(out.ServiceCommands)+len(out.Decisions)+len(out.UpstreamReplies) > 0 {
		s.t.Fatalf("due in %v (%v), and a tick %v from now does %+v: it was %+v, and is %+v", gone+1, any, gone, out, was, is)
	}
}

// standing returns the status without the clock.
func standing(n *node.Node) (s event.Status) {
	n.Status(&s)
	s.At, s.Offset, s.MayHaveForgotten = 0, 0, false
	return s
}

// enter starts with a new node.
func (s *stage) enter(c node.Config, st state.State) {
	s.node = node.New(c, st, 0, types.NewRand(1))
	s.other = node.New(c, state.New(c.State, 1), 0, types.NewRand(1))
}

// with starts another node, whose configuration has one value changed.
func (s *stage) with(key, value string) {
	c := s.config
	var err error
	switch key {
	case "quota": // one more; none: no more
		if c.Quotas = nil; value != "none" {
			c.Quotas = append(s.config.Quotas, rule(s.t, value))
		}
		s.config.Quotas = c.Quotas
	case "awaited":
		c.AwaitedUpstreams, err = strconv.ParseUint(value, 2, 64)
	case "abort":
		c.Drain.Abort, err = time.ParseDuration(value)
	case "lame_duck":
		c.Drain.LameDuck, err = time.ParseDuration(value)
	case "window":
		c.State.Idempotency.Keys, err = strconv.Atoi(value)
		c.State.Idempotency.PerTenant = c.State.Idempotency.Keys
	case "share":
		c.MaxHeldPerTenant, err = strconv.Atoi(value)
	case "backlog":
		c.MaxUnsyncedBytes, err = strconv.ParseUint(value, 10, 64)
	default:
		s.t.Fatalf("no such key: %s", key)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.enter(c, state.New(c.State, 1))
	s.sizes = nil
}

// step describes the effects of an event.
func (s *stage) step(e event.Event) string {
	s.text.Reset()
	s.out.Reset()
	s.node.Step(s.now, e, &s.out)
	if err := s.node.Check(); err != nil {
		s.t.Fatal(err)
	}
	if s.node.CopyTo(s.other); s.node.Hash() != s.other.Hash() {
		s.t.Fatalf("a copy has another hash: %s", hashcoverage.Apart(s.node, s.other))
	}
	s.node, s.other = s.other, s.node // and what was copied is of the past
	s.early()
	for _, f := range s.out.Frames {
		s.sizes = append(s.sizes, f)
		h, rest, err := record.Open(s.out.Body(f))
		if err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintf(&s.text, "frame %v:", h.LSN)
		for range h.Count {
			var r record.Record
			if rest, err = record.Next(rest, &r); err != nil {
				s.t.Fatal(err)
			}
			fmt.Fprintf(&s.text, " %v", r.Kind)
			if r.Problem != event.None {
				fmt.Fprintf(&s.text, "(%s)", r.Problem.Code())
			}
		}
		s.text.WriteString("\n")
	}
	for _, r := range s.out.Replies {
		what := r.Problem.Code()
		if r.Problem == event.None {
			what = "see " + r.Position.String()
		}
		if r.Replayed {
			what += ", replayed"
		}
		switch r.Problem {
		case event.StaleIndexRead:
			what = "look again"
		case event.RefReserved:
			what += ", reserved ref"
		}
		if r.Nonce > 0 {
			what += fmt.Sprintf(", expected nonce %d", r.Nonce)
		}
		if r.Item > 0 {
			what += fmt.Sprintf(", item %d", r.Item)
		}
		fmt.Fprintf(&s.text, "reply %d after %v: %s\n", r.Ticket, r.After, what)
	}
	for _, v := range s.out.Decisions {
		s.text.WriteString(s.verdict(v))
	}
	for _, t := range s.out.UpstreamReplies {
		if l := t.Stats; l.Healthy+l.Ejected[event.Authenticated]+l.Unhealthy > 0 {
			fmt.Fprintf(&s.text, "%d: %v, %d calls, %d retries, %d well, %d out, %d sick\n", t.Slot, l.Circuits[event.Authenticated].State, l.InFlight, l.Retries, l.Healthy, l.Ejected[event.Authenticated], l.Unhealthy)
			continue
		}
		fmt.Fprintf(&s.text, "%d: endpoint %d, %v; again %v\n", t.Slot, t.Picked.Endpoint, t.Picked.NoEndpoint, t.Retry.Retry)
		if t.Picked.Ticket != 0 {
			s.trip = t.Picked.Ticket
		}
	}
	for _, op := range s.out.ServiceCommands {
		fmt.Fprintf(&s.text, "%v %v\n", op.Verb, op.Service)
	}
	return s.text.String()
}

func (s *stage) say(w []string) string {
	number := func(i int) uint64 {
		n, err := strconv.ParseUint(w[i], 10, 64)
		if err != nil {
			s.t.Fatalf("%q: %v", w, err)
		}
		return n
	}
	switch w[0] {
	case "with":
		s.with(w[1], w[2])
		return ""
	case "wall":
		off, err := time.ParseDuration(w[1])
		if err != nil {
			s.t.Fatal(err)
		}
		s.now.Wall, s.now.Synced = s.now.Wall.Add(off), len(w) < 3
		return ""
	case "ready":
		for _, line := range []string{"boot 0", "enrol 7", "up http", "up admin", "up sampler", "up indexer", "durable 2", "folded 2"} {
			s.say(strings.Fields(line))
		}
		return ""
	case "change":
		return s.change(w[1:])
	case "counts":
		s.counts = true
		return ""
	case "arrive", "settle", "stream":
		return s.admission(w)
	case "pick", "retry", "tried", "look":
		return s.ask(w)
	case "probed": // upstream 1 well, upstream 1 sick
		return s.step(event.HealthChecked{Upstream: uint16(number(1)), Healthy: w[2] == "well"})
	case "boot":
		return s.step(event.Recovered{Recovery: event.Recovery{Journal: 9, CutBytes: number(1)}})
	case "damaged":
		st := state.New(limits(8, 4), 1)
		st.Keys.Add(event.Key{ID: boss, Tenant: 1, Scopes: event.AllScopes, Bootstrap: true})
		s.enter(config(limits(8, 4)), st)
		return s.step(event.Recovered{Recovery: event.Recovery{Journal: 9, Damaged: true}})
	case "enrol":
		s.ticket++
		return s.step(&event.CreateKey{Ticket: s.ticket, Key: event.Key{ID: types.KeyID(number(1)), Tenant: 1, Scopes: event.AllScopes, Bootstrap: true}})
	case "issue", "transfer", "burn", "hold", "capture", "release", "freeze", "unfreeze", "batch":
		return s.step(s.request(w))
	case "by": // the request with a permit gives the commands that follow
		s.permit = s.permitOf(w[1])
		return ""
	case "find":
		return s.step(s.find(w))
	case "indexed":
		s.index = types.LSN(number(1))
		return s.step(event.Indexed{Upto: s.index})
	case "grant", "instead":
		s.ticket++
		k := event.Key{ID: types.KeyID(number(1)), Tenant: types.Tenant(number(2)), Scopes: event.AllScopes, Bootstrap: w[0] == "instead"}
		if w[0] == "instead" {
			return s.step(&event.CreateKey{Ticket: s.ticket, Key: k, ReplaceBootstrap: true})
		}
		if len(w) > 5 { // less than all
			k.Scopes = map[string]event.Scopes{"admin": event.ScopeAdmin, "none": 0, "first": event.AllScopes, "ann": event.AllScopes}[w[5]]
			if k.Bootstrap = w[5] == "first"; w[5] == "ann" { // of the account ann only
				k.Accounts, _ = types.ParsePatterns("ann")
			}
		}
		if len(w) > 6 { // valid for a time
			lasts, err := time.ParseDuration(w[6])
			if err != nil {
				s.t.Fatal(err)
			}
			k.Expires = s.now.Wall.Add(lasts)
		}
		return s.step(&event.CreateKey{Ticket: s.ticket, Permit: s.permit, Caller: types.KeyID(number(3)), Tenant: types.Tenant(number(4)), Key: k})
	case "revoke":
		s.ticket++
		return s.step(&event.RevokeKey{Ticket: s.ticket, Permit: s.permit, Caller: types.KeyID(number(2)), Tenant: types.Tenant(number(3)), Key: types.KeyID(number(1))})
	case "cancel":
		return s.step(event.Cancel{Ticket: types.Ticket(number(1))})
	case "durable":
		return s.step(s.durable(types.LSN(number(1))))
	case "folded":
		return s.step(event.Applied{Upto: types.LSN(number(1))})
	case "refused":
		return s.step(event.FlushFailed{From: types.LSN(number(1)), Fault: event.SyncFailed})
	case "up", "down":
		for c := range types.NumServices {
			if c.String() == w[1] && w[0] == "up" {
				return s.step(event.ServiceUp{Service: c})
			} else if c.String() == w[1] {
				return s.step(event.ServiceDown{Service: c})
			}
		}
	case "objects": // and what cannot be done with their files
		return s.step(event.ObjectFiles{Unreadable: strings.Contains(strings.Join(w, " "), "unreadable"), Unwritable: strings.Contains(strings.Join(w, " "), "unwritable")})
	case "unreadable":
		return s.step(event.FrameUnreadable{})
	case "providers":
		return s.step(event.ProviderHealth{Failed: int(number(1)), Lacking: slices.Contains(w, "lacking"), Lost: slices.Contains(w, "lost")})
	case "archived":
		return s.step(event.SegmentsArchived{Failed: w[1] == "failed"})
	case "reloaded":
		return s.step(event.ConfigReloaded{Failed: w[1] == "failed"})
	case "room":
		return s.step(event.DiskFree{Bytes: number(1)})
	case "drain":
		return s.step(event.Signal{Kind: event.Drain})
	case "give_up":
		return s.step(event.Signal{Kind: event.Abort})
	case "accept":
		return s.step(event.Signal{Kind: event.AcceptClock})
	case "after":
		gone, err := time.ParseDuration(w[1])
		if err != nil {
			s.t.Fatal(err)
		}
		s.now.Mono, s.now.Wall = s.now.Mono.Add(gone), s.now.Wall.Add(gone)
		return s.step(event.Tick{})
	case "late": // time goes by, and no tick comes
		gone, err := time.ParseDuration(w[1])
		if err != nil {
			s.t.Fatal(err)
		}
		s.now.Mono, s.now.Wall = s.now.Mono.Add(gone), s.now.Wall.Add(gone)
		return ""
	case "due":
		due, any := s.node.Due()
		return fmt.Sprintf("in %v: %v", time.Duration(due-s.now.Mono), any)
	case "status":
		return s.status()
	}
	s.t.Fatalf("no such line: %q", w)
	return ""
}

// request parses a request:
//
//	issue k ann 5 · transfer k ann bob 5 1 · burn k ann 5 1
//	hold k ann 5 1 60s · capture k @4.0 ann bob 5 · release k @4.0 ann · freeze k ann
//	batch k all issue ann 5, transfer ann bob 5 1          or "each"
//
// followed by <@3: the index was read at that LSN; =@3: it found that record; *inv-1: a ref that it did not find;
// ^8: by key 8 instead of the first.
func (s *stage) request(w []string) *event.Request {
	s.ticket++
	r := &event.Request{Header: command.Header{Ticket: s.ticket, Permit: s.permit, Caller: boss, Tenant: 1, Key: name(w[1]), IndexedTo: s.index}}
	seen := types.LSN(0)
	for last := w[len(w)-1]; strings.ContainsAny(last[:1], "<=^"); last = w[len(w)-1] {
		switch n := types.LSN(s.number(strings.TrimLeft(last, "<=@^"))); last[0] {
		case '<':
			r.IndexedTo = n
		case '=':
			seen = n
		case '^':
			r.Caller = types.KeyID(n)
		}
		w = w[:len(w)-1]
	}
	if w[0] != "batch" {
		r.Item = s.item(w[0], w[2:])
	} else {
		r.Op, r.Atomic = event.Batch, w[2] == "all"
		for one := range strings.SplitSeq(strings.Join(w[3:], " "), ", ") {
			f := strings.Fields(one)
			r.Items = append(r.Items, s.item(f[0], f[1:]))
		}
	}
	r.Seal(nil)
	if seen > 0 {
		r.Prior = command.PriorOutcome{Hash: r.Hash, ID: types.NewTxID(9, types.Position{LSN: seen}), At: s.now.Wall}
	}
	return r
}

// find parses a lookup: find k, followed by the result of the index as of a request.
func (s *stage) find(w []string) *event.FindOutcome {
	s.ticket++
	f := &event.FindOutcome{Ticket: s.ticket, Permit: s.permit, Caller: boss, Tenant: 1, Key: name(w[1]), IndexedTo: s.index}
	f.Seal()
	for _, text := range w[2:] {
		lsn := types.LSN(s.number(strings.TrimLeft(text, "<=@^")))
		switch text[0] {
		case '<':
			f.IndexedTo = lsn
		case '^':
			f.Caller = types.KeyID(lsn)
		default:
			f.Prior = command.PriorOutcome{ID: types.NewTxID(9, types.Position{LSN: lsn}), At: s.now.Wall}
		}
	}
	return f
}

func name(text string) types.Name { return types.Name{Text: []byte(text)} }

func (s *stage) number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *stage) item(op string, w []string) (r event.Item) {
	if last := w[len(w)-1]; last[0] == '*' {
		r.Ref, w = name(last[1:]), w[:len(w)-1]
	}
	amount := func(i int) types.Amount { return types.MinorUnits(s.number(w[i])) }
	nonce := func(i int) types.Nonce { return types.Nonce(s.number(w[i])) }
	hold := func(text string) types.TxID {
		var p types.Position
		if _, err := fmt.Sscanf(text, "@%d.%d", &p.LSN, &p.Index); err != nil {
			s.t.Fatal(err)
		}
		return types.NewTxID(9, p)
	}
	r.Asset = name("EUR/2")
	switch op {
	case "issue":
		r.Op, r.To, r.Amount = event.Issue, name(w[0]), amount(1)
	case "transfer":
		r.Op, r.From, r.To, r.Amount, r.Nonce = event.Transfer, name(w[0]), name(w[1]), amount(2), nonce(3)
	case "burn":
		r.Op, r.From, r.Amount, r.Nonce = event.Burn, name(w[0]), amount(1), nonce(2)
	case "hold":
		d, err := time.ParseDuration(w[3])
		if err != nil {
			s.t.Fatal(err)
		}
		r.Op, r.From, r.Amount, r.Nonce, r.ExpiresAt = event.Hold, name(w[0]), amount(1), nonce(2), s.now.Wall.Add(d)
	case "capture":
		r.Op, r.Hold, r.From, r.To, r.Amount = event.Capture, hold(w[0]), name(w[1]), name(w[2]), amount(3)
	case "release":
		r.Op, r.Hold, r.From = event.Release, hold(w[0]), name(w[1])
	case "freeze":
		r.Op, r.From, r.Asset = event.Freeze, name(w[0]), types.Name{}
	case "unfreeze":
		r.Op, r.From, r.Asset = event.Unfreeze, name(w[0]), types.Name{}
	default:
		s.t.Fatalf("no such operation: %s", op)
	}
	return r
}

func (s *stage) durable(upto types.LSN) event.Durable {
	d := event.Durable{Upto: upto}
	for len(s.sizes) > 0 && s.sizes[0].LSN <= upto {
		d.Bytes += uint64(s.sizes[0].Len)
		s.sizes = s.sizes[1:]
	}
	return d
}

func (s *stage) status() string {
	var st event.Status
	s.node.Status(&st)
	var why []string
	for c := range st.WaitingFor.Each {
		why = append(why, "needs "+c.String())
	}
	for c := range st.DegradedBy.Each {
		why = append(why, "has "+c.String())
	}
	yes := map[bool]string{true: "yes", false: "no"}
	text := fmt.Sprintf("%v: ready %s, for read %s, reads %s, writes %s %v\nfinished %d, refused %d, aborted %d", st.Phase, yes[st.Ready], yes[st.ForRead],
		yes[st.Reads], yes[st.Writes], why, st.Report.Finished, st.Report.Rejected, st.Report.Aborted)
	if st.AbortedReplies > 0 {
		text += fmt.Sprintf("; replies given up %d", st.AbortedReplies)
	}
	return text
}

// TestTranscripts plays every transcript on a node of its own.
func TestTranscripts(t *testing.T) {
	scenes, err := filepath.Glob("testdata/*.story")
	if err != nil || len(scenes) == 0 {
		t.Fatal("no story", err)
	}
	for _, scene := range scenes {
		t.Run(strings.TrimSuffix(filepath.Base(scene), ".story"), func(t *testing.T) {
			transcript.Play(t, scene, newStage(t).say)
		})
	}
}

// TestStepExpiresBoundedHolds: if an account has more expired holds than one step ends, a request on it is
// rejected with a retry after those are ended.
func TestStepExpiresBoundedHolds(t *testing.T) {
	s := newStage(t)
	c := s.config
	c.State.Idempotency.Keys, c.State.Idempotency.PerTenant, c.State.Ledger.Holds, c.State.Ledger.TenantHolds = 64, 64, 64, 64
	s.enter(c, state.New(c.State, 1))
	lsn := 2
	play := func(want, line string, args ...any) {
		t.Helper()
		if got := s.say(strings.Fields(fmt.Sprintf(line, args...))); got != want {
			t.Fatalf("%s: %q, want %q", fmt.Sprintf(line, args...), got, want)
		}
	}
	asks := func(what, line string, args ...any) { // and it is answered
		t.Helper()
		lsn++
		play(fmt.Sprintf("frame @%d: %s\n", lsn, what), line, args...)
		s.say([]string{"durable", strconv.Itoa(lsn)})
		s.say([]string{"folded", strconv.Itoa(lsn)})
	}
	s.say([]string{"ready"})
	asks("posted", "issue k0 ann 100")
	for n := range types.MaxExpiriesPerStep + 2 {
		asks("hold_opened", "hold k%d ann 1 %d 300ms", n+1, n+1)
	}
	play("", "late 300ms")
	over := strings.TrimSpace(strings.Repeat("hold_expired ", types.MaxExpiriesPerStep))
	ticket := s.ticket + 1
	lsn++
	play(fmt.Sprintf("frame @%d: %s\nreply %d after @0: busy\n", lsn, over, ticket), "transfer x ann bob 100 %d", types.MaxExpiriesPerStep+3)
	asks("hold_expired hold_expired posted", "transfer x ann bob 100 %d", types.MaxExpiriesPerStep+3)
}
