package server

import (
	"syscall"
	"testing"

	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/digest"
	"macronode/core/storage"
)

// TestRepairWaitsForProvider: a repair that finds no copy while a provider has failed waits: the object is not lost, and the next inventory
// plans it again. When the provider answers, the object is lost.
func TestRepairWaitsForProvider(t *testing.T) {
	m := newMetered(t)
	m.put(1, "photos") // its file is nowhere
	r := m.objects.repairs
	r.machine.BeginInventory()
	address := storage.Address(digest.Sum([]byte("1")))
	o := storage.Stored{Address: address, Object: storage.Object{Size: 7, File: 1}}
	count := func(outcome string) float64 {
		return m.values()[testkit.Series("repair_copies_total", "outcome", outcome)]
	}
	m.objects.files.MarkFailed(0, syscall.EIO)
	if again := r.restore(t.Context(), o, true); !again || count("waiting") != 1 || count("lost") != 0 || r.lostObjects() != 0 {
		t.Errorf("failed provider: again %v, %v waiting, %v lost, %d objects", again, count("waiting"), count("lost"), r.lostObjects())
	}
	if _, err := m.objects.files.Probe(0); err != nil {
		t.Fatal(err)
	}
	if again := r.restore(t.Context(), o, true); again || count("waiting") != 1 || count("lost") != 1 || r.lostObjects() != 1 {
		t.Errorf("all answer: again %v, %v waiting, %v lost, %d objects", again, count("waiting"), count("lost"), r.lostObjects())
	}
}
