package server

import (
	"strings"
	"testing"

	"macronode/adapters/objectstore"
	"macronode/adapters/provider"
	"macronode/chaos/world"
	"macronode/core/placement"
)

// TestRefusedUploadIsReported: after an upload was refused for lack of space, uploads are refused for some probes, also if the disk has some space.
// Others are not reported.
func TestRefusedUploadIsReported(t *testing.T) {
	disks := []*world.Disk{world.NewDisk(), world.NewDisk()}
	var list []objectstore.Provider
	for i, name := range []string{"a", "b"} {
		list = append(list, objectstore.Provider{Provider: placement.Provider{Name: name, Domain: name, Weight: 1}, Port: provider.Dir{FS: disks[i]}})
	}
	r := &repairs{files: objectstore.NewCopies(list, objectstore.Copies{Count: 2, Required: 2}, objectstore.Limits{Uploads: 1, Object: 1 << 20})}
	upload := func() error {
		up, err := r.files.Begin(1)
		if err != nil {
			return err
		}
		defer up.Done()
		_, err = up.Write(make([]byte, 100<<10))
		if err == nil {
			_, err = up.Sum()
		}
		return err
	}
	if err := upload(); err != nil || r.probe().files.Unwritable {
		t.Fatalf("with space: %v", err)
	}
	disks[1].Leave(0)
	if err := upload(); err == nil {
		t.Fatal("an upload succeeds without space")
	}
	disks[1].Leave(1 << 30)
	for n := range refusalProbes {
		if p := r.probe(); !p.files.Unwritable || !strings.Contains(p.unwritable.Error(), "an upload was refused") {
			t.Fatalf("probe %d: %+v", n, p)
		}
	}
	if p := r.probe(); p.files.Unwritable || p.unwritable != nil {
		t.Fatalf("after %d probes: %+v", refusalProbes, p)
	}
}
