// Package server runs a node: it builds the adapters around the core from a configuration, recovers the journal, and stops everything in order.
package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"macronode/adapters/config"
	"macronode/adapters/fs"
	"macronode/adapters/hostclock"
	"macronode/adapters/httpserver"
	"macronode/adapters/services"
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/settings"
	"macronode/core/event"
	"macronode/core/types"
)

// Serve runs a node. It returns nil when the node has drained, and an error if it cannot start or cannot continue.
func Serve(ctx context.Context, cfg *config.Config, o Options) error {
	limitMemory(settings.MemoryBound(cfg))
	start, warnOfFewFiles, err := startWithFiles(cfg)
	if err != nil {
		return exit.Unable(err)
	}
	s, err := newServer(cfg, start, o)
	if err != nil {
		return exit.Unable(err)
	}
	defer startAccessLog(s.accessLog)()
	first := s.applied.Load()
	first.publishEndpoints()
	s.reloader.applyLog(first)
	s.reloader.logWarnings(cfg)
	s.reloader.nameSeries(first)
	s.services = services.New(o.Log, func(e event.Event) { s.inbox.send(ctx, e) })
	if err := httpserver.CheckAddresses(ctx, s.listeners.addresses()...); err != nil {
		return exit.Unable(err)
	}
	dir, err := fs.Make(s.start.Data)
	if err != nil {
		return exit.Unable(err)
	}
	lock, err := fs.Lock(dir, o.Version)
	if err != nil {
		return exit.Unable(err)
	}
	defer lock.Close() //nolint:errcheck // the lock ends with the process at the latest
	if err := s.openDirectory(ctx, dir, lock); err != nil {
		return exit.Unable(err)
	}
	defer s.objects.files.Release()
	warnOfFewFiles(s.log)
	if err := s.openS3(); err != nil {
		return exit.Unable(err)
	}
	s.addServices()
	addStartGauges(s)
	addUpstreamSeries(s)
	for _, c := range listenerServices {
		s.services.Do(event.ServiceCommand{Service: c, Verb: event.StartService})
	}
	err = s.run(ctx)
	s.stop()
	return err
}

// run recovers the journal, runs the loop, and closes the journal.
func (s *Server) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go s.options.Signals.Run(ctx, s.log, os.Stderr, func(e event.Event) { s.inbox.send(ctx, e) }, s.reloader.request) //nolint:errcheck // it ends with ctx
	st, found, err := s.store.recover()
	if errors.Is(err, errEndRequested) {
		s.log.Info("ended", "reason", err)
		return nil
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%w: free space or inodes on the disk of %s and start again; nothing is lost", err, s.store.segmentsDir())
	}
	if err != nil {
		return exit.Unable(err)
	}
	s.dispatcher.Index = s.index
	running := s.newLoop(st)
	addJournalGauges(s, running)
	s.objects.addGauges(&s.gauges)
	s.samplePlanes()
	s.exports.addGauges()
	checked := warnOfSlowDisk(s.start.Providers, s.log)
	err = s.objects.recover()
	checked()
	if err != nil {
		return exit.Unable(err)
	}
	if err := s.exports.claim(); err != nil {
		return exit.Unable(err)
	}
	s.inbox.attach(ctx, running)
	go s.bootstrap().run(ctx, found.Damaged)
	s.applied.Load().start(ctx)
	go s.reloader.run(ctx)
	go s.objects.runCollector(ctx)
	var working background
	working.run(ctx, "repairs of objects", s.objects.repairs.Run)
	working.run(ctx, "exports", s.exports.Run)
	go watchdog(ctx, s.log, s.loopAdvances()) //nolint:errcheck // it ends with ctx
	announcing, hush := context.WithCancel(ctx)
	var announced sync.WaitGroup
	announced.Go(func() { s.announce(announcing) })
	began := time.Now()
	err = running.Run(ctx, event.Recovered{Recovery: found, Commands: s.exports.begins()})
	hush()
	announced.Wait() // so that "ready" is not logged after "ended"
	status := running.Status()
	s.log.Info("ended", "finished", status.Report.Finished, "refused", status.Report.Rejected, "aborted", status.Report.Aborted,
		"durable", uint64(status.Durable), "last", uint64(status.LSN), "lived", time.Since(began).Round(time.Millisecond), "err", err)
	if err == nil {
		s.options.Drained(status)
	}
	err = errors.Join(err, s.store.close())
	stop()
	return errors.Join(err, working.wait(s.log))
}

// stop stops the services, the admin listener last.
func (s *Server) stop() {
	notifyStopping(s.log)
	ctx, stop := context.WithTimeout(context.Background(), 3*time.Second)
	defer stop()
	for _, c := range []types.Service{types.ServiceHTTP, types.ServiceSampler, types.ServiceSnapshots} {
		s.services.Do(event.ServiceCommand{Service: c, Verb: event.KillService})
	}
	writers := []types.Service{types.ServiceIndex, types.ServiceAudit}
	for _, c := range writers {
		s.services.Do(event.ServiceCommand{Service: c, Verb: event.StopService})
	}
	soon, enough := context.WithTimeout(ctx, time.Second)
	defer enough()
	if err := s.services.Wait(soon, writers...); err != nil {
		s.log.Warn("background service did not stop: unwritten index data is rebuilt at the next start", "err", err)
	}
	s.runFile.remove()
	s.services.Do(event.ServiceCommand{Service: types.ServiceAdmin, Verb: event.StopService})
	if err := s.services.Wait(ctx); err != nil {
		s.log.Error("service did not stop in time", "err", err)
	}
}

// announce waits until the node is ready, and then logs it once.
func (s *Server) announce(ctx context.Context) {
	for wait := 5 * time.Millisecond; !s.inbox.status().Ready; wait = min(2*wait, time.Second) {
		if hostclock.Sleep(ctx, wait) != nil {
			return
		}
	}
	run := s.runFile.contents()
	s.announced.Store(true)
	listeners := []any{"http", run.Listen.HTTP, "admin", run.Listen.Admin}
	if run.Listen.S3 != "" {
		listeners = append(listeners, "s3", run.Listen.S3)
	}
	s.log.Info("ready", append(listeners, "data", string(s.store.dir))...)
	notifyReady(s.log)
	s.options.Ready(run)
}

// loopAdvances returns a function that reports whether the loop has made a step since its last call.
func (s *Server) loopAdvances() func() bool {
	var last types.Time
	return func() bool {
		at := s.inbox.status().At
		moved := at != last
		last = at
		return moved
	}
}
