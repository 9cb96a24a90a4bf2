package server

import (
	"os"
	"runtime/debug"

	"macronode/cmd/macronode/internal/settings"
)

// limitMemory sets the memory limit and the GC percentage of the Go runtime from the configuration, unless the
// environment has set them.
func limitMemory(bound settings.Memory) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bound.Total())
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(bound.GCPercent())
	}
}
