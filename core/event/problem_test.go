package event_test

import (
	"testing"

	"macronode/core/event"
)

// contract is the table of problems in the order of their numbers, which are stored in records: a row is never
// moved or removed.
var contract = []struct {
	problem event.Problem
	code    string
	status  int
	retry   bool // ask again, same key
	stored  bool // the key shows it again
	blank   bool // tells nothing that a crash could take back
}{
	{event.BadRequest, "bad_request", 400, false, false, true},
	{event.Unauthorized, "unauthorized", 401, false, false, false},
	{event.Forbidden, "forbidden", 403, false, false, false},
	{event.AmountLimitExceeded, "limits_exceeded", 403, false, true, false},
	{event.SupplyLimitExceeded, "limits_exceeded", 403, false, true, false},
	{event.DailyLimitExceeded, "limits_exceeded", 403, false, false, false},
	{event.CapacityExceeded, "limits_exceeded", 403, false, false, false},
	{event.InsufficientFunds, "insufficient_funds", 409, false, true, false},
	{event.NonceUsed, "nonce_conflict", 409, false, true, false},
	{event.NonceAhead, "nonce_conflict", 409, true, false, false},
	{event.IdempotencyConflict, "idempotency_conflict", 422, false, false, false},
	{event.InProgress, "in_progress", 409, true, false, true},
	{event.IdempotencyCapacity, "idempotency_capacity", 429, true, false, true},
	{event.PayloadTooLarge, "payload_too_large", 413, false, false, true},
	{event.UnsupportedMedia, "unsupported_media_type", 415, false, false, true},
	{event.NotFound, "not_found", 404, false, false, false},
	{event.MethodNotAllowed, "method_not_allowed", 405, false, false, true},
	{event.Busy, "busy", 429, true, false, true},
	{event.Unavailable, "unavailable", 503, true, false, true},
	{event.Timeout, "timeout", 504, true, false, true},
	{event.OutcomeUnknown, "outcome_unknown", 504, true, false, true},
	{event.Internal, "internal", 500, true, false, true},
	{event.AccountFrozen, "account_frozen", 403, false, false, false},
	{event.RefUsed, "ref_used", 409, false, true, false},
	{event.HoldNotActive, "hold_not_active", 409, false, true, false},
	{event.HoldAmountExceeded, "insufficient_funds", 409, false, true, false},
	{event.BadExpiry, "bad_request", 400, false, false, false},
	{event.StaleIndexRead, "unavailable", 503, true, false, true}, // between the node and its shell
	{event.BadGateway, "bad_gateway", 502, true, false, true},
	{event.NotBeneficiary, "not_beneficiary", 409, false, true, false},
	{event.RateLimited, "rate_limited", 429, true, false, true},
	{event.RecordUnreadable, "record_unreadable", 500, false, false, true},
	{event.QuotaExceeded, "quota_exceeded", 507, false, false, false},
	{event.DigestMismatch, "digest_mismatch", 409, false, false, true},
	{event.PreconditionFailed, "precondition_failed", 412, false, false, false},
	{event.RangeNotSatisfiable, "range_not_satisfiable", 416, false, false, true},
	{event.ObjectUnreadable, "object_unreadable", 500, false, false, true},
	{event.PaymentRequired, "payment_required", 402, false, false, false},
	{event.EventConflict, "event_conflict", 422, false, false, false},
	{event.EventTooOld, "event_too_old", 422, false, false, true},
	{event.EventInFuture, "event_in_future", 422, false, false, true},
	{event.UsageOverflow, "usage_overflow", 422, false, false, false},
	{event.UsageCapacity, "usage_capacity", 429, true, false, false},
	{event.EventInvalid, "event_invalid", 422, false, false, true},
	{event.LaneMoved, "lane_moved", 409, false, false, false},
	{event.ExportCapacity, "export_capacity", 429, true, false, false},
	{event.EventsDeferred, "idempotency_capacity", 429, true, false, true},
	{event.TooManyEvents, "payload_too_large", 413, false, false, true},
	{event.PrepaidExceeded, "insufficient_funds", 402, false, false, false},
	{event.UploadMoved, "upload_offset_mismatch", 409, false, false, false},
	{event.TenantsFull, "limits_exceeded", 403, false, false, false},
	{event.AccountsFull, "limits_exceeded", 403, false, false, false},
	{event.HoldingsFull, "limits_exceeded", 403, false, false, false},
	{event.AssetsFull, "limits_exceeded", 403, false, false, false},
	{event.HoldsFull, "limits_exceeded", 403, false, false, false},
	{event.TenantAccountsFull, "limits_exceeded", 403, false, false, false},
	{event.TenantHoldingsFull, "limits_exceeded", 403, false, false, false},
	{event.TenantAssetsFull, "limits_exceeded", 403, false, false, false},
	{event.TenantHoldsFull, "limits_exceeded", 403, false, false, false},
	{event.AccountHoldsFull, "limits_exceeded", 403, false, false, false},
	{event.APIKeysFull, "limits_exceeded", 403, false, false, false},
	{event.TenantAPIKeysFull, "limits_exceeded", 403, false, false, false},
	{event.PaymentExpired, "payment_expired", 402, false, false, false},
	{event.RefReserved, "forbidden", 403, false, false, false},
}

func TestProblemsMatchContract(t *testing.T) {
	for i, want := range contract {
		p := want.problem
		if int(p) != i+1 {
			t.Errorf("%v has the number %d, and was given %d", p, p, i+1)
		}
		if !p.Known() {
			t.Errorf("%v is not known", p)
		}
		if p.Code() != want.code || p.String() != want.code || p.Status() != want.status {
			t.Errorf("%d is %s %d, want %s %d", p, p.Code(), p.Status(), want.code, want.status)
		}
		if p.Retryable() != want.retry || p.Stored() != want.stored || p.NeedsNoDurability() != want.blank {
			t.Errorf("%v: retry %v, stored %v, blank %v", p, p.Retryable(), p.Stored(), p.NeedsNoDurability())
		}
	}
	for p := len(contract) + 1; p < 256; p++ {
		if event.Problem(p).Known() {
			t.Errorf("%v is not in the contract", event.Problem(p))
		}
	}
}

// TestSuccessIsStored: no problem is an outcome like any other.
func TestSuccessIsStored(t *testing.T) {
	p := event.None
	if p.Known() || p.Code() != "" || p.Status() != 200 || p.Retryable() || !p.Stored() || p.NeedsNoDurability() {
		t.Errorf("none: %q %d, retry %v, stored %v, blank %v", p.Code(), p.Status(), p.Retryable(), p.Stored(), p.NeedsNoDurability())
	}
}

// TestStoredProblemsAreFinal: a stored problem never allows a retry to succeed, and never leaves before the disk.
func TestStoredProblemsAreFinal(t *testing.T) {
	for p := event.Problem(1); p.Known(); p++ {
		if p.Stored() && (p.Retryable() || p.NeedsNoDurability()) {
			t.Errorf("%v is stored, retry %v, blank %v", p, p.Retryable(), p.NeedsNoDurability())
		}
	}
}

// TestDetailsArePlain: details need no JSON escape, and are all different.
func TestDetailsArePlain(t *testing.T) {
	seen := map[string]event.Problem{}
	for p := event.Problem(1); p.Known(); p++ {
		detail := p.Detail()
		if other, twice := seen[detail]; twice || detail == "" {
			t.Errorf("%v says %q, and so does %v", p, detail, other)
		}
		seen[detail] = p
		for _, c := range []byte(detail) {
			if c < ' ' || c > '~' || c == '"' || c == '\\' {
				t.Errorf("%v: %q holds %q", p, detail, c)
			}
		}
	}
}

// TestRulesAreLookedUp: the step reads them several times per request.
func TestRulesAreLookedUp(t *testing.T) {
	p, n := event.Busy, 0
	if got := testing.AllocsPerRun(100, func() {
		if p.Stored() || !p.NeedsNoDurability() {
			n++
		}
	}); got != 0 || n != 0 {
		t.Errorf("%v allocations, %d wrong answers", got, n)
	}
}

func BenchmarkStored(b *testing.B) {
	n := 0
	for i := range b.N {
		if event.Problem(i & 15).Stored() {
			n++
		}
	}
	if n == 0 && b.N > 16 {
		b.Fatal("none is stored")
	}
}
