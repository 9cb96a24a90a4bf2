// Package supervisor decides when a service is restarted.
//
//	Start ──► starting ──Up──► up ──Down──► backing off ──Tick──► starting
//	                                      Stop: down, not restarted
package supervisor

import (
	"errors"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

const (
	MinBackoff    = 100 * time.Millisecond // the shortest backoff
	BackoffJitter = 400 * time.Millisecond // random addition to it
	MaxBackoff    = 5 * time.Second        // the longest backoff
	RestartWindow = time.Minute            // in which restarts are counted
	MaxRestarts   = 5                      // in the window, before the node is degraded
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
	backoffUntil types.Instant // end of the backoff
	failures     uint32        // failures in a row
	restarts     uint64
	recent       [MaxRestarts + 1]types.Instant // ring of the last restarts; 0: none
	next         uint8                          // place of the next one
}

// Supervisor has the state of all services.
//
// Invariants:
//
//	S1  a wanted service is starting, up or backing off; any other is down or stopping
//	S2  a backoff is between MinBackoff and MaxBackoff
type Supervisor struct {
	rand     types.Rand
	services [types.NumServices]service
}

// New returns a supervisor that wants no service.
func New(dice types.Rand) Supervisor { return Supervisor{rand: dice} }

// Start starts all services.
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

// Up records that c is up.
func (s *Supervisor) Up(c types.Service) {
	if s.services[c].state == starting {
		s.services[c].state = up
	}
}

// Down records that c has ended; if it is wanted, its backoff begins.
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
		rest = MaxBackoff // after too many failures it is still retried, but rarely
	}
	k.state, k.backoffUntil = backingOff, now.Add(rest)
	k.failures++
}

// Tick restarts the services whose backoff has ended.
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

// Due returns the earliest end of a backoff or of a crash loop.
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

// calmAt returns when k has at most MaxRestarts restarts in the window; 0: it has now.
func (k *service) calmAt() types.Instant {
	oldest := k.recent[k.next]
	if oldest == 0 {
		return 0
	}
	return oldest.Add(RestartWindow)
}

// CrashLoop reports whether a service restarts too often.
func (s *Supervisor) CrashLoop(now types.Instant) bool {
	for c := range types.NumServices {
		if s.services[c].calmAt() > now {
			return true
		}
	}
	return false
}

// Stop ends c by a verb; it is not restarted.
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

// IsUp and IsDown report the state of a service.
func (s *Supervisor) IsUp(c types.Service) bool   { return s.services[c].state == up }
func (s *Supervisor) IsDown(c types.Service) bool { return s.services[c].state == down }

// Restarts returns the number of restarts of c.
func (s *Supervisor) Restarts(c types.Service) uint64 { return s.services[c].restarts }

// HashInto mixes s into h.
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
