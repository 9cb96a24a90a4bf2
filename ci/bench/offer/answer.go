package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"
)

var (
	blank      = []byte("\r\n\r\n")
	line       = []byte("\r\n")
	version    = []byte("HTTP/1.1 ")
	length     = []byte("content-length")
	connection = []byte("connection")
	closes     = []byte("close")
)

var (
	errLength = errors.New("an answer that does not say how long it is")
	errLong   = errors.New("an answer longer than any that is wanted")
)

// answer reads what is available, and continues after a complete answer.
func (c *conn) answer() error {
	in := c.in[:c.held]
	end := bytes.Index(in, blank)
	if end < 0 {
		return c.room()
	}
	status, size, last, err := head(in[:end])
	if err != nil {
		return fmt.Errorf("%w: %q", err, in)
	}
	whole := end + len(blank) + size
	switch {
	case len(in) < whole:
		return c.room()
	case len(in) > whole: // an answer without a request follows
		c.seen.Unasked++
		last = true
	}
	if status == 200 && size != c.of.Size {
		return fmt.Errorf("an answer of %d bytes, %d were wanted", size, c.of.Size)
	}
	c.held = 0
	c.out--
	c.answered(status, c.due, time.Now())
	if last {
		return c.anew()
	}
	return c.rest()
}

func (c *conn) room() error {
	if c.held == len(c.in) {
		return errLong
	}
	return nil
}

// head parses the relevant header fields of an answer. Field names may be in any case.
func head(in []byte) (status, size int, last bool, err error) {
	first, rest, _ := bytes.Cut(in, line)
	code, ok := bytes.CutPrefix(first, version)
	if !ok || len(code) < 3 {
		return 0, 0, false, errors.New("no answer of HTTP/1.1")
	}
	status, err = strconv.Atoi(string(code[:3]))
	size = -1
	for len(rest) > 0 && err == nil {
		var field []byte
		field, rest, _ = bytes.Cut(rest, line)
		name, value, _ := bytes.Cut(field, []byte(":"))
		switch {
		case bytes.EqualFold(name, length):
			size, err = strconv.Atoi(string(bytes.TrimSpace(value)))
		case bytes.EqualFold(name, connection):
			last = bytes.EqualFold(bytes.TrimSpace(value), closes)
		}
	}
	if err == nil && size < 0 {
		err = errLength
	}
	return status, size, last, err
}
