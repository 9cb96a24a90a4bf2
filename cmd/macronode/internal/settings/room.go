package settings

import (
	"errors"
	"fmt"

	"macronode/core/state"
)

// ExplainRoom adds to an error which limits are too low for the journal.
func ExplainRoom(err error) error {
	low, ok := errors.AsType[*state.RoomError](err)
	if !ok {
		return err
	}
	limits := "idempotency keys (wallet.idempotency.keys) or API keys (api_keys)"
	for _, p := range Planes() {
		if p.ID == low.Plane {
			limits = p.Memory
		}
	}
	return fmt.Errorf("the journal contains more than the configured limits of %s permit: raise them to what they were: %w", limits, err)
}
