package cli

import (
	"context"
	"fmt"

	"macronode/adapters/config"
	"macronode/cmd/macronode/internal/offline"
)

// Run checks a journal.
func (v *verifyCmd) Run(c *Console) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	return c.verify(ctx, cfg, v)
}

// verify checks a journal and prints the report.
func (c *Console) verify(ctx context.Context, cfg *config.Config, asked *verifyCmd) error {
	e := c.offlineEnv()
	e.Progress = c.progress(asked.Progress)
	v, err := e.Verify(ctx, cfg, asked.Deep, !asked.Fast)
	if err != nil {
		return err
	}
	if c.tree.JSON {
		err = c.printJSON(v)
	} else {
		err = v.WriteText(c.out)
	}
	if err == nil && !v.OK {
		err = fmt.Errorf("verify: %w", offline.ErrProblems)
	}
	return err
}

// offline returns what the offline tools need of the console.
func (c *Console) offlineEnv() offline.Env {
	return offline.Env{Version: thisBuild().Version, Out: c.out, Unreadable: c.warnUnreadable, Running: c.node().durableFrame}
}
