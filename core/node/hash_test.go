package node

import (
	"testing"

	"macronode/ci/hashcoverage"
	"macronode/core/idempotency"
	"macronode/core/state"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

// TestHashForgetsNothing: the node's own fields. The hashes of the machines are tested in their packages.
func TestHashForgetsNothing(t *testing.T) {
	l := state.Limits{Ledger: ledger.Limits{Accounts: 1, Holdings: 1, Assets: 1, Tenants: 1}, Idempotency: idempotency.Limits{Keys: 1, Tenants: 1}, Keys: 1}
	n := New(Config{State: l, MaxHeldReplies: 2}, state.New(l, 1), 1, types.NewRand(1))
	_ = n.held.Push(heldReply{deadline: 1})
	_ = n.held.Push(heldReply{deadline: 2})
	hashcoverage.Every(t, n, n.Hash,
		"config: what a node is made with, not what it is in",
		"rec: of the step at hand, filled anew by each", "frameOpen: of the step at hand", "state.batch: of the open frame alone", "state.rec: of the fold at hand, filled anew by each",
		"held.policy: what a queue is made with", "held.head: where in the ring, not what",
		"state.Wallet: held to it in its own package", "state.planes[]: the wallet is the only one", "frame: of the step at hand", "answer: of the step at hand", "paid: of the step at hand", "prepaid: of the step at hand", "state.Idempotency: held to it in its own room", "state.Keys: held to it in its own room",
		"quota: held to it in its own room", "admission: held to it in its own room", "upstreams: held to it in its own room",
		"drain.times: what a drain is made with",
		"heldByTenant.index: where rows are found, which Check holds", "heldByTenant.rows: held by their sum", "heldByTenant.seed: places rows",
		"heldAt: where replies of held are found, which Check holds", "numbers: the same",
		"heldByTenant.undoLog: the ledger's tables are marked, this one is not", "heldByTenant.savepointRows: the same", "heldByTenant.inSavepoint: the same")
}
