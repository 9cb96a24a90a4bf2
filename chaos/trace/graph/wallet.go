package graph

import (
	"slices"
	"strconv"
)

// WalletSizes are the constants of Wallet.tla, and its requests.
type WalletSizes struct {
	Requests                              []WalletRequest
	TTL, Keys, Time, Asks, Fails, Crashes int
}

// A WalletRequest is a client's request; an empty name means no account.
type WalletRequest struct {
	Tenant, Key, Op, From, To string
	Amount, Nonce             int
}

// The records of Wallet.tla. A fact is one of three kinds.
type (
	fact struct {
		kind                string
		req                 WalletRequest
		seq, fromNow, toNow int
		why                 string
		next, upto          int
	}
	frame struct {
		at   int
		recs []fact
	}
	remembered struct {
		req     WalletRequest
		lsn, at int
	}
	money struct {
		bal, nonce     [3]int // of the accounts, in order
		seq            [2]int // of the tenants
		issued, burned int
		keys           []remembered
	}
	reply struct {
		what             string
		lsn, next, after int
	}
	asker struct {
		ph    string
		req   WalletRequest
		reply reply
	}
	answer struct {
		req   WalletRequest
		reply reply
		rec   fact // if reply.what is record
	}
)

// WalletState is a state. Shared parts are never changed.
type WalletState struct {
	log                  []frame
	durable, folded      int
	st                   money
	now                  int
	failed               bool
	client               [2]asker
	answers              []answer // a set
	asks, fails, crashes int
}

var nothing = reply{what: "none"}

var owners = [...][2]string{{"t", "a"}, {"t", "b"}, {"u", "a"}}

func place(tenant, name string) int { return slices.Index(owners[:], [2]string{tenant, name}) }
func tenantOf(r WalletRequest) int  { return slices.Index([]string{"t", "u"}, r.Tenant) }

func num(n int) string { return strconv.Itoa(n) }

func accountName(name string) string {
	if name == "" {
		return "Nobody"
	}
	return name
}

func (r WalletRequest) String() string {
	if r == (WalletRequest{}) {
		return "Nobody"
	}
	return fields("tenant", r.Tenant, "key", r.Key, "op", r.Op, "from", accountName(r.From), "to", accountName(r.To), "amount", num(r.Amount), "nonce", num(r.Nonce))
}

func (f fact) String() string {
	switch f.kind {
	case "moved":
		return fields("kind", f.kind, "req", f.req.String(), "seq", num(f.seq), "fromNow", num(f.fromNow), "toNow", num(f.toNow))
	case "refused":
		return fields("kind", f.kind, "req", f.req.String(), "why", f.why, "next", num(f.next))
	case "forgot":
		return fields("kind", f.kind, "upto", num(f.upto))
	default:
		return "Nobody"
	}
}

func each[T any](all []T, text func(T) string) []string {
	out := make([]string, len(all))
	for i, x := range all {
		out[i] = text(x)
	}
	return out
}

func (m money) String() string {
	var bal, nonce []string
	for i, o := range owners {
		bal = append(bal, seq(o[0], o[1]), num(m.bal[i]))
		nonce = append(nonce, seq(o[0], o[1]), num(m.nonce[i]))
	}
	keys := each(m.keys, func(k remembered) string {
		return fields("key", seq(k.req.Tenant, k.req.Key), "lsn", num(k.lsn), "at", num(k.at),
			"asked", seq(k.req.Op, accountName(k.req.From), accountName(k.req.To), num(k.req.Amount), num(k.req.Nonce)))
	})
	return fields("bal", fields(bal...), "nonce", fields(nonce...), "seq", fields("t", num(m.seq[0]), "u", num(m.seq[1])),
		"issued", num(m.issued), "burned", num(m.burned), "keys", seq(keys...))
}

func (s *WalletState) String() string {
	log := each(s.log, func(f frame) string { return fields("at", num(f.at), "recs", seq(each(f.recs, fact.String)...)) })
	client := each(s.client[:], func(c asker) string {
		return fields("ph", c.ph, "req", c.req.String(), "reply",
			fields("what", c.reply.what, "lsn", num(c.reply.lsn), "next", num(c.reply.next), "after", num(c.reply.after)))
	})
	answers := each(s.answers, func(a answer) string {
		return fields("req", a.req.String(), "after", num(a.reply.after), "what", a.reply.what, "lsn", num(a.reply.lsn), "next", num(a.reply.next), "rec", a.rec.String())
	})
	return fields("log", seq(log...), "durable", num(s.durable), "folded", num(s.folded), "st", s.st.String(), "now", num(s.now), "failed", truth(s.failed),
		"client", fields("c1", client[0], "c2", client[1]), "said", set(answers...),
		"spent", fields("asks", num(s.asks), "fails", num(s.fails), "crashes", num(s.crashes)))
}

// apply is Apply: the fold of one record.
func (m money) apply(lsn, at int, f fact) money {
	if f.kind == "forgot" {
		m.keys = slices.DeleteFunc(slices.Clone(m.keys), func(k remembered) bool { return k.lsn <= f.upto })
		return m
	}
	if r := f.req; f.kind == "moved" {
		if r.Op == "issue" {
			m.issued = f.fromNow
		} else {
			m.bal[place(r.Tenant, r.From)], m.nonce[place(r.Tenant, r.From)] = f.fromNow, r.Nonce
		}
		if r.Op == "burn" {
			m.burned = f.toNow
		} else {
			m.bal[place(r.Tenant, r.To)] = f.toNow
		}
		m.seq[tenantOf(r)] = f.seq
	}
	m.keys = append(slices.Clone(m.keys), remembered{f.req, lsn, at})
	return m
}

// fold is Fold: of the first n frames.
func fold(log []frame) (m money) {
	for i, f := range log {
		for _, r := range f.recs {
			m = m.apply(i+1, f.at, r)
		}
	}
	return m
}

func (s *WalletState) copied() *WalletState { c := *s; return &c }

// emit adds a frame of facts, applied at once.
func (s *WalletState) emit(recs ...fact) {
	s.log = append(slices.Clone(s.log), frame{s.now, recs})
	for _, r := range recs {
		s.st = s.st.apply(len(s.log), s.now, r)
	}
}

// hold holds a reply until its frame is durable.
func (s *WalletState) hold(c int, r reply) {
	if !s.failed || r.after <= s.durable {
		s.client[c].ph, s.client[c].reply = "held", r
	}
}

// decide is Decide: the outcome of a request with a new key.
func (s *WalletState) decide(c int, r WalletRequest, ttl int) {
	next, why := 1, "none"
	if r.Op != "issue" {
		from := place(r.Tenant, r.From)
		next = s.st.nonce[from] + 1
		switch {
		case r.Nonce > next:
			why = "ahead"
		case r.Nonce < next:
			why = "used"
		case s.st.bal[from] < r.Amount:
			why = "short"
		}
	}
	f := fact{kind: "refused", req: r, why: why, next: next}
	switch why {
	case "ahead":
		s.hold(c, reply{what: why, next: next, after: len(s.log)})
		return
	case "none":
		f = fact{kind: "moved", req: r, seq: s.st.seq[tenantOf(r)] + 1, fromNow: s.st.issued + r.Amount, toNow: s.st.burned + r.Amount}
		if r.Op != "issue" {
			f.fromNow = s.st.bal[place(r.Tenant, r.From)] - r.Amount
		}
		if r.Op != "burn" {
			f.toNow = s.st.bal[place(r.Tenant, r.To)] + r.Amount
		}
	}
	recs := []fact{f}
	if over, any := s.forgettable(ttl); any {
		recs = append(recs, over)
	}
	s.emit(recs...)
	s.hold(c, reply{what: "record", lsn: len(s.log), after: len(s.log)})
}

// forgettable is Forgot of the oldest key, if it has expired.
func (s *WalletState) forgettable(ttl int) (f fact, over bool) {
	if len(s.st.keys) == 0 || s.st.keys[0].at+ttl > s.now {
		return f, false
	}
	return fact{kind: "forgot", upto: s.st.keys[0].lsn}, true
}

// again makes clients that lost their reply retry.
func (s *WalletState) again(lost func(asker) bool) {
	for i, c := range s.client {
		if lost(c) {
			s.client[i].ph, s.client[i].reply = "asked", nothing
		}
	}
}

// Wallet is Wallet.tla.
func Wallet(z WalletSizes) Spec[*WalletState] {
	idle := asker{ph: "idle", reply: nothing}
	return Spec[*WalletState]{
		Init: &WalletState{client: [2]asker{idle, idle}},
		Next: func(s *WalletState, step func(string, *WalletState)) {
			for c := range s.client {
				s.clients(z, c, step)
			}
			s.disk(z, step)
			s.ends(z, step)
		},
	}
}

// clients are Ask, Step, Leave and LosePatience of a client.
func (s *WalletState) clients(z WalletSizes, c int, step func(string, *WalletState)) {
	switch x := s.client[c]; x.ph {
	case "idle":
		for _, r := range z.Requests {
			if s.asks < z.Asks {
				t := s.copied()
				t.asks++
				t.client[c] = asker{ph: "asked", req: r, reply: nothing}
				step("Ask", t)
			}
		}
	case "asked":
		s.step(z, c, step)
	case "held":
		if x.reply.after <= s.folded {
			t := s.copied()
			t.client[c] = asker{ph: "idle", reply: nothing}
			t.expected(x)
			step("Leave", t)
		}
		if s.fails < z.Fails {
			t := s.copied()
			t.fails++
			t.client[c].ph, t.client[c].reply = "asked", nothing
			step("LosePatience", t)
		}
	}
}

// expected adds a delivered answer, if it has an outcome.
func (s *WalletState) expected(x asker) {
	if x.reply.what == "bad" || x.reply.what == "full" {
		return
	}
	a := answer{req: x.req, reply: x.reply}
	if x.reply.what == "record" {
		a.rec = s.log[x.reply.lsn-1].recs[0]
	}
	if !slices.Contains(s.answers, a) {
		s.answers = append(slices.Clone(s.answers), a)
	}
}

// step is Step: look up, decide, apply.
func (s *WalletState) step(z WalletSizes, c int, step func(string, *WalletState)) {
	r, t := s.client[c].req, s.copied()
	for i := len(s.st.keys) - 1; r.From != r.To && i >= 0; i-- {
		k := s.st.keys[i]
		if k.req.Tenant != r.Tenant || k.req.Key != r.Key {
			continue
		}
		got := reply{what: "conflict", after: len(s.log)}
		if k.req == r {
			got = reply{what: "record", lsn: k.lsn, after: len(s.log)}
			if k.lsn <= s.folded {
				got.after = k.lsn
			}
		}
		t.hold(c, got)
		step("Step", t)
		return
	}
	switch {
	case r.From == r.To:
		t.hold(c, reply{what: "bad"})
	case len(s.st.keys) >= z.Keys:
		t.hold(c, reply{what: "full"})
	case s.failed:
		return
	default:
		t.decide(c, r, z.TTL)
	}
	step("Step", t)
}

// disk is Sync, Follow, Tick and Sweep, FailFlush, and a restart of the journal.
func (s *WalletState) disk(z WalletSizes, step func(string, *WalletState)) {
	for n := s.durable + 1; n <= len(s.log); n++ {
		t := s.copied()
		t.durable = n
		step("Sync", t)
	}
	if s.folded < s.durable {
		t := s.copied()
		t.folded++
		step("Follow", t)
	}
	if s.now < z.Time {
		t := s.copied()
		t.now++
		step("Tick", t)
	}
	if f, over := s.forgettable(z.TTL); over && !s.failed {
		t := s.copied()
		t.emit(f)
		step("Sweep", t)
	}
	if !s.failed && s.durable < len(s.log) && s.fails < z.Fails {
		t := s.copied()
		t.fails, t.failed = s.fails+1, true
		t.again(func(x asker) bool { return x.ph == "held" && x.reply.after > s.durable })
		step("FailFlush", t)
	}
}

// ends is Restart, Crash and Done.
func (s *WalletState) ends(z WalletSizes, step func(string, *WalletState)) {
	action := "Restart"
	if !s.failed {
		action = "Crash"
	}
	for n := s.durable; n <= len(s.log) && (s.failed || s.crashes < z.Crashes); n++ {
		t := s.copied()
		t.log, t.durable, t.folded, t.st, t.now, t.failed = s.log[:n:n], n, n, fold(s.log[:n]), 0, false
		if n > 0 {
			t.now = s.log[n-1].at
		}
		if !s.failed {
			t.crashes++
		}
		t.again(func(x asker) bool { return x.ph == "held" })
		step(action, t)
	}
	if s.client[0].ph == "idle" && s.client[1].ph == "idle" && s.asks == z.Asks && s.folded == len(s.log) && s.now == z.Time {
		step("Done", s)
	}
}
