package server

import (
	"context"
	"testing"
	"time"

	"macronode/adapters/objectstore"
	"macronode/chaos/world"
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
	up, err := o.files.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err = up.Write([]byte("x")); err == nil {
		_, err = up.Sum()
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
