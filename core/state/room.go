package state

import (
	"fmt"

	"macronode/core/types"
)

// A RoomError is an ErrRoom that says whose limits are too small, or which plane the record contradicts.
type RoomError struct {
	Plane types.Plane // PlaneNode: those of idempotency keys or of API keys
	what  string
}

func (e *RoomError) Error() string { return fmt.Sprintf("%v: %s", ErrRoom, e.what) }

// Unwrap returns ErrRoom.
func (*RoomError) Unwrap() error { return ErrRoom }
