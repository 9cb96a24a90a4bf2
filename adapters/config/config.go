// Package config has the configuration: one tree of keys, filled from defaults, a file, the
// environment and flags, in that order. Unknown keys and invalid values are errors.
//
//	defaults < file (YAML) < MACRONODE_SECTION__KEY < flags ──► Check ──► Config
//
// The tree below is the only list of keys: the parser, the range checks, the JSON Schema and
// docs/config.md all read its tags.
//
//	key      its name in the tree
//	doc      its meaning, in one sentence
//	default  its text if it is not set; "=a.b" means the value of the key a.b
//	min, max the range, inclusive
//	one      the allowed texts
//	form     the form of the text: one of forms
//	takes    what the text must be, if Check is stricter than the tags; for a list, its elements
//	change   when a new value takes effect: "restart", at the next start, or "hot"
//
// A list is one key: a layer that sets it replaces all of it. In YAML it is a list, or a
// mapping if its entries have names; in the environment and in flags it is JSON. The keys of
// its entries have the same tags, and these:
//
//	most     the largest number of entries
//	by       "name": the list is a mapping of names to entries
//	need     "yes": every entry must have it
//	either   an entry has exactly one of the keys with the same word here
package config

import (
	"net/netip"
	"time"

	"macronode/core/types"
)

// Config has every key and the layer of its value. Load makes it.
type Config struct {
	Data    string  `key:"data" default:"./macronode-data" takes:"the path of a directory" change:"restart" doc:"Data directory of the node."`
	Listen  Listen  `key:"listen" doc:"Addresses, connection limits and TLS of the listeners."`
	Admin   Admin   `key:"admin" doc:"Access to the admin listener."`
	HTTP    HTTP    `key:"http" doc:"Timeouts and limits of the public listener."`
	Wallet  Wallet  `key:"wallet" doc:"The ledger."`
	Storage Storage `key:"storage" doc:"Content-addressed objects."`
	Usage   Usage   `key:"accounting" doc:"Usage: events, windows and slices."`
	Exports Exports `key:"exports" doc:"Delivery of usage and movements to other systems."`
	APIKeys int     `key:"api_keys" default:"1024" min:"1" max:"100000" change:"restart" doc:"Maximum number of API keys ever created, revoked ones included. The last one is kept for a bootstrap key. A tenant other than the default one has at most a quarter."`
	Journal Journal `key:"journal" doc:"The journal: durability and disk space."`
	Index   Index   `key:"index" doc:"The index of old idempotency keys, refs, statements and lists."`
	Audit   Audit   `key:"audit" doc:"The audit log: one line for each use of an API key that changed something or was rejected."`
	Node    Node    `key:"node" doc:"Start, commit and shutdown of the node."`
	Queue   Queue   `key:"queue" doc:"Queues of requests that wait for a permit, and the order in which they get one."`
	Permits Permits `key:"permits" doc:"Concurrency limits."`
	Rows    Rows    `key:"quota_limits" doc:"Memory reserved for quotas at start."`

	Quotas    []Quota    `key:"quotas" default:"[]" most:"16" takes:"quotas" change:"hot" doc:"Rate limits for requests and bytes."`
	Upstreams []Upstream `key:"upstreams" by:"name" default:"{}" most:"64" takes:"upstreams" change:"hot" doc:"Services behind the gateway, by name."`
	Routes    []Route    `key:"routes" default:"[]" most:"256" takes:"routes" change:"hot" doc:"Which requests are forwarded, and to which upstream."`

	Log Log `key:"log" doc:"Log lines on standard error."`

	from     map[string]string // key → the layer that set it; absent is the default
	sections []sectionValue    // of planes
}

// Listen has the addresses of the listeners.
type Listen struct {
	HTTP     string `key:"http" default:"127.0.0.1:8080" takes:"host:port, with a port from 0 to 65535, or unix:PATH" change:"restart" doc:"Address of the public listener. Port 0 selects a free port."`
	Admin    string `key:"admin" default:"127.0.0.1:8081" takes:"host:port, with a port from 0 to 65535, or unix:PATH" change:"restart" doc:"Address of the admin listener. Port 0 selects a free port."`
	S3       string `key:"s3" default:"" takes:"host:port, with a port from 0 to 65535, unix:PATH, or nothing" change:"restart" doc:"Address of the S3 listener. Empty means no S3 interface. Its limits, time-outs and TLS are those of the public listener."`
	Insecure bool   `key:"insecure" default:"false" change:"restart" doc:"Permits listeners outside loopback without TLS."`
	TLS      TLS    `key:"tls" doc:"TLS of the listeners on TCP. Only TLS 1.3 is supported."`
	MaxConns int    `key:"max_conns" default:"8192" min:"1" max:"65536" change:"restart" doc:"Maximum connections of one listener. If it is reached, a connection without a request is closed for a new one: first one that has not completed a request header, then the longest idle one, and last one that has had a request with a valid API key. For its first 250ms, a new connection ranks after the idle ones. If every connection has a request, the new one is closed, unless its peer has less than a 32nd of all: then the peer with the most gives way, if it has a 32nd of all or more, with the connection accepted first of those without a valid key. The admin listener closes the one accepted first of those that never had a valid credential, even during a request. If the limit of open files is too low, it is lowered at the start."`

	MaxPeerConns int `key:"max_conns_per_peer" default:"0" min:"0" max:"65536" change:"hot" doc:"Maximum connections of one peer (an IPv4 address or an IPv6 /64 network). If it is reached, a connection of the peer is closed for a new one, by the same rule. 0 means a quarter of max_conns, at least 16. A peer has at most as many HTTP/2 requests, or those of one connection if that is more; a response counts until the client has taken it. Networks of http.trusted_proxies and unix sockets have no limit."`
}

// TLS has the certificate of the listeners.
type TLS struct {
	Cert    string `key:"cert" default:"" takes:"the path of a file, or nothing" change:"restart" doc:"PEM file of the certificate chain, the server certificate first. It is read again at each reload. Empty means no TLS."`
	Key     string `key:"key" default:"" takes:"the path of a file, or nothing" change:"restart" doc:"PEM file of the private key."`
	Quantum string `key:"post_quantum" default:"preferred" one:"preferred required" change:"restart" doc:"required rejects clients without post-quantum key agreement such as X25519MLKEM768; preferred uses it with clients that support it."`
	Admin   bool   `key:"admin" default:"false" change:"restart" doc:"Enables TLS on the admin listener."`
}

// Admin is the access to the admin listener. Probes need no credential. Other requests that are
// not on loopback need one: the token of run.json, that of TokenFile, or an API key with scope
// admin.
type Admin struct {
	Metrics   string   `key:"metrics" default:"key" one:"key open" change:"hot" doc:"Access to /metrics from outside loopback: key needs a credential, open needs none."`
	TokenFile string   `key:"token_file" default:"" takes:"the path of a file, or nothing" change:"hot" doc:"File with a token of at least 16 characters, accepted as Authorization: Bearer on the admin listener. It is read for each request, so it can be replaced while the node runs."`
	Hosts     []string `key:"hosts" default:"[]" form:"host" most:"32" takes:"host names" change:"hot" doc:"Host names accepted by the admin listener, besides localhost and IP addresses; *.example.com covers all names below it. Probes accept any name."`
}

// HTTP has the timeouts of the public listener.
type HTTP struct {
	HeaderTimeout   time.Duration  `key:"header_timeout" default:"5s" min:"1ms" max:"1m" change:"restart" doc:"Time limit for the header of a request."`
	ReadTimeout     time.Duration  `key:"read_timeout" default:"5s" min:"1ms" max:"5m" change:"restart" doc:"Time limit for a whole request, header included."`
	WriteTimeout    time.Duration  `key:"write_timeout" default:"5s" min:"1ms" max:"5m" change:"restart" doc:"Time limit for the client to read a response."`
	IdleTimeout     time.Duration  `key:"idle_timeout" default:"1m" min:"1ms" max:"1h" change:"restart" doc:"Time after which a connection without a request is closed."`
	HeaderBytes     Bytes          `key:"header_bytes" default:"16KiB" min:"4KiB" max:"64KiB" change:"restart" doc:"Maximum size of a request header."`
	Streams         int            `key:"streams" default:"100" min:"1" max:"1000" change:"restart" doc:"Maximum concurrent requests of one HTTP/2 connection. All connections together have at most listen.max_conns, those of one peer at most listen.max_conns_per_peer."`
	Window          Bytes          `key:"window_bytes" default:"64KiB" min:"64KiB" max:"2MiB" change:"restart" doc:"Flow-control window of an HTTP/2 request: bytes of its body in transit. A connection has this window for each of http.streams, so a body that is not read does not delay others. A larger window is faster over long distances and takes memory for each of listen.max_conns requests."`
	RequestDeadline time.Duration  `key:"request_deadline" default:"5s" min:"1ms" max:"1m" change:"restart" doc:"Time after which a request without an outcome gets 504 outcome_unknown."`
	TunnelIdle      time.Duration  `key:"tunnel_idle" default:"1m" min:"1s" max:"24h" change:"hot" doc:"Time without data after which a tunnel (such as a WebSocket) is closed."`
	TrustedProxies  []netip.Prefix `key:"trusted_proxies" default:"[]" most:"64" takes:"networks" change:"hot" doc:"Networks of proxies that set X-Forwarded-For. The header is ignored from all other senders."`
}

// Wallet is the ledger.
type Wallet struct {
	Limits      Limits      `key:"limits" doc:"Table sizes reserved at start, and limits on amounts. A tenant without a limit of its own leaves room: it gets another entry only while it has fewer than are left. So alone it gets half of a table."`
	Idempotency Idempotency `key:"idempotency" doc:"Retention of idempotency keys."`
}

// Limits are the numbers of rows and the amount limits of the ledger.
type Limits struct {
	Accounts       int          `key:"accounts" default:"1000000" min:"1" max:"100000000" change:"restart" doc:"Maximum accounts of all tenants."`
	Holdings       int          `key:"holdings" default:"2000000" min:"1" max:"100000000" change:"restart" doc:"Maximum pairs of an account and an asset."`
	Assets         int          `key:"assets" default:"10000" min:"1" max:"1000000" change:"restart" doc:"Maximum assets of all tenants."`
	Tenants        int          `key:"tenants" default:"1000" min:"1" max:"1000000" change:"restart" doc:"Maximum tenants."`
	Holds          int          `key:"holds" default:"100000" min:"0" max:"100000000" change:"restart" doc:"Maximum active holds of all tenants."`
	TenantAccounts int          `key:"tenant_accounts" default:"0" min:"0" max:"100000000" change:"restart" doc:"Maximum accounts of one tenant. 0: it leaves room in wallet.limits.accounts."`
	TenantHoldings int          `key:"tenant_holdings" default:"0" min:"0" max:"100000000" change:"restart" doc:"Maximum holdings of one tenant. 0: it leaves room in wallet.limits.holdings."`
	TenantAssets   int          `key:"tenant_assets" default:"0" min:"0" max:"1000000" change:"restart" doc:"Maximum assets of one tenant. 0: it leaves room in wallet.limits.assets."`
	TenantHolds    int          `key:"tenant_holds" default:"0" min:"0" max:"100000000" change:"restart" doc:"Maximum active holds of one tenant. 0: it leaves room in wallet.limits.holds."`
	Amount         types.Amount `key:"max_amount" default:"100000000000000000000" min:"1" max:"170141183460469231731687303715884105727" change:"restart" doc:"Maximum amount of one operation, in minor units."`
	Day            types.Amount `key:"max_daily_debit" default:"10000000000000000000000" min:"1" max:"170141183460469231731687303715884105727" change:"restart" doc:"Maximum amount of one asset that can leave one account in a UTC day, in minor units. What is held of the account counts as well, until its hold ends. So this limit never rejects a capture."`
	IssueDay       types.Amount `key:"max_daily_issue" default:"=wallet.limits.max_daily_debit" min:"1" max:"170141183460469231731687303715884105727" change:"restart" doc:"Maximum amount of one asset that can be issued in a UTC day, in minor units."`
}

// Idempotency is the window of keys.
type Idempotency struct {
	TTL   time.Duration `key:"ttl" default:"24h" min:"1m" max:"72h" change:"restart" doc:"Time that an idempotency key is kept after its outcome. A key is never removed earlier."`
	Keys  int           `key:"keys" default:"1000000" min:"1" max:"100000000" change:"restart" doc:"Maximum keys and refs in memory. The index has older ones. Usage events use at most three quarters; a request has at most a quarter of them."`
	Share int           `key:"max_keys_per_tenant" default:"=wallet.idempotency.keys" min:"1" max:"100000000" change:"restart" doc:"Maximum keys and refs of one tenant in memory. Usage events use at most three quarters."`
}

// Storage has the limits of objects, and the default quotas of a tenant.
type Storage struct {
	Objects       int           `key:"objects" default:"65536" min:"1" max:"100000000" change:"restart" doc:"Maximum distinct objects of all tenants."`
	Holdings      int           `key:"holdings" default:"=storage.objects" min:"1" max:"100000000" change:"restart" doc:"Maximum pairs of a bucket and the name of an object."`
	Buckets       int           `key:"buckets" default:"4096" min:"2" max:"1000000" change:"restart" doc:"Maximum buckets of all tenants."`
	TenantBuckets int           `key:"tenant_buckets" default:"0" min:"0" max:"1000000" change:"restart" doc:"Maximum buckets of one tenant. 0: it leaves room in storage.buckets."`
	TenantBytes   Bytes         `key:"tenant_bytes" default:"1024GiB" min:"1KiB" max:"1048576GiB" change:"restart" doc:"Storage quota of a tenant in bytes. An object counts in each bucket that holds it."`
	TenantObjects int           `key:"tenant_objects" default:"0" min:"0" max:"100000000" change:"restart" doc:"Storage quota of a tenant in objects. 0: it leaves room in storage.objects and storage.holdings."`
	BucketBytes   Bytes         `key:"bucket_bytes" default:"=storage.tenant_bytes" min:"1KiB" max:"1048576GiB" change:"restart" doc:"Storage quota of a bucket in bytes."`
	BucketObjects int           `key:"bucket_objects" default:"=storage.objects" min:"1" max:"100000000" change:"restart" doc:"Storage quota of a bucket in objects."`
	Providers     []Provider    `key:"providers" default:"[]" most:"16" takes:"providers" change:"restart" doc:"Directories and buckets that keep the objects, each directory best on a disk of its own. Not set: the directory objects in the data directory."`
	Copies        int           `key:"copies" default:"0" min:"0" max:"16" change:"restart" doc:"Copies of each object, each in another failure domain. 0 means 2 if there are two failure domains, else 1; with storage.coding, one more than parity shards."`
	Required      int           `key:"copies_required" default:"1" min:"1" max:"16" change:"restart" doc:"Copies that must be durable before an upload is acknowledged. The others are written again later if their provider fails. Of an object with shards (storage.coding), all data shards and as many more."`
	Coding        string        `key:"coding" default:"" takes:"the numbers of data and parity shards, such as 6+3, or nothing" change:"restart" doc:"Reed-Solomon code of new objects that are larger than a stripe, which is 64 KiB for each data shard: instead of copies they have shards, each in another failure domain. As many of them may be lost as there are parity shards. Empty means that all objects have copies."`
	Repair        Repair        `key:"repair" doc:"Restoring missing and damaged copies."`
	Scrub         Scrub         `key:"scrub" doc:"Reading all copies to find damaged ones."`
	Price         Price         `key:"price" doc:"What a write of an object costs. Writes are free unless per_mib is set."`
	S3            S3            `key:"s3" doc:"The S3 interface."`
	Parts         Parts         `key:"multipart" doc:"Uploads in parts: those of the S3 interface, and resumable ones."`
	Uploads       int           `key:"uploads" default:"64" min:"1" max:"4096" change:"restart" doc:"Maximum concurrent uploads. A tenant leaves room for others: it has at most half. An upload with an unknown outcome counts until the next start."`
	Collect       time.Duration `key:"collect_interval" default:"1m" min:"10ms" max:"24h" change:"restart" doc:"Time between two removals of files that no object needs. They are also removed soon after a start, and when uploads have used a quarter of the space."`
}

// A Provider is a directory or a bucket that keeps copies of objects. Load sets Domain, and Region of a bucket.
type Provider struct {
	Name     string `key:"name" form:"label" need:"yes" doc:"Name of the provider. It decides which objects the provider gets, so it must not change."`
	Path     string `key:"path" form:"directory" either:"path or endpoint" doc:"Path of the directory. A relative path begins in the data directory."`
	Endpoint string `key:"endpoint" form:"url" either:"path or endpoint" doc:"URL of an S3 server, instead of path. Its bucket must support conditional writes (If-None-Match), else the start is refused."`
	Region   string `key:"region" form:"label" doc:"Region of the bucket. Default: us-east-1."`
	Bucket   string `key:"bucket" form:"bucket" doc:"Bucket, which must exist. A provider with an endpoint needs it."`
	Prefix   string `key:"prefix" form:"key prefix" doc:"Begin of the keys in the bucket; a slash follows it. Default: none."`
	Secret   string `key:"credentials_file" form:"file" doc:"File with the ID of the access key in its first line and the secret key in its second. A provider with an endpoint needs it. It is read for each request, so it can be replaced while the node runs."`
	CA       string `key:"ca_file" form:"file" doc:"File with the certificates in PEM that the server of an https endpoint is verified with. Default: those of the system."`
	Weight   int    `key:"weight" default:"1" min:"1" max:"1048576" doc:"Share of the objects, compared with the weights of the others."`
	Domain   string `key:"failure_domain" form:"label" doc:"Providers that may fail together have the same one: no two copies of an object are in it. Default: the name."`
}

// Repair is the pace of repairs and scrubs.
type Repair struct {
	Interval time.Duration `key:"interval" default:"10m" min:"10ms" max:"168h" change:"restart" doc:"Time between two searches for missing copies. They compare names of files and read no content."`
	Rate     Bytes         `key:"rate" default:"50MiB" min:"64KiB" max:"1024GiB" change:"restart" doc:"Bytes per second that repairs and scrubs read, all together."`
	Burst    Bytes         `key:"burst" default:"8MiB" min:"128KiB" max:"1024GiB" change:"restart" doc:"Bytes that repairs and scrubs may read at once after a pause."`
	Workers  int           `key:"workers" default:"2" min:"1" max:"16" change:"restart" doc:"Copies that are restored at the same time."`
}

// Scrub is when all copies are read.
type Scrub struct {
	Interval time.Duration `key:"interval" default:"168h" min:"1s" max:"8760h" change:"restart" doc:"Time between the end of a scrub, or the start of the node, and the next scrub."`
}

// Usage has the limits and the windows of accounting.
type Usage struct {
	Rows       int           `key:"rows" default:"200000" min:"1" max:"10000000" change:"restart" doc:"Maximum rows of usage that are not sealed, of all tenants: pairs of a series and a window. Usage events use at most three quarters."`
	TenantRows int           `key:"max_rows_per_tenant" default:"0" min:"0" max:"10000000" change:"restart" doc:"Maximum rows of usage of one tenant that are not sealed. Usage events use at most three quarters. 0: it leaves room in accounting.rows."`
	Streams    int           `key:"streams" default:"16384" min:"1" max:"10000000" change:"restart" doc:"Maximum dimensions of all tenants that ever had usage."`
	TenantDims int           `key:"max_dimensions_per_tenant" default:"64" min:"1" max:"10000" change:"restart" doc:"Maximum dimensions of one tenant that ever had usage. Requests that the node meters are recorded also beyond it."`
	Window     time.Duration `key:"window" default:"5m" min:"1s" max:"1h" change:"restart" doc:"Length of a window. Windows begin at multiples of it since 1970, in UTC. Below 1m is for tests: each window costs a slice for each dimension with usage."`
	Grace      time.Duration `key:"grace" default:"10s" min:"0s" max:"5m" change:"restart" doc:"Time after the end of a window until it is sealed. Events that come later are in a correction."`
	Metered    bool          `key:"meter_requests" default:"false" change:"restart" doc:"Whether the node counts the requests that it serves as usage of the tenant of their API key: requests, bytes_in and bytes_out, by service, method and route."`
	Flush      time.Duration `key:"flush_interval" default:"1s" min:"100ms" max:"1m" change:"restart" doc:"Time between two records of metered requests. A crash loses what was counted since the last one."`
	Prices     []UsagePrice  `key:"prices" default:"[]" most:"64" takes:"prices" change:"hot" doc:"What usage costs. macronode usage invoice, bundle and charge read it. Each price that matches usage applies."`

	Prepaid []PrepaidTenant `key:"prepaid" default:"[]" most:"256" takes:"tenants" change:"hot" doc:"Tenants that pay for usage as it is recorded, by accounting.prices. If the available balance is less than the price, usage events are not recorded, and requests to objects and upstreams that the node meters are not served."`
	Lines   int             `key:"max_prepaid_lines" default:"8192" min:"1" max:"10000000" change:"restart" doc:"Maximum lines of prepaid usage of all tenants: pairs of a price and a calendar month. A line ends 36 days after its month."`
}

// Price is what a write of an object costs.
type Price struct {
	PerMiB      int           `key:"per_mib" default:"0" min:"0" max:"1000000000000" change:"restart" doc:"Minor units of the asset for each started MiB of an object, at least one. They are reserved before the body is read. 0 means free."`
	Asset       string        `key:"asset" default:"" takes:"the name of an asset, or nothing" change:"restart" doc:"Asset of the price, for example EUR/2."`
	Payer       string        `key:"payer" default:"storage:prepaid" takes:"the name of an account" change:"restart" doc:"Account of the tenant that pays."`
	Beneficiary string        `key:"beneficiary" default:"storage:revenue" takes:"the name of an account" change:"restart" doc:"Account of the tenant that is credited."`
	HoldTTL     time.Duration `key:"hold_ttl" default:"6h" min:"1m" max:"720h" change:"restart" doc:"Time after which a write that a crash interrupted releases what it reserved. A longer upload is rejected with payment_expired."`
}

// S3 is how clients of S3 address the node.
type S3 struct {
	Region string `key:"region" default:"us-east-1" takes:"1 to 64 letters, digits and hyphens" change:"restart" doc:"Region of signatures and buckets."`
	Domain string `key:"domain" default:"" takes:"a host name, or nothing" change:"restart" doc:"If the host of a request is BUCKET.DOMAIN, it names the bucket. Empty means that buckets are named by the path alone."`
}

// Parts is the room of uploads in parts.
type Parts struct {
	Uploads       int           `key:"uploads" default:"1024" min:"1" max:"1000000" change:"restart" doc:"Maximum uploads in parts. An ended upload counts until its parts are removed."`
	TenantUploads int           `key:"tenant_uploads" default:"0" min:"0" max:"1000000" change:"restart" doc:"Maximum uploads in parts of one tenant. 0: it leaves room in storage.multipart.uploads."`
	Parts         int           `key:"parts" default:"=storage.objects" min:"1" max:"100000000" change:"restart" doc:"Maximum parts of all uploads."`
	TenantParts   int           `key:"tenant_parts" default:"0" min:"0" max:"100000000" change:"restart" doc:"Maximum parts of all uploads of one tenant. 0: it leaves room in storage.multipart.parts."`
	TTL           time.Duration `key:"ttl" default:"168h" min:"1m" max:"8760h" change:"restart" doc:"Time after which an upload that was not completed is aborted."`
}

// Journal is how the journal treats its disk.
type Journal struct {
	Reserve           Bytes         `key:"min_free_bytes" default:"256MiB" min:"64MiB" max:"1024GiB" change:"restart" doc:"Free disk space below which writes are rejected, so that recovery and drain have space. API keys can be revoked while an eighth of it is free. Uploads of objects are rejected below twice that, so that they stop before writes to the journal do."`
	Backlog           Bytes         `key:"max_unsynced_bytes" default:"8MiB" min:"4MiB" max:"1GiB" change:"restart" doc:"Maximum bytes decided but not yet durable. Beyond it writes are rejected."`
	Stall             time.Duration `key:"stall_threshold" default:"200ms" min:"1ms" max:"10s" change:"restart" doc:"Duration of a flush after which the node is degraded and rejects writes."`
	Fail              time.Duration `key:"sync_timeout" default:"30s" min:"10ms" max:"1m" change:"restart" doc:"Duration of a flush after which the journal has failed and a restart is needed."`
	Snapshot          Bytes         `key:"snapshot_interval_bytes" default:"64MiB" min:"1MiB" max:"64GiB" change:"restart" doc:"Bytes of journal after which a snapshot is written. A start reads only the journal after it."`
	Archive           string        `key:"archive" default:"" takes:"the path of a directory, or nothing" change:"restart" doc:"Directory to which old segments are moved, compressed. Empty keeps them in the data directory."`
	HeartbeatInterval time.Duration `key:"heartbeat_interval" default:"1s" min:"10ms" max:"1m" change:"restart" doc:"Idle time before a heartbeat frame is written."`
}

// Index is the views of the journal.
type Index struct {
	Cache  Bytes `key:"cache_bytes" default:"64MiB" min:"8MiB" max:"64GiB" change:"restart" doc:"Memory for cached blocks of index tables."`
	Frames int   `key:"memtable_frames" default:"200000" min:"100" max:"10000000" change:"restart" doc:"Frames kept in memory before they are written as one table."`
}

// Audit is the audit log.
type Audit struct {
	Size Bytes `key:"size_bytes" default:"64MiB" min:"1MiB" max:"16GiB" change:"restart" doc:"Size at which the audit log is rotated."`
	Keep int   `key:"max_files" default:"8" min:"1" max:"1000" change:"restart" doc:"Maximum rotated audit files that are kept."`
}

// Node has the deadlines of the node's phases.
type Node struct {
	Patience      time.Duration `key:"commit_timeout" default:"5s" min:"10ms" max:"1m" change:"restart" doc:"Time that a decided response waits for durability before it is answered 504 outcome_unknown."`
	StartDeadline time.Duration `key:"start_deadline" default:"30s" min:"1s" max:"10m" change:"restart" doc:"Time after which a start that is not ready is reported as start_timeout."`
	InFlight      int           `key:"in_flight" default:"512" min:"1" max:"65536" change:"restart" doc:"Maximum requests in progress in the core. A further request gets 429."`
	LameDuck      time.Duration `key:"lame_duck" default:"0s" min:"0s" max:"5m" change:"restart" doc:"Time during which the node still serves but reports that it is not ready."`
	Drain         time.Duration `key:"drain" default:"3s" min:"0s" max:"30m" change:"restart" doc:"Time for requests in progress to complete. Set it to the duration of the longest upload, download or tunnel that a stop must not abort. Whatever stops the process must wait longer than lame_duck, drain and abort together."`
	Abort         time.Duration `key:"abort" default:"1s" min:"0s" max:"5s" change:"restart" doc:"Time to abort the remaining requests."`
	TrustClock    bool          `key:"trust_clock" default:"false" change:"restart" doc:"Whether the machine's clock counts as synchronised, whatever the kernel reports. For machines that set their clock without telling the kernel, as some virtual machines do."`
}

// Queue is the fair queue for permits.
type Queue struct {
	Quantum Bytes         `key:"quantum_bytes" default:"64KiB" min:"4KiB" max:"1MiB" change:"hot" doc:"Bytes that a tenant or peer may use in one turn. If the instance quota is so slow that a round of turns would last longer than queue.max_wait, turns are shorter, down to one request."`
	MaxWait time.Duration `key:"max_wait" default:"25ms" min:"0s" max:"1s" change:"hot" doc:"Time that a request waits for a permit, at most a quarter of its deadline."`
	Pace    time.Duration `key:"max_pacing_delay" default:"1ms" min:"0s" max:"100ms" change:"hot" doc:"Time that a request may wait for the instance quota; a request that would wait longer is rejected at once. It applies to the class of least weight; a class with n times the weight may wait n times as long, up to queue.max_wait."`
	Weights Weights       `key:"weights" doc:"Share of each class."`
	Wallet  int           `key:"wallet" default:"256" min:"3" max:"65536" change:"restart" doc:"Maximum requests waiting for a permit of permits.wallet."`
	Query   int           `key:"query" default:"64" min:"3" max:"65536" change:"restart" doc:"Maximum requests waiting for a permit of permits.query."`
	Proxy   int           `key:"proxy" default:"192" min:"3" max:"65536" change:"restart" doc:"Maximum requests waiting for a permit of permits.proxy."`
	Streams int           `key:"streams" default:"64" min:"3" max:"65536" change:"restart" doc:"Maximum requests waiting for a permit of permits.streams."`
	Storage int           `key:"storage" default:"64" min:"3" max:"65536" change:"restart" doc:"Maximum requests waiting for a permit of permits.storage."`
	Class   int           `key:"class_share" default:"33" min:"1" max:"33" change:"hot" doc:"Percentage of each queue that one class may fill, at least one request. At most a third, so that two classes cannot exclude the third."`
	Flow    int           `key:"flow_share" default:"25" min:"1" max:"33" change:"hot" doc:"Percentage of each queue that one tenant, or one peer without a key, may fill, at least one request."`
}

// Weights are the weights of the classes in the fair queue.
type Weights struct {
	Internal int `key:"internal" default:"10" min:"0" max:"100" change:"hot" doc:"Weight of callers with an admin key. 0 rejects them."`
	Authed   int `key:"authed" default:"5" min:"0" max:"100" change:"hot" doc:"Weight of callers with any other key. 0 rejects them."`
	Anon     int `key:"anon" default:"1" min:"0" max:"100" change:"hot" doc:"Weight of callers without a key. 0 rejects them."`
}

// Permits are the limits of concurrent requests.
type Permits struct {
	Wallet   int           `key:"wallet" default:"=node.in_flight" min:"1" max:"65536" change:"restart" doc:"Concurrent requests that move money or read it from memory."`
	Query    int           `key:"query" default:"32" min:"1" max:"65536" change:"restart" doc:"Concurrent requests that read the index."`
	Proxy    int           `key:"proxy" default:"256" min:"1" max:"21845" change:"restart" doc:"Concurrent requests forwarded to upstreams, except those of permits.streams."`
	Streams  int           `key:"streams" default:"256" min:"1" max:"65536" change:"restart" doc:"Concurrent requests that wait or last: change streams, exports, reads with wait or min_seq, tunnels and event streams of upstreams."`
	Storage  int           `key:"storage" default:"128" min:"1" max:"65536" change:"restart" doc:"Concurrent uploads and downloads of objects. storage.uploads also limits the uploads."`
	Internal int           `key:"internal_share" default:"10" min:"0" max:"90" change:"restart" doc:"Percentage of each facet's permits reserved for admin keys."`
	Anon     int           `key:"anon_share" default:"50" min:"1" max:"100" change:"restart" doc:"Percentage of each facet's permits that callers without a key may hold together, at least one permit."`
	Flow     int           `key:"flow_share" default:"25" min:"1" max:"100" change:"hot" doc:"Percentage of each facet's permits that one tenant, or one peer without a key, may hold, at least one permit."`
	GiveWay  time.Duration `key:"give_way_after" default:"1s" min:"0s" max:"1m" change:"hot" doc:"Age at which a request without a key gives way, while such requests hold all their permits and one peer a 32nd or more. A peer that holds none waits so long, if its deadline is four times that. Then it gets the permit of the oldest request of the peer that holds the most, which gets 429 or is cut. The same time holds for [decompressors](how-to/put-a-gateway-in-front.md#decompress-request-bodies). 0s: never."`
}

// Rows are the numbers of subjects with their own quota counters.
type Rows struct {
	Peers int `key:"max_peers" default:"65536" min:"1" max:"1048576" change:"restart" doc:"Peers with their own counters. Further peers share one counter."`
}

// Log is the log for operators.
type Log struct {
	Level  string `key:"level" default:"info" one:"debug info warn error" change:"hot" doc:"Lowest level that is written."`
	Format string `key:"format" default:"text" one:"text json" change:"restart" doc:"Format of log lines."`
	Access bool   `key:"access" default:"false" change:"hot" doc:"Writes one line for each request, regardless of the level. Above 500 lines a second it samples, failures (5xx) separately, and reports how many lines it left out."`
}

// The largest frame fits into half of the smallest backlog: sweeps stop there.
const _ = uint(4<<20/2 - types.MaxFrame)
