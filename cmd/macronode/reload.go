package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"macronode/adapters/adminapi"
	"macronode/adapters/config"
	"macronode/core/event"
	"macronode/core/gateway/policycheck"
)

// changes is how the configuration of a node is changed while it runs: one attempt at a time,
// and each applies all of it or nothing.
//
//	read ─► compare ─► make ─► rehearse ─► the node steps it ─► the shell shows it
//	  └────────┴─────────┴─────────┴──► the old one stays, and /config/status says why
type changes struct {
	load   func() (*config.Config, error)
	wanted chan struct{} // by signals; who comes while one waits is the same
	one    sync.Mutex    // attempts

	mu sync.Mutex // of is alone
	is adminapi.Applied

	life context.Context // of the node, once it runs; guarded by one
}

func newChanges(load func() (*config.Config, error)) *changes {
	return &changes{load: load, wanted: make(chan struct{}, 1)}
}

// begin tells of the first edition.
func (c *changes) begin(e *edition) {
	c.is = adminapi.Applied{Version: e.face.Version, Since: time.Now().UTC()}
}

// want asks for an attempt, without waiting for it.
func (c *changes) want() {
	select {
	case c.wanted <- struct{}{}:
	default:
	}
}

// waiting is how many are asked for.
func (c *changes) waiting() (depth, limit int) { return len(c.wanted), cap(c.wanted) }

func (c *changes) applied() adminapi.Applied {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.is
}

// tried notes what became of an attempt.
func (c *changes) tried(a adminapi.Attempt) adminapi.Applied {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.is.Last = &a
	switch {
	case !a.Applied:
		c.is.Refused++
	case len(a.Changed) > 0:
		c.is.Changes++
		c.is.Version, c.is.Since = a.Version, a.At
	}
	return c.is
}

// reloads makes the attempts that signals ask for, once the node runs.
func (l *life) reloads(ctx context.Context) {
	l.changes.one.Lock()
	l.changes.life = ctx
	l.changes.one.Unlock()
	for {
		select {
		case <-l.changes.wanted:
			l.reload()
		case <-ctx.Done():
			return
		}
	}
}

// reload reads the configuration again, and applies it whole or not at all.
func (l *life) reload() adminapi.Applied {
	l.changes.one.Lock()
	defer l.changes.one.Unlock()
	a := adminapi.Attempt{At: time.Now().UTC(), Changed: []adminapi.Changed{}}
	ctx := l.changes.life
	if ctx == nil || ctx.Err() != nil { // it has not said that it is ready, or has said that it stops
		a.Why = []string{"the node starts or ends: it can be asked when it is ready"}
		return l.changes.tried(a)
	}
	notifyReloading(l.log)
	defer notifyReady(l.log)
	if err := l.change(&a); err != nil {
		a.Why = strings.Split(err.Error(), "\n")
		l.log.Error("configuration reload rejected", "reason", a.Why)
	} else {
		a.Applied = true
		l.log.Info("configuration reloaded", "version", a.Version, "changed", keysOf(a.Changed))
	}
	l.ear.tell(ctx, event.ConfigReloaded{Failed: !a.Applied})
	return l.changes.tried(a)
}

func keysOf(all []adminapi.Changed) (keys []string) {
	for _, c := range all {
		keys = append(keys, c.Key)
	}
	return keys
}

// change makes one attempt. What can fail comes first: nothing of it is seen before all of it
// is known to work.
func (l *life) change(a *adminapi.Attempt) error {
	is := l.edition.Load()
	next, err := l.proven(is, a)
	if err != nil {
		return err
	}
	if sameText(a.Changed) {
		l.present(next.shown)
		return nil
	}
	if err := l.renew(next); err != nil {
		return err
	}
	l.swap(is, next)
	l.warn(next.config)
	return nil
}

// proven is the edition that comes, of which nothing is applied. A bug that it meets leaves the
// old one as well.
func (l *life) proven(is *edition, a *adminapi.Attempt) (next *edition, err error) {
	defer func() {
		if bug := recover(); bug != nil {
			l.log.Error("configuration change panicked", "bug", bug, "stack", string(debug.Stack()))
			err = fmt.Errorf("a bug: %v", bug)
		}
	}()
	c, err := l.changes.load()
	if err != nil {
		return nil, err
	}
	a.Version = versionOf(c)
	if a.Changed, err = compared(is.config, c); err != nil {
		return nil, err
	}
	if next, err = l.edit(c, is); err == nil && len(a.Changed) > 0 {
		a.Partial, err = l.rehearsed(is, next)
	}
	if err == nil && next.shown != nil && !next.shown.Same(l.tls.Shown()) {
		a.Changed = append(a.Changed, adminapi.Changed{Key: certificate, Old: described(l.tls.Shown()), New: described(next.shown), Hot: true})
	}
	return next, err
}

// certificate stands for the key in what changed, where the files of listen.tls say another
// chain under the same names.
const certificate = "certificate"

// sameText reports that no key changed.
func sameText(all []adminapi.Changed) bool {
	return !slices.ContainsFunc(all, func(c adminapi.Changed) bool { return c.Key != certificate })
}

// compared is what differs. It fails where some of it takes effect at a start alone.
func compared(is, next *config.Config) ([]adminapi.Changed, error) {
	all, wrong := []adminapi.Changed{}, []error(nil)
	for _, d := range config.Diff(is, next) {
		all = append(all, adminapi.Changed(d))
		if !d.Hot {
			wrong = append(wrong, fmt.Errorf("%s takes effect only at the next start: it is %s and would become %s", d.Key, d.Old, d.New))
		}
	}
	return all, errors.Join(wrong...)
}

// rehearsed plays the change before it is made. It returns what would break, and whether the
// rehearsal is partial: it ended at its limit of steps.
func (l *life) rehearsed(is, next *edition) (partial bool, err error) {
	played, err := policycheck.Change(l.settings().core.WithPolicy(&is.gate), &next.gate)
	if never := new(policycheck.Never); errors.As(err, &never) && never.Rule > 0 {
		err = fmt.Errorf("%w: that is %s", err, next.face.Quotas[never.Rule-1].Name)
	}
	if played.Partial {
		l.log.Warn("configuration check incomplete: step limit reached", "steps", played.Steps)
	}
	return played.Partial, err
}

// renew has the node step to another gate, and waits until it has: once it was told, it will,
// unless it ends.
func (l *life) renew(next *edition) error {
	ctx := l.changes.life
	soon, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	restore := next.publish() // the core may choose any of them once it has the policy
	if !l.ear.tell(soon, &event.ApplyPolicy{Policy: next.gate}) {
		restore()
		return errors.New("the node is shutting down or at capacity: try again")
	}
	for wait := time.Millisecond; l.ear.status().PolicyVersion != next.gate.Version; wait = min(2*wait, 50*time.Millisecond) {
		if sleep(ctx, wait) != nil {
			return errors.New("the node ends")
		}
	}
	return nil
}

// swap shows the shell's part of it to all that comes.
func (l *life) swap(is, next *edition) {
	next.run(l.changes.life)
	limitMemory(next.memory)
	l.nameCounted(next)
	l.edition.Store(next)
	l.api.Load().Change(next.face)
	l.present(next.shown)
	l.applyLog(next)
	is.retire()
}

// applyLog sets the level of the log, and whether it has a line for each request.
func (l *life) applyLog(e *edition) {
	l.level.Set(e.level)
	l.access.Turn(e.access)
}
