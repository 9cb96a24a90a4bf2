package state_test

import (
	"testing"

	"macronode/ci/memcheck"
	"macronode/core/state"
)

// TestBytes: a state takes what it says, and that is all that is in it.
func TestBytes(t *testing.T) {
	few := limits()
	for name, more := range map[string]func(*state.Limits){
		"accounts":  func(l *state.Limits) { l.Ledger.Accounts = 100_000 },
		"keys seen": func(l *state.Limits) { l.Idempotency.Keys = 100_000 },
		"API keys":  func(l *state.Limits) { l.Keys = 100_000 },
	} {
		l := few
		more(&l)
		memcheck.Says(t, name, state.Bytes(l), func() state.State { return state.New(l, 1) })
	}
}
