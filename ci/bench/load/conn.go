package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"
)

// conn is one connection, with at most one request out.
type conn struct {
	plan  *Plan
	fd    int
	name  string // in its idempotency keys
	turn  int    // requests so far
	mine  int    // the first account that it pays from
	dice  uint64 // picks who is paid
	head  []byte // of every request, up to the idempotency key
	body  []byte
	out   []byte
	key   []byte // of the request that is out
	began time.Time
	in    [8192]byte
	held  int // bytes in in
}

// stall is how long everything may be silent.
const stall = 30 * time.Second

var (
	errGone    = errors.New("the connection was closed")
	errStalled = errors.New("no answer for " + stall.String())
	errLength  = errors.New("an answer without Content-Length")
	errLong    = errors.New("an answer longer than any receipt")
)

func newConn(p *Plan, at int) conn {
	verb := "transfer"
	if p.Issue {
		verb = "issue"
	}
	head := fmt.Sprintf("POST /v1/%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nIdempotency-Key: ",
		verb, p.Addr, p.Key)
	return conn{plan: p, name: fmt.Sprintf("%s-%d-", p.Salt, at), mine: p.First + at*p.Spread, dice: uint64(at)*0x9E3779B97F4A7C15 + 1,
		head: []byte(head), out: make([]byte, 0, 1024), body: make([]byte, 0, 512), key: make([]byte, 0, 64)}
}

// write is the next request of this connection, the all-th of all.
func (c *conn) write(all int) {
	c.body = c.body[:0]
	if c.plan.Issue {
		c.body = account(append(c.body, `{"to":"`...), all)
		c.body = append(c.body, `","asset":"EUR/2","amount_minor":"1000000000"}`...)
	} else {
		payer, nonce := c.mine+c.turn%c.plan.Spread, c.turn/c.plan.Spread+1
		c.body = account(append(c.body, `{"from":"`...), payer)
		c.body = account(append(c.body, `","to":"`...), c.payee(payer))
		c.body = append(c.body, `","asset":"EUR/2","amount_minor":"7","nonce":`...)
		c.body = append(strconv.AppendInt(c.body, int64(nonce), 10), `,"memo":"invoice 2026-0042, second part"}`...)
	}
	c.key = strconv.AppendInt(append(c.key[:0], c.name...), int64(c.turn), 10)
	c.out = append(append(c.out[:0], c.head...), c.key...)
	c.out = strconv.AppendInt(append(c.out, "\r\nContent-Length: "...), int64(len(c.body)), 10)
	c.out = append(append(c.out, "\r\n\r\n"...), c.body...)
	c.turn++
}

// payee is anybody else.
func (c *conn) payee(payer int) int {
	c.dice ^= c.dice << 13
	c.dice ^= c.dice >> 7
	c.dice ^= c.dice << 17
	return (payer + 1 + int(c.dice%uint64(c.plan.Accounts-1))) % c.plan.Accounts
}

// account writes the name of one.
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
	c.began = time.Now()
	n, err := syscall.Write(c.fd, c.out)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if n < len(c.out) {
		return fmt.Errorf("write: %d of %d bytes went", n, len(c.out))
	}
	return nil
}

// read takes in what has come; whole when that is the answer.
func (c *conn) read() (whole bool, err error) {
	n, err := syscall.Read(c.fd, c.in[c.held:])
	switch {
	case err == syscall.EAGAIN || err == syscall.EINTR:
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
		return false, fmt.Errorf("%d bytes beyond the answer", c.held-size)
	}
	c.held = 0
	return true, nil
}

var (
	blank  = []byte("\r\n\r\n")
	length = []byte("\r\nContent-Length: ")
	status = []byte("HTTP/1.1 200 ")
	quote  = []byte(`"`)
)

// answer is the size of the answer that is in, 0 as long as it is not whole. Any but a
// receipt for this request is an error.
func (c *conn) answer() (size int, err error) {
	in := c.in[:c.held]
	end := bytes.Index(in, blank)
	if end < 0 {
		return 0, c.room()
	}
	at := bytes.Index(in[:end], length)
	if at < 0 {
		return 0, errLength
	}
	for i := at + len(length); i < end && in[i] != '\r'; i++ {
		if in[i] < '0' || in[i] > '9' {
			return 0, errLength
		}
		size = size*10 + int(in[i]-'0')
	}
	size += end + len(blank)
	if size > len(in) {
		return 0, c.room()
	}
	if !bytes.HasPrefix(in, status) {
		return 0, fmt.Errorf("%s was answered\n%s", c.key, in[:size])
	}
	body := in[end:size]
	if i := bytes.Index(body, c.key); i < 1 || !bytes.HasPrefix(body[i+len(c.key):], quote) || body[i-1] != '"' {
		return 0, fmt.Errorf("%s was answered for another key\n%s", c.key, in[:size])
	}
	return size, nil
}

func (c *conn) room() error {
	if c.held == len(c.in) {
		return errLong
	}
	return nil
}
