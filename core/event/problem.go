package event

// A Problem is why a request is refused. Its number stands in records: a new one
// goes to the end, none is ever used again for something else.
type Problem uint8

const (
	None                Problem = iota
	BadRequest                  // malformed
	Unauthorized                // nobody we know
	Forbidden                   // somebody who may not
	AmountLimitExceeded         // more than one operation may move
	SupplyLimitExceeded         // more than there may be of the asset
	DailyLimitExceeded          // more than may leave in a UTC day
	CapacityExceeded            // accounts, holdings, assets or holds
	InsufficientFunds           //
	NonceUsed                   // at or below the last
	NonceAhead                  // beyond the next: it may become right
	IdempotencyConflict         // the key asked for something else before
	InProgress                  // the key's first request is still at it
	IdempotencyCapacity         // no room for another key
	PayloadTooLarge             //
	UnsupportedMedia            //
	NotFound                    //
	MethodNotAllowed            //
	Busy                        // a queue is full
	Unavailable                 // degraded, draining, starting
	Timeout                     // a read did not see in time what it waited for
	OutcomeUnknown              // the outcome is not known yet
	Internal                    // a bug of ours
	AccountFrozen               // nothing may leave it
	RefUsed                     // by an earlier operation
	HoldNotActive               // captured, released or expired
	HoldAmountExceeded          // more than the hold has
	BadExpiry                   // over, or too far ahead
	StaleIndexRead              // the index was asked too long ago; never told outside
	BadGateway                  // an upstream gave no answer, or none of HTTP
	NotBeneficiary              // the hold names an account, and another was to be paid
	numProblems                 // how many there are
)

// Known reports that p is a problem of this version.
func (p Problem) Known() bool { return p > None && p < numProblems }

// problemRule is what the contract says of a problem.
type problemRule struct {
	code   string // on the wire
	status int    // of HTTP
	traits problemTraits
}

type problemTraits uint8

const (
	retryable         problemTraits = 1 << iota // the same request may fare better later
	stored                                      // the key shows it again
	needsNoDurability                           // tells nothing of what the node knows, so it need not wait for the disk
)

func (p Problem) rule() problemRule {
	return [numProblems]problemRule{
		None:                {"", 200, stored},
		BadRequest:          {"bad_request", 400, needsNoDurability},
		Unauthorized:        {"unauthorized", 401, needsNoDurability},
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
		IdempotencyCapacity: {"idempotency_full", 429, retryable | needsNoDurability},
		PayloadTooLarge:     {"payload_too_large", 413, needsNoDurability},
		UnsupportedMedia:    {"unsupported_media_type", 415, needsNoDurability},
		NotFound:            {"not_found", 404, needsNoDurability},
		MethodNotAllowed:    {"method_not_allowed", 405, needsNoDurability},
		Busy:                {"busy", 429, retryable | needsNoDurability},
		Unavailable:         {"unavailable", 503, retryable | needsNoDurability},
		Timeout:             {"deadline", 504, retryable | needsNoDurability},
		OutcomeUnknown:      {"unknown", 504, retryable | needsNoDurability},
		Internal:            {"internal", 500, retryable | needsNoDurability},
		AccountFrozen:       {"account_frozen", 403, 0},
		RefUsed:             {"ref_used", 409, stored},
		HoldNotActive:       {"hold_state", 409, stored},
		HoldAmountExceeded:  {"insufficient_funds", 409, stored},
		BadExpiry:           {"bad_request", 400, 0},
		StaleIndexRead:      {"unavailable", 503, retryable | needsNoDurability},
		BadGateway:          {"bad_gateway", 502, retryable | needsNoDurability},
		NotBeneficiary:      {"not_beneficiary", 409, stored},
	}[p]
}

// Code is what p is called on the wire; several problems may share one.
func (p Problem) Code() string { return p.rule().code }

// Status is p's HTTP status.
func (p Problem) Status() int { return p.rule().status }

// Retryable reports that the same request, with the same key, may fare better.
func (p Problem) Retryable() bool { return p.rule().traits&retryable != 0 }

// Stored reports that the key keeps p as its outcome, because deciding again would
// not be kinder to this very request.
func (p Problem) Stored() bool { return p.rule().traits&stored != 0 }

// NeedsNoDurability reports that p tells nothing of what the node knows: its answer does not
// wait for the disk, or a failed journal would never answer.
func (p Problem) NeedsNoDurability() bool { return p.rule().traits&needsNoDurability != 0 }

// Detail says p in a sentence.
func (p Problem) Detail() string {
	return [numProblems]string{
		None:                "",
		BadRequest:          "The request is malformed.",
		Unauthorized:        "The request carries no API key that this node knows.",
		Forbidden:           "The API key does not cover this operation.",
		AmountLimitExceeded: "The amount is more than one operation may move.",
		SupplyLimitExceeded: "There would be more of the asset than there may be.",
		DailyLimitExceeded:  "More of the asset would leave the account, or be issued, than may in one UTC day.",
		CapacityExceeded:    "There is no room for another account, holding, asset or hold.",
		InsufficientFunds:   "The account has less than the amount available.",
		NonceUsed:           "The account has used this nonce.",
		NonceAhead:          "The nonce is ahead of the one that the account must use next.",
		IdempotencyConflict: "The idempotency key was used for a different request.",
		InProgress:          "The first request with this idempotency key has no outcome yet.",
		IdempotencyCapacity: "There is no room for another idempotency key until older ones expire.",
		PayloadTooLarge:     "The body is larger than allowed.",
		UnsupportedMedia:    "The body is not of a media type that this operation takes.",
		NotFound:            "There is nothing here.",
		MethodNotAllowed:    "The resource does not know this method.",
		Busy:                "The node has as much work as it takes on; nothing was decided.",
		Unavailable:         "The node does not take this work now; nothing was decided.",
		Timeout:             "What was waited for did not happen in time.",
		OutcomeUnknown:      "The outcome is not known yet: ask again with the same idempotency key.",
		Internal:            "The node met a fault of its own.",
		AccountFrozen:       "The account is frozen: nothing may leave it.",
		RefUsed:             "The ref was used by an earlier operation.",
		HoldNotActive:       "The hold has been captured or released, or its time is over.",
		HoldAmountExceeded:  "The hold has less than the amount.",
		BadExpiry:           "A hold expires later than now, and at most 31 days ahead.",
		StaleIndexRead:      "The index of earlier keys is behind; nothing was decided.",
		BadGateway:          "The service behind this one gave no answer.",
		NotBeneficiary:      "The hold names a beneficiary: no other account can be paid from it.",
	}[p]
}

func (p Problem) String() string { return p.Code() }
