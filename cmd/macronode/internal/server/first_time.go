package server

import (
	"fmt"
	"time"

	"macronode/core/clock"
	"macronode/core/types"
)

// checkFirstTime returns an error if a journal would begin at a time that is not possible.
func (s *journalStore) checkFirstTime(last types.LSN, now time.Time) error {
	if last > 0 {
		return nil
	}
	if !clock.MayBegin(types.Time(now.UnixMilli())) {
		return fmt.Errorf("the machine's clock says %s: set it; the time of a new journal begins there and never goes back", now.UTC().Format(time.RFC3339))
	}
	s.log.Info("new journal: its time begins with the machine's clock", "time", now.UTC().Format(time.RFC3339))
	return nil
}
