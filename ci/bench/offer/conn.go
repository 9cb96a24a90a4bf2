package main

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"macronode/ci/bench/socket"
)

// conn is one connection of a flow, with at most one request in flight. If it ends it is
// reopened; if that fails it is given up.
type conn struct {
	*stream
	number int
	fd     int
	state  state
	due    time.Time // of the request in flight
	in     []byte
	held   int
}

type state uint8

const (
	gone state = iota
	connecting
	idle
	asking
)

// dial opens the connection, and sends the next request.
func (c *conn) dial() error {
	fd, waits, err := socket.Dial(c.to)
	if err != nil {
		c.state = gone
		c.seen.Barred++
		return nil
	}
	c.fd, c.held = fd, 0
	c.alive++
	if err := c.poll.Add(fd, c.number, waits); err != nil {
		return err
	}
	if waits {
		c.state = connecting
		c.out++
		return nil
	}
	return c.rest()
}

// rest sends the next waiting request, or marks the connection free.
func (c *conn) rest() error {
	c.state = idle
	if asked, err := c.give(c, time.Now()); err != nil || asked {
		return err
	}
	c.free = append(c.free, c)
	return nil
}

// ask sends a request that was due at a time. If it cannot be written, it is sent over the next
// connection.
func (c *conn) ask(due time.Time) error {
	if c.rate == 0 {
		due = time.Now()
	}
	n, err := syscall.Write(c.fd, c.request)
	if err != nil {
		if c.rate > 0 {
			c.waiting = slices.Insert(c.waiting, 0, due)
		}
		return c.anew()
	}
	if n < len(c.request) {
		return fmt.Errorf("write: %d of %d bytes went", n, len(c.request))
	}
	c.state, c.due = asking, due
	c.out++
	return nil
}

// happens handles an event of the socket.
func (c *conn) happens() error {
	if c.state == gone {
		return nil
	}
	if c.state == connecting {
		c.out--
		if socket.Failed(c.fd) != nil {
			c.end()
			c.seen.Barred++
			return nil
		}
		if err := c.poll.Watch(c.fd, c.number, false); err != nil {
			return err
		}
		return c.rest()
	}
	n, err := syscall.Read(c.fd, c.in[c.held:])
	if socket.Again(err) {
		return nil
	}
	if err != nil || n == 0 {
		return c.broken()
	}
	if c.state != asking {
		c.seen.Unasked++
		return c.broken()
	}
	c.held += n
	return c.answer()
}

// broken handles the end of the connection.
func (c *conn) broken() error {
	if c.state == asking {
		c.seen.Lost++
		c.out--
	} else {
		c.free = slices.DeleteFunc(c.free, func(f *conn) bool { return f == c })
	}
	return c.anew()
}

// anew reopens the connection, if there is something to send.
func (c *conn) anew() error {
	c.end()
	if !time.Now().Before(c.by) {
		return nil
	}
	c.seen.Again++
	return c.dial()
}

func (c *conn) end() {
	c.state = gone
	c.alive--
	_ = syscall.Close(c.fd) // nothing is in flight
}
