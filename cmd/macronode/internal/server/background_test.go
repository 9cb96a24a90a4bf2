package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestEndDoesNotWaitForHangingWork: the end of a node waits for its work, but only for a time. Then it names what still runs.
func TestEndDoesNotWaitForHangingWork(t *testing.T) {
	for _, c := range []struct {
		takes map[string]time.Duration
		left  string
	}{
		{takes: map[string]time.Duration{"repairs": 0, "exports": backgroundLimit - 1}},
		{takes: map[string]time.Duration{"repairs": backgroundLimit + 1, "exports": 0}, left: "repairs"},
		{takes: map[string]time.Duration{"repairs": 0, "exports": time.Hour}, left: "exports"},
		{takes: map[string]time.Duration{"repairs": time.Hour, "exports": time.Hour}, left: "repairs, exports"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var b background
			var out bytes.Buffer
			ctx, stop := context.WithCancel(t.Context())
			for _, name := range []string{"repairs", "exports"} {
				b.run(ctx, name, func(ctx context.Context) error {
					<-ctx.Done()
					time.Sleep(c.takes[name])
					return nil
				})
			}
			stop()
			began := time.Now()
			err := b.wait(slog.New(slog.NewTextHandler(&out, nil)))
			if c.left == "" {
				if err != nil || out.Len() > 0 {
					t.Errorf("all have ended: %v, %s", err, &out)
				}
			} else if !errors.Is(err, errStillRuns) || !strings.HasSuffix(err.Error(), ": "+c.left) || !strings.Contains(out.String(), c.left) || time.Since(began) != backgroundLimit {
				t.Errorf("%v after %v, want %q\n%s", err, time.Since(began), c.left, &out)
			}
			b.group.Wait()
		})
	}
}
