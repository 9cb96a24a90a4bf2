package types

import "time"

// Limits that no configuration changes: file formats and the API depend on them.
const (
	MaxAccount             = 256       // bytes of an account name
	MaxAsset               = 32        // bytes of an asset name
	MaxKey                 = 64        // bytes of an idempotency key or a ref
	MaxMemo                = 256       // bytes
	MaxLabel               = 64        // bytes of the label of an API key
	MaxPatterns            = 255       // bytes of the account or asset patterns of an API key
	MaxNonce               = 1<<53 - 1 // JSON numbers stay exact; the same for a Seq
	MaxLSN                 = 1<<48 - 1 // a txid has 48 bits for it
	MaxBody                = 1 << 20   // bytes of a JSON body
	MaxDepth               = 8         // of a JSON body; the types of today are not deeper than 1
	MaxRecord              = 1152      // bytes of one record
	MaxPlaneRecord         = 6 << 10   // bytes of one record of a plane other than the wallet
	MaxRecords             = 1120      // records of one frame: a batch of 1,000 items or 1,024 events, and the records beside it
	MaxItems               = 1000      // operations of one batch
	MaxHolds               = 1024      // active holds of one account
	MaxExpiriesPerStep     = 16        // expired holds that one step ends in addition to its work
	MaxFrame               = 64 + MaxRecords*MaxRecord
	MaxSegment             = 64 << 20 // bytes after which the next segment begins
	MaxForgottenPerSweep   = 128      // idempotency keys that one sweep evicts
	MaxForgottenPerRequest = 4        // idempotency keys that one request evicts in addition to its work
	MaxTickets             = 1 << 16  // requests in flight
)

// Relations between the limits. A relation that does not hold does not compile.
const (
	_ = uint(MaxRecord - (2*MaxAccount + MaxAsset + 2*MaxKey + MaxMemo + 6*18 + 96)) // the longest record fits
	_ = uint(MaxRecords - (1 + MaxItems + MaxExpiriesPerStep + 1))                   // a batch, the holds that it ends and the keys that it evicts
	_ = uint(MaxSegment - 8*MaxFrame)                                                // a segment holds several of the longest frames
	_ = uint(1<<16 - 1 - MaxRecords)                                                 // an index has 16 bits
	_ = uint(1<<24 - 1 - MaxFrame)                                                   // a length has a zero byte on top: no text looks like one
)

// MaxHoldDuration is the longest duration of a hold.
const MaxHoldDuration = 31 * 24 * time.Hour

// MaxSupply returns the largest amount of an operation and of an asset.
func MaxSupply() Amount { return Amount{Hi: 1<<63 - 1, Lo: 1<<64 - 1} } // 2^127-1: a balance has a sign bit elsewhere
