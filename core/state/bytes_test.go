package state_test

import (
	"testing"

	"macronode/ci/memcheck"
	"macronode/core/state"
)

// TestBytesMatchesMemory shows that Bytes is the memory of a state, and that the parts sum up to
// it.
func TestBytesMatchesMemory(t *testing.T) {
	few := limits()
	for name, more := range map[string]func(*state.Limits){
		"accounts":  func(l *state.Limits) { l.Ledger.Accounts = 100_000 },
		"keys seen": func(l *state.Limits) { l.Idempotency.Keys = 100_000 },
		"API keys":  func(l *state.Limits) { l.Keys = 100_000 },
	} {
		l := few
		more(&l)
		memcheck.Check(t, name, state.Bytes(l), func() state.State { return state.New(l, 1) })
	}
}
