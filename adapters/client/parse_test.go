package client_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"macronode/adapters/client"
)

// TestOtherServerIsNoNode: a server that answers 200 and {} to everything is no node. What it was asked to do may or may not be done.
func TestOtherServerIsNoNode(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, "secret", client.Options{MaxAttempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	ctx := t.Context()
	for what, call := range map[string]struct {
		do      func() error
		unknown bool
	}{
		"a balance": {func() error { _, err := c.Balance(ctx, "ann", "EUR/2", 0); return err }, false},
		"changes": {func() (err error) {
			for _, err = range c.Changes(ctx, client.FeedOptions{}) { //nolint:revive // the last error
			}
			return err
		}, false},
		"a hold":           {func() error { _, err := c.GetHold(ctx, "1"); return err }, false},
		"credentials":      {func() error { _, err := c.S3Credentials(ctx); return err }, false},
		"usage":            {func() error { _, err := c.Usage(ctx, client.UsageQuery{}); return err }, false},
		"a new key":        {func() error { _, err := c.CreateKey(ctx, client.KeyRequest{}); return err }, true},
		"a revoked key":    {func() error { _, err := c.RevokeKey(ctx, "000000000000000a"); return err }, true},
		"a deleted object": {func() error { _, err := c.DeleteObject(ctx, "b3:00", ""); return err }, true},
	} {
		err := call.do()
		if !errors.Is(err, client.ErrWrongNode) || errors.Is(err, client.ErrUnknown) != call.unknown {
			t.Errorf("%s: %v", what, err)
		}
	}
}
