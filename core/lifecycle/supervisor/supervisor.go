// Package supervisor decides when a child of the shell is started again.
//
//	Begin ──► starting ──Up──► up ──Down──► resting ──Tick, after its backoff──► starting
//	                                      Stop: down, and stays
package supervisor

import (
	"errors"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

const (
	MinBackoff    = 100 * time.Millisecond // the shortest backoff
	BackoffJitter = 400 * time.Millisecond // what chance adds to it
	MaxBackoff    = 5 * time.Second        // the longest
	RestartWindow = time.Minute            // in which restarts are counted
	MaxRestarts   = 5                      // of them, before the node is degraded
)

type state uint8

const (
	down state = iota
	starting
	up
	backingOff
)

type service struct {
	state        state
	wanted       bool
	backoffUntil types.Instant // resting ends
	failures     uint32        // in a row
	restarts     uint64
	recent       [MaxRestarts + 1]types.Instant // the last restarts, a ring; 0 is none
	next         uint8                          // where the next one goes
}

// Supervisor watches all children.
//
// Invariants:
//
//	S1  a child that is wanted is starting, up or resting; one that is not is down or on its way there
//	S2  a rest is at least First and at most Cap
type Supervisor struct {
	rand     types.Rand
	services [types.NumServices]service
}

// New is a supervisor that wants nobody yet.
func New(dice types.Rand) Supervisor { return Supervisor{rand: dice} }

// Start wants all children, and starts them.
func (s *Supervisor) Start(out *event.Effects) {
	for c := range types.NumServices {
		s.services[c].wanted = true
		s.startService(c, out)
	}
}

func (s *Supervisor) startService(c types.Service, out *event.Effects) {
	s.services[c].state = starting
	out.ServiceCommands = append(out.ServiceCommands, event.ServiceCommand{Service: c, Verb: event.StartService})
}

// Up notes that c serves.
func (s *Supervisor) Up(c types.Service) {
	if s.services[c].state == starting {
		s.services[c].state = up
	}
}

// Down notes that c has ended, and lets it rest if it is wanted.
func (s *Supervisor) Down(now types.Instant, c types.Service) {
	k := &s.services[c]
	if !k.wanted {
		k.state = down
		return
	}
	if k.state == up {
		k.failures = 0
	}
	rest := MinBackoff + time.Duration(s.rand.Uint64n(uint64(BackoffJitter)))
	for range min(k.failures, 8) {
		rest = min(2*rest, MaxBackoff)
	}
	if k.calmAt() > now {
		rest = MaxBackoff // it has been tried too often: it is tried on, but seldom
	}
	k.state, k.backoffUntil = backingOff, now.Add(rest)
	k.failures++
}

// Tick starts whoever has rested.
func (s *Supervisor) Tick(now types.Instant, out *event.Effects) {
	for c := range types.NumServices {
		k := &s.services[c]
		if k.state == backingOff && k.backoffUntil <= now {
			k.recent[k.next], k.next = now, (k.next+1)%uint8(len(k.recent))
			k.restarts++
			s.startService(c, out)
		}
		if k.calmAt() <= now {
			k.recent[k.next] = 0
		}
	}
}

// Due is the earliest end of a rest, or of a time of too many restarts.
func (s *Supervisor) Due() (due types.Instant, any bool) {
	for c := range types.NumServices {
		k := &s.services[c]
		if k.state == backingOff && (!any || k.backoffUntil < due) {
			due, any = k.backoffUntil, true
		}
		if calm := k.calmAt(); calm > 0 && (!any || calm < due) {
			due, any = calm, true
		}
	}
	return due, any
}

// calmAt is when k will have restarted no more than Allowed times in a Window; 0 is long ago.
func (k *service) calmAt() types.Instant {
	oldest := k.recent[k.next]
	if oldest == 0 {
		return 0
	}
	return oldest.Add(RestartWindow)
}

// CrashLoop reports that a child restarts too often.
func (s *Supervisor) CrashLoop(now types.Instant) bool {
	for c := range types.NumServices {
		if s.services[c].calmAt() > now {
			return true
		}
	}
	return false
}

// Stop wants c no more, and asks it to end as verb says.
func (s *Supervisor) Stop(c types.Service, verb event.ServiceVerb, out *event.Effects) {
	k := &s.services[c]
	k.wanted = false
	if k.state == backingOff {
		k.state = down
	}
	if k.state != down {
		out.ServiceCommands = append(out.ServiceCommands, event.ServiceCommand{Service: c, Verb: verb})
	}
}

// IsUp and IsDown tell of one child.
func (s *Supervisor) IsUp(c types.Service) bool   { return s.services[c].state == up }
func (s *Supervisor) IsDown(c types.Service) bool { return s.services[c].state == down }

// Restarts is how often c was started again.
func (s *Supervisor) Restarts(c types.Service) uint64 { return s.services[c].restarts }

// HashInto is h after all of s.
func (s *Supervisor) HashInto(h types.Hash64) types.Hash64 {
	h = s.rand.HashInto(h)
	for c := range s.services {
		k := &s.services[c]
		h = h.Mix(uint64(k.state)).MixBool(k.wanted).Mix(uint64(k.backoffUntil)).Mix(uint64(k.failures)).Mix(k.restarts).Mix(uint64(k.next))
		for _, at := range k.recent {
			h = h.Mix(uint64(at))
		}
	}
	return h
}

// Check returns the first invariant that does not hold.
func (s *Supervisor) Check() error {
	for c := range s.services {
		if k := &s.services[c]; k.wanted && k.state == down || !k.wanted && k.state == backingOff {
			return errors.New("S1: " + types.Service(c).String())
		}
	}
	return nil
}
