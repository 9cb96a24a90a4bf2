package graph

import "slices"

// IdemSizes are the constants of Idem.tla, and its requests. The index loses nothing.
type IdemSizes struct {
	Requests                          []IdemRequest
	TTL, Time, Asks, Forgets, Crashes int
}

// An IdemRequest is a client's request; an empty ref is NoRef.
type IdemRequest struct{ Op, Key, Ref string }

// The records of Idem.tla.
type (
	entry struct {
		at             int
		kind, key, ref string
		lsn            int
	}
	row struct {
		name    string
		lsn, at int
	}
	view struct { // the index in memory or on disk: the fold of a number of frames
		mark int
		root []entry
		rows []row // a set
	}
	window struct {
		forgot, last int
		keys         []row // a set
	}
	looker struct {
		ph         string
		req        IdemRequest
		f          int
		seen, used row
		reply      reply
	}
	shown struct {
		req   IdemRequest
		lsn   int
		frame entry
	}
)

// IdemState is a state. Shared parts are never changed.
type IdemState struct {
	log                    []entry
	durable, now           int
	st                     window
	indexed                int
	idx, tbl               view
	client                 [2]looker
	answers                []shown // a set
	asks, forgets, crashes int
}

func ref(name string) string {
	if name == "" {
		return "NoRef"
	}
	return name
}

func (e entry) String() string {
	return fields("at", num(e.at), "kind", e.kind, "key", ref(e.key), "ref", ref(e.ref), "lsn", num(e.lsn))
}

func (r row) String() string { return fields("name", ref(r.name), "lsn", num(r.lsn), "at", num(r.at)) }

func (v view) String() string {
	return fields("mark", num(v.mark), "root", seq(each(v.root, entry.String)...), "rows", set(each(v.rows, row.String)...))
}

func (r IdemRequest) String() string {
	if r == (IdemRequest{}) {
		return "Nobody"
	}
	return fields("op", r.Op, "key", r.Key, "ref", ref(r.Ref))
}

func (s *IdemState) String() string {
	client := each(s.client[:], func(c looker) string {
		return fields("ph", c.ph, "req", c.req.String(), "f", num(c.f), "seen", c.seen.String(), "used", c.used.String(),
			"reply", fields("what", c.reply.what, "lsn", num(c.reply.lsn), "after", num(c.reply.after)))
	})
	answers := each(s.answers, func(a shown) string {
		return fields("req", a.req.String(), "lsn", num(a.lsn), "frame", a.frame.String())
	})
	return fields("log", seq(each(s.log, entry.String)...), "durable", num(s.durable), "now", num(s.now), "indexed", num(s.indexed),
		"st", fields("forgot", num(s.st.forgot), "last", num(s.st.last), "keys", set(each(s.st.keys, row.String)...)),
		"idx", s.idx.String(), "tbl", s.tbl.String(), "client", fields("c1", client[0], "c2", client[1]), "said", set(answers...),
		"spent", fields("asks", num(s.asks), "forgets", num(s.forgets), "crashes", num(s.crashes), "losses", "0"))
}

// names returns the rows of an entry.
func (e entry) names(lsn int) (rows []row) {
	if e.kind == "forgot" {
		return nil
	}
	if rows = append(rows, row{e.key, lsn, e.at}); e.kind == "done" && e.ref != "" {
		rows = append(rows, row{e.ref, lsn, e.at})
	}
	return rows
}

func find(rows []row, name string) row {
	for _, r := range rows {
		if r.name == name {
			return r
		}
	}
	return row{}
}

// apply is Apply: the window after one more frame.
func (w window) apply(lsn int, e entry) window {
	w.keys = append(slices.Clone(w.keys), e.names(lsn)...)
	if e.kind != "forgot" {
		return w
	}
	w.forgot = max(w.forgot, e.lsn)
	w.keys = slices.DeleteFunc(w.keys, func(k row) bool {
		if k.lsn <= e.lsn {
			w.last = max(w.last, k.at)
		}
		return k.lsn <= e.lsn
	})
	return w
}

// take is Take: the index after one more frame, without expired and overwritten rows.
func (v view) take(z IdemSizes, e entry) view {
	fresh := e.names(v.mark + 1)
	rows := slices.DeleteFunc(slices.Clone(v.rows), func(r row) bool {
		isRef := slices.ContainsFunc(z.Requests, func(q IdemRequest) bool { return q.Ref == r.name })
		return find(fresh, r.name).lsn > 0 || !isRef && r.at+z.TTL <= e.at
	})
	return view{v.mark + 1, append(slices.Clone(v.root), e), append(rows, fresh...)}
}

func (s *IdemState) copied() *IdemState { c := *s; return &c }

func (s *IdemState) emit(e entry) {
	s.log = append(slices.Clone(s.log), e)
	s.st = s.st.apply(len(s.log), e)
}

// Idem is Idem.tla without losses.
func Idem(z IdemSizes) Spec[*IdemState] {
	out := looker{ph: "idle", reply: nothing}
	return Spec[*IdemState]{
		Init: &IdemState{client: [2]looker{out, out}},
		Next: func(s *IdemState, step func(string, *IdemState)) {
			for c := range s.client {
				s.clients(z, c, step)
			}
			s.moves(z, step)
			s.crash(z, step)
		},
	}
}

// clients is Ask, Look, Enter and Leave of one of them.
func (s *IdemState) clients(z IdemSizes, c int, step func(string, *IdemState)) {
	t, x := s.copied(), s.client[c]
	switch x.ph {
	case "idle":
		for _, r := range z.Requests {
			if s.asks < z.Asks {
				t := s.copied()
				t.asks++
				t.client[c] = looker{ph: "asked", req: r, f: s.idx.mark, reply: nothing}
				step("Ask", t)
			}
		}
	case "asked":
		t.client[c].ph, t.client[c].f = "looked", min(x.f, s.idx.mark)
		t.client[c].seen = s.read(x.req.Key)
		if x.req.Ref != "" {
			t.client[c].used = s.read(x.req.Ref)
		}
		step("Look", t)
	case "looked":
		t.enter(z, c)
		step("Enter", t)
	case "held":
		if x.reply.after <= s.durable {
			if x.reply.what != "nothing" {
				a := shown{x.req, x.reply.lsn, s.log[x.reply.lsn-1]}
				if !slices.Contains(s.answers, a) {
					t.answers = append(slices.Clone(s.answers), a)
				}
			}
			t.client[c] = looker{ph: "idle", reply: nothing}
			step("Leave", t)
		}
	}
}

// read is Read: first memory, then the table.
func (s *IdemState) read(name string) row {
	if r := find(s.idx.rows, name); r.lsn > s.tbl.mark {
		return r
	}
	return find(s.tbl.rows, name)
}

// enter is Enter: the window, otherwise the index, otherwise a new frame.
func (s *IdemState) enter(z IdemSizes, c int) {
	x := s.client[c]
	hold := func(what string, lsn int) {
		after := len(s.log)
		if 1 <= lsn && lsn <= s.durable {
			after = lsn
		}
		s.client[c] = looker{ph: "held", req: x.req, reply: reply{what: what, lsn: lsn, after: after}}
	}
	seen, used := find(s.st.keys, x.req.Key), find(s.st.keys, x.req.Ref)
	if seen.lsn == 0 && x.seen.lsn > 0 && x.seen.at+z.TTL > s.now {
		seen = x.seen
	}
	if used.lsn == 0 {
		used = x.used
	}
	aged := s.st.forgot > 0 && s.st.last+z.TTL > s.now
	switch {
	case seen.lsn > 0:
		hold("outcome", seen.lsn)
	case x.f < s.st.forgot && (x.req.Ref != "" || aged):
		s.client[c] = looker{ph: "asked", req: x.req, f: s.idx.mark, reply: nothing}
	case x.req.Op == "find":
		hold("nothing", 0)
	default:
		kind := "done"
		if used.lsn > 0 {
			kind = "refused"
		}
		s.emit(entry{s.now, kind, x.req.Key, x.req.Ref, used.lsn})
		hold("outcome", len(s.log))
	}
}

// moves is Sync, Follow, Persist, Tell, Forget and Tick.
func (s *IdemState) moves(z IdemSizes, step func(string, *IdemState)) {
	for n := s.durable + 1; n <= len(s.log); n++ {
		t := s.copied()
		t.durable = n
		step("Sync", t)
	}
	t := s.copied()
	if s.idx.mark < s.durable {
		t.idx = s.idx.take(z, s.log[s.idx.mark])
		step("Follow", t)
	}
	if t = s.copied(); s.tbl.String() != s.idx.String() {
		t.tbl = s.idx
		step("Persist", t)
	}
	if t = s.copied(); s.indexed < s.tbl.mark {
		t.indexed = s.tbl.mark
		step("Tell", t)
	}
	for _, k := range s.st.keys {
		if t = s.copied(); k.lsn <= s.indexed && s.forgets < z.Forgets {
			t.forgets++
			t.emit(entry{at: s.now, kind: "forgot", lsn: k.lsn})
			step("Forget", t)
		}
	}
	if t = s.copied(); s.now < z.Time {
		t.now++
		step("Tick", t)
	}
}

// crash is FallBack, Crash and Done.
func (s *IdemState) crash(z IdemSizes, step func(string, *IdemState)) {
	if s.crashes < z.Crashes && s.idx.String() != s.tbl.String() {
		t := s.copied()
		t.crashes, t.idx = s.crashes+1, s.tbl
		step("FallBack", t)
	}
	for n := s.durable; n <= len(s.log) && s.crashes < z.Crashes; n++ {
		t := s.copied()
		t.crashes, t.log, t.durable, t.now, t.st, t.indexed = s.crashes+1, s.log[:n:n], n, 0, window{}, 0
		for i, e := range t.log {
			t.st, t.now = t.st.apply(i+1, e), e.at
		}
		if t.idx = s.tbl; s.tbl.mark > n || !slices.Equal(s.tbl.root, s.log[:s.tbl.mark]) {
			t.idx = view{}
		}
		t.tbl = t.idx
		for i, x := range s.client {
			if t.client[i] = (looker{ph: "idle", reply: nothing}); x.ph != "idle" {
				t.client[i] = looker{ph: "asked", req: x.req, f: t.idx.mark, reply: nothing}
			}
		}
		step("Crash", t)
	}
	if s.client[0].ph == "idle" && s.client[1].ph == "idle" && s.asks == z.Asks && s.tbl.mark == len(s.log) && s.indexed == s.tbl.mark {
		step("Done", s)
	}
}
