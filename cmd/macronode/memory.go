package main

import (
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"unsafe"

	"macronode/adapters/accesslog"
	"macronode/adapters/audit"
	"macronode/adapters/config"
	"macronode/adapters/decisions"
	"macronode/adapters/httpapi"
	"macronode/adapters/httpserver"
	"macronode/adapters/index"
	"macronode/adapters/proxy"
	"macronode/adapters/readmodel"
	"macronode/core/access"
	"macronode/core/event"
	"macronode/core/gateway/admission"
	"macronode/core/gateway/quota"
	"macronode/core/idempotency"
	"macronode/core/state"
	"macronode/core/storage"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

// memory is what the configuration bounds, part by part. The collector is told the sum,
// so that what it has not yet given back counts as well.
type memory []share

// A share is one part, and what it is the sum of.
type share struct {
	Name  string `json:"name"`
	Terms []term `json:"terms"`
}

// A term is so many times so many bytes.
type term struct {
	Of    string `json:"of"`
	Count int64  `json:"count"`
	Each  int64  `json:"each_bytes"`
}

// Bytes is all of s.
func (s share) Bytes() (sum int64) {
	for _, t := range s.Terms {
		sum += t.Count * t.Each
	}
	return sum
}

// Total is all of it.
func (m memory) Total() (sum int64) {
	for _, s := range m {
		sum += s.Bytes()
	}
	return sum
}

// What one of each takes, in bytes, at most.
const (
	item     = int64(unsafe.Sizeof(event.Item{}))
	texts    = 2*types.MaxAccount + types.MaxAsset + 2*types.MaxKey + types.MaxMemo // of one operation
	leastSay = 48                                                                   // of an item, in a body
	smallOne = int64(unsafe.Sizeof(event.Request{})) + texts + smallBody/leastSay*item + 1<<10
	ticket   = 512      // a slot of the desk, a held reply, a place in the rings
	handled  = 16 << 10 // the stack of who serves a connection
	buffered = 8 << 10  // of a connection, to read and to write
	header   = 13 << 10 // of a request, beyond its bytes: 128 fields
	conn     = handled + buffered + header + smallBody
	veiled   = 16 << 10                                           // of a connection of TLS: a record as it came, and keys
	framed   = 16 << 10                                           // of one of HTTP/2: a frame as it came, and its tables
	untold   = 512                                                // a request of HTTP/2 that has ended, and whose client does not read so
	slot     = 512                                                // of the gate
	decided  = int64(unsafe.Sizeof(decisions.Decision{})) + 512 + // and its texts
		3*(int64(unsafe.Sizeof(decisions.Leg{}))+proxy.MaxTries*int64(unsafe.Sizeof(decisions.Try{})))
	largeOne = 3*types.MaxBody + // as it came, inflated, and while either grows
		3*types.MaxBody + // what zstd looks back on, twice, and its tables
		types.MaxBody + types.MaxItems*(2*item+512) // and what is made of it
	transfer   = 256 << 10                   // of an object: a few groups
	unpacking  = 2*httpapi.MaxWindow + 2<<20 // of a compressed upload
	copies     = 10                          // of the backlog: two batches and a turn, each grown, one that is written, six that are folded
	onePage    = 2 << 20                     // rows of one answer, as they are found and as they are written
	onePart    = onePage * httpapi.PartRows / httpapi.MaxPage
	lists      = 64      // that are made at once
	accessLine = 4 << 10 // a value of each field, and its texts
	auditLine  = int64(unsafe.Sizeof(audit.Line{})) + 512
	places     = 1 << 20             // where frames lie
	segments   = 8 * 256 << 10       // that are read
	unpacked   = 16*256<<10 + 16<<20 // of the archive: blocks, and what zstd takes
	program    = 96 << 20            // goroutines and their garbage as well
	smallBody  = 4 << 10
)

// tables is the part that is made at a start.
const tables = "state"

// memoryBound adds it up.
func memoryBound(c *config.Config) memory {
	s, in, conns := stateLimits(c), int64(c.Permits.Money), int64(c.Listen.MaxConns)
	gate := firstGate(c)
	n := nodeConfig(c).WithPolicy(&gate)
	n.QuotaLimits.Slots = n.Admission.Places
	public, admin := connections(c)
	onward, wire, second := int64(0), int64(proxy.LineBytes), int64(0)
	if len(c.Routes) > 0 {
		onward = int64(calls(c)) + proxy.Kept
		if slices.ContainsFunc(c.Upstreams, bySecond) {
			wire, second = max(wire, proxy.TrunkBytes), int64(calls(c))
		}
	}
	return memory{
		{tables, []term{
			{"ledgers (wallet.limits), the node's and the follower's", 2, ledger.Bytes(s.Ledger)},
			{"windows (wallet.idempotency.keys), the same", 2, idempotency.Bytes(s.Idempotency)},
			{"API keys (api_keys), the same", 2, access.Bytes(s.Keys)},
			{"objects (storage), the same", 2, storage.Bytes(storageLimits(c))}}},
		{"snapshot", []term{{"a third state, while one is made or a start begins anew", 1, state.Bytes(s)}}},
		{"requests", []term{
			{"requests with a small body (permits.wallet)", in, smallOne},
			{"tickets and replies (permits.wallet)", in, ticket},
			{"requests with a large body", largeBodies, largeOne},
			{"uploads and downloads (permits.storage)", int64(c.Permits.Storage), transfer},
			{"compressed uploads, as many as large bodies", largeBodies, unpacking}}},
		{"admission", []term{
			{"rows and slots (permits, queue)", 1, admission.Bytes(n.Admission) + int64(passes(c).All())*slot},
			{"counters (quotas, quota_limits)", 1, quota.Bytes(n.Quotas, n.QuotaLimits)},
			{"decisions that are kept", decisions.Room, decided}}},
		{"batches", []term{{"frames on their way (journal.max_unsynced_bytes, and one more)", copies, int64(c.Journal.Backlog) + types.MaxFrame}}},
		{"recent frames", []term{{"of the follower", 1, readmodel.Bytes(recent)}}},
		{"connections", []term{
			{"of the public listener (listen.max_conns; with TLS http.window_bytes, http.streams)", conns, public},
			{"of the admin listener (listen.max_conns, at most 256)", int64(adminConns(c)), admin},
			{"to upstreams: at work (permits.proxy), and kept", onward, wire},
			{"requests of HTTP/2 to upstreams (permits.proxy; where upstreams.*.protocol allows it)", second, proxy.StreamBytes}}},
		{"bodies on their way to a service", []term{
			{"of zstd (routes that inflate)", inflating(c) * proxy.MaxInflaters, proxy.Window + 2<<20},
			{"of gzip (permits.proxy, the same)", inflating(c) * int64(c.Permits.Beyond), 64 << 10}}},
		{"answers", []term{{"streams (permits.streams)", int64(c.Permits.Streams), onePart}, {"lists, as far as so many are made at once", lists, onePage}}},
		{"index", []term{{"cache, ring and tails (index.cache_bytes, index.memtable_frames)", 1, index.Bytes(indexLimits(c))}}},
		{"access log", []term{{"lines that wait, and that are written", 2 * accesslog.Room, accessLine}}},
		{"audit", []term{{"lines that wait, and that are written", 2 * int64(audit.DefaultLimits().Queue), auditLine}}},
		{"journal", []term{{"places of frames", 1, places}, {"segments that are read", 1, segments}, {"the archive", 1, unpacked}}},
		{"program", []term{{"its goroutines, and garbage", 1, program}}},
	}
}

// bySecond reports that an upstream may be asked by HTTP/2.
func bySecond(u config.Upstream) bool {
	return u.Protocol == "http2" || u.Protocol == "auto" && slices.ContainsFunc(u.URLs, func(at string) bool { return strings.HasPrefix(at, "https:") })
}

// inflating is 1 where a route inflates.
func inflating(c *config.Config) int64 {
	if slices.ContainsFunc(c.Routes, func(r config.Route) bool { return r.Inflate }) {
		return 1
	}
	return 0
}

// garbage is how many bytes may lie about, beside what is always there.
const garbage = 64 << 20

// limitMemory tells the collector what the configuration bounds, unless the operator did: all
// of it, and how much may be garbage.
func limitMemory(bound memory) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bound.Total())
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(bound.percent())
	}
}

// percent is garbage as a part of what is always there. The tables of the state are made whole
// at a start; a collector that waits until as much again is garbage has every request written
// into memory that nobody has touched, and the process grow to twice its size.
func (m memory) percent() int {
	for _, s := range m {
		if s.Name == tables {
			return int(min(100, max(1, 100*garbage/s.Bytes())))
		}
	}
	return 100
}

// connections is what one of each listener takes. Those of HTTP/2 have no more requests at
// work together than there may be connections.
func connections(c *config.Config) (public, admin int64) {
	each := conn + int64(c.HTTP.HeaderBytes)
	second := func(window, streams int64) int64 { return veiled + framed + window + streams*untold }
	public, admin = each, each
	if c.Listen.TLS.Cert != "" {
		public += second(int64(c.HTTP.Window), int64(c.HTTP.Streams))
	}
	if own := httpserver.Default(""); c.Listen.TLS.Admin {
		admin += second(int64(own.Window), int64(own.Streams))
	}
	return public, admin
}
