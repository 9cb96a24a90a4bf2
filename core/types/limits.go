package types

import "time"

// Limits that no configuration moves: formats and the wire rest on them.
const (
	MaxAccount             = 256       // bytes of an account's name
	MaxAsset               = 32        // bytes of an asset's
	MaxKey                 = 64        // bytes of an idempotency key or a ref
	MaxMemo                = 256       // bytes
	MaxLabel               = 64        // bytes of what an API key is called
	MaxPatterns            = 255       // bytes of the names that it covers
	MaxNonce               = 1<<53 - 1 // JSON numbers stay exact; the same for a Seq
	MaxLSN                 = 1<<48 - 1 // a txid has 48 bits for it
	MaxBody                = 1 << 20   // bytes of a JSON body
	MaxDepth               = 8         // of a JSON body; no operation of today is deeper than 1, so the types hold it
	MaxRecord              = 1152      // bytes of one record
	MaxRecords             = 1024      // records of one frame: a batch of 1,000 and what goes with it
	MaxItems               = 1000      // operations of one batch
	MaxHolds               = 1024      // active holds of one account
	MaxExpiriesPerStep     = 16        // holds whose time is over that one step ends, beside its own work
	MaxFrame               = 64 + MaxRecords*MaxRecord
	MaxSegment             = 64 << 20 // bytes after which a segment gets a successor
	MaxForgottenPerSweep   = 128      // keys that one sweep forgets
	MaxForgottenPerRequest = 4        // keys that one request forgets beside its own work
	MaxTickets             = 1 << 16  // requests in flight
)

// How the limits relate. A line that does not hold does not compile.
const (
	_ = uint(MaxRecord - (2*MaxAccount + MaxAsset + 2*MaxKey + MaxMemo + 6*18 + 96)) // the longest record fits
	_ = uint(MaxRecords - (1 + MaxItems + MaxExpiriesPerStep + 1))                   // a batch, with the holds that it ends and what it forgets
	_ = uint(MaxSegment - 8*MaxFrame)                                                // a segment holds several of the longest frames
	_ = uint(1<<16 - 1 - MaxRecords)                                                 // an index has 16 bits
	_ = uint(1<<24 - 1 - MaxFrame)                                                   // a length has a zero byte on top: no text looks like one
)

// MaxHoldDuration is how far ahead a hold may expire.
const MaxHoldDuration = 31 * 24 * time.Hour

// What one operation may be worth, and what there may be of one asset.
func MaxSupply() Amount { return Amount{Hi: 1<<63 - 1, Lo: 1<<64 - 1} } // 2^127-1: a balance has a sign bit elsewhere
