package settings

import (
	"macronode/core/accounting"
	"time"

	"macronode/adapters/audit"
	"macronode/adapters/config"
	"macronode/adapters/httpserver"
	"macronode/adapters/index"
	"macronode/adapters/loop"
	"macronode/adapters/objectstore"
	"macronode/core/export"
	"macronode/core/node"
	"macronode/core/storage"
)

// Start are the settings that the core and the adapters get at a start and keep until the node ends. They depend
// on the configuration alone. The settings that a reload replaces are in Reload. No other code reads keys of the
// configuration of a running node.
type Start struct {
	Data string // directory of the node

	Core       node.Config // without the policy, which Reload has
	TrustClock bool        // the machine's clock counts as synchronised
	Dispatcher Dispatcher
	Listeners  Listeners
	Upstreams  int // connections to all of them
	Index      Index
	Audit      audit.Limits
	Storage    storage.Limits
	Usage      accounting.Limits
	Flush      time.Duration // between two records of metered requests, and two payments of arrears
	Metered    bool          // requests are metered
	Objects    objectstore.Limits
	Providers  []Provider
	Copies     objectstore.Copies
	Repair     Repair
	Exports    export.Limits
	S3         config.S3
	Collect    time.Duration // between two collections of unused files of objects
	Snapshot   int64         // bytes of journal between two snapshots
	Archive    string
	Deadline   time.Duration // of a request of the node's own API
	Waiters    int           // reads that wait for a movement
	LogJSON    bool
}

// Dispatcher are the limits of loop.Dispatcher.
type Dispatcher struct {
	Work      loop.ClassLimits // requests that are in the core
	Admission loop.ClassLimits // requests that are admitted or wait for it
	Upstream  int              // requests that are with upstreams
}

// Listeners are those of the listeners. Their TLS is set when the certificate is read.
type Listeners struct {
	Public, Admin httpserver.Config
	S3            string // its address; empty: there is none. Otherwise it is like Public
	TLS           TLS
	InsecureAdmin bool // the admin API may be served without TLS beyond loopback
}

// TLS are where the certificate is, and which listeners use it.
type TLS struct {
	Cert, Key   string // files; no cert is no TLS
	PostQuantum bool   // a client must know a post-quantum key exchange
	Admin       bool   // the admin listener uses TLS as well
}

// Index are those of the index of the journal.
type Index struct {
	Limits index.Limits
	TTL    time.Duration // of idempotency keys
}

// NewStart translates a configuration.
func NewStart(c *config.Config) Start {
	files := FilesOf(c)
	return Start{
		Data: c.Data, Upstreams: files.Proxy.Most, Core: nodeConfig(c), TrustClock: c.Node.TrustClock,
		Dispatcher: Dispatcher{Work: workLimits(c), Admission: admissionSlots(c), Upstream: upstreamCalls(c)},
		Listeners: Listeners{Public: publicListener(c), Admin: adminListener(c), TLS: tlsOf(c),
			S3: c.Listen.S3, InsecureAdmin: c.Listen.Insecure && !c.Listen.TLS.Admin},
		Index:   Index{Limits: indexLimits(c), TTL: c.Wallet.Idempotency.TTL},
		Storage: storageLimits(c), Usage: usageLimits(c), Flush: c.Usage.Flush, Metered: c.Usage.Metered, Objects: objectFileLimits(c),
		Providers: objectProviders(c), Copies: objectCopies(c), Repair: repairSettings(c), Exports: exportLimits(c), S3: c.Storage.S3, Collect: c.Storage.Collect,
		Audit: auditLimits(c), Snapshot: int64(c.Journal.Snapshot), Archive: c.Journal.Archive,
		Deadline: c.HTTP.RequestDeadline, Waiters: maxWaiters(c), LogJSON: LogsJSON(c.Log),
	}
}

// publicListener returns the settings of the public listener.
func publicListener(c *config.Config) httpserver.Config {
	h, s := &c.HTTP, httpserver.Default(c.Listen.HTTP)
	s.MaxConns = c.Listen.MaxConns
	s.MaxHeader = int(h.HeaderBytes)
	s.Streams = h.Streams
	s.Window = int(h.Window)
	s.Header = h.HeaderTimeout
	s.Read = h.ReadTimeout
	s.Write = h.WriteTimeout
	s.Idle = h.IdleTimeout
	s.Request = h.RequestDeadline
	s.Finish = max(0, c.Node.Drain-s.Grace-100*time.Millisecond) // before the drain ends, so that the listener itself reports what it cuts
	return s
}

// adminListener returns the settings of the admin listener.
func adminListener(c *config.Config) httpserver.Config {
	s := httpserver.Default(c.Listen.Admin)
	s.MaxConns = adminConns(c)
	s.KeyedFirst = true     // the operator gets in, however many callers without a credential there are
	s.Request = time.Minute // a profile takes its time
	s.Grace, s.Finish = 0, time.Second
	return s
}

// tlsOf returns the settings of TLS.
func tlsOf(c *config.Config) TLS {
	t := &c.Listen.TLS
	return TLS{Cert: t.Cert, Key: t.Key, PostQuantum: t.Quantum == "required", Admin: t.Admin}
}
