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

// get asks a node for something with its first key, and hands the answer on.
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

// asOf is how many movements an answer counts.
func (n *node) asOf(ctx context.Context, path string) (uint64, error) {
	var said struct {
		Seq uint64 `json:"as_of_seq"`
	}
	err := n.get(ctx, path, func(r io.Reader) error { return json.NewDecoder(r).Decode(&said) })
	return said.Seq, err
}

// seq is the number of movements that a node counts.
func (n *node) seq(ctx context.Context) (uint64, error) {
	return n.asOf(ctx, "/v1/balance?account=acct:00000000&asset=EUR/2")
}

// quiet waits until a node that nobody asks uses less than a tenth of a core: what it
// has indexed is merged then. It says how long that took, and gives up after a while.
func (n *node) quiet(ctx context.Context) (time.Duration, error) {
	const look = 300 * time.Millisecond
	began := time.Now()
	for {
		before, err1 := gauge.CPU(n.pid())
		whole := pause(ctx, look)
		after, err2 := gauge.CPU(n.pid())
		took := time.Since(began)
		switch err := errors.Join(err1, err2); {
		case err != nil || !whole:
			return took, errors.Join(err, context.Cause(ctx))
		case after-before < look/10, took > quietLimit:
			return took, nil
		}
	}
}

// indexed waits until the index of a node counts so many, and says how long it took.
func (n *node) indexed(ctx context.Context, seq uint64) (time.Duration, error) {
	began := time.Now()
	for {
		has, err := n.asOf(ctx, "/v1/accounts/acct%3A00000000/entries?limit=1")
		took := time.Since(began)
		select {
		case <-n.ended:
			return took, fmt.Errorf("macronode ended: %s", n.said.String())
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
