package words

// Limits that no configuration moves: formats and the wire rest on them.
const (
	MaxAccount    = 256       // bytes of an account's name
	MaxAsset      = 32        // bytes of an asset's
	MaxKey        = 64        // bytes of an idempotency key or a ref
	MaxMemo       = 256       // bytes
	MaxNonce      = 1<<53 - 1 // JSON numbers stay exact; the same for a Seq
	MaxLSN        = 1<<48 - 1 // a txid has 48 bits for it
	MaxBody       = 1 << 20   // bytes of a JSON body
	MaxDepth      = 8         // of a JSON body; no operation of today is deeper than 1, so the types hold it
	MaxRecord     = 1024      // bytes of one record
	MaxRecords    = 1024      // records of one frame: a batch of 1,000 and what goes with it
	MaxFrame      = 64 + MaxRecords*MaxRecord
	MaxSegment    = 64 << 20 // bytes after which a segment gets a successor
	MaxExpire     = 128      // keys that one sweep forgets
	MaxExpireEach = 4        // keys that one request forgets beside its own work
	MaxTickets    = 1 << 16  // requests in flight
)

// How the limits relate. A line that does not hold does not compile.
const (
	_ = uint(MaxRecord - (2*MaxAccount + MaxAsset + MaxKey + MaxMemo + 5*18 + 64)) // the longest record fits
	_ = uint(MaxSegment - 8*MaxFrame)                                              // a segment holds several of the longest frames
	_ = uint(1<<16 - 1 - MaxRecords)                                               // an index has 16 bits
	_ = uint(1<<24 - 1 - MaxFrame)                                                 // a length has a zero byte on top: no text looks like one
)

// What one operation may be worth, and what there may be of one asset.
func MaxSupply() Amount { return Amount{Hi: 1<<63 - 1, Lo: 1<<64 - 1} } // 2^127-1: a balance has a sign bit elsewhere
