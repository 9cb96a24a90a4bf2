package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"macronode/adapters/accesslog"
	"macronode/adapters/audit"
	"macronode/adapters/config"
	"macronode/adapters/decisions"
	"macronode/adapters/fs"
	"macronode/adapters/hostclock"
	"macronode/adapters/httpapi"
	"macronode/adapters/index"
	"macronode/adapters/loop"
	"macronode/adapters/metering"
	"macronode/adapters/metrics"
	"macronode/adapters/nodedir"
	"macronode/adapters/proxy"
	"macronode/adapters/services"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/settings"
	"macronode/core/event"
	"macronode/core/gateway/policycheck"
	"macronode/core/lifecycle/readiness"
	"macronode/core/node"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

// Server is one run of a node. It creates the parts, and starts and stops them in order.
//
//	newServer ─► openDirectory ─► listeners ─► recovery ─► loop ─► bootstrap key ─► ready … drained ─► journal closed ─► admin listener closed
type Server struct {
	options   Options
	start     settings.Start
	startedAt types.Instant
	log       *slog.Logger

	inbox        eventInbox
	clock        hostclock.Clock
	metrics      *metrics.Metrics
	gauges       queueGauges
	dispatcher   *loop.Dispatcher
	decisions    *decisions.Ring
	accessLog    *accesslog.Log
	health       endpointHealth
	sink         decisionSink
	builder      configBuilder
	applied      currentConfig
	reloader     reloader
	certificates certificates
	listeners    listeners
	runFile      runFile
	services     *services.Set
	apiOnce      sync.Once                   // makes api
	api          atomic.Pointer[httpapi.API] // nil: no listener of it has started
	announced    atomic.Bool                 // the log says that the node is ready

	// Set by openDirectory.
	store    *journalStore
	objects  *objectFiles
	exports  *exports
	index    *index.Indexer
	metering *metering.Recorder // nil: requests are not metered
	audit    *audit.Log
	s3       s3Interface
}

// newServer returns a server with the first configuration, and what it starts with. It reads the files that the configuration names, and touches nothing else.
func newServer(cfg *config.Config, start settings.Start, o Options) (*Server, error) {
	s := &Server{options: o, start: start, startedAt: hostclock.Mono(), log: o.Log}
	s.clock.Trusted = s.start.TrustClock
	s.inbox.readiness = readiness.New(s.startedAt, s.start.Core.StartTimeout, s.start.Core.AwaitedUpstreams)
	s.metrics = metrics.New(s.inbox.status, settings.Planes().Entries()...)
	s.gauges.metrics = s.metrics
	slots := s.start.Dispatcher
	s.dispatcher, s.decisions = loop.NewDispatcher(slots.Work, slots.Admission, slots.Upstream), decisions.New()
	s.accessLog = accesslog.New(o.Log.Handler())
	s.health.applied, s.health.inbox, s.health.dispatcher, s.health.log = &s.applied, &s.inbox, s.dispatcher, o.Log
	s.sink = decisionSink{decisions: s.decisions, accessLog: s.accessLog, metrics: s.metrics, health: &s.health}
	s.builder = configBuilder{conns: proxy.NewConns(s.start.Upstreams), tunnels: proxy.NewTunnels(), inflaters: proxy.NewInflaters(), dispatcher: s.dispatcher, inbox: &s.inbox, health: &s.health, log: o.Log}
	first, err := s.builder.build(cfg, &appliedConfig{})
	if err != nil {
		return nil, err
	}
	s.applied.Store(first)
	s.certificates = certificates{tls: settings.NewTLS(cfg, first.certificate), settings: s.start.Listeners.TLS, runFile: &s.runFile, log: o.Log}
	s.runFile.log = o.Log
	s.runFile.info = nodedir.Run{PID: os.Getpid(), Version: o.Version, Token: rand.Text()}
	s.runFile.info.Listen.TLS = s.certificates.ofRunFile()
	s.listeners = listeners{settings: s.start.Listeners, certificates: &s.certificates, applied: &s.applied, metrics: s.metrics, runFile: &s.runFile, log: o.Log}
	s.reloader.load, s.reloader.wanted = o.Load, make(chan struct{}, 1)
	s.reloader.simulate = policycheck.Change
	s.reloader.core, s.reloader.applied, s.reloader.builder, s.reloader.inbox = s.start.Core, &s.applied, &s.builder, &s.inbox
	s.reloader.certificates, s.reloader.metrics, s.reloader.api = &s.certificates, s.metrics, &s.api
	s.reloader.accessLog, s.reloader.level, s.reloader.log = s.accessLog, o.Level, o.Log
	s.reloader.start(first)
	return s, nil
}

// openDirectory creates the parts that work in the data directory. None of them reads or writes before the recovery.
func (s *Server) openDirectory(ctx context.Context, dir fs.Dir, lock *fs.Held) error {
	s.runFile.dir = dir
	s.store = newJournalStore(dir, lock, s.start, &s.inbox, s.metrics, s.log)
	s.objects = newObjectFiles(s.start, s.store, &s.inbox, s.metrics, s.log)
	s.objects.holder = fmt.Sprintf("a node with the data directory %s, %s", dir, s.options.Version)
	s.metering = s.newMetering()
	s.audit = audit.New(string(dir), s.start.Audit, s.log)
	s.index = index.New(index.Config{Dir: filepath.Join(string(dir), datadir.Index), TTL: s.start.Index.TTL, Log: s.log,
		Limits:  s.start.Index.Limits,
		Journal: s.store,
		Views:   settings.Planes().Views(),
		Indexed: func(upto types.LSN) { s.inbox.send(ctx, event.Indexed{Upto: upto}) },
		Aged:    func() bool { return s.inbox.status().MayHaveForgotten },
	})
	var err error
	s.exports, err = newExports(s.start, s.applied.Load().Sinks, s.store, s.index, s.dispatcher, s.metrics, s.log)
	s.reloader.exports = s.exports
	return err
}

// bootstrap returns what enrols the first API key.
func (s *Server) bootstrap() bootstrap {
	return bootstrap{dir: s.store.dir, readModel: s.store.readModel, dispatcher: s.dispatcher, metrics: s.metrics, log: s.log}
}

// newLoop returns the loop around a core with the recovered state.
func (s *Server) newLoop(st state.State) *loop.Loop {
	n := node.New(s.start.Core.WithPolicy(&s.applied.Load().Policy), st, s.startedAt, types.NewRand(datadir.Random64()))
	return loop.New(n, &s.clock, s.store.journal, s.dispatcher, loop.Ports{Fold: s.foldDurable, ServiceCommand: s.doService,
		ClassifyFault: s.store.fault, Flush: s.metrics.Flushed}, s.dispatcher.Size())
}

// foldDurable passes durable frames to the read model and then to the index.
func (s *Server) foldDurable(batch []record.Sealed) error {
	if err := s.store.readModel.Fold(batch); err != nil {
		return err
	}
	s.index.Offer(batch)
	return nil
}

// addServices adds what the supervisor in the core starts and stops.
func (s *Server) addServices() {
	sample := &sampler{clock: &s.clock, store: s.store, inbox: &s.inbox, applied: &s.applied, certificates: &s.certificates,
		announced: &s.announced, minFreeBytes: s.start.Core.MinFreeBytes, log: s.log}
	s.services.Add(types.ServiceSampler, sample.run)
	s.services.Add(types.ServiceIndex, s.runIndex)
	s.services.Add(types.ServiceSnapshots, snapshotKeeper{s.store, s.start, &s.inbox, s.log}.run)
	s.services.Add(types.ServiceAudit, func(ctx context.Context, up func()) error {
		up()
		return s.audit.Run(ctx)
	})
	s.services.Add(types.ServiceAdmin, s.listeners.service(s.listeners.admin(), s.gauges.adminListener(), s.adminHandler, func(r *nodedir.Run) *string { return &r.Listen.Admin }, func(context.Context) {}))
	public := s.listeners.service(s.listeners.public(), s.gauges.publicListener(), s.publicHandler, func(r *nodedir.Run) *string { return &r.Listen.HTTP }, s.drainTunnels)
	s.services.Add(types.ServiceHTTP, s.metered(together(public, append(s.s3Listener(), s.exports.untilDrained()...)...)))
}

// doService carries out a command of the supervisor. The listeners have started before the core: their first start is skipped.
func (s *Server) doService(op event.ServiceCommand) {
	if op.Verb == event.StartService && slices.Contains(listenerServices[:], op.Service) {
		if early := s.services.Counts(op.Service); early.Started == 1 && early.Died == 0 {
			return
		}
	}
	s.services.Do(op)
}

// runIndex is the work of the index service.
func (s *Server) runIndex(ctx context.Context, up func()) error {
	if !s.store.indexUsable() {
		<-ctx.Done()
		return nil
	}
	return s.index.RunNotify(ctx, up)
}

// drainTunnels waits for open tunnels and then closes them. It ends a little before the time of the listener is over, so that a tunnel is logged once and
// as a tunnel.
func (s *Server) drainTunnels(hard context.Context) {
	ctx, stop := context.WithTimeout(hard, s.listeners.public().Finish)
	defer stop()
	if cut := s.builder.tunnels.Drain(ctx); cut > 0 {
		s.log.Warn("tunnels closed by shutdown", "tunnels", cut)
	}
	s.applied.Load().closeIdle()
}
