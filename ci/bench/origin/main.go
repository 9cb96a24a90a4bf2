// origin is the service behind the measured gateways: one thread over epoll, so that it uses
// little of the machine. It prints its address and serves until it is killed.
//
//	GET /200         200 bytes at once
//	GET /200/10ms    the same, so long after the request came
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"syscall"
	"time"

	"macronode/ci/bench/socket"
)

func main() {
	runtime.LockOSThread()
	debug.SetGCPercent(400)
	fmt.Fprintln(os.Stderr, "origin:", serve())
	os.Exit(1)
}

// origin is the server. Sockets are indexed by descriptor.
type origin struct {
	poll     *socket.Poll
	listener int
	conns    map[int]*conn
	slow     []late // in the order of their times
	answers  map[int][]byte
}

type conn struct {
	fd   int
	in   []byte
	held int
}

// late is a delayed answer.
type late struct {
	c    *conn
	size int
	due  time.Time
}

const idle = time.Minute

// serve returns on an error.
func serve() error {
	poll, err := socket.New()
	if err != nil {
		return err
	}
	listener, port, err := socket.Listen()
	if err != nil {
		return err
	}
	o := &origin{poll: poll, listener: listener, conns: make(map[int]*conn), answers: make(map[int][]byte)}
	if err := poll.Add(listener, listener, false); err != nil {
		return err
	}
	fmt.Printf("127.0.0.1:%d\n", port)
	for {
		wait := idle
		if len(o.slow) > 0 {
			wait = time.Until(o.slow[0].due)
		}
		if _, err := poll.Wait(wait, o.happens); err != nil {
			return err
		}
		for now := time.Now(); len(o.slow) > 0 && !now.Before(o.slow[0].due); o.slow = o.slow[1:] {
			if o.conns[o.slow[0].c.fd] == o.slow[0].c { // it may be closed meanwhile
				o.answer(o.slow[0].c, o.slow[0].size)
			}
		}
	}
}

func (o *origin) happens(fd int) error {
	if fd != o.listener {
		o.read(o.conns[fd])
		return nil
	}
	for {
		fd, ok, err := socket.Accept(o.listener)
		if err != nil || !ok {
			return err
		}
		o.conns[fd] = &conn{fd: fd, in: make([]byte, 16<<10)}
		if err := o.poll.Add(fd, fd, false); err != nil {
			return err
		}
	}
}

func (o *origin) read(c *conn) {
	n, err := syscall.Read(c.fd, c.in[c.held:])
	if socket.Again(err) {
		return
	}
	if err != nil || n == 0 {
		o.end(c)
		return
	}
	c.held += n
	for {
		at := bytes.Index(c.in[:c.held], blank)
		if at < 0 {
			if c.held == len(c.in) {
				o.end(c)
			}
			return
		}
		size, delay, err := asked(c.in[:at])
		c.held = copy(c.in, c.in[at+len(blank):c.held])
		switch {
		case err != nil:
			o.end(c)
			return
		case delay > 0:
			o.delay(late{c, size, time.Now().Add(delay)})
		default:
			o.answer(c, size)
		}
	}
}

var (
	blank    = []byte("\r\n\r\n")
	get      = []byte("GET /")
	errAsked = errors.New("origin: unknown path")
)

// asked parses a request.
func asked(head []byte) (size int, delay time.Duration, err error) {
	rest, ok := bytes.CutPrefix(head, get)
	path, _, _ := bytes.Cut(rest, []byte(" "))
	path, after, late := bytes.Cut(path, []byte("/"))
	size, err = strconv.Atoi(string(path))
	if late && err == nil {
		delay, err = time.ParseDuration(string(after))
	}
	if !ok || err != nil || size < 0 || size > 1<<20 {
		return 0, 0, errAsked
	}
	return size, delay, nil
}

// delay stores an answer until its time.
func (o *origin) delay(l late) {
	at, _ := slices.BinarySearchFunc(o.slow, l.due, func(l late, due time.Time) int { return l.due.Compare(due) })
	o.slow = slices.Insert(o.slow, at, l)
}

// answer sends a number of bytes. It blocks if the socket is full: every client reads its
// answers.
func (o *origin) answer(c *conn, size int) {
	all, ok := o.answers[size]
	if !ok {
		all = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n", size)
		all = append(all, bytes.Repeat([]byte("x"), size)...)
		o.answers[size] = all
	}
	for len(all) > 0 {
		n, err := syscall.Write(c.fd, all)
		if err != nil && !socket.Again(err) {
			o.end(c)
			return
		}
		all = all[max(0, n):]
	}
}

func (o *origin) end(c *conn) {
	delete(o.conns, c.fd)
	_ = syscall.Close(c.fd) // nothing is in flight
}
