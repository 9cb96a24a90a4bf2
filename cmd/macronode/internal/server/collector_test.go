package server

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"macronode/adapters/objectstore"
	"macronode/chaos/world"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/digest"
)

// TestCollectorDoesNotWaitWithoutSpace: an upload that is rejected for lack of space ends the wait of the collector, and only that.
func TestCollectorDoesNotWaitWithoutSpace(t *testing.T) {
	o := &objectFiles{files: objectstore.New(world.NewDisk(), objectstore.Limits{Uploads: 1, Object: 1 << 20, Reserve: 1 << 50})}
	ended, end := context.WithCancel(t.Context())
	end()
	if o.waitToCollect(ended, 0, time.Hour) {
		t.Error("the collector does not end with its context")
	}
	if !o.waitToCollect(t.Context(), 0, 0) {
		t.Error("the interval does not end the wait")
	}
	up, err := o.files.Begin(1)
	if err != nil {
		t.Fatal(err)
	}
	_, err = up.Write([]byte("x"))
	if a, summed := up.Sum(); err == nil && summed == nil {
		err = up.Store(a)
	}
	up.Done()
	if err == nil {
		t.Fatal("an upload into the reserve")
	}
	within, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	if !o.waitToCollect(within, 0, time.Hour) {
		t.Error("lack of space does not end the wait")
	}
}

// A stuckDisk does not remove some files.
type stuckDisk struct {
	*world.Disk
	names []string
}

func (d *stuckDisk) Remove(name string) error {
	if slices.Contains(d.names, name) {
		return &os.PathError{Op: "remove", Path: name, Err: syscall.EPERM}
	}
	return d.Disk.Remove(name)
}

// TestCollectorLogsChanges: a file that cannot be removed is logged once, another one again, and also that all can be removed.
func TestCollectorLogsChanges(t *testing.T) {
	disk, log, journal := &stuckDisk{Disk: world.NewDisk()}, new(bytes.Buffer), newStore(t)
	o := &objectFiles{files: objectstore.New(disk, objectstore.Limits{Uploads: 1, Object: 1 << 20}), journal: journal, metrics: journal.metrics,
		log: slog.New(slog.NewTextHandler(log, nil))}
	o.files.Reserve(9)
	var unused [3]string
	for i := range unused {
		unused[i] = fmt.Sprintf("%x-%016x", digest.Sum([]byte("unused")), i+1)
		_, err := disk.Create(unused[i])
		testkit.Must(t, err)
	}
	const again = `level=ERROR msg="unused files of objects not removed: the next collection tries again" `
	for _, c := range []struct {
		stuck []string
		want  string
	}{
		{unused[:2], again + `files=2 err="remove a file without an object: remove ` + unused[0]},
		{unused[:2], ""},
		{unused[1:2], again + `files=1 err="remove a file without an object: remove ` + unused[1]},
		{unused[1:2], ""},
		{nil, `level=INFO msg="unused files of objects are removed again"`},
		{nil, ""},
	} {
		log.Reset()
		disk.names = c.stuck
		o.collectOnce()
		var lines []string
		for line := range strings.Lines(log.String()) {
			if !strings.Contains(line, `msg="unused files of objects removed" files=1`) {
				lines = append(lines, line)
			}
		}
		if got := strings.Join(lines, ""); (got == "") != (c.want == "") || !strings.Contains(got, c.want) || len(lines) > 1 {
			t.Errorf("stuck %q: %q, want %q", c.stuck, got, c.want)
		}
		if got := o.unremoved.Load(); got != int64(len(c.stuck)) {
			t.Errorf("stuck %q: %d files are counted", c.stuck, got)
		}
	}
	if names, err := disk.List(); err != nil || len(names) > 0 {
		t.Errorf("%q, %v", names, err)
	}
}
