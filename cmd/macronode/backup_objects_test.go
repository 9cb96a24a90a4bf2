package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"macronode/adapters/config"
	"macronode/adapters/fs"
	"macronode/core/digest"
	"macronode/core/storage"
	"macronode/core/types"
)

// TestBackupFollowsDeletes: an object that the node deleted and collected while it was copied is no loss: the backup takes a
// newer frame, which does not have it. An object that the newer frame has is unreadable, and the backup says so.
func TestBackupFollowsDeletes(t *testing.T) {
	dir := t.TempDir()
	k := startKillable(t, dir, "--set", "storage.collect_interval=24h")
	file := func(n int) string {
		a := storage.Address(digest.Sum([]byte{byte(n)}))
		found, err := filepath.Glob(filepath.Join(dir, objectsName, a.String()[len("b3:"):]+"*"))
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		return found[0]
	}
	ask := func(method string, n int) {
		at := "/o/" + storage.Address(digest.Sum([]byte{byte(n)})).String()
		if status, got := k.object(t, method, at, []byte{byte(n)}); status/100 != 2 {
			t.Fatalf("%s %s: %d %s", method, at, status, got)
		}
	}
	for n := range 3 {
		ask(http.MethodPut, n)
	}
	k.end()
	cfg, err := config.Load(config.Sources{Environ: []string{"MACRONODE_DATA=" + dir}})
	if err != nil {
		t.Fatal(err)
	}
	from := source{t.Context(), cfg, fs.Dir(filepath.Join(dir, segmentsName))}
	before, err := from.at(0)
	if err != nil {
		t.Fatal(err)
	}
	k = startKillable(t, dir, "--set", "storage.collect_interval=24h")
	ask(http.MethodDelete, 1)
	k.end()
	if err := os.Remove(file(1)); err != nil { // as the collector does
		t.Fatal(err)
	}
	c := &console{out: io.Discard, err: io.Discard, now: time.Now, tree: new(tree)}
	copied := func() (*objectCopy, types.LSN) {
		t.Helper()
		to := t.TempDir()
		o, err := c.newObjectCopy(t.Context(), "backup", dir, to)
		if err != nil {
			t.Fatal(err)
		}
		answers := []types.LSN{before.LSN, 0, 0}
		o.source, o.next = from, func() (types.LSN, error) {
			upto := answers[0]
			answers = answers[1:]
			return upto, nil
		}
		last, err := o.settle()
		if err != nil {
			t.Fatal(err)
		}
		if err := o.finish(last); err != nil {
			t.Fatal(err)
		}
		return o, last
	}
	if o, last := copied(); last <= before.LSN || o.Bad != 0 || o.Objects != 2 || o.New != 2 {
		t.Fatalf("frame %v after %v, %+v", last, before.LSN, o.objectReport)
	}
	if err := os.Remove(file(2)); err != nil {
		t.Fatal(err)
	}
	if o, _ := copied(); o.Bad != 1 || o.New != 1 || fmt.Sprint(o.Named[0].Address) != storage.Address(digest.Sum([]byte{2})).String() {
		t.Fatalf("%+v", o.objectReport)
	}
}
