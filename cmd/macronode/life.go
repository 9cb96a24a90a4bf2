package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"macronode/adapters/accesslog"
	"macronode/adapters/audit"
	"macronode/adapters/config"
	"macronode/adapters/decisions"
	"macronode/adapters/fs"
	"macronode/adapters/hostclock"
	"macronode/adapters/httpapi"
	"macronode/adapters/httpserver"
	"macronode/adapters/index"
	"macronode/adapters/journalfile"
	"macronode/adapters/loop"
	"macronode/adapters/metrics"
	"macronode/adapters/nodedir"
	"macronode/adapters/objectstore"
	"macronode/adapters/proxy"
	"macronode/adapters/readmodel"
	"macronode/adapters/services"
	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/state"
	"macronode/core/types"
)

// recent is how many durable frames are kept at hand to render answers from; older
// ones are read from the segments.
const recent = 1 << 14

// largeBodies are read at once: the others are told to come back.
const largeBodies = 16

// segmentsName is the directory of the journal, in that of the node.
const segmentsName = "journal"

// waiters returns how many reads may wait for a movement: as many as are let in, so that none
// is turned away for others that wait.
func waiters(c *config.Config) int { return c.Permits.Money + c.Permits.Lists + c.Permits.Streams }

// A life is one run of a node, from its directory to its last word.
//
//	open ─► listeners up ─► recover ─► loop ─► key ─► ready … drained ─► journal closed ─► admin down
type life struct {
	config *config.Config // that it began with: what a change does not change
	log    *slog.Logger
	dir    fs.Dir
	lock   *fs.Held // of dir
	lost   bool     // the sampler found that dir is not the locked directory any more
	known  evidence // of durable frames, at the start

	damaged    atomic.Bool // the journal has lost durable frames
	unreadable atomic.Bool // a reader found a damaged frame that the sampler has not reported yet

	marking  sync.Mutex // of the mark of durable frames, while it is written
	marked   types.LSN  // that it has
	unmarked bool       // the last try to write it failed, and that was told
	began    types.Instant

	clock     hostclock.Clock
	metrics   *metrics.Metrics
	desk      *loop.Desk
	children  *services.Set
	disk      disk
	journal   *journalfile.Journal
	follower  *readmodel.Follower
	objects   *objectstore.Store
	index     *index.Indexer
	audit     *audit.Log
	decisions *decisions.Ring
	access    *accesslog.Log
	tunnels   *proxy.Tunnels
	checks    checks
	inflaters *proxy.Inflaters
	endpoints proxy.Endpoints
	edition   atomic.Pointer[edition]
	changes   *changes
	api       atomic.Pointer[httpapi.API]
	level     *slog.LevelVar // of log
	ear       ear
	announced atomic.Bool // that it is ready
	board     board
	tls       *httpserver.TLS         // nil: no listener has it
	seen      event.Status            // by the sampler, when it last told of a change
	broken    uint64                  // upstreams whose breaker it last saw open, a bit each
	aged      age                     // of the certificate, the same
	watched   *httpserver.Certificate // which one that was; nil: none yet

	mu       sync.Mutex  // of the next two
	run      nodedir.Run // as it is told to others
	unlisted bool        // run.json is removed and not written any more
}

// node makes the loop around a recovered state.
func (l *life) node(st state.State) *loop.Loop {
	n := node.New(l.settings().core.WithPolicy(&l.edition.Load().gate), st, l.began, types.NewRand(random64()))
	return loop.New(n, &l.clock, l.journal, l.desk, loop.Ports{Fold: l.fold, Child: l.child,
		Fault: l.fault, Flush: l.metrics.Flushed}, l.desk.Size())
}

// child carries out what the node wants of a child. The listeners are there before the
// node is: they are not started a second time.
func (l *life) child(op event.ServiceCommand) {
	if op.Verb == event.StartService && slices.Contains(listeners[:], op.Service) {
		if early := l.children.Counts(op.Service); early.Started == 1 && early.Died == 0 {
			return
		}
	}
	l.children.Do(op)
}

// listeners are up while the journal is recovered: who comes is told that the node starts.
var listeners = [...]types.Service{types.ServiceAdmin, types.ServiceHTTP}

// fault says how the disk failed, to the operator as well.
func (l *life) fault(err error) event.Fault {
	f := journalfile.FaultOf(err)
	l.log.Error("journal failed: writes are rejected until a restart", "fault", f, "err", err)
	l.metrics.Failed("journal")
	return f
}

// enrol makes the key of the directory's file known, unless it is on record: file first,
// so that no key is ever known that nobody has.
func (l *life) enrol(ctx context.Context, damaged bool) {
	if damaged && !l.follower.Bootstrapped() {
		l.log.Error("no API key readable from the damaged journal: all requests are rejected until the missing segment is restored")
		return
	}
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, time.Minute) {
		done, err := l.enrolOnce(ctx)
		if done || ctx.Err() != nil {
			return
		}
		l.log.Error("bootstrap API key not known yet", "err", err, "again_in", wait)
		l.metrics.Retried("enrol")
		if sleep(ctx, wait) != nil {
			return
		}
	}
}

// enrolOnce reports that there is nothing more to do about it.
func (l *life) enrolOnce(ctx context.Context) (done bool, err error) {
	first := l.follower.Bootstrapped()
	k, owed, err := nodedir.Owed(string(l.dir), rand.Reader, first, func(id types.KeyID) bool {
		_, known := l.follower.Find(id)
		return known
	})
	switch {
	case owed:
	case errors.Is(err, nodedir.ErrNoKey):
		l.log.Warn("bootstrap API key file is missing: use a saved copy of the key, or create one with macronode keys recover")
		return true, nil
	case errors.Is(err, nodedir.ErrSpent):
		l.log.Warn("bootstrap API key is revoked: use another admin key, or create one with macronode keys recover")
		return true, nil
	default:
		return err == nil, err
	}
	r, ok := l.desk.Enrol(ctx, &event.CreateKey{ReplaceBootstrap: first, Key: event.Key{ID: k.ID, Tenant: types.DefaultTenant, Hash: k.Hash(),
		Scopes: event.AllScopes, Bootstrap: true}})
	if !ok || r.Problem != event.None {
		return false, fmt.Errorf("enrol %v: %s", k, r.Problem.Detail())
	}
	return true, nil
}

// sample looks at the disk and the clock, four times a second. While the disk does not
// answer, the node's time goes on all the same.
func (l *life) sample(ctx context.Context, up func()) error {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	var last uint64
	for asked := l.room(); ; {
		l.clock.Look()
		select {
		case r := <-asked:
			if r.lost != nil {
				l.stopWriting(ctx, r.lost)
			}
			if r.err != nil {
				return r.err
			}
			asked, last = nil, r.free
			l.ear.say(ctx, event.DiskFree{Bytes: last})
			up()
		case <-tick.C:
			if asked == nil {
				asked = l.room()
				continue
			}
			l.ear.say(ctx, event.Tick{})
		case <-ctx.Done():
			return nil
		}
		if l.unreadable.Swap(false) {
			l.ear.say(ctx, event.FrameUnreadable{})
		}
		l.watch(last)
		l.watchCertificate(time.Now())
	}
}

// room looks at the journal's disk, and notes there how far it is durable. The answer comes when
// the disk gives it.
func (l *life) room() <-chan room {
	said, journal := make(chan room, 1), fs.Dir(l.segments())
	go func() {
		l.keepDurable()
		free, err := journal.Free()
		said <- room{free, err, errors.Join(l.lock.Check(), l.journal.Intact())}
	}()
	return said
}

// A room is what a look at the journal's disk found.
type room struct {
	free uint64 // bytes
	err  error
	lost error // the data directory is not the locked one any more, or the open segment of the journal is not there
}

// stopWriting has the node write nothing more: another node may write to its directory, or what it
// writes would be lost at the next start.
func (l *life) stopWriting(ctx context.Context, why error) {
	if l.lost {
		return
	}
	l.lost = true
	l.log.Error("data directory or journal segment removed, replaced or cut: writes stopped, restart the node", "directory", string(l.dir), "err", why)
	l.ear.say(ctx, event.FlushFailed{Fault: event.FilesLost})
}

// watch tells the operator when what the node says of itself has changed.
func (l *life) watch(free uint64) {
	s := l.ear.status()
	l.watchUpstreams(s.OpenCircuits)
	if s.Phase == l.seen.Phase && s.DegradedBy == l.seen.DegradedBy && s.WaitingFor == l.seen.WaitingFor {
		return
	}
	before := l.seen.Phase
	l.seen = s
	if leavesToAnnounce(before, s.Phase, l.announced.Load()) {
		return
	}
	level := slog.LevelInfo
	if s.Phase == types.Degraded {
		level = slog.LevelWarn
	}
	l.log.Log(context.Background(), level, "node state changed", "state", s.Phase, "waiting_for", listed(s.WaitingFor), "degraded_by", listed(s.DegradedBy), "reads", s.Reads, "writes", s.Writes,
		"fault", s.Fault.String(), "disk_free", free, "disk_reserve", l.settings().core.MinFreeBytes)
}

// leavesToAnnounce reports that a change of phase gets no line of its own, because announce
// logs that the node is ready: before the sampler sees it, or behind.
func leavesToAnnounce(before, now types.Phase, announced bool) bool {
	return now == types.Ready && (before == types.Starting || !announced)
}

// listed returns the names of a set, separated by commas.
func listed(set types.Conditions) string { return strings.Join(namesOf(set), ",") }

func namesOf(set types.Conditions) (names []string) {
	for c := range set.Each {
		names = append(names, c.String())
	}
	return names
}

// segments is where the journal is.
func (l *life) segments() string { return filepath.Join(string(l.dir), segmentsName) }

// told rewrites what others find in the directory.
func (l *life) told(change func(*nodedir.Run)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.run)
	if l.unlisted {
		return
	}
	if err := nodedir.Write(string(l.dir), l.run); err != nil {
		l.log.Error("run.json not written", "err", err)
	}
}

// unlist removes run.json for good. A listener that comes up during the shutdown does not write it again.
func (l *life) unlist() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unlisted = true
	if err := nodedir.Remove(string(l.dir), l.run); err != nil {
		l.log.Error("run.json not removed", "err", err)
	}
}

func random64() uint64 {
	var b [8]byte
	_, _ = io.ReadFull(rand.Reader, b[:]) // crypto/rand never fails; it ends the process
	return binary.LittleEndian.Uint64(b[:])
}
