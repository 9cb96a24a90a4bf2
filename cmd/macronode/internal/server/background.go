package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// backgroundLimit is how long the end of a node waits for work that it ends. A disk that does not answer may hold such work for ever.
const backgroundLimit = 10 * time.Second

// errStillRuns reports work that has not ended in time. All that was acknowledged is durable before.
var errStillRuns = errors.New("background work has not ended: a disk or a server may not answer")

// background is work that runs until a node ends.
type background struct {
	group sync.WaitGroup
	tasks []backgroundTask // two
}

type backgroundTask struct {
	name  string
	ended chan struct{}
}

// run begins a work, which ends after ctx.
func (b *background) run(ctx context.Context, name string, work func(context.Context) error) {
	t := backgroundTask{name, make(chan struct{})}
	b.tasks = append(b.tasks, t)
	b.group.Go(func() {
		defer close(t.ended)
		_ = work(ctx) // it ends with ctx
	})
}

// wait waits for all work, but not longer than backgroundLimit, and logs what still runs.
func (b *background) wait(log *slog.Logger) error {
	limit := time.NewTimer(backgroundLimit)
	defer limit.Stop()
	over := false
	var left []string
	for _, t := range b.tasks {
		if !over {
			select {
			case <-t.ended:
				continue
			case <-limit.C:
				over = true
			}
		}
		select {
		case <-t.ended:
		default:
			left = append(left, t.name)
		}
	}
	if len(left) == 0 {
		return nil
	}
	log.Error("the node ends while work still runs; all that was acknowledged is durable", "work", strings.Join(left, ", "), "waited", backgroundLimit)
	return fmt.Errorf("%w: %s", errStillRuns, strings.Join(left, ", "))
}
