package kill_test

import (
	"context"
	"testing"
	"time"

	"macronode/chaos/kill"
	"macronode/core/types"
)

// TestKillObjects kills the real binary under uploads, deletes and reads of contents that all clients share, while the
// collector removes files without a pause. Every acknowledged put and delete holds, no read has other bytes, and at the end
// there is one file for each content.
func TestKillObjects(t *testing.T) {
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	n := &kill.Node{Binary: binary, Data: t.TempDir(), Args: []string{"--set", "storage.collect_interval=10ms"}}
	var all []*kill.ObjectClient
	for i := range uint64(8) {
		all = append(all, kill.NewObjectClient(i+1))
	}
	dice := types.NewRand(*seed)
	for range *kills/2 + 1 {
		start(t, n)
		for _, c := range all {
			if err := c.Hold(t.Context(), n); err != nil {
				t.Fatalf("go test ./chaos/kill -run TestKillObjects -seed %d: %v", *seed, err)
			}
		}
		killUnderLoad(t, n, all, &dice, func() {})
	}
	start(t, n)
	var puts, deletes, reads, cut int
	for _, c := range all {
		if err := c.Hold(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		puts, deletes, reads, cut = puts+c.Puts, deletes+c.Deletes, reads+c.Reads, cut+c.Cut
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		files, contents, err := kill.ObjectFiles(n.Data, all)
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == contents {
			break
		}
		if time.Since(began) > patience {
			t.Fatalf("%d files of %d contents: %q", len(files), contents, files)
		}
	}
	if output, code := n.Stop(); code != 0 {
		t.Fatalf("exit %d:\n%s", code, output)
	}
	if puts < *kills || deletes < *kills/2 || cut == 0 {
		t.Fatalf("%d puts, %d deletes, %d cut: no load", puts, deletes, cut)
	}
	t.Logf("%d runs, %d puts, %d deletes, %d reads, %d cut", *kills/2+1, puts, deletes, reads, cut)
}

// TestBackupsOfDeletedObjects copies a running node again and again while clients put and delete the same contents and the
// collector removes files: each backup, restored, has every object of its last frame.
func TestBackupsOfDeletedObjects(t *testing.T) {
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	n, copied := &kill.Node{Binary: binary, Data: t.TempDir(), Args: []string{"--set", "storage.collect_interval=10ms"}}, t.TempDir()
	start(t, n)
	var all []*kill.ObjectClient
	for i := range uint64(4) {
		all = append(all, kill.NewObjectClient(i+1))
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	errs := make(chan error, len(all))
	for _, c := range all {
		go func() { errs <- c.Run(ctx, n) }()
	}
	type report struct {
		LSN     uint64 `json:"lsn"`
		OK      bool   `json:"ok"`
		Objects struct {
			Objects    uint64 `json:"objects"`
			New        uint64 `json:"new_objects"`
			Unreadable uint64 `json:"unreadable"`
			Verified   bool   `json:"contents_verified"`
		} `json:"objects"`
	}
	total := uint64(0)
	for range 5 {
		awaitFolded(t, n, folded(t, n)+50)
		var is, held report
		run(t, &is, binary, "--json", "backup", copied, "--data", n.Data)
		restored := t.TempDir()
		run(t, &held, binary, "--json", "restore", copied, "--source-data", n.Data, "--data", restored)
		run(t, &held, binary, "--json", "verify", "--data", restored)
		if is.Objects.Unreadable != 0 || !held.OK || held.Objects.Objects != is.Objects.Objects || is.Objects.Objects > 0 && !held.Objects.Verified {
			t.Fatalf("backup %+v, restored %+v", is, held)
		}
		total += is.Objects.New
	}
	n.Kill()
	for range all {
		if err := <-errs; err != nil {
			t.Fatalf("%v\n%s", err, n.Output())
		}
	}
	if total < 5 {
		t.Fatalf("%d objects were copied: no load", total)
	}
	t.Logf("%d objects in 5 backups", total)
}
