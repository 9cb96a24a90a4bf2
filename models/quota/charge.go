package quota

import (
	"math/big"
	"time"

	"macronode/core/types"
)

// Charge is what a request in progress was charged: to its key and tenant, to its peer or the shared
// bucket, to the instance; and its held bytes.
type Charge struct {
	Subject
	Had, Peer, Paced, Held uint64
	Common                 bool
	Others                 map[int]bool // rules that have not charged the old part
	Old, OldPaced          uint64       // parts of Had and of Paced before the last change
}

// freeOf returns the drawn part of a bucket without the held part.
func (s *State) freeOf(b *bucket, caller Subject) *big.Rat {
	drawn := new(big.Rat).Set(b.drawn)
	r := s.Rules[b.rule]
	mine, _ := s.subject(b.rule, caller)
	for _, t := range s.Charges {
		if t == nil {
			continue
		}
		name, applies := s.subject(b.rule, t.Subject)
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

// shares reports whether the peer of a request uses the shared buckets.
func (s *State) shares(found []*bucket) bool {
	for i, b := range found {
		if b != nil && s.Rules[i].Scope == types.ScopePeer && b == s.common[i] {
			return true
		}
	}
	return false
}

// Enter is Take, and opens a charge if the request is admitted.
func (s *State) Enter(now types.Instant, place int, caller Subject, bytes uint64) Result {
	s.Pass(now)
	before := s.find(caller, func(Rule) bool { return true }, false)
	for i := range s.Rules { // the check changed nothing
		if before[i] != nil && before[i] == s.common[i] {
			s.Shared[i]--
		}
	}
	result := s.Take(now, caller, bytes)
	if !result.Refused {
		s.Charges[place] = &Charge{Subject: caller, Had: bytes, Peer: bytes, Common: s.shares(before), Others: map[int]bool{}}
	}
	return result
}

// Go is Spend for a request that has waited.
func (s *State) Go(now types.Instant, place int) map[int]bool {
	s.Charges[place].Paced = s.Charges[place].Had
	return s.Spend(now, s.Charges[place].Paced)
}

// Book draws further bytes and returns how long they wait, or rejects them if they would wait
// longer than most.
func (s *State) Book(now types.Instant, place int, bytes uint64, most time.Duration) (wait time.Duration, result Result) {
	s.Pass(now)
	t := s.Charges[place]
	found, never := s.find(t.Subject, counts, t.Common), false
	for i, b := range found {
		if b == nil || s.Rules[i].Shadow {
			continue
		}
		r, short := s.Rules[i], s.short(b, b.drawn, bytes)
		if r.Rate == 0 && !never {
			never, result.Rule, result.Left, result.Reset = true, i+1, 0, 0
		}
		if r.Rate > 0 && !never && short.Sign() > 0 && r.whole(short) > wait {
			wait, result.Rule, result.Left, result.Reset = r.whole(short), i+1, s.left(b, b.drawn), r.whole(b.drawn)
		}
	}
	switch {
	case never:
		result.Refused = true
		return 0, result
	case wait > most:
		result.Refused, result.Retry = true, wait
		return 0, result
	}
	for i, b := range found {
		if b == nil || s.Rules[i].Rate == 0 {
			continue
		}
		was := b.drawn
		if s.draw(b, bytes); s.Rules[i].Shadow { // if it had paced the bytes, they would not be owed
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
	return wait, Result{}
}

// Let releases the held bytes.
func (s *State) Let(place int) { s.Charges[place].Held = 0 }

// Drop gives the last drawn bytes back.
func (s *State) Drop(now types.Instant, place int, bytes uint64) {
	s.Pass(now)
	s.Charges[place].Held = 0
	s.giveBack(s.Charges[place], bytes, counts)
}

// Draw draws further bytes from the instance.
func (s *State) Draw(now types.Instant, place int, bytes uint64) {
	s.Pass(now)
	s.Charges[place].Paced += bytes
	s.pace(bytes)
}

// Settle charges or gives back the difference between drawn and used bytes.
func (s *State) Settle(now types.Instant, place int, bytes uint64) {
	s.Pass(now)
	t := s.Charges[place]
	t.Held = 0
	if bytes < t.Had {
		s.giveBack(t, t.Had-bytes, counts)
	} else {
		s.drawAll(s.find(t.Subject, counts, t.Common), bytes-t.Had, &Result{})
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
	s.Charges[place] = nil
}

// Undo gives everything back for a rejected request, including the request itself.
func (s *State) Undo(now types.Instant, place int) {
	s.Pass(now)
	s.giveBack(s.Charges[place], s.Charges[place].Had, func(Rule) bool { return true })
	s.Charges[place] = nil
}

func (s *State) giveBack(t *Charge, bytes uint64, only func(Rule) bool) {
	peer, had := min(bytes, t.Peer), t.Had
	t.Had, t.Peer = t.Had-bytes, t.Peer-peer
	for i, r := range s.Rules {
		name, applies := s.subject(i, t.Subject)
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

// drop removes full buckets.
func (s *State) drop() { s.Pass(s.Now) }
