package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"

	"macronode/adapters/nodedir"
	"macronode/cmd/macronode/internal/offline"
	"macronode/core/event"
	"macronode/core/types"
)

type (
	backupCmd struct {
		To   string `arg:"" name:"dir" help:"Directory of the backup. An existing backup of this journal is extended."`
		Heir bool   `name:"follow-restore" help:"Continue the backup of the journal from which this one was restored. It is then no longer a backup of that journal."`
		Fast bool   `help:"Of objects that the backup has, check the names and sizes of the files, not their contents."`
	}
	restoreCmd struct {
		From     string `arg:"" name:"dir" help:"Directory of the backup."`
		Validate bool   `help:"Only check the backup, to its last frame and every movement."`
		Preview  bool   `help:"Only show what would be restored and what would be lost."`
		Old      string `name:"source-data" placeholder:"DIR" help:"Data directory of the source node: what it acknowledged after the backup is listed as lost."`
		Accept   bool   `name:"accept-loss" help:"Restore even if the backup is damaged or lacks durable frames: all frames from the first of these on are lost, also intact ones."`
		KeepKeys bool   `help:"Keep the API keys of the backup valid. Keys revoked after the backup become valid again."`
		Take     bool   `name:"take-providers" help:"Restore into providers that belong to another journal. They then belong to the restored journal, and its node removes the objects that the backup lacks from them. The other node must never run again."`
	}
)

// Run backs up a journal.
func (v *backupCmd) Run(c *Console) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	e := c.offlineEnv()
	e.Copied, e.Objects = c.copyProgress("backup"), c.bar("backup: objects", 0)
	is, incomplete := e.Backup(ctx, cfg, offline.BackupOptions{To: v.To, Heir: v.Heir, Contents: !v.Fast})
	if is == nil {
		return incomplete
	}
	if c.tree.JSON {
		err = c.printJSON(is)
	} else {
		err = is.WriteText(c.out, v.To)
	}
	return errors.Join(err, incomplete)
}

// durableFrame asks a running node for its last durable frame.
func (c nodeAccess) durableFrame(ctx context.Context, is nodedir.Run) (upto types.LSN, damaged bool, err error) {
	got, err := c.callAdmin(ctx, is, http.MethodGet, "/readyz?verbose", attemptTimeout)
	if err != nil {
		return 0, false, err
	}
	var s readyz
	if err := json.Unmarshal(got.body, &s); err != nil || s.Durable == 0 {
		return 0, false, errors.New("the node reports no durable frame: it is starting, or its journal is empty")
	}
	return types.LSN(s.Durable), s.Fault == event.Damaged.String(), nil
}

// Run restores a backup as a new journal, or shows what a restore would do.
func (v *restoreCmd) Run(c *Console) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	e := c.offlineEnv()
	e.Progress, e.Copied, e.Objects = c.progress(false), c.copyProgress("restore"), c.bar("restore: objects", 0)
	o := offline.RestoreOptions{From: v.From, SourceData: v.Old, Contents: v.Validate, AcceptLoss: v.Accept, KeepKeys: v.KeepKeys, Take: v.Take}
	r, err := e.PlanRestore(ctx, cfg, o)
	if err != nil {
		return err
	}
	if !r.Checked.IsComplete() && (!v.Accept || !r.Checked.CanAccept()) {
		return errors.Join(r.Checked.WriteText(c.out), fmt.Errorf("restore: %w", offline.ErrProblems))
	}
	if !v.Validate && !v.Preview {
		if err := e.Restore(ctx, cfg, o, r); err != nil {
			return err
		}
	}
	if c.tree.JSON {
		err = c.printJSON(r)
	} else {
		err = r.WriteText(c.out, cfg, o)
	}
	if err == nil && v.Validate && !v.Accept && !r.Checked.OK { // a restore would lose nothing, but verify reports it as well
		err = fmt.Errorf("restore: %w", offline.ErrProblems)
	}
	return err
}
