package offline

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"macronode/adapters/config"
	"macronode/adapters/fs"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/digest"
	"macronode/core/storage"
	"macronode/core/types"
)

// noMeter shows nothing.
type noMeter struct{}

func (noMeter) Begin(int64) {}
func (noMeter) Add(int64)   {}
func (noMeter) End()        {}

// TestBackupFollowsDeletes: if the node deletes and collects an object while it is copied, nothing is lost: the
// backup takes a newer frame without it. An object that the newer frame has is reported as unreadable.
func TestBackupFollowsDeletes(t *testing.T) {
	dir := t.TempDir()
	k := testkit.StartKillable(t, dir, "--set", "storage.collect_interval=24h")
	file := func(n int) string {
		a := storage.Address(digest.Sum([]byte{byte(n)}))
		found, err := filepath.Glob(filepath.Join(dir, datadir.Objects, a.String()[len("b3:"):]+"*"))
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		return found[0]
	}
	ask := func(method string, n int) {
		at := "/o/" + storage.Address(digest.Sum([]byte{byte(n)})).String()
		if status, got := k.Object(t, method, at, []byte{byte(n)}); status/100 != 2 {
			t.Fatalf("%s %s: %d %s", method, at, status, got)
		}
	}
	for n := range 3 {
		ask(http.MethodPut, n)
	}
	k.End()
	cfg, err := config.Load(config.Sources{Environ: []string{"MACRONODE_DATA=" + dir}})
	if err != nil {
		t.Fatal(err)
	}
	from := source{t.Context(), cfg, fs.Dir(filepath.Join(dir, datadir.Journal))}
	before, err := from.at(0)
	if err != nil {
		t.Fatal(err)
	}
	k = testkit.StartKillable(t, dir, "--set", "storage.collect_interval=24h")
	ask(http.MethodDelete, 1)
	k.End()
	if err := os.Remove(file(1)); err != nil { // as the collector does
		t.Fatal(err)
	}
	e := Env{Objects: noMeter{}}
	copied := func() (*objectCopy, types.LSN) {
		t.Helper()
		to := t.TempDir()
		o, err := e.newObjectCopy(t.Context(), objectsIn(dir), objectsIn(to), true)
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
		t.Fatalf("frame %v after %v, %+v", last, before.LSN, o.ObjectReport)
	}
	if err := os.Remove(file(2)); err != nil {
		t.Fatal(err)
	}
	if o, _ := copied(); o.Bad != 1 || o.New != 1 || fmt.Sprint(o.Named[0].Address) != storage.Address(digest.Sum([]byte{2})).String() {
		t.Fatalf("%+v", o.ObjectReport)
	}
}
