package node

import (
	"testing"

	"macronode/ci/flip"
	"macronode/core/idem"
	"macronode/core/ledger"
	"macronode/core/state"
	"macronode/core/words"
)

// TestHashForgetsNothing: the machines' own hashes are held to the same in their
// rooms; here are the node's fields.
func TestHashForgetsNothing(t *testing.T) {
	l := state.Limits{Ledger: ledger.Limits{Accounts: 1, Holdings: 1, Assets: 1, Tenants: 1}, Idem: idem.Limits{Keys: 1, Tenants: 1}, Keys: 1}
	n := New(Config{State: l, Held: 2}, state.New(l, 1), 1, words.NewDice(1))
	_ = n.held.Push(waiting{until: 1})
	_ = n.held.Push(waiting{until: 2})
	flip.Every(t, n, n.Hash,
		"config: what a node is made with, not what it is in",
		"rec: of the step at hand, filled anew by each", "begun: of the step at hand", "state.batch: of the open frame alone", "state.rec: of the fold at hand, filled anew by each",
		"held.policy: what a queue is made with", "held.head: where in the ring, not what",
		"state.Ledger: held to it in its own room", "state.Idem: held to it in its own room", "state.Keys: held to it in its own room",
		"quota: held to it in its own room", "admit: held to it in its own room", "beyond: held to it in its own room",
		"drain.times: what a drain is made with",
		"crowd.index: where rows are found, which Check holds", "crowd.rows: held by their sum", "crowd.seed: places rows",
		"heldAt: where replies of held are found, which Check holds", "numbers: the same",
		"crowd.log: the ledger's tables are marked, this one is not", "crowd.mark: the same", "crowd.marked: the same")
}
