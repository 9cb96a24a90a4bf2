package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"macronode/ci/bench/gauge"
)

// get sends a GET with the node's first key, and streams the answer.
func (n *node) get(ctx context.Context, path string, take func(io.Reader) error) error {
	key, err := os.ReadFile(n.keyFile())
	if err != nil {
		return err
	}
	ctx, done := context.WithTimeout(ctx, time.Minute)
	defer done()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.http+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(key)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		raw, err := io.ReadAll(resp.Body)
		return errors.Join(fmt.Errorf("%s: %d %s", path, resp.StatusCode, raw), err, resp.Body.Close())
	}
	err = take(resp.Body)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return errors.Join(err, resp.Body.Close())
}

// asOf returns the number of movements that an answer includes.
func (n *node) asOf(ctx context.Context, path string) (uint64, error) {
	var body struct {
		Seq uint64 `json:"as_of_seq"`
	}
	err := n.get(ctx, path, func(r io.Reader) error { return json.NewDecoder(r).Decode(&body) })
	return body.Seq, err
}

// seq returns the number of movements of a node.
func (n *node) seq(ctx context.Context) (uint64, error) {
	return n.asOf(ctx, "/v1/balance?account=acct:00000000&asset=EUR/2")
}

// quiet waits until an idle node uses less than a tenth of a core: then its index is merged. It
// returns the time that took, and gives up after a while.
func (n *node) quiet(ctx context.Context) (time.Duration, error) { return quiet(ctx, n.cpu) }

func (n *node) cpu() (time.Duration, error) { return gauge.CPU(n.pid()) }

// quiet waits until servers without requests use less than a tenth of a core.
func quiet(ctx context.Context, servers func() (time.Duration, error)) (time.Duration, error) {
	const look = 300 * time.Millisecond
	began := time.Now()
	for {
		before, err1 := servers()
		whole := pause(ctx, look)
		after, err2 := servers()
		took := time.Since(began)
		switch err := errors.Join(err1, err2); {
		case err != nil || !whole:
			return took, errors.Join(err, context.Cause(ctx))
		case after-before < look/10, took > quietLimit:
			return took, nil
		}
	}
}

// indexed waits until the index has a number of movements, and returns the time that took.
func (n *node) indexed(ctx context.Context, seq uint64) (time.Duration, error) {
	began := time.Now()
	for {
		has, err := n.asOf(ctx, "/v1/accounts/acct%3A00000000/entries?limit=1")
		took := time.Since(began)
		select {
		case <-n.ended:
			return took, fmt.Errorf("macronode ended: %s", n.output.String())
		default:
		}
		switch {
		case err == nil && has >= seq:
			return took, nil
		case took > indexLimit:
			return took, errors.Join(fmt.Errorf("the index counts %d movements of %d", has, seq), err)
		case !pause(ctx, 5*time.Millisecond):
			return took, context.Cause(ctx)
		}
	}
}

const (
	indexLimit = 5 * time.Minute
	quietLimit = 30 * time.Second
)
