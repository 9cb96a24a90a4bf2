package settings

import (
	"macronode/adapters/config"
	"macronode/adapters/plane"
	"macronode/core/accounting"
	"macronode/core/export"
	core "macronode/core/plane"
	"macronode/core/storage"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

// Planes returns the planes of this program. Their operations, views and keys that the adapters know by themselves
// are not repeated: see decision 39.
func Planes() plane.All {
	return append(plane.All{walletPlane, storagePlane, accountingPlane, exportPlane}, examples()...)
}

var walletPlane = plane.Description{ID: types.PlaneWallet, Memory: "ledgers (wallet.limits)",
	Bytes: func(c *config.Config) int64 { return ledger.Bytes(ledgerLimits(c)) }}

var storagePlane = plane.Description{ID: types.PlaneStorage, Memory: "objects (storage)",
	Spec: func(c *config.Config) core.Spec { return storage.Spec(storageLimits(c)) },
	Gauges: []plane.Gauge{
		{Name: "storage_objects", Labels: []string{"logical"}, Value: totals(func(u, _ storage.Usage) uint64 { return u.Objects })},
		{Name: "storage_objects", Labels: []string{"physical"}, Value: totals(func(_, u storage.Usage) uint64 { return u.Objects })},
		{Name: "storage_bytes", Labels: []string{"logical"}, Value: totals(func(u, _ storage.Usage) uint64 { return u.Bytes })},
		{Name: "storage_bytes", Labels: []string{"physical"}, Value: totals(func(_, u storage.Usage) uint64 { return u.Bytes })},
	}}

// totals returns a value of the usage of all tenants and of the bytes stored for it.
func totals(pick func(logical, physical storage.Usage) uint64) func(core.Plane, types.Time) float64 {
	return func(p core.Plane, _ types.Time) float64 { return float64(pick(p.(*storage.Plane).Totals())) }
}

var accountingPlane = plane.Description{ID: types.PlaneAccounting, Memory: "usage (accounting)",
	Spec: func(c *config.Config) core.Spec { return accounting.Spec(usageLimits(c)) },
	Gauges: []plane.Gauge{
		{Name: "prepaid_lines", Value: func(p core.Plane, _ types.Time) float64 { return float64(p.(*accounting.Plane).LineCount()) }},
		{Name: "usage_rows", Value: func(p core.Plane, _ types.Time) float64 { return float64(p.(*accounting.Plane).Rows()) }},
		{Name: "usage_streams", Value: func(p core.Plane, _ types.Time) float64 { return float64(p.(*accounting.Plane).Streams()) }},
		{Name: "usage_seal_lag_seconds", Value: func(p core.Plane, at types.Time) float64 { return p.(*accounting.Plane).SealLag(at).Seconds() }},
	}}

var exportPlane = plane.Description{ID: types.PlaneExport, Memory: "lanes (exports)",
	Spec: func(c *config.Config) core.Spec { return export.Spec(exportLimits(c)) }}
