package settings

import (
	"errors"
	"strings"
	"testing"

	"macronode/core/state"
	"macronode/core/types"
)

// TestRoomNamesTheSection: limits that are too small for a journal are reported with their section of the configuration.
func TestRoomNamesTheSection(t *testing.T) {
	for plane, want := range map[types.Plane]string{types.PlaneWallet: "(wallet.limits)", types.PlaneStorage: "(storage)", types.PlaneAccounting: "(accounting)",
		types.PlaneExport: "(exports)", types.PlaneNode: "(wallet.idempotency.keys)"} {
		err := ExplainRoom(&state.RoomError{Plane: plane})
		if !errors.Is(err, state.ErrRoom) || !strings.Contains(err.Error(), want) {
			t.Errorf("plane %v: %v, want %s", plane, err, want)
		}
	}
	if other := errors.New("other"); !errors.Is(ExplainRoom(other), other) || ExplainRoom(nil) != nil {
		t.Error("an error with another cause is changed")
	}
}
