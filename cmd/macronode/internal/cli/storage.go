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
	number := uint64(0)
	is, err := c.workOnStorage("/storage/scrub", "verified", func(before, is *adminapi.Storage) storageWork {
		number = before.Requested
		return storageWork{is.Scrub.Running, is.Scrub.Number >= number, is.Scrub.Done, is.Scrub.Total}
	})
	if err != nil {
		return err
	}
	if !is.ShowScrub(number) {
		return errors.New("the node does not have the result of the scrub any more: many scrubs have ended since; repeat the scrub")
	}
	if err := c.printStorage(is); err != nil {
		return err
	}
	return scrubError(&is)
}

// scrubError returns what a scrub has found that is not as it should be.
func scrubError(is *adminapi.Storage) error {
	switch s, damaged := is.Scrub, is.Scrub.Damaged+is.Scrub.Before; {
	case s.Failure != "":
		return fmt.Errorf("copies were not verified: %s", s.Failure)
	case is.LostCount() > 0:
		return lostError(is)
	case damaged > 0 && s.Unread > 0:
		return fmt.Errorf("damaged copies found; %s; and %d copies were not read: their providers have failed or refuse access, or the node had too many open files", restoredText(is), s.Unread)
	case damaged > 0:
		return errors.New("damaged copies found; " + restoredText(is))
	case s.Unread > 0:
		return fmt.Errorf("%d copies were not read: their providers have failed or refuse access, or the node had too many open files; repeat the scrub when they can be used", s.Unread)
	}
	return nil
}

// restoredText returns what has become of the damaged copies that a scrub has found.
func restoredText(is *adminapi.Storage) string {
	switch {
	case is.Scrub.Unrestored != "":
		return fmt.Sprintf("one at least is waiting for its repair (%s): repeat the scrub when that has been remedied", is.Scrub.Unrestored)
	case is.Waiting+is.Running > 0:
		return fmt.Sprintf("%d repairs from good ones are waiting or running", is.Waiting+is.Running)
	}
	return "they were repaired from good ones"
}

// Run looks for missing copies and waits until they are restored.
func (v *storageRepairCmd) Run(c *Console) error {
	ctx, stop := interruptible()
	defer stop()
	before, found, err := c.inventory(ctx)
	if err != nil {
		return err
	}
	bar := c.bar("restored", int64(found.Inventory.Bytes))
	defer bar.End()
	if _, err := c.awaitStorage(ctx, func(is *adminapi.Storage) bool {
		bar.Add(int64(is.Restored-before.Restored) - bar.done)
		bar.total = max(bar.total, bar.done) // a damaged copy is restored too, which is not counted as missing
		return is.Waiting+is.Running == 0
	}); err != nil {
		return err
	}
	bar.End()
	_, is, err := c.inventory(ctx)
	if err != nil {
		return err
	}
	err = c.printStorage(is)
	switch {
	case err != nil:
	case is.LostCount() > 0:
		err = lostError(&is)
	case is.Inventory.Objects > 0:
		err = errors.New("copies are still missing; see the log of the node")
	}
	return err
}

// Run moves copies and shards to the providers of their placement and waits until that is done.
func (v *storageRebalanceCmd) Run(c *Console) error {
	is, err := c.workOnStorage("/storage/rebalance", "moved", func(before, is *adminapi.Storage) storageWork {
		return storageWork{is.Rebalance.Running, is.Rebalance.Number > before.Rebalance.Number, is.Rebalance.Done, is.Rebalance.Total}
	})
	if err == nil {
		err = c.printStorage(is)
	}
	switch m := is.Rebalance; {
	case err != nil:
	case m.Failure != "":
		err = errors.New(m.Failure)
	case m.Moved < m.Objects:
		err = fmt.Errorf("copies or shards of %d objects were not moved; see the log of the node", m.Objects-m.Moved)
	}
	return err
}

// storageWork is the progress of a scrub or a rebalance.
type storageWork struct {
	running     bool
	ended       bool   // that which the command waits for
	done, total uint64 // bytes
}

// workOnStorage has the node begin work on all copies, and shows the progress until it has ended.
func (c *Console) workOnStorage(path, label string, of func(before, is *adminapi.Storage) storageWork) (is adminapi.Storage, err error) {
	ctx, stop := interruptible()
	defer stop()
	before, err := c.storage(ctx, http.MethodPost, path)
	if err != nil {
		return is, err
	}
	bar := c.bar(label, int64(of(&before, &before).total))
	is, err = c.awaitStorage(ctx, func(is *adminapi.Storage) bool {
		now := of(&before, is)
		if now.running {
			bar.total = int64(now.total)
			bar.Add(int64(now.done) - bar.done)
		}
		return now.ended
	})
	bar.End()
	return is, err
}

// inventory has the node look for missing copies, and returns the state before and after that.
func (c *Console) inventory(ctx context.Context) (before, is adminapi.Storage, err error) {
	if before, err = c.storage(ctx, http.MethodPost, "/storage/repair"); err != nil {
		return before, is, err
	}
	is, err = c.awaitStorage(ctx, func(is *adminapi.Storage) bool { return is.Inventory.Number > before.Inventory.Number })
	if err == nil && is.Inventory.Failure != "" {
		err = fmt.Errorf("copies were not counted: %s", is.Inventory.Failure)
	}
	return before, is, err
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
	b.WriteString(lostText(is))
	switch {
	case is.Coding == "":
		fmt.Fprintf(&b, "%d copies of each object, %d required for an upload\n", is.Copies, is.Required)
	default:
		fmt.Fprintf(&b, "%d copies of each object of at most %d bytes, %d required for an upload; larger ones have shards: %s, those of data and %d more required\n",
			is.Copies, is.CodedAbove, is.Required, is.Coding, is.Required)
	}
	for _, p := range is.Providers {
		name := p.Name
		if p.Bucket {
			name += " (bucket)"
		}
		fmt.Fprintf(&b, "%s: %s\n", name, providerText(&p))
	}
	switch i := is.Inventory; {
	case i.At.IsZero():
		b.WriteString("copies were not counted yet\n")
	case i.Objects == 0:
		fmt.Fprintf(&b, "all objects had their copies at %s\n", i.At.Format(time.RFC3339))
	default:
		fmt.Fprintf(&b, "%d objects lacked copies of %d bytes at %s, %s; %d repairs wait, %d run; at least %v at %s/s\n", i.Objects, i.Bytes,
			i.At.Format(time.RFC3339), lackText(&i), is.Waiting, is.Running, time.Duration(is.ETA)*time.Second, megabytes(int64(is.Rate)))
	}
	if i := is.Inventory; i.Failure != "" {
		fmt.Fprintf(&b, "copies were not counted since: %s\n", i.Failure)
	}
	switch s := is.Scrub; {
	case s.Failure != "":
		fmt.Fprintf(&b, "scrub: copies were not verified: %s\n", s.Failure)
	case s.Running:
		fmt.Fprintf(&b, "scrub: %d of %d bytes are verified, %d damaged copies%s%s\n", s.Done, s.Total, s.Damaged, beforeText(&s), unreadText(&s))
	case s.Number > 0:
		fmt.Fprintf(&b, "scrub: %d bytes were verified at %s, %d damaged copies%s%s\n", s.Total, s.Ended.Format(time.RFC3339), s.Damaged, beforeText(&s), unreadText(&s))
	}
	switch m := is.Rebalance; {
	case m.Running:
		fmt.Fprintf(&b, "rebalance: %d of %d objects have their copies or shards where they belong, %d of %d bytes are written\n", m.Moved, m.Objects, m.Done, m.Total)
	case m.Number > 0 && m.Failure == "":
		fmt.Fprintf(&b, "rebalance: copies or shards of %d of %d objects were moved at %s, %d bytes were written\n", m.Moved, m.Objects, m.Ended.Format(time.RFC3339), m.Done)
	}
	return b.String()
}

// maxLostShown is the number of lost objects whose addresses are shown.
const maxLostShown = 10

// lostText returns how many objects are lost, with the addresses of the first ones; nothing if none is.
func lostText(is *adminapi.Storage) string {
	n := is.LostCount()
	if n == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "LOST: %d objects; all their copies, or too many of their shards, are missing or damaged. Upload the content again with object put --again, or delete them\n", n)
	shown := is.Lost[:min(len(is.Lost), maxLostShown)]
	for _, o := range shown {
		fmt.Fprintf(&b, "lost: %s, %d bytes\n", o.Address, o.Bytes)
	}
	if more := n - len(shown); more > 0 {
		fmt.Fprintf(&b, "lost: %d others; --json lists %d of them\n", more, len(is.Lost)-len(shown))
	}
	return b.String()
}

// providerText returns the state of a provider.
func providerText(p *adminapi.Provider) string {
	var b strings.Builder
	switch {
	case p.Unknown:
		b.WriteString("its objects are not known")
	default:
		fmt.Fprintf(&b, "%d objects, %d bytes", p.Objects, p.Bytes)
	}
	fmt.Fprintf(&b, "; %d copies missing", p.Missing)
	if p.Unreached > 0 {
		fmt.Fprintf(&b, ", %d not reached", p.Unreached)
	}
	fmt.Fprintf(&b, ", %d damaged at the last scrub", p.Damaged)
	if p.Unread > 0 {
		fmt.Fprintf(&b, ", %d of %d bytes not read by it", p.Unread, p.UnreadBytes)
	}
	if p.Failed != "" {
		fmt.Fprintf(&b, "; failed: %s", p.Failed)
	}
	if p.Full != "" {
		fmt.Fprintf(&b, "; full: %s", p.Full)
	}
	if p.Refused != "" {
		fmt.Fprintf(&b, "; the last copy was not restored: %s", p.Refused)
	}
	return b.String()
}

// lostError is the error of a command that leaves objects lost.
func lostError(is *adminapi.Storage) error {
	return fmt.Errorf("%d objects are lost: no repair can make them whole; upload the content again with object put --again, or delete them", is.LostCount())
}

// lackText returns how many objects cannot be read. While a provider has failed, it may have good copies of all of them.
func lackText(i *adminapi.Inventory) string {
	if i.Unreached > 0 {
		return fmt.Sprintf("%d cannot be read until the failed providers can be used: do not delete them", i.Unreached)
	}
	return fmt.Sprintf("%d have no copy", i.Lost)
}

// beforeText returns how many damaged copies were found while a scrub was requested and had not begun.
func beforeText(s *adminapi.Scrub) string {
	if s.Before == 0 {
		return ""
	}
	return fmt.Sprintf("; the scrub before has found %d since this one was requested", s.Before)
}

// unreadText returns how many copies a scrub could not read.
func unreadText(s *adminapi.Scrub) string {
	if s.Unread == 0 {
		return ""
	}
	return fmt.Sprintf("; %d copies of %d bytes were not read", s.Unread, s.UnreadBytes)
}
