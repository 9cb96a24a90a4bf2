package event

import "macronode/core/types"

// A Balance is what an account has of an asset, as of a frame that is durable.
type Balance struct {
	Amount    types.Amount
	Negative  bool // of an asset's issuance account alone
	Held      types.Amount
	Available types.Amount // Amount less Held
	AsOf      types.Seq    // the tenant's last movement that is counted
	At        types.Time   // of the last frame that is counted
	NextNonce types.Nonce  // the nonce that the account must use next
}
