package server

import (
	"log/slog"
	"strings"
	"time"

	"macronode/adapters/provider"
	"macronode/cmd/macronode/internal/settings"
)

// warnOfSlowDisk logs the directories of objects if their check takes longer than a disk needs to answer. The check of a single one has no time
// limit: without it there are no objects. end is called when the check has ended.
func warnOfSlowDisk(list []settings.Provider, log *slog.Logger) (end func()) {
	var dirs []string
	for _, p := range list {
		if p.Dir != "" {
			dirs = append(dirs, string(p.Dir))
		}
	}
	warning := time.AfterFunc(provider.Answer, func() {
		log.Error("the start waits for a directory of objects: its disk may not answer", "directories", strings.Join(dirs, ", "), "waited", provider.Answer)
	})
	return func() { warning.Stop() }
}
