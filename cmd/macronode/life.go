package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"macronode/adapters/children"
	"macronode/adapters/config"
	"macronode/adapters/follower"
	"macronode/adapters/fs"
	"macronode/adapters/hostclock"
	"macronode/adapters/journalfile"
	"macronode/adapters/loop"
	"macronode/adapters/metrics"
	"macronode/adapters/rundir"
	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/words"
)

// recent is how many durable frames are kept at hand to render answers from; older
// ones are read from the segments.
const recent = 1 << 14

// segmentsName is the directory of the journal, in that of the node.
const segmentsName = "journal"

// waiters is how many reads may wait for a movement to be folded.
const waiters = 256

// A life is one run of a node, from its directory to its last word.
//
//	open ─► admin up ─► recover ─► loop ─► key ─► ready … drained ─► journal closed ─► admin down
type life struct {
	config *config.Config
	log    *slog.Logger
	dir    fs.Dir

	clock    hostclock.Clock
	metrics  *metrics.Metrics
	desk     *loop.Desk
	children *children.Set
	journal  *journalfile.Journal
	follower *follower.Follower
	ear      ear

	mu  sync.Mutex // of run alone
	run rundir.Run // as it is told to others
}

// ear takes what the shell has to say, also before there is a loop to hear it.
type ear struct {
	mu    sync.Mutex
	loop  *loop.Loop
	early []event.Event
}

// say tells the node; it waits while the loop is behind.
func (e *ear) say(ctx context.Context, what event.Event) {
	e.mu.Lock()
	l := e.loop
	if l == nil {
		e.early = append(e.early, what)
	}
	e.mu.Unlock()
	if l != nil {
		l.Say(ctx, what)
	}
}

// hear gives the ear its loop, which learns first what was said before.
func (e *ear) hear(ctx context.Context, l *loop.Loop) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, what := range e.early {
		l.Say(ctx, what) // a handful, and its ring is empty
	}
	e.loop, e.early = l, nil
}

// status is what the node says of itself; before it is there, that it starts.
func (e *ear) status() event.Status {
	e.mu.Lock()
	l := e.loop
	e.mu.Unlock()
	if l == nil {
		return event.Status{Phase: words.Starting, Unmet: words.AllDependencies}
	}
	return l.Status()
}

// recover folds the journal into a state, reading on one core and folding on the
// other. A damaged journal is read as far as it is whole.
func (l *life) recover() (state.State, event.Recovery, error) {
	limits := stateLimits(l.config)
	st := state.New(limits, words.Hash64(random64()))
	l.follower = follower.New(state.New(limits, words.Hash64(random64())), recent, waiters,
		func(lsn words.LSN) (record.Sealed, error) { return l.journal.Read(lsn) })
	read, folded := make(chan []record.Sealed, 4), make(chan error, 1)
	go func() { folded <- l.foldAll(&st, read) }()
	dir, err := fs.Make(l.segments())
	if err != nil {
		return st, event.Recovery{}, err
	}
	began := time.Now()
	journal, found, err := journalfile.Recover(dir, words.JournalID(random64()), func(all []record.Sealed) error {
		read <- all
		return nil
	})
	close(read)
	if e := <-folded; e != nil {
		return st, found.Recovery, fmt.Errorf("fold the journal: %w", e)
	}
	if errors.Is(err, journalfile.ErrDamaged) {
		l.log.Error("the journal is damaged: what is whole is served for reading, nothing is written", "err", err)
		found.Recovery.Damaged, err = true, nil
	}
	if err != nil {
		return st, found.Recovery, err
	}
	l.journal = journal
	l.follower.Begin(&st)
	l.log.Info("journal recovered", "frames", uint64(found.Last), "segments", found.Segments, "bytes", found.Bytes,
		"cut_bytes", found.Recovery.Cut, "made_durable_again", found.Recovery.Tail, "took", time.Since(began))
	return st, found.Recovery, nil
}

// foldAll takes all there is, so that the reader never waits for nobody.
func (l *life) foldAll(st *state.State, read <-chan []record.Sealed) (err error) {
	for all := range read {
		for i := range all {
			if err == nil {
				err = st.Fold(all[i].Body, nil)
				l.follower.Keep(all[i])
			}
		}
	}
	return err
}

// node makes the loop around a recovered state.
func (l *life) node(st state.State) *loop.Loop {
	n := node.New(nodeConfig(l.config), st, hostclock.Mono(), words.NewDice(random64()))
	return loop.New(n, &l.clock, l.journal, l.desk, loop.Ports{Fold: l.follower.Fold, Child: l.child,
		Fault: l.fault, Flush: l.metrics.Flushed}, l.desk.Size())
}

// child carries out what the node wants of a child. The admin listener is there
// before the node is: it is not started a second time.
func (l *life) child(op event.ChildOp) {
	if op.Child == words.ChildAdmin && op.What == event.StartChild && l.children.Counts(op.Child).Started == 1 {
		if c := l.children.Counts(op.Child); c.Died == 0 {
			return
		}
	}
	l.children.Do(op)
}

// fault says how the disk failed, to the operator as well.
func (l *life) fault(err error) event.Fault {
	f := journalfile.FaultOf(err)
	l.log.Error("the journal failed: no write is taken until a restart", "fault", f, "err", err)
	l.metrics.Failed("journal")
	return f
}

// enrol makes the first key known, unless one is on record: file first, so that no
// key is ever known that nobody has.
func (l *life) enrol(ctx context.Context) {
	for !l.follower.Bootstrapped() && ctx.Err() == nil {
		if err := l.enrolOnce(ctx); err != nil {
			l.log.Error("the first API key is not known yet", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(250 * time.Millisecond):
		}
	}
}

func (l *life) enrolOnce(ctx context.Context) error {
	k, err := rundir.Bootstrap(string(l.dir), rand.Reader)
	if err != nil {
		return err
	}
	r, ok := l.desk.Enrol(ctx, &event.Enrol{Key: event.Key{ID: k.ID, Tenant: words.DefaultTenant, Hash: k.Hash(),
		Scopes: event.AllScopes, Boot: true}})
	if !ok || r.Problem != event.None {
		return fmt.Errorf("enrol %v: %s", k, r.Problem.Detail())
	}
	return nil
}

// sample looks at the disk and the clock, four times a second.
func (l *life) sample(ctx context.Context, up func()) error {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	journal := fs.Dir(l.segments())
	for {
		l.clock.Look()
		free, err := journal.Free()
		if err != nil {
			return err
		}
		l.ear.say(ctx, event.Room{Free: free})
		up()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// segments is where the journal is.
func (l *life) segments() string { return filepath.Join(string(l.dir), segmentsName) }

// told rewrites what others find in the directory.
func (l *life) told(change func(*rundir.Run)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.run)
	if err := rundir.Write(string(l.dir), l.run); err != nil {
		l.log.Error("run.json is not written", "err", err)
	}
}

// free says why nobody can listen at an address, before anything is begun.
func free(address string) error {
	network := "tcp"
	if len(address) > 5 && address[:5] == "unix:" {
		return nil // its server takes away a dead socket
	}
	probe, err := net.Listen(network, address)
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	return probe.Close()
}

func random64() uint64 {
	var b [8]byte
	_, _ = io.ReadFull(rand.Reader, b[:]) // crypto/rand never fails; it ends the process
	return binary.LittleEndian.Uint64(b[:])
}
