package kill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"macronode/chaos/refmodel"
	"macronode/core/types"
	"macronode/models/history"
)

// An Answer is a final outcome under a key.
type Answer struct {
	Path, Key, Body string
	Status          int
	Bytes           []byte
	TxID            string

	op history.Key
}

// A Client moves its own money, one operation at a time, reads balances in between, and records everything. It
// retries an unknown outcome under the same key; or, every second time that the node stops, it gives up and
// continues from its balance.
type Client struct {
	name    string
	nonce   uint64
	count   int
	hold    string  // open, and not yet paid of
	pending *Answer // asked, not known
	left    int     // how often the node was gone before it answered
	lost    bool    // it does not know its nonce
	Known   []Answer
	Cut     error // a request that was sent and got no answer

	recorder *history.Recorder[ask, string]
	saw      map[history.Key]types.Seq // each read, the last movement that it says it saw
}

// NewClient returns a client with an account of its own. The number must be unique.
func NewClient(number uint32) *Client {
	return &Client{name: fmt.Sprintf("client:%d", number), recorder: history.NewRecorder[ask, string](number), saw: map[history.Key]types.Seq{}}
}

func (c *Client) next() *Answer {
	c.count++
	a := new(Answer)
	switch {
	case c.hold != "" && c.count%20 == 16:
		a.Path, a.Body = "/v1/holds/"+c.hold+"/release", `{}`
	case c.hold != "":
		a.Path, a.Body = "/v1/holds/"+c.hold+"/capture", `{"to":"shop","amount_minor":"1"}`
	case c.count%10 == 5:
		until := time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")
		a.Path = "/v1/holds"
		a.Body = fmt.Sprintf(`{"from":%q,"asset":"EUR/2","amount_minor":"2","nonce":%d,"expires_at":%q}`, c.name, c.nonce+1, until)
	case c.count%10 == 7:
		a.Path = "/v1/batch"
		a.Body = fmt.Sprintf(`{"atomic":%v,"items":[{"op":"issue","to":%q,"asset":"EUR/2","amount_minor":"5","ref":%q},`+
			`{"op":"transfer","from":%q,"to":"shop","asset":"EUR/2","amount_minor":"1","nonce":%d}]}`,
			c.count%20 == 7, c.name, fmt.Sprintf("r-%s-%d", strings.ReplaceAll(c.name, ":", "."), c.count), c.name, c.nonce+1)
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
	a.op = c.recorder.Call(now(), history.Write, ask{a.Path, a.Body})
	a.Key = fmt.Sprintf("%s-%d", c.name, a.op.Number)
	return a
}

// resume decides what to do with a request that the node did not answer before it stopped.
func (c *Client) resume() {
	if c.pending == nil {
		return
	}
	if c.left++; c.left%2 == 0 {
		c.pending, c.hold, c.lost = nil, "", true
	}
}

// Run sends requests until ctx ends or the node stops answering. It waits for the response of its last request,
// because its next one must not overtake it.
func (c *Client) Run(ctx context.Context, n *Node) error {
	c.resume()
	for end := ctx.Done(); ; {
		select {
		case <-end:
			return nil
		default:
		}
		ctx := context.WithoutCancel(ctx)
		if c.pending == nil && (c.lost || c.count%3 == 0) {
			if err := c.readBalance(ctx, n); err != nil {
				return c.disconnect(err)
			}
		}
		if c.lost {
			continue
		}
		if c.pending == nil {
			c.pending = c.next()
		}
		a := c.pending
		status, answer, err := n.Post(ctx, a.Path, a.Key, a.Body)
		if err != nil {
			return c.disconnect(err)
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
}

// disconnect handles the end of the node: the last outcome is unknown.
func (c *Client) disconnect(err error) error {
	var wrong *unexpectedAnswer
	if errors.As(err, &wrong) {
		return err
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		c.Cut = err
	}
	return nil
}

// unexpectedAnswer is a response that a node must not give.
type unexpectedAnswer struct{ answer string }

func (o *unexpectedAnswer) Error() string { return o.answer }

// readBalance reads a balance, its own or that of the common payee.
func (c *Client) readBalance(ctx context.Context, n *Node) error {
	account := c.name
	if !c.lost && c.count%2 == 0 {
		account = "shop"
	}
	op := c.recorder.Call(now(), history.Read, ask{balancePath, account})
	status, answer, err := n.Get(ctx, balancePath+"?asset=EUR/2&account="+account)
	if err != nil || status != http.StatusOK {
		return err // a node that starts or ends may say that it is not there
	}
	b, err := refmodel.ReadBalance(answer)
	if err != nil {
		return &unexpectedAnswer{fmt.Sprintf("%s: %v: %s", account, err, answer)}
	}
	c.recorder.Return(op, now(), types.Position{}, b.String()) // of which place Certify finds out
	c.saw[op] = b.Seq
	if c.lost {
		c.nonce, c.lost = b.Next-1, false
	}
	return nil
}

func (c *Client) learn(a *Answer, status int, answer []byte) error {
	var value struct {
		TxID string `json:"txid"`
		Code string `json:"code"`
		Hold string `json:"hold_id"`
	}
	if err := json.Unmarshal(answer, &value); err != nil {
		return fmt.Errorf("%s: %w", answer, err)
	}
	if value.Code == "in_progress" {
		return nil
	}
	if status != http.StatusOK && value.Code != "insufficient_funds" {
		return fmt.Errorf("%s %s: %d %s", a.Path, a.Key, status, answer)
	}
	a.Status, a.Bytes, a.TxID = status, answer, value.TxID
	what, at, err := refmodel.Gist(answer)
	if err != nil {
		return fmt.Errorf("%s: %w", answer, err)
	}
	c.recorder.Return(a.op, now(), at, what)
	paid := strings.HasSuffix(a.Path, "/capture") || strings.HasSuffix(a.Path, "/release")
	if status == http.StatusOK && a.Path != "/v1/issue" && !paid {
		c.nonce++
	}
	if c.hold = ""; a.Path == "/v1/holds" {
		c.hold = value.Hold
	}
	c.Known = append(c.Known, *a)
	c.pending = nil
	return nil
}

// Hold compares every answer from an index on with what the node returns now: receipts by txid, and all of them
// under their keys.
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
