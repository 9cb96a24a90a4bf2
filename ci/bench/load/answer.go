package main

import (
	"bytes"
	"fmt"
	"strconv"
)

var (
	blank    = []byte("\r\n\r\n")
	length   = []byte("\r\nContent-Length: ")
	chunked  = []byte("\r\nTransfer-Encoding: chunked")
	over     = []byte("\r\n0\r\n\r\n") // ends a chunked body; our answers contain no line end
	status   = []byte("HTTP/1.1 200 ")
	quote    = []byte(`"`)
	receipt  = []byte(`{"txid":"tx_`)
	replayed = []byte("\r\nIdempotency-Replayed: true\r\n")
)

// answer returns the size of a complete answer, 0 while it is incomplete. An unexpected answer is
// an error.
func (c *conn) answer() (size int, err error) {
	in := c.in[:c.held]
	end := bytes.Index(in, blank)
	if end < 0 {
		return 0, c.room()
	}
	head := in[:end+2]
	switch at := bytes.Index(head, length); {
	case at >= 0:
		digits, _, _ := bytes.Cut(head[at+len(length):], blank[:2])
		if size, err = strconv.Atoi(string(digits)); err != nil || size < 0 {
			return 0, errLength
		}
		size += end + len(blank)
	case !bytes.Contains(head, chunked):
		return 0, errLength
	case bytes.HasSuffix(in, over):
		size = len(in)
	default:
		return 0, c.room()
	}
	if size > len(in) {
		return 0, c.room()
	}
	if why := c.wrong(head, in[end+len(blank):size]); why != "" {
		return 0, fmt.Errorf("%s was answered %s\n%s", c.key, why, in[:size])
	}
	return size, nil
}

// wrong returns why an answer is not the expected one: for a repeated request, the same bytes;
// for a batch, a receipt for each transfer; otherwise one for its key.
func (c *conn) wrong(head, body []byte) string {
	p := c.plan
	if p.Events > 0 {
		return p.wrongEvents(head, body)
	}
	switch {
	case !bytes.HasPrefix(head, status):
		return "with a refusal"
	case len(p.Asks) > 0 && !bytes.Contains(head, replayed):
		return "as if for the first time"
	case len(p.Asks) > 0 && string(body) != p.Asks[c.again].Answer:
		return "otherwise than before: " + p.Asks[c.again].Answer
	case p.Batch > 0 && bytes.Count(body, receipt) != p.Batch:
		return "with a number of receipts that is not its own"
	}
	if i := bytes.Index(body, c.key); i < 1 || !bytes.HasPrefix(body[i+len(c.key):], quote) || body[i-1] != '"' {
		return "for another key"
	}
	return ""
}

func (c *conn) room() error {
	if c.held == len(c.in) {
		return errLong
	}
	return nil
}
