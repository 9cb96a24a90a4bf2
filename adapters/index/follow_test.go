package index_test

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"macronode/adapters/index"
)

// TestNotifiesOnceItFollows: a run reports that it follows once all durable frames are read, not
// when its tables are open.
func TestNotifiesOnceItFollows(t *testing.T) {
	d := newDesk(t, grown(1, 30, 30), vfs.NewMem(), index.Limits{Frames: 7})
	ctx, stop := context.WithCancel(t.Context())
	follows, done := make(chan struct{}, 2), make(chan error, 1)
	go func() { done <- d.x.RunNotify(ctx, func() { follows <- struct{}{} }) }()
	<-d.up // it is open, and the journal cannot be read yet
	select {
	case <-follows:
		t.Error("it reports that it follows before it has read the journal")
	default:
	}
	d.open()
	<-follows
	if m := d.x.Mark(); m.LSN != 30 {
		t.Errorf("it reports that it follows at %v of 30", m.LSN)
	}
	stop()
	if err := <-done; err != nil || len(follows) > 0 {
		t.Errorf("it ends with %v, and has reported %d more times that it follows", err, len(follows))
	}
}
