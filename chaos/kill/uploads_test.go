package kill_test

import (
	"testing"

	"macronode/chaos/kill"
	"macronode/core/types"
)

// TestKillUploads kills the real binary under resumable uploads, each of which two clients send. An acknowledged part is
// never lost, and each object is its content.
func TestKillUploads(t *testing.T) {
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	n := &kill.Node{Binary: binary, Data: t.TempDir(), Args: []string{"--set", "storage.collect_interval=10ms"}}
	uploads := []*kill.SharedUpload{kill.NewSharedUpload(1), kill.NewSharedUpload(2)}
	var all []kill.UploadClient
	for _, u := range uploads {
		all = append(all, kill.UploadClient{SharedUpload: u}, kill.UploadClient{SharedUpload: u})
	}
	dice := types.NewRand(*seed)
	for range *kills/4 + 1 {
		start(t, n)
		killUnderLoad(t, n, all, &dice, func() {})
	}
	var parts, moved, completed int
	for _, u := range uploads {
		parts, moved, completed = parts+u.Parts, moved+u.Moved, completed+u.Completed
	}
	if parts < *kills || moved == 0 || completed == 0 {
		t.Fatalf("%d parts, %d moved, %d completed: no load", parts, moved, completed)
	}
	t.Logf("%d runs, %d parts, %d moved, %d completed", *kills/4+1, parts, moved, completed)
}
