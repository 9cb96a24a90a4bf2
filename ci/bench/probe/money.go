package main

import (
	"time"

	"macronode/adapters/fs"
	"macronode/core/idempotency"
	"macronode/core/state"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

const (
	asset     = "EUR/2"
	grant     = 1_000_000_000 // minor units per account
	maxBatch  = 512           // frames per sync while a journal is filled
	maxWindow = 16_000_000    // keys
)

// limits returns the limits for a number of accounts and keys.
func limits(accounts, keys int, ttl time.Duration) state.Limits {
	n, k := accounts+1024, min(keys, maxWindow)
	return state.Limits{
		Ledger: ledger.Limits{Accounts: n, Holdings: n, Assets: 16, Tenants: 16, TenantAccounts: n, TenantHoldings: n, TenantAssets: 16,
			MaxAmount: types.MinorUnits(1e18), MaxDailyDebit: types.Amount{Hi: 1 << 40}, MaxDailyIssue: types.Amount{Hi: 1 << 40}},
		Idempotency: idempotency.Limits{Keys: k, PerTenant: k, Tenants: 16, TTL: ttl},
		Keys:        16,
	}
}

// account appends the name of an account.
func account(to []byte, n int) []byte {
	to = append(to, "acct:00000000"...)
	for at := len(to) - 1; n > 0; at-- {
		to[at] += byte(n % 10)
		n /= 10
	}
	return to
}

// size returns the bytes of all files in a directory.
func size(dir fs.FS) (bytes int64, err error) {
	names, err := dir.List()
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		f, err := dir.Open(name)
		if err != nil {
			return 0, err
		}
		n, err := f.Size()
		if err != nil {
			return 0, err
		}
		bytes += n
		if err := f.Close(); err != nil {
			return 0, err
		}
	}
	return bytes, nil
}
