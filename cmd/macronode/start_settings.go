package main

import (
	"time"

	"macronode/adapters/audit"
	"macronode/adapters/config"
	"macronode/adapters/httpserver"
	"macronode/adapters/index"
	"macronode/adapters/loop"
	"macronode/adapters/objectstore"
	"macronode/core/node"
	"macronode/core/storage"
)

// startSettings are the settings that the core and the adapters receive at a start and keep
// until the node ends. They depend on the configuration alone. The settings that a reload
// replaces are reloadSettings. No other code reads keys of the configuration of a running node.
type startSettings struct {
	data string // directory of the node

	core       node.Config // without the policy, which reloadSettings have
	dispatcher dispatcherSettings
	listeners  listenerSettings
	index      indexSettings
	audit      audit.Limits
	storage    storage.Limits
	objects    objectstore.Limits
	collect    time.Duration // between two collections of unused files of objects
	snapshot   int64         // bytes of journal between two snapshots
	archive    string
	deadline   time.Duration // of a request of the node's own API
	waiters    int           // reads that wait for a movement
	logJSON    bool
}

// dispatcherSettings are the capacities of loop.Desk.
type dispatcherSettings struct {
	work      loop.Door // requests that are in the core
	admission loop.Door // requests that are admitted or wait for it
	upstream  int       // requests that are with upstreams
}

// listenerSettings are those of both listeners. Their TLS is set when the certificate is read.
type listenerSettings struct {
	public, admin httpserver.Config
	tls           tlsSettings
	insecureAdmin bool // the admin API may be served without TLS beyond loopback
}

// tlsSettings are where the certificate is, and which listeners use it.
type tlsSettings struct {
	cert, key   string // files; no cert is no TLS
	postQuantum bool   // a client must know a post-quantum key exchange
	admin       bool   // the admin listener uses TLS as well
}

// indexSettings are those of the index of the journal.
type indexSettings struct {
	limits index.Limits
	ttl    time.Duration // of idempotency keys
}

// newStartSettings translates a configuration.
func newStartSettings(c *config.Config) startSettings {
	return startSettings{
		data: c.Data, core: nodeConfig(c),
		dispatcher: dispatcherSettings{work: door(c), admission: passes(c), upstream: calls(c)},
		listeners: listenerSettings{public: publicListener(c), admin: adminListener(c), tls: newTLSSettings(c),
			insecureAdmin: c.Listen.Insecure && !c.Listen.TLS.Admin},
		index:   indexSettings{limits: indexLimits(c), ttl: c.Wallet.Idempotency.TTL},
		storage: storageLimits(c), objects: objectFileLimits(c), collect: c.Storage.Collect,
		audit: auditLimits(c), snapshot: int64(c.Journal.Snapshot), archive: c.Journal.Archive,
		deadline: c.HTTP.RequestDeadline, waiters: waiters(c), logJSON: isJSON(c.Log),
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
	s.Request = time.Minute // a profile takes its time
	s.Grace, s.Finish = 0, time.Second
	return s
}

// newTLSSettings returns the settings of TLS.
func newTLSSettings(c *config.Config) tlsSettings {
	t := &c.Listen.TLS
	return tlsSettings{cert: t.Cert, key: t.Key, postQuantum: t.Quantum == "required", admin: t.Admin}
}

// settings returns the settings that the node was started with.
func (l *life) settings() startSettings { return newStartSettings(l.config) }

func (l *life) publicServer() httpserver.Config {
	s := l.settings().listeners.public
	s.TLS = l.tls
	return s
}

func (l *life) adminServer() httpserver.Config {
	s := l.settings().listeners
	if s.tls.admin {
		s.admin.TLS = l.tls
	}
	return s.admin
}
