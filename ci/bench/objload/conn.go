package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"macronode/ci/bench/objplan"
	"macronode/ci/bench/s3sign"
)

// A conn is one connection, with at most one request in progress.
type conn struct {
	plan    *objplan.Plan
	number  int
	net     net.Conn
	in      *bufio.Reader
	signer  *s3sign.Signer
	signing time.Duration
	head    []byte
	content []byte // of new objects
	buf     []byte
}

// stall is how long an answer may take.
const stall = 60 * time.Second

var (
	errNoLength = errors.New("a response without a length")
	errContent  = errors.New("another object was sent")
)

func dial(p *objplan.Plan, number int) (*conn, error) {
	c, err := net.Dial("tcp", p.Addr.String())
	if err != nil {
		return nil, err
	}
	k := &conn{plan: p, number: number, net: c, in: bufio.NewReaderSize(c, 4<<10), buf: make([]byte, 256<<10)}
	if p.S3 != nil {
		k.signer = s3sign.New(*p.S3, p.Addr.String())
	}
	if p.Method == http.MethodPut || p.Method == http.MethodPost {
		k.content = objplan.Content(p.Size)
	}
	return k, nil
}

func (c *conn) close() { _ = c.net.Close() } // all was read

// request sends the n-th request of the connection and reads the response.
func (c *conn) request(n int, dice *rand.Rand) error {
	_ = c.net.SetDeadline(time.Now().Add(stall)) // a closed connection is reported by the next call
	p := c.plan
	path, at := p.Prefix, n*p.Conns+c.number
	switch {
	case len(p.Paths) > 0:
		at %= len(p.Paths)
		path = p.Paths[at]
	case !p.Fixed:
		path += strconv.Itoa(c.number) + "-" + strconv.Itoa(n)
	}
	c.head = fmt.Appendf(c.head[:0], "%s %s HTTP/1.1\r\nHost: %s\r\n", p.Method, path, p.Addr)
	if p.Bearer != "" {
		c.head = append(append(append(c.head, "Authorization: Bearer "...), p.Bearer...), "\r\n"...)
	}
	if c.signer != nil {
		began := time.Now()
		c.head = c.signer.Append(c.head, p.Method, path, began)
		c.signing += time.Since(began)
	}
	if p.Range > 0 {
		off := dice.Uint64N(p.Size/p.Range) * p.Range
		c.head = fmt.Appendf(c.head, "Range: bytes=%d-%d\r\n", off, off+p.Range-1)
	}
	if c.content == nil {
		if _, err := c.net.Write(append(c.head, "\r\n"...)); err != nil {
			return err
		}
		return c.response(uint64(at))
	}
	objplan.Stamp(c.content, p.Salt, uint64(at))
	c.head = fmt.Appendf(c.head, "Content-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n", len(c.content))
	out := net.Buffers{c.head, c.content}
	if _, err := out.WriteTo(c.net); err != nil {
		return err
	}
	return c.response(0)
}

// response reads a response and checks it. number is that of the object that is read.
func (c *conn) response(number uint64) error {
	status, length, err := c.header()
	if err != nil {
		return err
	}
	want := c.plan.Status
	if status != want || length < 0 {
		body := make([]byte, min(1000, max(length, 0)))
		_, _ = io.ReadFull(c.in, body) // the status is the error
		if status == want {
			return errNoLength
		}
		return fmt.Errorf("status %d: %s", status, body)
	}
	if c.plan.Method == http.MethodGet {
		size := c.plan.Size
		if c.plan.Range > 0 {
			size = c.plan.Range
		}
		if uint64(length) != size {
			return fmt.Errorf("%d bytes, want %d", length, size)
		}
	}
	for at := int64(0); at < length; {
		n, err := c.in.Read(c.buf[:min(length-at, int64(len(c.buf)))])
		if err != nil {
			return err
		}
		if at == 0 && c.plan.Method == http.MethodGet && c.plan.Range == 0 && (n < objplan.StampLen || binary.LittleEndian.Uint64(c.buf[8:]) != number) {
			return errContent
		}
		at += int64(n)
	}
	return nil
}

// header reads the status and the length of a response; -1: it has none.
func (c *conn) header() (status int, length int64, err error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, 0, err
	}
	if len(line) < 12 {
		return 0, 0, fmt.Errorf("a response that begins with %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, 0, err
	}
	length = -1
	if status == http.StatusNoContent {
		length = 0
	}
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, 0, err
		}
		if len(line) <= 2 {
			return status, length, nil
		}
		name, value, _ := strings.Cut(string(line), ":")
		if strings.EqualFold(name, "Content-Length") {
			if length, err = strconv.ParseInt(strings.TrimSpace(value), 10, 64); err != nil {
				return 0, 0, err
			}
		}
	}
}
