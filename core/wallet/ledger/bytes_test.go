package ledger_test

import (
	"testing"

	"macronode/ci/memcheck"
	"macronode/core/wallet/ledger"
)

// TestBytesMatchesMemory shows that Bytes is the memory of a ledger, for each limit.
func TestBytesMatchesMemory(t *testing.T) {
	one := ledger.Limits{Accounts: 1, Holdings: 1, Assets: 1, Tenants: 1, Holds: 1, MaxBatchItems: 1}
	for name, more := range map[string]func(*ledger.Limits){
		"accounts": func(l *ledger.Limits) { l.Accounts = 100_000 },
		"holdings": func(l *ledger.Limits) { l.Holdings = 100_000 },
		"assets":   func(l *ledger.Limits) { l.Assets = 100_000 },
		"tenants":  func(l *ledger.Limits) { l.Tenants = 100_000 },
		"holds":    func(l *ledger.Limits) { l.Holds = 100_000 },
		"items":    func(l *ledger.Limits) { l.MaxBatchItems = 100_000 },
	} {
		l := one
		more(&l)
		memcheck.Check(t, name, ledger.Bytes(l), func() ledger.Ledger { return ledger.New(l, 1) })
	}
}
