package hostclock

import (
	"context"
	"time"
)

// Sleep waits for a duration. It returns early, with the error of ctx, if ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
