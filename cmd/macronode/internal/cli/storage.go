package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"macronode/adapters/adminapi"
	"macronode/adapters/hostclock"
)

const storagePollInterval = 100 * time.Millisecond // between two requests for the state of copies

// Run shows the copies of objects in each provider.
func (v *storageStatusCmd) Run(c *Console) error {
	ctx, stop := interruptible()
	defer stop()
	is, err := c.storage(ctx, http.MethodGet, "/storage")
	if err != nil {
		return err
	}
	return c.printStorage(is)
}

// Run reads all copies and waits until that is done.
func (v *storageScrubCmd) Run(c *Console) error {
	ctx, stop := interruptible()
	defer stop()
	before, err := c.storage(ctx, http.MethodPost, "/storage/scrub")
	if err != nil {
		return err
	}
	bar := c.bar("verified", int64(before.Scrub.Total))
	defer bar.End()
	is, err := c.awaitStorage(ctx, func(is *adminapi.Storage) bool {
		if is.Scrub.Running {
			bar.total = int64(is.Scrub.Total)
			bar.Add(int64(is.Scrub.Done) - bar.done)
		}
		return is.Scrub.Number > before.Scrub.Number
	})
	if err != nil {
		return err
	}
	bar.End()
	if err = c.printStorage(is); err == nil && is.Scrub.Damaged > 0 {
		err = errors.New("damaged copies found; they are repaired from good ones")
	}
	return err
}

// Run looks for missing copies and waits until they are restored.
func (v *storageRepairCmd) Run(c *Console) error {
	ctx, stop := interruptible()
	defer stop()
	if _, err := c.inventory(ctx); err != nil {
		return err
	}
	bar := c.bar("objects repaired", 0)
	defer bar.End()
	if _, err := c.awaitStorage(ctx, func(is *adminapi.Storage) bool { bar.Add(0); return is.Waiting+is.Running == 0 }); err != nil {
		return err
	}
	bar.End()
	is, err := c.inventory(ctx)
	if err != nil {
		return err
	}
	if err = c.printStorage(is); err == nil && is.Inventory.Objects > 0 {
		err = errors.New("copies are still missing; see the log of the node")
	}
	return err
}

// inventory has the node look for missing copies, and returns what it found.
func (c *Console) inventory(ctx context.Context) (is adminapi.Storage, err error) {
	before, err := c.storage(ctx, http.MethodPost, "/storage/repair")
	if err != nil {
		return is, err
	}
	return c.awaitStorage(ctx, func(is *adminapi.Storage) bool { return is.Inventory.At.After(before.Inventory.At) })
}

// awaitStorage requests the state until it is as wanted.
func (c *Console) awaitStorage(ctx context.Context, wanted func(*adminapi.Storage) bool) (is adminapi.Storage, err error) {
	for {
		if is, err = c.storage(ctx, http.MethodGet, "/storage"); err != nil || wanted(&is) {
			return is, err
		}
		if err = hostclock.Sleep(ctx, storagePollInterval); err != nil {
			return is, fmt.Errorf("interrupted: the node goes on: %w", err)
		}
	}
}

// storage sends a request about copies to the running node.
func (c *Console) storage(ctx context.Context, method, path string) (is adminapi.Storage, err error) {
	_, run, err := c.node().findNode()
	if err != nil {
		return is, err
	}
	got, err := c.node().callAdmin(ctx, run, method, path, attemptTimeout)
	if err != nil {
		return is, err
	}
	if err := json.Unmarshal(got.body, &is); err != nil || !got.ok() {
		return is, got.problem()
	}
	return is, nil
}

// printStorage prints the state.
func (c *Console) printStorage(is adminapi.Storage) error {
	if c.tree.JSON {
		return c.printJSON(is)
	}
	_, err := fmt.Fprint(c.out, storageText(&is))
	return err
}

// storageText returns the state as text.
func storageText(is *adminapi.Storage) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d copies of each object, %d required for an upload\n", is.Copies, is.Required)
	for _, p := range is.Providers {
		name := p.Name
		if p.Bucket {
			name += " (bucket)"
		}
		fmt.Fprintf(&b, "%s: %d objects, %d bytes; %d copies missing, %d damaged at the last scrub", name, p.Objects, p.Bytes, p.Missing, p.Damaged)
		if p.Failed != "" {
			fmt.Fprintf(&b, "; failed: %s", p.Failed)
		}
		b.WriteByte('\n')
	}
	switch i := is.Inventory; {
	case i.At.IsZero():
		b.WriteString("copies were not counted yet\n")
	case i.Objects == 0:
		fmt.Fprintf(&b, "all objects had their copies at %s\n", i.At.Format(time.RFC3339))
	default:
		fmt.Fprintf(&b, "%d objects lacked copies of %d bytes at %s, %d have no copy; %d repairs wait, %d run; at least %v at %s/s\n", i.Objects, i.Bytes,
			i.At.Format(time.RFC3339), i.Lost, is.Waiting, is.Running, time.Duration(is.ETA)*time.Second, megabytes(int64(is.Rate)))
	}
	switch s := is.Scrub; {
	case s.Running:
		fmt.Fprintf(&b, "scrub: %d of %d bytes are verified, %d damaged copies\n", s.Done, s.Total, s.Damaged)
	case s.Number > 0:
		fmt.Fprintf(&b, "scrub: %d bytes were verified at %s, %d damaged copies\n", s.Total, s.Ended.Format(time.RFC3339), s.Damaged)
	}
	return b.String()
}
