package event

import "macronode/core/types"

// What the views of the journal show, all of it as of a frame that is durable. Their
// texts are not written to.
type (
	// An Entry is a movement as one of its accounts sees it.
	Entry struct {
		Seq          types.Seq
		ID           types.TxID
		At           types.Time
		Op           Op // of what became of a hold: Hold, Capture, Release; of its end in time: 0
		Asset        []byte
		Counterparty []byte // the other account; empty where there is none
		Amount       types.Amount
		Credit       bool         // it came in
		Balance      types.Amount // of the account and the asset, after
		Held         types.Amount // of that, after
		Hold         types.TxID   // that was opened, captured, released or is over
		Nonce        types.Nonce
		Ref          []byte
		Memo         []byte
	}
	// A HoldView is a hold and what became of it.
	HoldView struct {
		ID        types.TxID
		From, To  []byte // To is the beneficiary; empty: anybody
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
	// A Watermark is how far a view has come.
	Watermark struct {
		LSN types.LSN
		At  types.Time
	}
)

// An HoldOutcome is what became of a hold.
type HoldOutcome uint8

const (
	HoldActive   HoldOutcome = iota
	HoldCaptured             // captured, some of it at least
	HoldReleased             // released
	HoldExpired              // its time was over
)

func (s HoldOutcome) String() string {
	return [...]string{"active", "captured", "released", "expired"}[s]
}
