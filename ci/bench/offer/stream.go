package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"macronode/ci/bench/flow"
)

// stream is a running flow.
type stream struct {
	*offer
	of      *flow.Flow
	rate    float64
	dice    *rand.Rand
	next    time.Time   // due time of the next request; unused without a rate
	waiting []time.Time // due times of the waiting requests
	free    []*conn
	request []byte

	seen            flow.Seen
	served, refused counts
}

// open opens the connections of a flow, and sends on each if it has no rate.
func (o *offer) open(f *flow.Flow, now time.Time) error {
	s := &stream{offer: o, of: f, rate: f.Rate, dice: rand.New(rand.NewPCG(1, uint64(len(o.flows)))), next: now}
	s.request = fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: offer\r\nAccept: */*\r\n", f.Path, o.to)
	if f.Key != "" {
		s.request = fmt.Appendf(s.request, "Authorization: Bearer %s\r\n", f.Key)
	}
	s.request = append(s.request, "\r\n"...)
	o.flows = append(o.flows, s)
	for range f.Conns {
		c := &conn{stream: s, number: len(o.conns), in: make([]byte, f.Size+8<<10)}
		o.conns = append(o.conns, c)
		if err := c.dial(); err != nil {
			return err
		}
	}
	if o.alive == 0 {
		return fmt.Errorf("no listener at %s", o.to)
	}
	return nil
}

// due adds the requests that are due, and sends those with a free connection.
func (s *stream) due(now time.Time) error {
	for s.rate > 0 && !s.next.After(now) && s.next.Before(s.by) {
		s.waiting = append(s.waiting, s.next)
		if !s.next.Before(s.from) {
			s.seen.Offered++
		}
		s.next = s.next.Add(time.Duration(s.dice.ExpFloat64() / s.rate * float64(time.Second)))
	}
	for len(s.waiting) > 0 && now.Sub(s.waiting[0]) > flow.Patience {
		s.unsent()
	}
	for len(s.free) > 0 && now.Before(s.by) {
		c := s.free[len(s.free)-1]
		if asked, err := s.give(c, now); err != nil || !asked {
			return err
		}
		s.free = s.free[:len(s.free)-1]
	}
	return nil
}

// give sends the next request over a connection, if there is one.
func (s *stream) give(c *conn, now time.Time) (asked bool, err error) {
	switch {
	case !now.Before(s.by):
		return false, nil
	case s.rate == 0:
		return true, c.ask(now)
	case len(s.waiting) == 0:
		return false, nil
	}
	due := s.waiting[0]
	s.waiting = s.waiting[1:]
	return true, c.ask(due)
}

// answered counts an answer.
func (s *stream) answered(status int, due, now time.Time) {
	if s.rate == 0 && !due.Before(s.from) && due.Before(s.by) {
		s.seen.Offered++
	}
	switch status {
	case 200:
		s.served.add(s.offer, due, now)
	case 429:
		s.refused.add(s.offer, due, now)
	default:
		s.seen.Other++
	}
}

// unsent drops the request that waits longest.
func (s *stream) unsent() {
	if !s.waiting[0].Before(s.from) {
		s.seen.Unsent++
	}
	s.waiting = s.waiting[1:]
}

func (s *stream) saw() flow.Seen {
	for len(s.waiting) > 0 {
		s.unsent()
	}
	s.seen.Name = s.of.Name
	s.seen.Served, s.seen.Refused = s.served.sample(s.span), s.refused.sample(s.span)
	return s.seen
}
