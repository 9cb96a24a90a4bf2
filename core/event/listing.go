package event

import "macronode/core/types"

// The results of the index, as of a durable frame. Their texts must not be changed.
type (
	// An Entry is a movement from the view of one of its accounts.
	Entry struct {
		Seq          types.Seq
		ID           types.TxID
		At           types.Time
		Op           Op // of a hold: Hold, Capture, Release; 0 for its expiry
		Asset        []byte
		Counterparty []byte // the other account; empty if there is none
		Amount       types.Amount
		Credit       bool         // the account was credited
		Balance      types.Amount // balance after it
		Held         types.Amount // held amount after it
		Hold         types.TxID   // that was opened, captured, released or expired
		Nonce        types.Nonce
		Ref          []byte
		Memo         []byte
	}
	// A HoldView is a hold with its outcome.
	HoldView struct {
		ID        types.TxID
		From, To  []byte // To is the beneficiary; empty: any account
		Asset     []byte
		Amount    types.Amount
		Opened    types.Time
		ExpiresAt types.Time
		State     HoldOutcome
		EndedBy   types.TxID   // the record that ended it
		Captured  types.Amount // of it
	}
	// A Change is a movement of a tenant; its record is at ID.
	Change struct {
		Seq types.Seq
		ID  types.TxID
		At  types.Time
	}
	// A Watermark is the position that a view has reached.
	Watermark struct {
		LSN types.LSN
		At  types.Time
	}
)

// An HoldOutcome is the state of a hold.
type HoldOutcome uint8

const (
	HoldActive   HoldOutcome = iota
	HoldCaptured             // captured at least in part
	HoldReleased             // released
	HoldExpired              // its time has expired
)

func (s HoldOutcome) String() string {
	return [...]string{"active", "captured", "released", "expired"}[s]
}
