package event

import "macronode/core/words"

// A Balance is what an account has of an asset, as of a frame that is durable.
type Balance struct {
	Amount    words.Amount
	Negative  bool // of an asset's issuance account alone
	Held      words.Amount
	Available words.Amount // Amount less Held
	AsOf      words.Seq    // the tenant's last movement that is counted
	At        words.Time   // of the last frame that is counted
	Next      words.Nonce  // the nonce that the account must use next
}
