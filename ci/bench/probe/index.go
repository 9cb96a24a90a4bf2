package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"macronode/adapters/index"
	"macronode/ci/bench/sample"
	"macronode/core/event"
	"macronode/core/types"
)

// newIndex opens the index, in which evicted keys are looked up.
func (o *own) newIndex(ctx context.Context, dir string, ttl time.Duration) {
	o.index = index.New(index.Config{Dir: dir, TTL: ttl, Journal: o.journal,
		Indexed: func(upto types.LSN) { o.loop.Send(ctx, event.Indexed{Upto: upto}) },
		Aged:    func() bool { return o.loop.Status().MayHaveForgotten }})
	o.dispatcher.Index = o.index
}

// measureTables returns the bytes of the idempotency keys in the tables of a closed index: keys
// whose first byte is 2.
func measureTables(dir string) (r sample.Sample, err error) {
	db, err := pebble.Open(filepath.Join(dir, "tables"), &pebble.Options{ReadOnly: true, Logger: silent{}})
	if err != nil {
		return r, fmt.Errorf("open the tables: %w", err)
	}
	bytes, err := db.EstimateDiskUsage([]byte{2}, []byte{3})
	r.Bytes = float64(bytes)
	return r, errors.Join(err, db.Close())
}
