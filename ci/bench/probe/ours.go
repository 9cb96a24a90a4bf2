package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"macronode/adapters/fs"
	"macronode/adapters/hostclock"
	"macronode/adapters/index"
	"macronode/adapters/journalfile"
	"macronode/adapters/loop"
	"macronode/adapters/readmodel"
	"macronode/ci/bench/sample"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/lifecycle/drain"
	"macronode/core/node"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

const (
	boss     types.KeyID = 7
	inFlight int         = 1024
)

// own is macronode's durable path without HTTP: dispatcher, loop, node, journal, read model,
// index, and the rendering of every receipt.
type own struct {
	dispatcher *loop.Dispatcher
	fol        *readmodel.Follower
	journal    *journalfile.Journal
	index      *index.Indexer
	loop       *loop.Loop
	dir        fs.Dir // of the journal
	callers    []caller
	accounts   int
	issue      bool // issue to an account, instead of a transfer
	stop       func() error
}

// caller is a client; from are its own accounts.
type caller struct {
	req     event.Request
	turn    int
	first   int
	spread  int
	nonce   []types.Nonce
	dice    types.Rand
	name    string
	scratch []byte
	from    []byte
	to      []byte
	key     []byte
	answer  []byte
}

// lazy is a directory without syncs: the limit without the disk.
type lazy struct{ fs.FS }

func (l lazy) Create(name string) (fs.File, error) {
	f, err := l.FS.Create(name)
	return lazyFile{f}, err
}

type lazyFile struct{ fs.File }

func (lazyFile) Sync() error { return nil }

// settings are the parameters of a measurement.
type settings struct {
	dir      string
	accounts int // filled before
	callers  int
	keys     int // additional to those of the fill
	ttl      time.Duration
	nosync   bool
	issue    bool
}

func newOwn(s settings) (*own, error) {
	o := &own{accounts: s.accounts, issue: s.issue}
	var err error
	if o.dir, err = fs.Make(filepath.Join(s.dir, "journal")); err != nil {
		return nil, err
	}
	var port fs.FS = o.dir
	if s.nosync {
		port = lazy{port}
	}
	l := limits(s.accounts, s.accounts+s.keys, s.ttl)
	l.Idempotency.MinRetention = time.Second // no request takes longer
	st := state.New(l, 1)
	if o.journal, _, err = journalfile.Recover(port, 9, nil); err != nil {
		return nil, err
	}
	filler, err := newFiller(o.journal, &st, filling{accounts: s.accounts, frames: s.accounts})
	if err != nil {
		return nil, err
	}
	if err := filler.to(s.accounts); err != nil {
		return nil, err
	}
	followed := state.New(l, 2)
	st.CopyTo(&followed)
	o.fol = readmodel.New(followed, 1<<14, 64, o.journal.Read)
	o.dispatcher = loop.NewDispatcher(loop.ClassLimits{16, inFlight, 16}, loop.ClassLimits{}, 1)
	for i := range s.callers {
		spread := max(1, min(16, s.accounts/s.callers))
		o.callers = append(o.callers, caller{first: i * spread, spread: spread, nonce: make([]types.Nonce, spread),
			dice: types.NewRand(uint64(i)), name: fmt.Sprintf("c%d-", i)})
	}
	return o, o.run(st, l, filepath.Join(s.dir, "index"))
}

// run starts the loop, and returns when writes are accepted and the index is up to date.
func (o *own) run(st state.State, l state.Limits, index string) error {
	config := node.Config{State: l, MaxHeldReplies: o.dispatcher.Size(), MaxReplayWaiters: 64, MaxUnsyncedBytes: 8 << 20, CommitTimeout: 30 * time.Second,
		StallThreshold: 5 * time.Second, SyncTimeout: 20 * time.Second, HeartbeatInterval: time.Second, SweepInterval: 100 * time.Millisecond, StartTimeout: 30 * time.Second,
		Drain: drain.Times{Drain: 3 * time.Second, Abort: time.Second}}
	n := node.New(config, st, hostclock.Mono(), types.NewRand(1))
	ctx, cancel := context.WithCancel(context.Background())
	o.newIndex(ctx, index, l.Idempotency.TTL)
	o.loop = loop.New(n, new(hostclock.Clock), o.journal, o.dispatcher, loop.Ports{Fold: o.fold, ServiceCommand: func(event.ServiceCommand) {},
		ClassifyFault: journalfile.FaultOf, Flush: func(int, int, time.Duration) {}}, maxBatch)
	ended, indexed := make(chan error, 1), make(chan error, 1)
	go func() { ended <- o.loop.Run(ctx, event.Recovered{Recovery: event.Recovery{Journal: o.journal.ID()}}) }()
	go func() { indexed <- o.index.Run(ctx) }()
	o.stop = func() error {
		cancel()
		err := <-indexed
		if why := <-ended; !errors.Is(why, context.Canceled) {
			err = errors.Join(err, why)
		}
		return errors.Join(err, o.journal.Close())
	}
	for c := range types.NumServices {
		o.loop.Send(ctx, event.ServiceUp{Service: c})
	}
	key := event.Key{ID: boss, Tenant: types.DefaultTenant, Scopes: event.AllScopes, Bootstrap: true}
	if r, ok := o.dispatcher.CreateKey(ctx, &event.CreateKey{Key: key}); !ok || r.Problem != event.None {
		return errors.Join(fmt.Errorf("the key was refused: %s", r.Problem.Code()), o.stop())
	}
	return o.caughtUp(types.LSN(o.accounts))
}

// caughtUp returns when the index has reached a frame and its merges are done: then this process
// uses less than a tenth of a core.
func (o *own) caughtUp(upto types.LSN) error {
	const look = 100 * time.Millisecond
	limit := time.Now().Add(time.Minute)
	for used := look; o.index.Mark().LSN < upto || used > look/10; {
		if time.Now().After(limit) {
			return errors.Join(errors.New("the index does not come so far, or to no end"), o.stop())
		}
		before := cpu()
		time.Sleep(look)
		used = cpu() - before
	}
	return nil
}

func (o *own) fold(batch []record.Sealed) error {
	if err := o.fol.Fold(batch); err != nil {
		return err
	}
	o.index.Offer(batch)
	return nil
}

// ask makes a request of the c-th caller.
func (o *own) ask(c int) error {
	q := &o.callers[c]
	o.next(q)
	r, ok := o.dispatcher.Submit(context.Background(), types.ClassAuthed, &q.req)
	if !ok || r.Problem != event.None {
		return fmt.Errorf("%s was refused: let in %v, %q", q.key, ok, r.Problem.Code())
	}
	var status int
	var err error
	q.answer, status, _, err = o.fol.Render(q.answer[:0], r.Position)
	if err != nil || status != 200 || r.Replayed {
		return fmt.Errorf("%s was answered %d %s: %w", q.key, status, q.answer, err)
	}
	return nil
}

// next fills q's next request as HTTP would.
func (o *own) next(q *caller) {
	q.req = event.Request{Header: command.Header{Caller: boss, Tenant: types.DefaultTenant},

		Item: event.Item{Op: event.Issue, Amount: types.MinorUnits(7)}}
	if o.issue {
		q.req.To.Text = account(q.to[:0], int(q.dice.Uint64n(uint64(o.accounts))))
	} else {
		at := q.turn % q.spread
		payer := q.first + at
		payee := (payer + 1 + int(q.dice.Uint64n(uint64(o.accounts-1)))) % o.accounts
		q.nonce[at]++
		q.req.Op, q.req.Nonce = event.Transfer, q.nonce[at]
		q.from = account(q.from[:0], payer)
		q.req.From.Text, q.req.To.Text = q.from, account(q.to[:0], payee)
	}
	q.to = q.req.To.Text
	q.key = strconv.AppendInt(append(q.key[:0], q.name...), int64(q.turn), 10)
	q.req.Key.Text, q.req.Asset.Text, q.req.Memo = q.key, []byte(asset), []byte("invoice 2026-0042, second part")
	q.scratch = q.req.Seal(q.scratch)
	q.turn++
}

// measureOwn runs a measurement and returns the journal bytes per request.
func measureOwn(s settings, sp span) (r sample.Sample, err error) {
	o, err := newOwn(s)
	if err != nil {
		return r, err
	}
	before, err := size(o.dir)
	if err != nil {
		return r, errors.Join(err, o.stop())
	}
	r, err = drive(s.callers, sp, o.ask)
	if err = errors.Join(err, o.stop()); err != nil {
		return r, err
	}
	after, err := size(o.dir)
	r.Bytes = float64(after-before) / float64(max(1, r.All))
	return r, err
}
