package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"macronode/adapters/config"
	"macronode/adapters/decisions"
	"macronode/adapters/fs"
	"macronode/adapters/hostclock"
	"macronode/adapters/httpapi"
	"macronode/adapters/httpserver"
	"macronode/adapters/loop"
	"macronode/adapters/metrics"
	"macronode/adapters/nodedir"
	"macronode/adapters/proxy"
	"macronode/adapters/services"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/lifecycle/readiness"
	"macronode/core/types"
)

// serve is one life of a node. It returns when the node has drained (nil), cannot
// start, or cannot go on.
func serve(ctx context.Context, cfg *config.Config, o options) error {
	l := &life{config: cfg, log: o.log, level: o.level, changes: newChanges(o.load), began: hostclock.Mono(), run: nodedir.Run{PID: os.Getpid(), Version: o.version, Token: rand.Text()}}
	limitMemory(memoryBound(cfg))
	is := l.settings()
	l.ear.start = readiness.New(l.began, is.core.StartTimeout, is.core.AwaitedUpstreams)
	l.metrics = metrics.New(l.ear.status)
	l.desk, l.decisions = loop.NewDesk(is.dispatcher.work, is.dispatcher.admission, is.dispatcher.upstream), decisions.New()
	l.tunnels, l.inflaters = proxy.NewTunnels(), proxy.NewInflaters()
	defer l.startAccess()()
	first, err := l.edit(cfg, &edition{})
	if err != nil {
		return cannot(err)
	}
	l.edition.Store(first)
	first.publish()
	l.applyLog(first)
	l.warn(cfg)
	l.tls = newTLS(cfg, first.shown)
	l.run.Listen.TLS = l.proves()
	l.changes.begin(first)
	l.nameCounted(first)
	l.children = services.New(o.log, func(e event.Event) { l.ear.say(ctx, e) })
	if err := httpserver.Free(ctx, is.listeners.public.Address, is.listeners.admin.Address); err != nil {
		return cannot(err)
	}
	dir, err := fs.Make(is.data)
	if err != nil {
		return cannot(err)
	}
	l.dir = dir
	l.audit, l.index = l.newAudit(), l.newIndex(ctx)
	l.follower = l.newFollower()
	lock, err := fs.Lock(dir, o.version)
	if err != nil {
		return cannot(err)
	}
	defer lock.Close() //nolint:errcheck // the lock ends with the process at the latest
	l.lock = lock
	l.objects = l.newObjects()
	l.addChildren()
	l.showDoor(o.signals)
	l.showUpstreams()
	for _, c := range listeners {
		l.children.Do(event.ServiceCommand{Service: c, Verb: event.StartService})
	}
	err = l.live(ctx, o)
	l.end()
	return err
}

// warn logs what of a configuration is probably not meant.
func (l *life) warn(c *config.Config) {
	for _, warning := range c.Warnings() {
		l.log.Warn("configuration", "warning", warning)
	}
}

// live is from the recovery to the last frame.
func (l *life) live(ctx context.Context, o options) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go o.signals.Run(ctx, l.log, os.Stderr, func(e event.Event) { l.ear.say(ctx, e) }, l.changes.want) //nolint:errcheck // it ends with ctx
	st, found, err := l.recover()
	if errors.Is(err, errEnded) {
		l.log.Info("ended", "reason", err)
		return nil
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%w: free space on the disk of %s and start again; nothing is lost", err, l.segments())
	}
	if err != nil {
		return cannot(err)
	}
	l.desk.Index = l.index
	running := l.node(st)
	l.showBooks(running)
	l.showObjects()
	if err := l.recoverObjects(); err != nil {
		return cannot(err)
	}
	l.ear.hear(ctx, running)
	go l.enrol(ctx, found.Damaged)
	l.edition.Load().run(ctx)
	go l.reloads(ctx)
	go l.collectObjects(ctx)
	go watchdog(ctx, l.log, l.turns()) //nolint:errcheck // the same
	announcing, hush := context.WithCancel(ctx)
	var announced sync.WaitGroup
	announced.Go(func() { l.announce(announcing, o) })
	began := time.Now()
	err = running.Run(ctx, event.Recovered{Recovery: found})
	hush()
	announced.Wait() // "ready" does not come behind "drained", nor in the middle of it
	s := running.Status()
	l.log.Info("ended", "finished", s.Report.Finished, "refused", s.Report.Rejected, "aborted", s.Report.Aborted,
		"durable", uint64(s.Durable), "last", uint64(s.LSN), "lived", time.Since(began).Round(time.Millisecond), "err", err)
	if err == nil {
		o.drained(s)
	}
	if closed := l.journal.Close(); closed != nil {
		return errors.Join(err, closed)
	}
	l.keepDurable()
	return err
}

// end lets the rest of the shell go, the metrics listener last.
func (l *life) end() {
	notifyStopping(l.log)
	ctx, stop := context.WithTimeout(context.Background(), 3*time.Second)
	defer stop()
	for _, c := range []types.Service{types.ServiceHTTP, types.ServiceSampler, types.ServiceSnapshots} {
		l.children.Do(event.ServiceCommand{Service: c, Verb: event.KillService})
	}
	beside := []types.Service{types.ServiceIndex, types.ServiceAudit}
	for _, c := range beside {
		l.children.Do(event.ServiceCommand{Service: c, Verb: event.StopService})
	}
	soon, enough := context.WithTimeout(ctx, time.Second)
	defer enough()
	if err := l.children.Wait(soon, beside...); err != nil {
		l.log.Warn("background service did not stop: unwritten index data is rebuilt at the next start", "err", err)
	}
	l.unlist()
	l.children.Do(event.ServiceCommand{Service: types.ServiceAdmin, Verb: event.StopService})
	if err := l.children.Wait(ctx); err != nil {
		l.log.Error("service did not stop in time", "err", err)
	}
}

// announce says once that the node is ready.
func (l *life) announce(ctx context.Context, o options) {
	for wait := 5 * time.Millisecond; !l.ear.status().Ready; wait = min(2*wait, time.Second) {
		if sleep(ctx, wait) != nil {
			return
		}
	}
	l.mu.Lock()
	run := l.run
	l.mu.Unlock()
	l.announced.Store(true)
	l.log.Info("ready", "http", run.Listen.HTTP, "admin", run.Listen.Admin, "data", string(l.dir))
	notifyReady(l.log)
	o.ready(run)
}

// turns reports that the loop has turned since it was last asked.
func (l *life) turns() func() bool {
	var last types.Time
	return func() bool {
		at := l.ear.status().At
		moved := at != last
		last = at
		return moved
	}
}

// addChildren says what the parts of the shell do.
func (l *life) addChildren() {
	l.children.Add(types.ServiceSampler, l.sample)
	l.children.Add(types.ServiceIndex, l.indexes)
	l.children.Add(types.ServiceSnapshots, l.keep)
	l.children.Add(types.ServiceAudit, l.audits)
	l.children.Add(types.ServiceAdmin, l.listener(l.adminServer(), l.board.adminListener(), l.adminHandler, func(r *nodedir.Run) *string { return &r.Listen.Admin }, func(context.Context) {}))
	l.children.Add(types.ServiceHTTP, l.listener(l.publicServer(), l.board.publicListener(), l.publicHandler, func(r *nodedir.Run) *string { return &r.Listen.HTTP }, l.endBeyond))
}

// listener is the work of a child that listens. A port that was taken once, because
// any would do, is taken again. What ends beside it begins to when it does.
func (l *life) listener(c httpserver.Config, of listenerGauges, handler func() http.Handler, told func(*nodedir.Run) *string, beside func(context.Context)) services.Run {
	once := sync.OnceValue(handler)
	return func(ctx context.Context, up func()) error {
		hooks := l.listenerHooks(of)
		hooks.PeerShare = func(from netip.Addr) int { return l.edition.Load().peerShare(of.share, from) }
		hooks.Up = func(a net.Addr) {
			c.Address = reached(a)
			l.told(func(r *nodedir.Run) { *told(r) = reached(a) })
			up()
		}
		s := httpserver.New(c, once(), hooks, l.log)
		over := make(chan struct{})
		ends := context.AfterFunc(ctx, func() {
			defer close(over)
			s.Stop()
			beside(services.Hard(ctx))
		})
		err := s.Run(services.Hard(ctx))
		if !ends() {
			<-over
		}
		return err
	}
}

// listenerHooks count what happens at a listener.
func (l *life) listenerHooks(of listenerGauges) httpserver.Hooks {
	return httpserver.Hooks{Refused: l.metrics.Crowded, Smuggle: l.metrics.Smuggled, Greeted: func(g httpserver.Greeting) { l.metrics.Greeted(g.String()) },
		PeerRefused: l.metrics.PeerCrowded, IdleClosed: func(by httpserver.Bound) { l.metrics.IdleClosed(by.String()) },
		Open: func(by int) { of.connections.Add(int64(by)) }, Stream: func(by int) { of.requests.Add(int64(by)) }}
}

// reached is an address as others dial it.
func reached(a net.Addr) string {
	if a.Network() == "unix" {
		return "unix:" + a.String()
	}
	return a.String()
}

func (l *life) publicHandler() http.Handler {
	c := httpapi.Config{Node: front{l}, Gate: l.desk.Gate, Decisions: keeps{l}, Face: l.edition.Load().face, Books: l.follower, Views: views{l.index}, Meter: l.metrics.Wallet(),
		Rows: l.follower, Contents: l.objects, Transfers: l.metrics.Objects(),
		Audit: auditor{l.audit}, Log: l.log,
		Boot: random64(), Deadline: l.settings().deadline, Large: largeBodies, Cut: httpserver.ErrCut}
	c.Keyed = httpserver.Keyed
	a := httpapi.New(c)
	l.api.Store(a)
	l.showAPI(a)
	return a
}

// front is the node as the public API sees it.
type front struct{ *life }

func (f front) Status() event.Status     { return f.ear.status() }
func (f front) Journal() types.JournalID { return f.journal.ID() }
func (f front) Submit(ctx context.Context, in *event.Request) (event.Reply, bool) {
	return f.desk.Submit(ctx, types.ClassAuthed, in)
}
func (f front) Find(ctx context.Context, in *event.FindOutcome) (event.Reply, bool) {
	return f.desk.Find(ctx, types.ClassAuthed, in)
}
func (f front) Execute(ctx context.Context, in command.Command) (event.Reply, bool) {
	return f.desk.Execute(ctx, types.ClassAuthed, in)
}
func (f front) Enrol(ctx context.Context, in *event.CreateKey) (event.Reply, bool) {
	return f.desk.Enrol(ctx, in)
}
func (f front) Revoke(ctx context.Context, in *event.RevokeKey) (event.Reply, bool) {
	return f.desk.Revoke(ctx, in)
}
