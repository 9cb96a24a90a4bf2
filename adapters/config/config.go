// Package config is what an operator may set: one tree of keys, filled from
// defaults, a file, the environment and flags, in that order, and strictly.
//
//	defaults < file (YAML) < MACRONODE_SECTION__KEY < flags ──► Check ──► Config
//
// The tree below is the only list of keys there is: the parser, the checks of
// ranges, the JSON Schema and docs/config.md all read its tags.
//
//	key      its name in the tree
//	doc      what it means, in one sentence
//	default  its text when nobody sets it; "=a.b" takes the value of the key a.b
//	min, max the range, inclusive
//	one      the only texts it takes
//	form     what a text looks like: one of forms
//	takes    what a text must be, where Check says more than its tags do; of a list, what it is of
//	change   when a new value takes effect: "restart", at the next start, or "hot"
//
// A list is one key: a layer that has it has all of it. In YAML it is a list, or a mapping
// where its entries have names; in the environment and in flags it is a text of JSON. What
// its entries are made of has the same tags, and these:
//
//	most     entries, at most
//	by       "name": the list is a mapping, of names to entries
//	need     "yes": no entry is without it
//	either   of the keys of an entry with the same word here, it has exactly one
package config

import (
	"net/netip"
	"time"

	"macronode/core/types"
)

// Config is every key and where its value came from. It is made by Load.
type Config struct {
	Data    string  `key:"data" default:"./macronode-data" takes:"the path of a directory" change:"restart" doc:"Directory of everything that the node keeps."`
	Listen  Listen  `key:"listen" doc:"Where the node is reached."`
	Admin   Admin   `key:"admin" doc:"Access to the admin listener."`
	HTTP    HTTP    `key:"http" doc:"How long the public listener waits for its peers, and for how much."`
	Wallet  Wallet  `key:"wallet" doc:"The ledger."`
	APIKeys int     `key:"api_keys" default:"1024" min:"1" max:"100000" change:"restart" doc:"API keys that may ever be made."`
	Journal Journal `key:"journal" doc:"The durable order of what was decided."`
	Index   Index   `key:"index" doc:"What is looked up beside the ledger: old keys, refs, statements, listings."`
	Audit   Audit   `key:"audit" doc:"The file that says who used which key for what."`
	Node    Node    `key:"node" doc:"The life of the node."`
	Queue   Queue   `key:"queue" doc:"Requests that wait for a permit, and whose turn it is."`
	Permits Permits `key:"permits" doc:"Requests that are at work at once."`
	Rows    Rows    `key:"quotas_room" doc:"Room that quotas take at the start."`

	Quotas    []Quota    `key:"quotas" default:"[]" most:"16" takes:"quotas" change:"hot" doc:"Who may have how much in a time."`
	Upstreams []Upstream `key:"upstreams" by:"name" default:"{}" most:"64" takes:"upstreams" change:"hot" doc:"Services that requests are sent on to, each under its name."`
	Routes    []Route    `key:"routes" default:"[]" most:"256" takes:"routes" change:"hot" doc:"Which requests are sent on, and where."`

	Log Log `key:"log" doc:"Lines for the operator, on standard error."`

	from map[string]string // key → the layer that set it; absent is the default
}

// Listen is where the node is reached.
type Listen struct {
	HTTP     string `key:"http" default:"127.0.0.1:8080" takes:"host:port, with a port from 0 to 65535, or unix:PATH" change:"restart" doc:"Address of the public listener; port 0 takes a free one."`
	Admin    string `key:"admin" default:"127.0.0.1:8081" takes:"host:port, with a port from 0 to 65535, or unix:PATH" change:"restart" doc:"Address of the admin listener; port 0 takes a free one."`
	Insecure bool   `key:"insecure" default:"false" change:"restart" doc:"Says aloud that a listener beyond loopback serves without TLS."`
	TLS      TLS    `key:"tls" doc:"What is reached by TCP proves who it is, by TLS 1.3 alone."`
	MaxConns int    `key:"max_conns" default:"8192" min:"1" max:"65536" change:"restart" doc:"Connections that one listener holds at once. If it has them, the longest idle one is closed for a new one; if none is idle, the new one is closed."`

	MaxPeerConns int `key:"max_conns_per_peer" default:"0" min:"0" max:"65536" change:"hot" doc:"Connections of them that one peer has at once, an address of IPv4 or a network /64 of IPv6: its longest idle one is closed for a new one, or, if none is idle, the new one. 0 is a quarter of max_conns, 16 at least. Networks of http.trusted_proxies have no share, nor has a Unix socket."`
}

// TLS is how listeners prove who they are.
type TLS struct {
	Cert    string `key:"cert" default:"" takes:"the path of a file, or nothing" change:"restart" doc:"File of the certificate chain, in PEM, the server's first, read again with the configuration; nothing is no TLS."`
	Key     string `key:"key" default:"" takes:"the path of a file, or nothing" change:"restart" doc:"File of its private key, in PEM."`
	Quantum string `key:"post_quantum" default:"preferred" one:"preferred required" change:"restart" doc:"Whether clients must agree on keys by a way that a quantum computer cannot break, such as X25519MLKEM768, or only do if they know one."`
	Admin   bool   `key:"admin" default:"false" change:"restart" doc:"Has the admin listener prove who it is, too."`
}

// Admin is who may use the admin listener. Probes need nothing, anything else off loopback a
// credential: the token of run.json, that of TokenFile, or an API key of scope admin.
type Admin struct {
	Metrics   string   `key:"metrics" default:"key" one:"key open" change:"hot" doc:"Whether /metrics off loopback needs a credential, as all but probes do, or is open to any caller."`
	TokenFile string   `key:"token_file" default:"" takes:"the path of a file, or nothing" change:"hot" doc:"File with a token of at least 16 characters that callers of the admin listener may send as Authorization: Bearer; it is read for each request, so it can be replaced while the node runs."`
	Hosts     []string `key:"hosts" default:"[]" form:"host" most:"32" takes:"host names" change:"hot" doc:"Host names under which the admin listener is called, besides localhost and IP addresses; *.example.com is all names below it. Probes may use any name."`
}

// HTTP is how long the public listener waits.
type HTTP struct {
	HeaderTimeout   time.Duration  `key:"header_timeout" default:"5s" min:"1ms" max:"1m" change:"restart" doc:"Time for the header of a request to arrive."`
	ReadTimeout     time.Duration  `key:"read_timeout" default:"5s" min:"1ms" max:"5m" change:"restart" doc:"Time for a whole request to arrive, its header included."`
	WriteTimeout    time.Duration  `key:"write_timeout" default:"5s" min:"1ms" max:"5m" change:"restart" doc:"Time for an answer to be taken."`
	IdleTimeout     time.Duration  `key:"idle_timeout" default:"1m" min:"1ms" max:"1h" change:"restart" doc:"Time that a connection may stay without a request."`
	HeaderBytes     Bytes          `key:"header_bytes" default:"16KiB" min:"4KiB" max:"64KiB" change:"restart" doc:"Bytes of a request's header."`
	Streams         int            `key:"streams" default:"100" min:"1" max:"1000" change:"restart" doc:"Requests of one connection of HTTP/2 at once; those of all are at most listen.max_conns."`
	Window          Bytes          `key:"window_bytes" default:"64KiB" min:"64KiB" max:"2MiB" change:"restart" doc:"Bytes of bodies that a connection of HTTP/2 may send before they are read; more is faster from far away, and takes room for each connection."`
	RequestDeadline time.Duration  `key:"request_deadline" default:"5s" min:"1ms" max:"1m" change:"restart" doc:"Time after which a request is told that its outcome is not known yet."`
	TunnelIdle      time.Duration  `key:"tunnel_idle" default:"1m" min:"1s" max:"24h" change:"hot" doc:"Time that a tunnel, a WebSocket, may stay open while neither end says anything."`
	TrustedProxies  []netip.Prefix `key:"trusted_proxies" default:"[]" most:"64" takes:"networks" change:"hot" doc:"Networks of those whose word about who asks is taken; nobody else may say for whom he speaks."`
}

// Wallet is the ledger.
type Wallet struct {
	Limits      Limits      `key:"limits" doc:"Room that is taken at the start, and ceilings on what moves."`
	Idempotency Idempotency `key:"idempotency" doc:"How long an idempotency key shows its first outcome again."`
}

// Limits are the ledger's room and ceilings.
type Limits struct {
	Accounts       int          `key:"accounts" default:"1000000" min:"1" max:"100000000" change:"restart" doc:"Accounts of all tenants."`
	Holdings       int          `key:"holdings" default:"2000000" min:"1" max:"100000000" change:"restart" doc:"Pairs of an account and an asset that it ever held."`
	Assets         int          `key:"assets" default:"10000" min:"1" max:"1000000" change:"restart" doc:"Assets of all tenants."`
	Tenants        int          `key:"tenants" default:"1000" min:"1" max:"1000000" change:"restart" doc:"Tenants."`
	Holds          int          `key:"holds" default:"100000" min:"0" max:"100000000" change:"restart" doc:"Active holds of all tenants."`
	TenantAccounts int          `key:"tenant_accounts" default:"=wallet.limits.accounts" min:"1" max:"100000000" change:"restart" doc:"Accounts of one tenant."`
	TenantHoldings int          `key:"tenant_holdings" default:"=wallet.limits.holdings" min:"1" max:"100000000" change:"restart" doc:"Holdings of one tenant."`
	TenantAssets   int          `key:"tenant_assets" default:"=wallet.limits.assets" min:"1" max:"1000000" change:"restart" doc:"Assets of one tenant."`
	TenantHolds    int          `key:"tenant_holds" default:"=wallet.limits.holds" min:"0" max:"100000000" change:"restart" doc:"Active holds of one tenant."`
	Amount         types.Amount `key:"amount" default:"100000000000000000000" min:"1" max:"170141183460469231731687303715884105727" change:"restart" doc:"Minor units that one operation may move."`
	Day            types.Amount `key:"day" default:"10000000000000000000000" min:"1" max:"170141183460469231731687303715884105727" change:"restart" doc:"Minor units of one asset that may leave one account in a UTC day."`
	IssueDay       types.Amount `key:"issue_day" default:"=wallet.limits.day" min:"1" max:"170141183460469231731687303715884105727" change:"restart" doc:"Minor units of one asset that may be issued in a UTC day."`
}

// Idempotency is the window of keys.
type Idempotency struct {
	TTL   time.Duration `key:"ttl" default:"24h" min:"1m" max:"72h" change:"restart" doc:"Time that a key is kept, from its outcome on; it never leaves earlier."`
	Keys  int           `key:"keys" default:"1000000" min:"1" max:"100000000" change:"restart" doc:"Keys and refs kept in memory at once; the index has those that came before."`
	Share int           `key:"share" default:"=wallet.idempotency.keys" min:"1" max:"100000000" change:"restart" doc:"Of those, one tenant's."`
}

// Journal is how the journal treats its disk.
type Journal struct {
	Reserve  Bytes         `key:"reserve_bytes" default:"256MiB" min:"64MiB" max:"1024GiB" change:"restart" doc:"Free room on the disk below which no write is taken, so that recovery and drain always have some."`
	Backlog  Bytes         `key:"backlog_bytes" default:"8MiB" min:"4MiB" max:"1GiB" change:"restart" doc:"Bytes decided and not yet durable, past which writes are refused."`
	Stall    time.Duration `key:"stall" default:"200ms" min:"1ms" max:"10s" change:"restart" doc:"Length of a flush after which the node is degraded and takes no writes."`
	Fail     time.Duration `key:"fail" default:"5s" min:"10ms" max:"1m" change:"restart" doc:"Length of a flush after which it has failed, and only a restart helps."`
	Snapshot Bytes         `key:"snapshot_bytes" default:"64MiB" min:"1MiB" max:"64GiB" change:"restart" doc:"Bytes of journal after which the state is written down, so that a start need not read them."`
	Archive  string        `key:"archive" default:"" takes:"the path of a directory, or nothing" change:"restart" doc:"Directory that old segments are moved to, compressed; nothing keeps them where they are."`
	Vouch    time.Duration `key:"vouch" default:"1s" min:"10ms" max:"1m" change:"restart" doc:"Silence after which the last frame gets a successor that vouches for it."`
}

// Index is the views of the journal.
type Index struct {
	Cache  Bytes `key:"cache_bytes" default:"64MiB" min:"8MiB" max:"64GiB" change:"restart" doc:"Memory for the blocks of its tables."`
	Frames int   `key:"frames" default:"200000" min:"100" max:"10000000" change:"restart" doc:"Frames that are kept in memory until they are written as one table."`
}

// Audit is its file.
type Audit struct {
	Size Bytes `key:"size_bytes" default:"64MiB" min:"1MiB" max:"16GiB" change:"restart" doc:"Size at which the file is put aside and a new one begun."`
	Keep int   `key:"keep" default:"8" min:"1" max:"1000" change:"restart" doc:"Files that were put aside and are kept."`
}

// Node is how long the parts of the node's life may take.
type Node struct {
	Patience      time.Duration `key:"patience" default:"5s" min:"10ms" max:"1m" change:"restart" doc:"Time that a decided answer waits to be durable before its outcome is told as unknown."`
	StartDeadline time.Duration `key:"start_deadline" default:"30s" min:"1s" max:"10m" change:"restart" doc:"Time for everything to be there, after which the node says that it starts late."`
	InFlight      int           `key:"in_flight" default:"512" min:"1" max:"65536" change:"restart" doc:"Requests taken in and not answered; one more is told to come back."`
	LameDuck      time.Duration `key:"lame_duck" default:"0s" min:"0s" max:"5m" change:"restart" doc:"Time of serving on while telling that the node ends."`
	Drain         time.Duration `key:"drain" default:"3s" min:"0s" max:"30m" change:"restart" doc:"Time for what is in to finish: as long as the downloads, uploads and tunnels that a stop must not cut. What stops the process must wait longer than lame_duck, drain and abort together."`
	Abort         time.Duration `key:"abort" default:"1s" min:"0s" max:"5s" change:"restart" doc:"Time for giving up the rest."`
}

// Queue is who waits for a permit, for how long, and whose turn it is.
type Queue struct {
	Quantum Bytes         `key:"quantum_bytes" default:"64KiB" min:"4KiB" max:"1MiB" change:"hot" doc:"Bytes that a tenant or a peer may move when its turn comes."`
	MaxWait time.Duration `key:"max_wait" default:"25ms" min:"0s" max:"1s" change:"hot" doc:"Time that a request waits for a permit, and never more than a quarter of its deadline."`
	Pace    time.Duration `key:"pace" default:"1ms" min:"0s" max:"100ms" change:"hot" doc:"Time that who comes may wait for the instance's quota; one who would wait longer is refused at once. It is that of the class of the least weight: one of n times the weight may wait n times as long, up to queue.max_wait."`
	Weights Weights       `key:"weights" doc:"Quanta of each class when its turn comes."`
	Money   int           `key:"money" default:"256" min:"3" max:"65536" change:"restart" doc:"Requests that wait for a permit of permits.money."`
	Lists   int           `key:"lists" default:"64" min:"3" max:"65536" change:"restart" doc:"Requests that wait for a permit of permits.lists."`
	Beyond  int           `key:"beyond" default:"192" min:"3" max:"65536" change:"restart" doc:"Requests that wait for a permit of permits.beyond."`
	Streams int           `key:"streams" default:"64" min:"3" max:"65536" change:"restart" doc:"Requests that wait for a permit of permits.streams."`
	Class   int           `key:"class_share" default:"33" min:"1" max:"33" change:"hot" doc:"Percent of each of these queues that one class may fill, and at least one request; a third at most, so that no two keep the third out."`
	Flow    int           `key:"flow_share" default:"25" min:"1" max:"33" change:"hot" doc:"Percent of each of these queues that one tenant may fill, or one peer that has shown no key, and at least one request."`
}

// Weights are the classes' parts of what is served.
type Weights struct {
	Internal int `key:"internal" default:"10" min:"0" max:"100" change:"hot" doc:"Of keys that are for the node's own use; 0 is never served."`
	Authed   int `key:"authed" default:"5" min:"0" max:"100" change:"hot" doc:"Of who has shown a key; 0 is never served."`
	Anon     int `key:"anon" default:"1" min:"0" max:"100" change:"hot" doc:"Of everybody else; 0 is never served."`
}

// Permits are how many may be at work.
type Permits struct {
	Money    int `key:"money" default:"=node.in_flight" min:"1" max:"65536" change:"restart" doc:"Requests that move money or read it from memory."`
	Lists    int `key:"lists" default:"32" min:"1" max:"65536" change:"restart" doc:"Requests that read from the index."`
	Beyond   int `key:"beyond" default:"256" min:"1" max:"21845" change:"restart" doc:"Requests that are sent on to upstreams, but for those of permits.streams."`
	Streams  int `key:"streams" default:"256" min:"1" max:"65536" change:"restart" doc:"Requests that wait or last: change streams, exports and reads with wait or at_least, and of upstreams tunnels and event streams."`
	Internal int `key:"internal_share" default:"10" min:"0" max:"90" change:"restart" doc:"Percent of each of these permits that is kept for keys of the node's own use."`
	Anon     int `key:"anon_share" default:"50" min:"1" max:"100" change:"restart" doc:"Percent of each of these permits that callers without a key may have together, and at least one permit."`
	Flow     int `key:"flow_share" default:"25" min:"1" max:"100" change:"hot" doc:"Percent of each of these permits that one tenant may have, or one peer that has shown no key, and at least one permit."`
}

// Rows are the subjects that quotas count at once.
type Rows struct {
	Peers int `key:"peers" default:"65536" min:"1" max:"1048576" change:"restart" doc:"Peers that have counters of their own; those for whom there is no room share one."`
}

// Log is what is said to the operator.
type Log struct {
	Level  string `key:"level" default:"info" one:"debug info warn error" change:"hot" doc:"The least important lines that are written."`
	Format string `key:"format" default:"text" one:"text json" change:"restart" doc:"How a line is written."`
	Access bool   `key:"access" default:"false" change:"hot" doc:"A line for each request, of whatever level; of more than 500 a second, and as many that failed (5xx), ever fewer have one, and how many are left out is told."`
}

// A decided frame must fit into half of the smallest backlog: sweeps stop there.
const _ = uint(4<<20/2 - types.MaxFrame)
