package quota

import (
	"math/big"
	"time"

	"macronode/core/types"
)

// Tab is what a request that is in has been charged: to key and tenant, to its peer, or to
// what peers share, to the instance; and what of it waits.
type Tab struct {
	Who
	Had, Peer, Paced, Held uint64
	Common                 bool
	Others                 map[int]bool // rules that have not charged it what is old
	Old, OldPaced          uint64       // of Had and of Paced: before the last change
}

// freeOf is what is drawn of somebody's bucket, but for what is held of it.
func (s *State) freeOf(b *bucket, who Who) *big.Rat {
	drawn := new(big.Rat).Set(b.drawn)
	r := s.Rules[b.rule]
	mine, _ := s.subject(b.rule, who)
	for _, t := range s.Tabs {
		if t == nil {
			continue
		}
		name, applies := s.subject(b.rule, t.Who)
		if !applies || !counts(r) || r.Shadow || r.Rate == 0 || t.Others[b.rule] && t.Had-t.Held < t.Old {
			continue
		}
		common := r.Scope == types.ScopePeer && b == s.common[b.rule]
		if common && t.Common || !common && name == mine && !(r.Scope == types.ScopePeer && t.Common) {
			drawn.Sub(drawn, number(t.Held))
		}
	}
	if drawn.Sign() < 0 {
		return new(big.Rat)
	}
	return drawn
}

// shares reports that the peer of a request has no bucket of its own, of any rule that is looked at.
func (s *State) shares(found []*bucket) bool {
	for i, b := range found {
		if b != nil && s.Rules[i].Scope == types.ScopePeer && b == s.common[i] {
			return true
		}
	}
	return false
}

// Enter is Take, and opens a tab for who is admitted.
func (s *State) Enter(now types.Instant, place int, who Who, bytes uint64) Told {
	s.Pass(now)
	before := s.find(who, func(Rule) bool { return true }, false)
	for i := range s.Rules { // it was only a look
		if before[i] != nil && before[i] == s.common[i] {
			s.Shared[i]--
		}
	}
	told := s.Take(now, who, bytes)
	if !told.Refused {
		s.Tabs[place] = &Tab{Who: who, Had: bytes, Peer: bytes, Common: s.shares(before), Others: map[int]bool{}}
	}
	return told
}

// Go is Spend for who has waited.
func (s *State) Go(now types.Instant, place int) map[int]bool {
	s.Tabs[place].Paced = s.Tabs[place].Had
	return s.Spend(now, s.Tabs[place].Paced)
}

// Book draws further bytes, and says how long they wait; or refuses what would wait longer
// than most.
func (s *State) Book(now types.Instant, place int, bytes uint64, most time.Duration) (wait time.Duration, told Told) {
	s.Pass(now)
	t := s.Tabs[place]
	found, never := s.find(t.Who, counts, t.Common), false
	for i, b := range found {
		if b == nil || s.Rules[i].Shadow {
			continue
		}
		r, short := s.Rules[i], s.short(b, b.drawn, bytes)
		if r.Rate == 0 && !never {
			never, told.Rule, told.Left, told.Reset = true, i+1, 0, 0
		}
		if r.Rate > 0 && !never && short.Sign() > 0 && r.whole(short) > wait {
			wait, told.Rule, told.Left, told.Reset = r.whole(short), i+1, s.left(b, b.drawn), r.whole(b.drawn)
		}
	}
	switch {
	case never:
		told.Refused = true
		return 0, told
	case wait > most:
		told.Refused, told.Retry = true, wait
		return 0, told
	}
	for i, b := range found {
		if b == nil || s.Rules[i].Rate == 0 {
			continue
		}
		was := b.drawn
		if s.draw(b, bytes); s.Rules[i].Shadow { // had it paced, no more would be drawn than there is
			b.drawn = least(b.drawn, number(s.Rules[i].Burst))
			if b.drawn.Cmp(was) < 0 {
				b.drawn = was
			}
		}
	}
	s.drop()
	if !t.Common && s.shares(found) {
		t.Common, t.Peer = true, 0
	}
	t.Had, t.Peer = t.Had+bytes, t.Peer+bytes
	if wait > 0 {
		t.Held = bytes
	}
	return wait, Told{}
}

// Let lets go what waits.
func (s *State) Let(place int) { s.Tabs[place].Held = 0 }

// Drop gives back the last that was drawn.
func (s *State) Drop(now types.Instant, place int, bytes uint64) {
	s.Pass(now)
	s.Tabs[place].Held = 0
	s.giveBack(s.Tabs[place], bytes, counts)
}

// Draw draws further bytes from the instance.
func (s *State) Draw(now types.Instant, place int, bytes uint64) {
	s.Pass(now)
	s.Tabs[place].Paced += bytes
	s.pace(bytes)
}

// Settle evens out what was drawn and what was had.
func (s *State) Settle(now types.Instant, place int, bytes uint64) {
	s.Pass(now)
	t := s.Tabs[place]
	t.Held = 0
	if bytes < t.Had {
		s.giveBack(t, t.Had-bytes, counts)
	} else {
		s.drawAll(s.find(t.Who, counts, t.Common), bytes-t.Had, &Told{})
	}
	if bytes > t.Paced {
		s.pace(bytes - t.Paced)
	}
	for i, r := range s.Rules {
		down := bytes
		if t.Others[i] {
			down = max(bytes, t.OldPaced)
		}
		if down < t.Paced && r.Scope == types.ScopeInstance && counts(r) && r.Rate > 0 {
			s.fillBy(s.commonOf(i), t.Paced-down)
		}
	}
	s.Tabs[place] = nil
}

// Undo gives back all that was drawn for who was refused after all, itself too.
func (s *State) Undo(now types.Instant, place int) {
	s.Pass(now)
	s.giveBack(s.Tabs[place], s.Tabs[place].Had, func(Rule) bool { return true })
	s.Tabs[place] = nil
}

func (s *State) giveBack(t *Tab, bytes uint64, only func(Rule) bool) {
	peer, had := min(bytes, t.Peer), t.Had
	t.Had, t.Peer = t.Had-bytes, t.Peer-peer
	for i, r := range s.Rules {
		name, applies := s.subject(i, t.Who)
		if !applies || r.Rate == 0 || !only(r) || t.Others[i] && !counts(r) {
			continue
		}
		of := bytes
		if r.Scope == types.ScopePeer {
			of = peer
		}
		if t.Others[i] {
			of = min(of, had-max(t.Had, t.Old))
		}
		if of == 0 && counts(r) {
			continue
		}
		if r.Scope == types.ScopePeer && t.Common {
			s.fillBy(s.commonOf(i), r.units(of))
			continue
		}
		for _, b := range s.buckets {
			if b.rule == i && b.subject == name {
				s.fillBy(b, r.units(of))
			}
		}
	}
	t.Old = min(t.Old, t.Had)
	s.drop()
}

// fillBy puts units into a bucket, until it is full.
func (s *State) fillBy(b *bucket, units uint64) {
	if b.drawn = new(big.Rat).Sub(b.drawn, number(units)); b.drawn.Sign() < 0 {
		b.drawn = new(big.Rat)
	}
}

// drop forgets buckets that are full.
func (s *State) drop() { s.Pass(s.Now) }
