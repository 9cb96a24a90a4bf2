package server

import (
	"fmt"
	"time"

	"macronode/adapters/recovery"
	"macronode/core/clock"
	"macronode/core/types"
)

// checkFirstTime returns an error if a journal would begin at a time that is not possible.
func (s *journalStore) checkFirstTime(r *recovery.Result, now time.Time) error {
	if r.Found.Last > 0 || r.Damage != nil { // a damaged journal has frames, even if none can be read
		return nil
	}
	if !clock.MayBegin(types.Time(now.UnixMilli())) {
		return fmt.Errorf("the machine's clock says %s: set it; the time of a new journal begins there and never goes back", now.UTC().Format(time.RFC3339))
	}
	s.log.Info("new journal: its time begins with the machine's clock", "time", now.UTC().Format(time.RFC3339))
	return nil
}
