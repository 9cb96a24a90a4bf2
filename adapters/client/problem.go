package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
)

var (
	// ErrUnknown says that nobody knows whether it was done: ask again with the same
	// key, which the *Unknown has, or look it up by TxByKey. Never with another key.
	ErrUnknown = errors.New("client: outcome unknown")
	// ErrStranger says that what answers is no node of ours.
	ErrStranger = errors.New("what answers is no node of ours")
	// ErrReceipt says that a receipt is not what its hash says.
	ErrReceipt = errors.New("client: the receipt is not what its hash says")
	// ErrGap says that a feed of changes left one out.
	ErrGap = errors.New("client: the feed of changes has a gap")
)

// A Code is why a request was refused. errors.Is finds it in an error:
//
//	errors.Is(err, client.InsufficientFunds)
type Code string

// The codes that there are.
const (
	AccountFrozen       Code = "account_frozen"
	BadRequest          Code = "bad_request"
	Busy                Code = "busy"
	RateLimited         Code = "rate_limited"
	Deadline            Code = "timeout"
	Forbidden           Code = "forbidden"
	HoldEnded           Code = "hold_not_active"
	IdempotencyConflict Code = "idempotency_conflict"
	IdempotencyFull     Code = "idempotency_capacity"
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
)

// Error makes a target of a code.
func (c Code) Error() string { return string(c) }

// kept reports that an idempotency key never shows another outcome, once it has
// shown a refusal with this code that is not retryable.
func (c Code) kept() bool {
	switch c {
	case InsufficientFunds, NonceConflict, RefUsed, HoldEnded, NotBeneficiary, IdempotencyConflict:
		return true
	default:
		return false
	}
}

// A Problem is a refusal, as the node said it.
type Problem struct {
	Told          `json:"-"`
	Code          Code   `json:"code"`
	Status        int    `json:"status"` // of HTTP
	Detail        string `json:"detail"`
	Retryable     bool   `json:"retryable"`      // the same request, with the same key, may fare better
	DecisionID    string `json:"decision_id"`    //
	ExpectedNonce int64  `json:"expected_nonce"` // of nonce_conflict; 0: not said
	TxID          string `json:"txid"`           // of ref_used: who has it
	Index         *int   `json:"index"`          // of a batch: the item that was in its way
}

// Error says the problem in a sentence.
func (p *Problem) Error() string {
	text := string(p.Code) + ": " + strings.TrimSuffix(p.Detail, ".")
	if p.Code == NonceConflict && p.ExpectedNonce > 0 {
		text += fmt.Sprintf(" (the next nonce is %d)", p.ExpectedNonce)
	}
	return text
}

// Is reports that the problem has a Code.
func (p *Problem) Is(target error) bool {
	code, ok := target.(Code)
	return ok && p.Code == code
}

// ParseProblem reads a problem; false where it is none.
func ParseProblem(raw []byte) (*Problem, bool) {
	p := &Problem{Told: Told{raw}}
	if json.Unmarshal(raw, p) != nil || p.Code == "" {
		return nil, false
	}
	return p, true
}

// Unknown is ErrUnknown, with what it takes to ask again.
type Unknown struct {
	Key   string // the idempotency key; empty where the operation has none
	Tries int
	Err   error // what the last try ended with
}

func (u *Unknown) Error() string {
	text := fmt.Sprintf("outcome unknown (%v)", u.Err)
	if u.Key != "" {
		text += ": ask again with the idempotency key " + u.Key
	}
	return text
}

// Is reports ErrUnknown.
func (u *Unknown) Is(target error) bool { return target == ErrUnknown }

// Unwrap is what the last try ended with.
func (u *Unknown) Unwrap() error { return u.Err }

// strange is ErrStranger with what was heard.
func strange(status int) error {
	return fmt.Errorf("%w: %d %s", ErrStranger, status, http.StatusText(status))
}

// Told is the bytes of an answer, or of a part of one, as they came.
type Told struct {
	Raw []byte
}

// MarshalJSON is the bytes as they came.
func (t Told) MarshalJSON() ([]byte, error) {
	if t.Raw == nil {
		return []byte("null"), nil
	}
	return t.Raw, nil
}

// parse reads what an answer says. Members that this version does not know are left.
func parse[T any](raw []byte, to *T) error {
	if err := json.Unmarshal(raw, to); err != nil {
		return fmt.Errorf("%w: %w", ErrStranger, err)
	}
	return nil
}
