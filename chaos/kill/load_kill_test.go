package kill_test

import (
	"context"
	"testing"
	"time"

	"macronode/chaos/kill"
	"macronode/core/types"
)

// A client sends requests until the node stops answering. Its error is a response that contradicts what it knows.
type client interface {
	Run(ctx context.Context, n *kill.Node) error
}

// killUnderLoad kills a running node at a drawn moment under requests of all clients, after during.
func killUnderLoad[C client](t *testing.T, n *kill.Node, all []C, dice *types.Rand, during func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	errs := make(chan error, len(all))
	for _, c := range all {
		go func() { errs <- c.Run(ctx, n) }()
	}
	awaitFolded(t, n, folded(t, n)+uint64(4*len(all)))
	during()
	time.Sleep(time.Duration(dice.Uint64n(200)) * time.Millisecond) // the moment is what is drawn here
	n.Kill()
	for range all {
		if err := <-errs; err != nil {
			t.Fatalf("go test ./chaos/kill -run %s$ -seed %d: %v\n%s", t.Name(), *seed, err, n.Output())
		}
	}
}
