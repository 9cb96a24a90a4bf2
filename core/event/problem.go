package event

import "macronode/core/types"

// A Problem is the reason a request is rejected. Records contain its number: a new problem is
// appended, and no number is ever reused.
type Problem uint8

const (
	None                Problem = iota
	BadRequest                  // malformed
	Unauthorized                // no valid API key
	Forbidden                   // the API key lacks the scope
	AmountLimitExceeded         // above the limit of one operation
	SupplyLimitExceeded         // above the limit of the asset
	DailyLimitExceeded          // above the limit of one UTC day
	CapacityExceeded            // API keys, buckets, objects, uploads or parts; in old records also rows of the wallet
	InsufficientFunds           //
	NonceUsed                   // at or below the last
	NonceAhead                  // above the next nonce: a retry may succeed
	IdempotencyConflict         // the key was used for a different request
	InProgress                  // the first request with the key has no outcome yet
	IdempotencyCapacity         // the idempotency window is full
	PayloadTooLarge             //
	UnsupportedMedia            //
	NotFound                    //
	MethodNotAllowed            //
	Busy                        // no capacity: a queue or a permit limit is full
	Unavailable                 // degraded, draining, starting
	Timeout                     // the deadline passed before a condition was met
	OutcomeUnknown              // the outcome is not known yet
	Internal                    // a bug of ours
	AccountFrozen               // debits are rejected
	RefUsed                     // by an earlier operation
	HoldNotActive               // captured, released or expired
	HoldAmountExceeded          // above the remaining amount of the hold
	BadExpiry                   // the expiry is in the past or too far ahead
	StaleIndexRead              // the index lookup is outdated; internal, reported as unavailable
	BadGateway                  // an upstream gave no valid HTTP response
	NotBeneficiary              // the hold names a beneficiary, and the capture another account
	RateLimited                 // a quota is used up
	RecordUnreadable            // the record of the answer is damaged on the disk
	QuotaExceeded               // the storage quota of the tenant or the bucket is used up
	DigestMismatch              // the content does not have the address
	PreconditionFailed          // If-Match or If-None-Match does not hold
	RangeNotSatisfiable         // the range begins behind the end
	ObjectUnreadable            // the file of the object is lost or damaged on the disk
	PaymentRequired             // the available balance is less than the price
	EventConflict               // the source and ID of the usage event were used for other content
	EventTooOld                 // the time of the usage event is too long ago
	EventInFuture               // the time of the usage event is too far ahead
	UsageOverflow               // the sum of usage would exceed 64 bits
	UsageCapacity               // rows or streams of usage
	EventInvalid                // a field of the usage event
	LaneMoved                   // the cursor of the lane is not where the command expects it
	ExportCapacity              // lanes or quarantined positions of exports
	EventsDeferred              // the rest of the idempotency window is reserved for other commands
	TooManyEvents               // more than the idempotency window takes at once
	PrepaidExceeded             // the price of the usage is above the balance of its account
	UploadMoved                 // the upload does not end where the part begins
	TenantsFull                 // the limits on rows of the wallet, from here on: tenants
	AccountsFull                // accounts of all tenants
	HoldingsFull                // holdings of all tenants
	AssetsFull                  // assets of all tenants
	HoldsFull                   // active holds of all tenants
	TenantAccountsFull          // accounts of the tenant
	TenantHoldingsFull          // holdings of the tenant
	TenantAssetsFull            // assets of the tenant
	TenantHoldsFull             // active holds of the tenant
	AccountHoldsFull            // active holds of the account
	APIKeysFull                 // API keys ever created
	TenantAPIKeysFull           // API keys of the tenant ever created
	PaymentExpired              // the hold of the price has ended before the object was stored
	RefReserved                 // the API key is limited to accounts, and the ref is one of charges
	numProblems                 // the number of problems
)

// Known reports whether p is a problem of this version.
func (p Problem) Known() bool { return p > None && p < numProblems }

// General returns the problem that p is a case of: CapacityExceeded for a limit on rows of the wallet, Forbidden for RefReserved, else p.
func (p Problem) General() Problem {
	switch {
	case p >= TenantsFull && p <= TenantAPIKeysFull:
		return CapacityExceeded
	case p == RefReserved:
		return Forbidden
	}
	return p
}

// problemRule is the contract of a problem.
type problemRule struct {
	code   string // on the wire
	status int    // of HTTP
	traits problemTraits
}

type problemTraits uint8

const (
	retryable         problemTraits = 1 << iota // a later retry may succeed
	stored                                      // stored as the outcome of the idempotency key
	needsNoDurability                           // reveals no state, so the reply need not wait for the disk
)

func (p Problem) rule() problemRule {
	return [numProblems]problemRule{
		None:                {"", 200, stored},
		BadRequest:          {"bad_request", 400, needsNoDurability},
		Unauthorized:        {"unauthorized", 401, 0},
		Forbidden:           {"forbidden", 403, 0},
		AmountLimitExceeded: {"limits_exceeded", 403, stored},
		SupplyLimitExceeded: {"limits_exceeded", 403, stored},
		DailyLimitExceeded:  {"limits_exceeded", 403, 0},
		CapacityExceeded:    {"limits_exceeded", 403, 0},
		InsufficientFunds:   {"insufficient_funds", 409, stored},
		NonceUsed:           {"nonce_conflict", 409, stored},
		NonceAhead:          {"nonce_conflict", 409, retryable},
		IdempotencyConflict: {"idempotency_conflict", 422, 0},
		InProgress:          {"in_progress", 409, retryable | needsNoDurability},
		IdempotencyCapacity: {"idempotency_capacity", 429, retryable | needsNoDurability},
		PayloadTooLarge:     {"payload_too_large", 413, needsNoDurability},
		UnsupportedMedia:    {"unsupported_media_type", 415, needsNoDurability},
		NotFound:            {"not_found", 404, 0},
		MethodNotAllowed:    {"method_not_allowed", 405, needsNoDurability},
		Busy:                {"busy", 429, retryable | needsNoDurability},
		Unavailable:         {"unavailable", 503, retryable | needsNoDurability},
		Timeout:             {"timeout", 504, retryable | needsNoDurability},
		OutcomeUnknown:      {"outcome_unknown", 504, retryable | needsNoDurability},
		Internal:            {"internal", 500, retryable | needsNoDurability},
		AccountFrozen:       {"account_frozen", 403, 0},
		RefUsed:             {"ref_used", 409, stored},
		HoldNotActive:       {"hold_not_active", 409, stored},
		HoldAmountExceeded:  {"insufficient_funds", 409, stored},
		BadExpiry:           {"bad_request", 400, 0},
		StaleIndexRead:      {"unavailable", 503, retryable | needsNoDurability},
		BadGateway:          {"bad_gateway", 502, retryable | needsNoDurability},
		NotBeneficiary:      {"not_beneficiary", 409, stored},
		RateLimited:         {"rate_limited", 429, retryable | needsNoDurability},
		RecordUnreadable:    {"record_unreadable", 500, needsNoDurability},
		QuotaExceeded:       {"quota_exceeded", 507, 0},
		DigestMismatch:      {"digest_mismatch", 409, needsNoDurability},
		PreconditionFailed:  {"precondition_failed", 412, 0},
		RangeNotSatisfiable: {"range_not_satisfiable", 416, needsNoDurability},
		ObjectUnreadable:    {"object_unreadable", 500, needsNoDurability},
		PaymentRequired:     {"payment_required", 402, 0},
		EventConflict:       {"event_conflict", 422, 0},
		EventTooOld:         {"event_too_old", 422, needsNoDurability},
		EventInFuture:       {"event_in_future", 422, needsNoDurability},
		UsageOverflow:       {"usage_overflow", 422, 0},
		UsageCapacity:       {"usage_capacity", 429, retryable},
		EventInvalid:        {"event_invalid", 422, needsNoDurability},
		LaneMoved:           {"lane_moved", 409, 0},
		ExportCapacity:      {"export_capacity", 429, retryable},
		EventsDeferred:      {"idempotency_capacity", 429, retryable | needsNoDurability},
		TooManyEvents:       {"payload_too_large", 413, needsNoDurability},
		PrepaidExceeded:     {"insufficient_funds", 402, 0},
		UploadMoved:         {"upload_offset_mismatch", 409, 0},
		TenantsFull:         {"limits_exceeded", 403, 0},
		AccountsFull:        {"limits_exceeded", 403, 0},
		HoldingsFull:        {"limits_exceeded", 403, 0},
		AssetsFull:          {"limits_exceeded", 403, 0},
		HoldsFull:           {"limits_exceeded", 403, 0},
		TenantAccountsFull:  {"limits_exceeded", 403, 0},
		TenantHoldingsFull:  {"limits_exceeded", 403, 0},
		TenantAssetsFull:    {"limits_exceeded", 403, 0},
		TenantHoldsFull:     {"limits_exceeded", 403, 0},
		AccountHoldsFull:    {"limits_exceeded", 403, 0},
		APIKeysFull:         {"limits_exceeded", 403, 0},
		TenantAPIKeysFull:   {"limits_exceeded", 403, 0},
		PaymentExpired:      {"payment_expired", 402, 0},
		RefReserved:         {"forbidden", 403, 0},
	}[p]
}

// Code is the name of p in responses; several problems may share one.
func (p Problem) Code() string { return p.rule().code }

// Status is the HTTP status of p.
func (p Problem) Status() int { return p.rule().status }

// Retryable reports whether a retry with the same idempotency key may succeed.
func (p Problem) Retryable() bool { return p.rule().traits&retryable != 0 }

// Stored reports whether p is stored as the outcome of the idempotency key: deciding the same
// request again could not give a better result.
func (p Problem) Stored() bool { return p.rule().traits&stored != 0 }

// NeedsNoDurability reports whether p reveals no state. Its reply does not wait for the disk;
// otherwise a failed journal would leave requests unanswered.
func (p Problem) NeedsNoDurability() bool { return p.rule().traits&needsNoDurability != 0 }

// Detail says p in a sentence.
func (p Problem) Detail() string {
	return [numProblems]string{
		None:                "",
		BadRequest:          "The request is malformed.",
		Unauthorized:        "The request has no valid API key.",
		Forbidden:           "The API key does not permit this operation.",
		AmountLimitExceeded: "The amount exceeds the limit for one operation.",
		SupplyLimitExceeded: "The issued amount of the asset would exceed its limit.",
		DailyLimitExceeded:  "The limit for one UTC day would be exceeded: debits of the account, or issues of the asset.",
		CapacityExceeded:    "A limit on rows of the state is reached.",
		InsufficientFunds:   "The available balance of the account is less than the amount.",
		NonceUsed:           "The account has already used this nonce.",
		NonceAhead:          "The nonce is higher than the next nonce of the account.",
		IdempotencyConflict: "The idempotency key was already used for a different request.",
		InProgress:          "The first request with this idempotency key is still in progress.",
		IdempotencyCapacity: "The tenant has as many idempotency keys and refs as wallet.idempotency.max_keys_per_tenant permits, until older ones expire.",
		PayloadTooLarge:     "The request body exceeds the size limit.",
		UnsupportedMedia:    "The media type of the request body is not supported.",
		NotFound:            "The resource was not found.",
		MethodNotAllowed:    "The resource does not support this method.",
		Busy:                "The node is at capacity. The request was not processed.",
		Unavailable:         "The node cannot process this request now. The request was not processed.",
		Timeout:             "The deadline passed before the condition was met.",
		OutcomeUnknown:      "The outcome is not known yet. Retry with the same idempotency key.",
		Internal:            "An internal error occurred.",
		AccountFrozen:       "The account is frozen: debits are rejected.",
		RefUsed:             "The ref was already used by an earlier operation.",
		HoldNotActive:       "The hold was captured or released, or it has expired.",
		HoldAmountExceeded:  "The amount exceeds the remaining amount of the hold.",
		BadExpiry:           "The expiry of a hold must be in the future and at most 31 days ahead.",
		StaleIndexRead:      "The index of earlier keys is behind. The request was not processed.",
		BadGateway:          "The upstream service gave no valid response.",
		RateLimited:         "A quota is used up. The request was not processed.",
		RecordUnreadable:    "The journal is damaged where this record is.",
		QuotaExceeded:       "The storage quota of the tenant or of the bucket would be exceeded.",
		DigestMismatch:      "The content does not have this address.",
		PreconditionFailed:  "The condition of If-Match or If-None-Match does not hold.",
		RangeNotSatisfiable: "The range begins behind the end of the object.",
		ObjectUnreadable:    "The object is lost or damaged on the disk.",
		PaymentRequired:     "The available balance of the account that pays is less than the price of the object.",
		EventConflict:       "The source and id of the event were already used for an event with other content.",
		EventTooOld:         "The time of the event is more than 35 days ago.",
		EventInFuture:       "The time of the event is more than 5 minutes ahead.",
		UsageOverflow:       "The usage of the window would exceed 64 bits.",
		UsageCapacity:       "The limit on rows of usage or on dimensions is reached. No event of the request was recorded.",
		EventInvalid:        "A field of the event is invalid. No event of the request was recorded.",
		LaneMoved:           "The cursor of the lane is not where the request expects it. Read the lane again.",
		ExportCapacity:      "The limit of lanes, or of quarantined positions, of exports is reached. Nothing was changed.",
		EventsDeferred:      "Usage events may use three quarters of wallet.idempotency.keys, and these are in use until the index has older keys. No event of the request was recorded.",
		TooManyEvents:       "The request has more events than a quarter of wallet.idempotency.keys, or three quarters of wallet.idempotency.max_keys_per_tenant. Send fewer events in a request.",
		PrepaidExceeded:     "The available balance of the account that pays is less than the price of the usage. The request had no effect.",
		UploadMoved:         "The upload does not end at Upload-Offset. Ask for its offset and go on there.",
		NotBeneficiary:      "The hold names another beneficiary. Only that account can receive the capture.",
		TenantsFull:         "The limit on tenants is reached: wallet.limits.tenants.",
		AccountsFull:        "The limit on accounts of all tenants is reached: wallet.limits.accounts.",
		HoldingsFull:        "The limit on holdings of all tenants is reached: wallet.limits.holdings.",
		AssetsFull:          "The limit on assets of all tenants is reached: wallet.limits.assets.",
		HoldsFull:           "The limit on active holds of all tenants is reached: wallet.limits.holds.",
		TenantAccountsFull:  "The tenant has as many accounts as wallet.limits.tenant_accounts permits. Without that limit, it has as many as it leaves of wallet.limits.accounts to other tenants.",
		TenantHoldingsFull:  "The tenant has as many holdings as wallet.limits.tenant_holdings permits. Without that limit, it has as many as it leaves of wallet.limits.holdings to other tenants.",
		TenantAssetsFull:    "The tenant has as many assets as wallet.limits.tenant_assets permits. Without that limit, it has as many as it leaves of wallet.limits.assets to other tenants.",
		TenantHoldsFull:     "The tenant has as many active holds as wallet.limits.tenant_holds permits. Without that limit, it has as many as it leaves of wallet.limits.holds to other tenants.",
		AccountHoldsFull:    "The account has as many active holds as an account may have.",
		APIKeysFull:         "The limit on API keys ever created is reached: api_keys. Its last one is kept for a bootstrap key.",
		TenantAPIKeysFull:   "The tenant has created a quarter of the API keys that api_keys permits. Only the default tenant may create more.",
		PaymentExpired:      "The hold of the price has ended: the upload took longer than storage.price.hold_ttl, or another request ended the hold. Nothing was stored.",
		RefReserved:         "A ref that begins with " + types.ChargeRef + " is reserved for charges of usage. An API key that is limited to accounts may not use it.",
	}[p]
}

func (p Problem) String() string { return p.Code() }
