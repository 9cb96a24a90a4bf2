package event

import "macronode/core/words"

// What the views of the journal show, all of it as of a frame that is durable. Their
// texts are not written to.
type (
	// An Entry is a movement as one of its accounts sees it.
	Entry struct {
		Seq     words.Seq
		ID      words.TxID
		At      words.Time
		Op      Op // of what became of a hold: Hold, Capture, Release; of its end in time: 0
		Asset   []byte
		Other   []byte // the other account; empty where there is none
		Amount  words.Amount
		Credit  bool         // it came in
		Balance words.Amount // of the account and the asset, after
		Held    words.Amount // of that, after
		Hold    words.TxID   // that was opened, captured, released or is over
		Nonce   words.Nonce
		Ref     []byte
		Memo    []byte
	}
	// A HoldView is a hold and what became of it.
	HoldView struct {
		ID       words.TxID
		From, To []byte // To is the beneficiary; empty: anybody
		Asset    []byte
		Amount   words.Amount
		Opened   words.Time
		Until    words.Time
		State    Outcome
		Ended    words.TxID   // the record that ended it
		Captured words.Amount // of it
	}
	// A Change is a movement of a tenant; its record is at ID.
	Change struct {
		Seq words.Seq
		ID  words.TxID
		At  words.Time
	}
	// A Mark is how far a view has come.
	Mark struct {
		LSN words.LSN
		At  words.Time
	}
)

// An Outcome is what became of a hold.
type Outcome uint8

const (
	Active Outcome = iota
	Paid           // captured, some of it at least
	LetGo          // released
	Over           // its time was over
)

func (s Outcome) String() string {
	return [...]string{"active", "captured", "released", "expired"}[s]
}
