package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"macronode/adapters/fs"
	"macronode/adapters/hostclock"
	"macronode/adapters/loop"
	"macronode/adapters/metrics"
	"macronode/adapters/nodedir"
	"macronode/adapters/readmodel"
	"macronode/core/event"
	"macronode/core/types"
)

// bootstrap enrols the API key of the file bootstrap.key, unless the journal has it. The file is written first, so no key is enrolled whose
// secret is lost.
type bootstrap struct {
	dir        fs.Dir // of the node
	readModel  *readmodel.Follower
	dispatcher *loop.Dispatcher
	metrics    *metrics.Metrics
	log        *slog.Logger
}

// run enrols the key, and retries until it is enrolled or ctx ends. Damaged: the journal has lost frames.
func (b bootstrap) run(ctx context.Context, damaged bool) {
	if damaged && !b.readModel.Bootstrapped() {
		b.log.Error("no API key readable from the damaged journal: all requests are rejected until the missing segment is restored")
		return
	}
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, time.Minute) {
		done, err := b.enrol(ctx)
		if done || ctx.Err() != nil {
			return
		}
		b.log.Error("bootstrap API key not known yet", "err", err, "again_in", wait)
		b.metrics.Retried("enrol")
		if hostclock.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// enrol makes one attempt. It returns true if no other attempt is needed.
func (b bootstrap) enrol(ctx context.Context) (done bool, err error) {
	first := b.readModel.Bootstrapped()
	k, owed, err := nodedir.Owed(string(b.dir), rand.Reader, first, func(id types.KeyID) bool {
		_, known := b.readModel.Find(id)
		return known
	})
	switch {
	case owed:
	case errors.Is(err, nodedir.ErrNoKey):
		b.log.Warn("bootstrap API key file is missing: use a saved copy of the key, or create one with macronode keys recover")
		return true, nil
	case errors.Is(err, nodedir.ErrSpent):
		b.log.Warn("bootstrap API key is revoked: use another admin key, or create one with macronode keys recover")
		return true, nil
	default:
		return err == nil, err
	}
	r, ok := b.dispatcher.CreateKey(ctx, &event.CreateKey{ReplaceBootstrap: first, Key: event.Key{ID: k.ID, Tenant: types.DefaultTenant, Hash: k.Hash(),
		Scopes: event.AllScopes, Bootstrap: true}})
	if !ok || r.Problem != event.None {
		return false, fmt.Errorf("enrol %v: %s", k, r.Problem.Detail())
	}
	return true, nil
}
