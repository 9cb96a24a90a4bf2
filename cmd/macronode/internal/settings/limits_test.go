package settings

import (
	"reflect"
	"testing"
	"time"

	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/accounting"
	"macronode/core/export"
	"macronode/core/idempotency"
	"macronode/core/state"
	"macronode/core/storage"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

// TestTenantsLeaveRoomByDefault: without limits in the configuration, tenants have none of their own in a table that all share.
func TestTenantsLeaveRoomByDefault(t *testing.T) {
	cfg := testkit.Config(t)
	l, s := ledgerLimits(cfg), storageLimits(cfg)
	for i, limit := range [...]int{l.TenantAccounts, l.TenantHoldings, l.TenantAssets, l.TenantHolds, s.TenantBuckets, s.TenantUploads, s.TenantParts, int(s.TenantQuota.Objects), usageLimits(cfg).TenantRow} {
		if limit != 0 {
			t.Errorf("limit %d of a tenant is %d", i, limit)
		}
	}
}

// All values are different, so none can be in the place of another.
func TestLimitsAreApplied(t *testing.T) {
	cfg := testkit.Config(t, "wallet.limits.accounts=211", "wallet.limits.holdings=223", "wallet.limits.assets=227", "wallet.limits.tenants=229",
		"wallet.limits.tenant_accounts=3", "wallet.limits.tenant_holdings=5", "wallet.limits.tenant_assets=7",
		"wallet.limits.max_amount=11", "wallet.limits.max_daily_debit=13", "wallet.limits.max_daily_issue=17",
		"wallet.idempotency.keys=233", "wallet.idempotency.max_keys_per_tenant=19", "wallet.idempotency.ttl=23h", "api_keys=29",
		"wallet.limits.holds=31", "wallet.limits.tenant_holds=9", "http.request_deadline=2s", "node.commit_timeout=3s",
		"storage.objects=37", "storage.holdings=41", "storage.buckets=43", "storage.tenant_bytes=47KiB", "storage.tenant_objects=53",
		"storage.bucket_bytes=59KiB", "storage.bucket_objects=61", "storage.multipart.uploads=71", "storage.multipart.parts=73", "storage.multipart.ttl=79m",
		"storage.tenant_buckets=83", "storage.multipart.tenant_uploads=89", "storage.multipart.tenant_parts=97",
		"accounting.rows=83", "accounting.max_rows_per_tenant=73", "accounting.streams=71", "accounting.max_dimensions_per_tenant=67", "accounting.max_prepaid_lines=101", "accounting.window=3m", "accounting.grace=13s",
		"exports.lanes=89", "exports.max_lanes_per_tenant=79", "exports.quarantine=97", "exports.max_quarantine_per_tenant=87")
	want := state.Limits{
		Ledger: ledger.Limits{Accounts: 211, Holdings: 223, Assets: 227, Tenants: 229, TenantAccounts: 3, TenantHoldings: 5,
			TenantAssets: 7, Holds: 31, TenantHolds: 9, MaxAmount: types.MinorUnits(11), MaxDailyDebit: types.MinorUnits(13), MaxDailyIssue: types.MinorUnits(17)},
		Idempotency: idempotency.Limits{Keys: 233, PerTenant: 19, Tenants: 229, TTL: 23 * time.Hour, MinRetention: 7 * time.Second},
		Keys:        29,
	}
	got := StateLimits(cfg)
	if len(got.Planes) != 3 || got.Planes[0].ID != types.PlaneStorage || got.Planes[1].ID != types.PlaneAccounting || got.Planes[2].ID != types.PlaneExport {
		t.Fatalf("planes %+v", got.Planes)
	}
	if got.Planes = nil; !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v", got)
	}
	objects := storage.Limits{Objects: 37, Holdings: 41, Buckets: 43, Uploads: 71, Parts: 73, UploadTTL: 79 * time.Minute,
		TenantBuckets: 83, TenantUploads: 89, TenantParts: 97, TenantQuota: storage.Usage{Bytes: 47 << 10, Objects: 53}, BucketQuota: storage.Usage{Bytes: 59 << 10, Objects: 61}}
	if got := storageLimits(cfg); got != objects {
		t.Fatalf("%+v", got)
	}
	usage := accounting.Limits{Rows: 83, TenantRow: 73, Streams: 71, TenantDim: 67, Tenants: 229, Lines: 101, Window: 3 * time.Minute, Grace: 13 * time.Second}
	if got := usageLimits(cfg); got != usage {
		t.Fatalf("%+v", got)
	}
	if got, want := exportLimits(cfg), (export.Limits{Lanes: 89, TenantLanes: 79, Rows: 97, TenantRows: 87}); got != want {
		t.Fatalf("%+v", got)
	}
}
