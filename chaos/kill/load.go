package kill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"syscall"
)

// An Answer is what a client was told for good, under a key.
type Answer struct {
	Path, Key, Body string
	Status          int
	Bytes           []byte
	TxID            string
}

// A Client moves its own money, one operation at a time, and remembers. What it
// does not know it asks again, under the same key.
type Client struct {
	name    string
	nonce   uint64
	count   int
	pending *Answer // asked, not known
	Known   []Answer
	Cut     error // a request that was sent and got no answer
}

// NewClient is a client with an account of its own.
func NewClient(name string) *Client { return &Client{name: name} }

func (c *Client) next() *Answer {
	c.count++
	a := &Answer{Key: fmt.Sprintf("%s-%d", c.name, c.count)}
	switch {
	case c.count%10 == 1:
		a.Path, a.Body = "/v1/issue", fmt.Sprintf(`{"to":%q,"asset":"EUR/2","amount_minor":"100"}`, c.name)
	case c.count%10 == 9: // more than there is: a refusal that is kept
		a.Path = "/v1/transfer"
		a.Body = fmt.Sprintf(`{"from":%q,"to":"shop","asset":"EUR/2","amount_minor":"1000000","nonce":%d}`, c.name, c.nonce+1)
	case c.count%10 == 0:
		a.Path, a.Body = "/v1/burn", fmt.Sprintf(`{"from":%q,"asset":"EUR/2","amount_minor":"1","nonce":%d}`, c.name, c.nonce+1)
	default:
		a.Path = "/v1/transfer"
		a.Body = fmt.Sprintf(`{"from":%q,"to":"shop","asset":"EUR/2","amount_minor":"3","nonce":%d,"memo":"tea"}`, c.name, c.nonce+1)
	}
	return a
}

// Run asks until ctx ends or nobody answers any more.
func (c *Client) Run(ctx context.Context, n *Node) error {
	for ctx.Err() == nil {
		if c.pending == nil {
			c.pending = c.next()
		}
		a := c.pending
		status, answer, err := n.Post(ctx, a.Path, a.Key, a.Body)
		if err != nil {
			if !errors.Is(err, syscall.ECONNREFUSED) {
				c.Cut = err
			}
			return nil // gone: what it asked last it does not know
		}
		switch status {
		case http.StatusOK, http.StatusConflict:
			if err := c.learn(a, status, answer); err != nil {
				return err
			}
		case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		default:
			return fmt.Errorf("%s %s: %d %s", a.Path, a.Key, status, answer)
		}
	}
	return nil
}

func (c *Client) learn(a *Answer, status int, answer []byte) error {
	var said struct {
		TxID string `json:"txid"`
		Code string `json:"code"`
	}
	if err := json.Unmarshal(answer, &said); err != nil {
		return fmt.Errorf("%s: %w", answer, err)
	}
	if said.Code == "in_progress" {
		return nil
	}
	if status != http.StatusOK && said.Code != "insufficient_funds" {
		return fmt.Errorf("%s %s: %d %s", a.Path, a.Key, status, answer)
	}
	a.Status, a.Bytes, a.TxID = status, answer, said.TxID
	if status == http.StatusOK && a.Path != "/v1/issue" {
		c.nonce++
	}
	c.Known = append(c.Known, *a)
	c.pending = nil
	return nil
}

// Hold compares, from the from-th on, every answer with what the node says now:
// receipts by their txid, and all of them under their keys.
func (c *Client) Hold(ctx context.Context, n *Node, from int) error {
	for _, a := range c.Known[min(from, len(c.Known)):] {
		if a.TxID != "" {
			status, now, err := n.Get(ctx, "/v1/tx/"+a.TxID)
			if err != nil {
				return err
			}
			if status != a.Status || !bytes.Equal(now, a.Bytes) {
				return fmt.Errorf("%s was told\n%s\nnow %d\n%s", a.Key, a.Bytes, status, now)
			}
		}
		status, now, err := n.Post(ctx, a.Path, a.Key, a.Body)
		if err != nil {
			return err
		}
		if status != a.Status || !bytes.Equal(now, a.Bytes) {
			return fmt.Errorf("%s was told %d\n%s\nreplayed %d\n%s", a.Key, a.Status, a.Bytes, status, now)
		}
	}
	return nil
}

// Together runs all clients until ctx ends.
func Together(ctx context.Context, n *Node, all []*Client) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, c := range all {
		wg.Go(func() { errs[i] = c.Run(ctx, n) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
