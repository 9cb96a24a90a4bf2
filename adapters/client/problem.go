package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
)

var (
	// ErrUnknown reports that the outcome is unknown. Repeat the call with the same key, which is
	// in *UnknownOutcome, or use TxByKey. Never use another key.
	ErrUnknown = errors.New("client: outcome unknown")
	// ErrWrongNode reports that the response is not from a macronode.
	ErrWrongNode = errors.New("what answers is no node of ours")
	// ErrReceipt reports that the hash of a receipt does not match.
	ErrReceipt = errors.New("client: the receipt is not what its hash says")
	// ErrGap reports that a change is missing in a feed.
	ErrGap = errors.New("client: the feed of changes has a gap")
)

// A Code is the reason of a rejection. Use it with errors.Is:
//
//	errors.Is(err, client.InsufficientFunds)
type Code string

// The codes.
const (
	AccountFrozen       Code = "account_frozen"
	BadRequest          Code = "bad_request"
	Busy                Code = "busy"
	RateLimited         Code = "rate_limited"
	Timeout             Code = "timeout"
	Forbidden           Code = "forbidden"
	HoldNotActive       Code = "hold_not_active"
	IdempotencyConflict Code = "idempotency_conflict"
	IdempotencyCapacity Code = "idempotency_capacity"
	InProgress          Code = "in_progress"
	InsufficientFunds   Code = "insufficient_funds"
	Internal            Code = "internal"
	LimitsExceeded      Code = "limits_exceeded"
	MethodNotAllowed    Code = "method_not_allowed"
	NonceConflict       Code = "nonce_conflict"
	NotBeneficiary      Code = "not_beneficiary"
	NotFound            Code = "not_found"
	PayloadTooLarge     Code = "payload_too_large"
	RecordUnreadable    Code = "record_unreadable"
	RefUsed             Code = "ref_used"
	Unauthorized        Code = "unauthorized"
	Unavailable         Code = "unavailable"
	OutcomeUnknown      Code = "outcome_unknown"
	UnsupportedMedia    Code = "unsupported_media_type"
	QuotaExceeded       Code = "quota_exceeded"
	DigestMismatch      Code = "digest_mismatch"
	PreconditionFailed  Code = "precondition_failed"
	RangeNotSatisfiable Code = "range_not_satisfiable"
	ObjectUnreadable    Code = "object_unreadable"
	PaymentRequired     Code = "payment_required"
	PaymentExpired      Code = "payment_expired"
	EventConflict       Code = "event_conflict"
	EventTooOld         Code = "event_too_old"
	EventInFuture       Code = "event_in_future"
	EventInvalid        Code = "event_invalid"
	UsageOverflow       Code = "usage_overflow"
	UsageCapacity       Code = "usage_capacity"
	LaneMoved           Code = "lane_moved"
	ExportCapacity      Code = "export_capacity"
	UploadMoved         Code = "upload_offset_mismatch"
)

// Error makes a Code a target of errors.Is.
func (c Code) Error() string { return string(c) }

// isFinal reports whether a rejection with this code that is not retryable is the stored outcome
// of its idempotency key. EventConflict is final because an event is never recorded with other
// content: an earlier attempt got the same.
func (c Code) isFinal() bool {
	switch c {
	case InsufficientFunds, NonceConflict, RefUsed, HoldNotActive, NotBeneficiary, IdempotencyConflict, EventConflict:
		return true
	default:
		return false
	}
}

// A Problem is a rejection by the node.
type Problem struct {
	RawResponse   `json:"-"`
	Code          Code   `json:"code"`
	Status        int    `json:"status"` // of HTTP
	Detail        string `json:"detail"`
	Retryable     bool   `json:"retryable"`      // the same request with the same key may succeed later
	DecisionID    string `json:"decision_id"`    //
	ExpectedNonce int64  `json:"expected_nonce"` // of nonce_conflict; 0: unknown
	TxID          string `json:"txid"`           // of ref_used: the transaction with this ref
	Asset         string `json:"asset"`          // of insufficient_funds of prepaid usage: what the account lacks
	Missing       string `json:"missing_minor"`  // of it, in minor units
	Index         *int   `json:"index"`          // of a batch: the item or event that caused it
}

// Error returns a sentence.
func (p *Problem) Error() string {
	text := string(p.Code) + ": " + strings.TrimSuffix(p.Detail, ".")
	if p.Code == NonceConflict && p.ExpectedNonce > 0 {
		text += fmt.Sprintf(" (the next nonce is %d)", p.ExpectedNonce)
	}
	return text
}

// Is reports whether the problem has a Code.
func (p *Problem) Is(target error) bool {
	code, ok := target.(Code)
	return ok && p.Code == code
}

// ParseProblem parses a problem. ok is false if raw is none.
func ParseProblem(raw []byte) (*Problem, bool) {
	p := &Problem{RawResponse: RawResponse{raw}}
	if json.Unmarshal(raw, p) != nil || p.Code == "" {
		return nil, false
	}
	return p, true
}

// UnknownOutcome is ErrUnknown with what a repetition needs.
type UnknownOutcome struct {
	Key      string // the idempotency key; empty if the operation has none
	Attempts int
	Err      error // of the last attempt
}

func (u *UnknownOutcome) Error() string {
	text := fmt.Sprintf("outcome unknown (%v)", u.Err)
	if u.Key != "" {
		text += ": ask again with the idempotency key " + u.Key
	}
	return text
}

// Is reports whether target is ErrUnknown.
func (u *UnknownOutcome) Is(target error) bool { return target == ErrUnknown }

// Unwrap returns the error of the last attempt.
func (u *UnknownOutcome) Unwrap() error { return u.Err }

// foreignResponse returns ErrWrongNode with the status.
func foreignResponse(status int) error {
	return fmt.Errorf("%w: %d %s", ErrWrongNode, status, http.StatusText(status))
}

// RawResponse contains the bytes of a response, or of a part of one, as received.
type RawResponse struct {
	Raw []byte
}

// MarshalJSON returns the received bytes.
func (t RawResponse) MarshalJSON() ([]byte, error) {
	if t.Raw == nil {
		return []byte("null"), nil
	}
	return t.Raw, nil
}
