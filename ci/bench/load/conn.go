package main

import (
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"macronode/ci/bench/socket"
)

// conn is one connection, with at most one request in flight.
type conn struct {
	plan  *Plan
	fd    int
	name  string // part of its idempotency keys, or of the ids of its events
	turn  int    // requests so far
	mine  int    // the first account that it pays from
	dice  uint64 // for payees, and for random ids
	head  []byte // of every request, up to the idempotency key
	body  []byte
	out   []byte
	sent  int    // bytes of out that are written
	full  bool   // the socket has no room for the rest of out
	key   []byte // of the request in flight
	again int    // the repeated request in flight
	began time.Time
	in    []byte
	held  int // bytes in in

	sockets *socket.Poll
	number  int // in sockets
}

// stall is the longest time without any answer.
const stall = 30 * time.Second

var (
	errGone    = errors.New("the connection was closed")
	errStalled = errors.New("no answer for " + stall.String())
	errLength  = errors.New("an answer that does not say how long it is")
	errLong    = errors.New("an answer longer than any receipt")
)

const (
	room      = 8 << 10   // bytes of an answer
	batchRoom = 512 << 10 // of a batch
)

func newConn(p *Plan, at int) conn {
	c := conn{plan: p, number: at, name: fmt.Sprintf("%s-%d-", p.Salt, at), mine: p.First + at*p.Spread, dice: uint64(at)*0x9E3779B97F4A7C15 + 1,
		again: at - p.Conns, out: make([]byte, 0, 1024), body: make([]byte, 0, 512), key: make([]byte, 0, 64), in: make([]byte, room)}
	if p.Batch > 0 {
		c.in = make([]byte, batchRoom)
	}
	if p.Events > 0 {
		c.head = p.eventsHead()
	} else {
		c.head = p.head(c.head, p.path())
	}
	return c
}

// path returns the path of the plan's requests; repeated ones have their own.
func (p *Plan) path() string {
	switch {
	case p.Issue:
		return "/v1/issue"
	case p.Batch > 0:
		return "/v1/batch"
	default:
		return "/v1/transfer"
	}
}

// head returns the start of a request, up to its idempotency key.
func (p *Plan) head(to []byte, path string) []byte {
	return fmt.Appendf(to, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nIdempotency-Key: ",
		path, p.Addr, p.Key)
}

// write makes the next request of this connection, the all-th of all.
func (c *conn) write(all int) {
	if len(c.plan.Asks) > 0 {
		c.repeat()
		return
	}
	if c.plan.Events > 0 {
		c.events()
		return
	}
	c.body = c.body[:0]
	switch n := c.plan.Batch; {
	case c.plan.Issue:
		c.body = account(append(c.body, `{"to":"`...), all)
		c.body = append(c.body, `","asset":"EUR/2","amount_minor":"1000000000"}`...)
	case n > 0:
		c.body = append(c.body, `{"atomic":true,"items":[`...)
		for i := range n {
			if i > 0 {
				c.body = append(c.body, ',')
			}
			c.transfer(c.turn*n+i, `{"op":"transfer","from":"`)
		}
		c.body = append(c.body, "]}"...)
	default:
		c.transfer(c.turn, `{"from":"`)
	}
	c.key = strconv.AppendInt(append(c.key[:0], c.name...), int64(c.turn), 10)
	c.whole(c.head)
	c.turn++
}

// transfer adds the n-th transfer of this connection to the body.
func (c *conn) transfer(n int, open string) {
	payer, nonce := c.mine+n%c.plan.Spread, n/c.plan.Spread+1
	c.body = account(append(c.body, open...), payer)
	c.body = account(append(c.body, `","to":"`...), c.payee(payer))
	c.body = append(c.body, `","asset":"EUR/2","amount_minor":"7","nonce":`...)
	c.body = append(strconv.AppendInt(c.body, int64(nonce), 10), `,"memo":"invoice 2026-0042, second part"}`...)
}

// repeat returns the next request to repeat: connections take turns, and start again at the end.
func (c *conn) repeat() {
	c.again += c.plan.Conns
	c.again %= len(c.plan.Asks)
	a := &c.plan.Asks[c.again]
	c.head = c.plan.head(c.head[:0], a.Path)
	c.key, c.body = append(c.key[:0], a.Key...), append(c.body[:0], a.Body...)
	c.whole(c.head)
}

func (c *conn) whole(head []byte) {
	c.out = append(append(c.out[:0], head...), c.key...)
	c.end()
}

// end adds the body, and its length as the last header.
func (c *conn) end() {
	c.out = strconv.AppendInt(append(c.out, "\r\nContent-Length: "...), int64(len(c.body)), 10)
	c.out = append(append(c.out, "\r\n\r\n"...), c.body...)
}

// payee returns another account.
func (c *conn) payee(payer int) int {
	return (payer + 1 + int(c.roll()%uint64(c.plan.Accounts-1))) % c.plan.Accounts
}

// roll returns the next random number.
func (c *conn) roll() uint64 {
	c.dice ^= c.dice << 13
	c.dice ^= c.dice >> 7
	c.dice ^= c.dice << 17
	return c.dice
}

// account appends the name of an account.
func account(to []byte, n int) []byte {
	to = append(to, "acct:00000000"...)
	for at := len(to) - 1; n > 0; at-- {
		to[at] += byte(n % 10)
		n /= 10
	}
	return to
}

// ask sends the next request.
func (c *conn) ask(all int) error {
	c.write(all)
	c.began, c.sent = time.Now(), 0
	return c.send()
}

// send writes the rest of the request, as much as the socket has room for.
func (c *conn) send() error {
	n, err := syscall.Write(c.fd, c.out[c.sent:])
	if err != nil && !socket.Again(err) {
		return fmt.Errorf("write: %w", err)
	}
	c.sent += max(0, n)
	if full := c.sent < len(c.out); full != c.full {
		c.full = full
		return c.sockets.Watch(c.fd, c.number, full)
	}
	return nil
}

// read reads what is available, after what is left to be sent; whole is true for a complete
// answer.
func (c *conn) read() (whole bool, err error) {
	if c.full {
		if err := c.send(); err != nil {
			return false, err
		}
	}
	n, err := syscall.Read(c.fd, c.in[c.held:])
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read: %w", err)
	case n == 0:
		return false, errGone
	}
	c.held += n
	size, err := c.answer()
	if err != nil || size == 0 {
		return false, err
	}
	if size < c.held {
		return false, fmt.Errorf("%d bytes after the answer", c.held-size)
	}
	c.held = 0
	return true, nil
}
