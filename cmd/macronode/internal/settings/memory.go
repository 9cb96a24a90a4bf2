package settings

import (
	"slices"
	"strings"
	"unsafe"

	"macronode/adapters/accesslog"
	"macronode/adapters/audit"
	"macronode/adapters/bucket"
	"macronode/adapters/config"
	"macronode/adapters/decisions"
	"macronode/adapters/httpapi"
	"macronode/adapters/httpserver"
	"macronode/adapters/index"
	"macronode/adapters/metering"
	"macronode/adapters/objectstore"
	"macronode/adapters/provider"
	"macronode/adapters/proxy"
	"macronode/adapters/readmodel"
	"macronode/core/access"
	"macronode/core/event"
	"macronode/core/gateway/admission"
	"macronode/core/gateway/quota"
	"macronode/core/idempotency"
	"macronode/core/state"
	"macronode/core/types"
)

// Memory is the most memory that a configuration can use, part by part. The total is the memory limit of the Go
// runtime, so it includes garbage.
type Memory []MemoryPart

// A MemoryPart is one part and its terms.
type MemoryPart struct {
	Name  string       `json:"name"`
	Terms []MemoryTerm `json:"terms"`
}

// A MemoryTerm is a count of items of a size.
type MemoryTerm struct {
	Of    string `json:"of"`
	Count int64  `json:"count"`
	Each  int64  `json:"each_bytes"`
}

// Bytes returns the size of s.
func (s MemoryPart) Bytes() (sum int64) {
	for _, t := range s.Terms {
		sum += t.Count * t.Each
	}
	return sum
}

// Total returns the size of all parts.
func (m Memory) Total() (sum int64) {
	for _, s := range m {
		sum += s.Bytes()
	}
	return sum
}

// Sizes of one item each, in bytes, at most.
const (
	item     = int64(unsafe.Sizeof(event.Item{}))
	texts    = 2*types.MaxAccount + types.MaxAsset + 2*types.MaxKey + types.MaxMemo // of one operation
	leastSay = 48                                                                   // of an item, in a body
	smallOne = int64(unsafe.Sizeof(event.Request{})) + texts + smallBody/leastSay*item + 1<<10
	ticket   = 512      // a slot of the dispatcher, a held reply, a place in the rings
	handled  = 16 << 10 // the stack of a connection's goroutine
	buffered = 8 << 10  // of a connection, to read and to write
	header   = 13 << 10 // of a request, beyond its bytes: 128 fields
	conn     = handled + buffered + header + smallBody
	veiled   = 16 << 10                                           // of a TLS connection: a received record, and keys
	framed   = 16 << 10                                           // of an HTTP/2 connection: a received frame, and its tables
	untold   = 512                                                // an HTTP/2 request that has ended and whose client has not read that
	slot     = 512                                                // of admission
	decided  = int64(unsafe.Sizeof(decisions.Decision{})) + 512 + // and its texts
		3*(int64(unsafe.Sizeof(decisions.Leg{}))+proxy.MaxAttempts*int64(unsafe.Sizeof(decisions.Try{})))
	largeOne = 3*types.MaxBody + // as received, decompressed, and while either grows
		3*types.MaxBody + // the windows of zstd, twice, and its tables
		types.MaxBody + types.MaxItems*(2*item+512) // and what is built from it
	transfer   = 256 << 10                   // of an object: a few groups
	unpacking  = 2*httpapi.MaxWindow + 2<<20 // of a compressed upload
	copies     = 10                          // of the backlog: two batches and a turn, each grown, one being written, six being folded
	onePage    = 2 << 20                     // rows of one response, as they are read and as they are written
	onePart    = onePage * httpapi.PartRows / httpapi.MaxPage
	lists      = 64      // that are built at once
	accessLine = 4 << 10 // a value of each field, and its texts
	meteredRow = 2 << 10 // in the meter, and in the command that records it
	auditLine  = int64(unsafe.Sizeof(audit.Line{})) + 512
	places     = 1 << 20             // the offsets of frames
	segments   = 8 * 256 << 10       // that are read
	unpacked   = 16*256<<10 + 16<<20 // of the archive: blocks, and the memory of zstd
	program    = 96 << 20            // including goroutines and their garbage
	smallBody  = 4 << 10
)

// tables is the part that is allocated at the start.
const tables = "state"

// meteredRows returns the rows of metered requests between two records.
func meteredRows(c *config.Config) int64 {
	if !c.Usage.Metered {
		return 0
	}
	return metering.MaxRows
}

// MemoryBound returns the memory bound of a configuration.
func MemoryBound(c *config.Config) Memory {
	s, in, conns := StateLimits(c), int64(c.Permits.Wallet), int64(c.Listen.MaxConns)
	gate := firstPolicy(c)
	n := nodeConfig(c).WithPolicy(&gate)
	n.QuotaLimits.Slots = n.Admission.Places
	public, admin := connections(c)
	onward, wire, second := int64(0), int64(proxy.H1ConnBytes), int64(0)
	if len(c.Routes) > 0 {
		onward = int64(upstreamCalls(c)) + proxy.MaxIdleConns
		if slices.ContainsFunc(c.Upstreams, mayUseHTTP2) {
			wire, second = max(wire, proxy.H2ConnBytes), int64(upstreamCalls(c))
		}
	}
	return Memory{
		{tables, append(planeTerms(c),
			MemoryTerm{"windows (wallet.idempotency.keys), the same", 2, idempotency.Bytes(s.Idempotency)},
			MemoryTerm{"API keys (api_keys), the same", 2, access.Bytes(s.Keys)})},
		{"exports", []MemoryTerm{{"schedulers and items of the sinks (exports.sinks)", 1, exportBytes(c)}}},
		{"snapshot", []MemoryTerm{{"a third state, while one is made or a start begins anew", 1, state.Bytes(s)}}},
		{"requests", []MemoryTerm{
			{"requests with a small body (permits.wallet)", in, smallOne},
			{"tickets and replies (permits.wallet)", in, ticket},
			{"requests with a large body", LargeBodies, largeOne},
			{"uploads and downloads (permits.storage)", int64(c.Permits.Storage), transfer},
			{"compressed uploads, as many as large bodies", LargeBodies, unpacking},
			{"stripes of objects with shards (storage.coding, storage.uploads, permits.storage)", stripes(c), objectstore.StripeBytes(c.ObjectCoding())},
			{"requests to buckets (storage.providers)", bucketRequests(c), bucket.RequestBytes},
			{"calls to directories (storage.providers)", timedCalls(c), provider.CallBytes}}},
		{"admission", []MemoryTerm{
			{"rows and slots (permits, queue)", 1, admission.Bytes(n.Admission) + int64(admissionSlots(c).Total())*slot},
			{"counters (quotas, quota_limits)", 1, quota.Bytes(n.Quotas, n.QuotaLimits)},
			{"decisions that are kept", decisions.Room, decided}}},
		{"batches", []MemoryTerm{{"frames on their way (journal.max_unsynced_bytes, and one more)", copies, int64(c.Journal.Backlog) + types.MaxFrame}}},
		{"recent frames", []MemoryTerm{{"of the follower", 1, readmodel.Bytes(RecentFrames)}}},
		{"connections", []MemoryTerm{
			{"of the public listener (listen.max_conns; with TLS http.window_bytes, http.streams)", conns, public},
			{"of the S3 listener, the same", s3Conns(c), public},
			{"of the admin listener (listen.max_conns, at most 256)", int64(adminConns(c)), admin},
			{"to upstreams: at work (permits.proxy), and kept", onward, wire},
			{"requests of HTTP/2 to upstreams (permits.proxy; where upstreams.*.protocol allows it)", second, proxy.StreamBytes}}},
		{"bodies on their way to a service", []MemoryTerm{
			{"of zstd (routes that inflate)", decompresses(c) * proxy.MaxInflaters, proxy.Window + 2<<20},
			{"of gzip (permits.proxy, the same)", decompresses(c) * int64(c.Permits.Proxy), 64 << 10}}},
		{"answers", []MemoryTerm{{"streams (permits.streams)", int64(c.Permits.Streams), onePart}, {"lists, as far as so many are made at once", lists, onePage}}},
		{"index", []MemoryTerm{{"cache, ring and tails (index.cache_bytes, index.memtable_frames)", 1, index.Bytes(indexLimits(c))},
			{"engines that disk failures have stopped", index.MaxEngineFailures, index.AbandonedBytes(indexLimits(c))}}},
		{"access log", []MemoryTerm{{"lines that wait, and that are written", 2 * accesslog.Room, accessLine}}},
		{"audit", []MemoryTerm{{"lines that wait, and that are written", 2 * int64(audit.DefaultLimits().Queue), auditLine}}},
		{"metering", []MemoryTerm{{"metered requests between two records (accounting.meter_requests)", meteredRows(c), meteredRow}}},
		{"journal", []MemoryTerm{{"places of frames", 1, places}, {"segments that are read", 1, segments}, {"the archive", 1, unpacked}}},
		{"program", []MemoryTerm{{"its goroutines, and garbage", 1, program}}},
	}
}

// planeTerms returns the terms of the states of planes.
func planeTerms(c *config.Config) (terms []MemoryTerm) {
	for i, d := range Planes() {
		terms = append(terms, MemoryTerm{d.Memory + ", the same", 2, d.StateBytes(c)})
		if i == 0 {
			terms[i].Of = d.Memory + ", the node's and the follower's"
		}
	}
	return terms
}

// mayUseHTTP2 reports whether an upstream may be called over HTTP/2.
func mayUseHTTP2(u config.Upstream) bool {
	return u.Protocol == "http2" || u.Protocol == "auto" && slices.ContainsFunc(u.URLs, func(at string) bool { return strings.HasPrefix(at, "https:") })
}

// decompresses returns 1 if a route decompresses requests.
func decompresses(c *config.Config) int64 {
	if slices.ContainsFunc(c.Routes, func(r config.Route) bool { return r.Inflate }) {
		return 1
	}
	return 0
}

// garbage is the size of the garbage beside live data, in bytes.
const garbage = 64 << 20

// GCPercent returns garbage as a percentage of live data. The tables of the state are allocated as a whole at the
// start. A collector that waits until the garbage has the size of the live data would let every request use fresh
// memory, and the process would grow to twice its size.
func (m Memory) GCPercent() int {
	for _, s := range m {
		if s.Name == tables {
			return int(min(100, max(1, 100*garbage/s.Bytes())))
		}
	}
	return 100
}

// connections returns the memory of one connection of each listener. HTTP/2 connections together have no more
// requests in progress than there may be connections, so there is one window for each connection.
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
