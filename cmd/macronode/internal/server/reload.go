package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"macronode/adapters/accesslog"
	"macronode/adapters/adminapi"
	"macronode/adapters/config"
	"macronode/adapters/hostclock"
	"macronode/adapters/httpapi"
	"macronode/adapters/metrics"
	"macronode/cmd/macronode/internal/settings"
	"macronode/core/event"
	"macronode/core/gateway/policycheck"
	"macronode/core/node"
)

// reloader replaces the configuration of a running node. One attempt runs at a time. It applies the whole configuration or nothing.
//
//	read ─► compare ─► build ─► check the policy ─► the core applies it ─► the adapters apply it
//	  └────────┴─────────┴──────────────┴──► the previous one stays, and /config/status has the reasons
type reloader struct {
	load   func() (*config.Config, error)
	wanted chan struct{} // by signals; one request is enough

	// What a reload reads and changes.
	core         node.Config
	simulate     func(node.Config, *event.Policy) (policycheck.Result, error) // policycheck.Change
	applied      *currentConfig
	builder      *configBuilder
	inbox        *eventInbox
	certificates *certificates
	metrics      *metrics.Metrics
	exports      *exports
	api          *atomic.Pointer[httpapi.API]
	accessLog    *accesslog.Log
	level        *slog.LevelVar // of log
	log          *slog.Logger

	attempt sync.Mutex      // held during an attempt
	nodeCtx context.Context // of the running node; nil: it is starting. Guarded by attempt.

	mu    sync.Mutex // of state
	state adminapi.Applied
}

// start sets the first configuration.
func (r *reloader) start(e *appliedConfig) {
	r.state = adminapi.Applied{Version: e.Face.Version, Since: time.Now().UTC()}
}

// request requests a reload, without waiting for it.
func (r *reloader) request() {
	select {
	case r.wanted <- struct{}{}:
	default:
	}
}

// depth returns the number of pending requests, and its limit.
func (r *reloader) depth() (depth, limit int) { return len(r.wanted), cap(r.wanted) }

// status returns which configuration is applied, and the last attempt.
func (r *reloader) status() adminapi.Applied {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// record keeps the result of an attempt.
func (r *reloader) record(a adminapi.Attempt) adminapi.Applied {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Last = &a
	switch {
	case !a.Applied:
		r.state.Refused++
	case len(a.Changed) > 0:
		r.state.Changes++
		r.state.Version, r.state.Since = a.Version, a.At
	}
	return r.state
}

// run carries out the reloads that signals request, until ctx ends. The node is running.
func (r *reloader) run(ctx context.Context) {
	r.attempt.Lock()
	r.nodeCtx = ctx
	r.attempt.Unlock()
	for {
		select {
		case <-r.wanted:
			r.reload()
		case <-ctx.Done():
			return
		}
	}
}

// reload reads the configuration again and applies it.
func (r *reloader) reload() adminapi.Applied {
	r.attempt.Lock()
	defer r.attempt.Unlock()
	a := adminapi.Attempt{At: time.Now().UTC(), Changed: []adminapi.Changed{}}
	ctx := r.nodeCtx
	if ctx == nil || ctx.Err() != nil { // not ready yet, or stopping
		a.Why = []string{"the node starts or ends: it can be asked when it is ready"}
		return r.record(a)
	}
	notifyReloading(r.log)
	defer notifyReady(r.log)
	if err := r.try(&a); err != nil {
		a.Why = strings.Split(err.Error(), "\n")
		r.log.Error("configuration reload rejected", "reason", a.Why)
	} else {
		a.Applied = true
		r.log.Info("configuration reloaded", "version", a.Version, "changed", keysOf(a.Changed))
	}
	r.inbox.trySend(ctx, event.ConfigReloaded{Failed: !a.Applied})
	return r.record(a)
}

func keysOf(all []adminapi.Changed) (keys []string) {
	for _, c := range all {
		keys = append(keys, c.Key)
	}
	return keys
}

// try makes one attempt. All that can fail comes before the first effect.
func (r *reloader) try(a *adminapi.Attempt) error {
	is := r.applied.Load()
	next, err := r.prepare(is, a)
	if err != nil {
		return err
	}
	if sameText(a.Changed) {
		r.certificates.show(next.certificate)
		return nil
	}
	sinks, err := r.exports.prepare(next.Sinks)
	if err != nil {
		return err
	}
	if err := r.applyPolicy(next); err != nil {
		return errors.Join(err, closeAll(sinks.added))
	}
	r.activate(is, next)
	r.exports.apply(sinks)
	r.exports.record(r.nodeCtx, sinks)
	r.logWarnings(next.config)
	return nil
}

// prepare returns the next configuration. It applies nothing, so a panic leaves the node as it was.
func (r *reloader) prepare(is *appliedConfig, a *adminapi.Attempt) (next *appliedConfig, err error) {
	defer func() {
		if bug := recover(); bug != nil {
			r.log.Error("configuration change panicked", "bug", bug, "stack", string(debug.Stack()))
			err = fmt.Errorf("a bug: %v", bug)
		}
	}()
	c, err := r.load()
	if err != nil {
		return nil, err
	}
	a.Version = settings.Version(c)
	if a.Changed, err = settings.Compare(is.config, c); err != nil {
		return nil, err
	}
	if next, err = r.builder.build(c, is); err == nil && !samePolicy(&is.Policy, &next.Policy) {
		a.Partial, err = r.checkPolicy(is, next)
	}
	if err == nil && next.certificate != nil && !next.certificate.Equal(r.certificates.tls.Certificate()) {
		a.Changed = append(a.Changed, adminapi.Changed{Key: settings.CertificateKey, Old: settings.DescribeCertificate(r.certificates.tls.Certificate()), New: settings.DescribeCertificate(next.certificate), Hot: true})
	}
	return next, err
}

// sameText reports whether no key changed.
func sameText(all []adminapi.Changed) bool {
	return !slices.ContainsFunc(all, func(c adminapi.Changed) bool { return c.Key != settings.CertificateKey })
}

// samePolicy reports whether a change from one policy to the other has no effect. Then there is nothing to simulate.
func samePolicy(from, to *event.Policy) bool {
	is, next := *from, *to
	is.Version, next.Version, is.ResetQuotas = 0, 0, 0
	return reflect.DeepEqual(is, next)
}

// checkPolicy simulates the change. It returns an error if a caller would never be admitted. The check is partial if it
// reaches its limit of steps.
func (r *reloader) checkPolicy(is, next *appliedConfig) (partial bool, err error) {
	played, err := r.simulate(r.core.WithPolicy(&is.Policy), &next.Policy)
	if never := new(policycheck.Never); errors.As(err, &never) && never.Rule > 0 {
		err = fmt.Errorf("%w: that is %s", err, next.Face.Quotas[never.Rule-1].Name)
	}
	if played.Partial {
		r.log.Warn("configuration check incomplete: step limit reached", "steps", played.Steps)
	}
	return played.Partial, err
}

// applyPolicy passes the policy to the core and waits until the core has applied it.
func (r *reloader) applyPolicy(next *appliedConfig) error {
	ctx := r.nodeCtx
	soon, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	restore := next.publishEndpoints() // the core may choose any of them once it has the policy
	if !r.inbox.trySend(soon, &event.ApplyPolicy{Policy: next.Policy}) {
		restore()
		return errors.New("the node is shutting down or at capacity: try again")
	}
	for wait := time.Millisecond; r.inbox.status().PolicyVersion != next.Policy.Version; wait = min(2*wait, 50*time.Millisecond) {
		if hostclock.Sleep(ctx, wait) != nil {
			return errors.New("the node ends")
		}
	}
	return nil
}

// activate applies the configuration in the adapters.
func (r *reloader) activate(is, next *appliedConfig) {
	next.start(r.nodeCtx)
	limitMemory(next.Memory)
	r.nameSeries(next)
	r.applied.Store(next)
	r.api.Load().SetSnapshot(next.Face)
	r.certificates.show(next.certificate)
	r.applyLog(next)
	is.retire()
}

// applyLog sets the level of the log, and turns the access log on or off.
func (r *reloader) applyLog(e *appliedConfig) {
	r.level.Set(e.Level)
	r.accessLog.Turn(e.Access)
}

// nameSeries gives each quota and upstream its series, and removes those of others.
func (r *reloader) nameSeries(e *appliedConfig) {
	r.metrics.NameQuotas(e.Counted.Quotas)
	r.metrics.Name(e.Counted.Upstreams)
}

// logWarnings logs what is probably wrong in a configuration and in the files that it names.
func (r *reloader) logWarnings(c *config.Config) {
	for _, s := range settings.ExposedSecrets(c) {
		r.log.Warn("secret file is accessible to every user of this machine: remove the access of others, and replace the secret", "key", s.Key, "file", s.File, "mode", fmt.Sprintf("%04o", s.Mode))
	}
	for _, warning := range c.Warnings() {
		r.log.Warn("configuration", "warning", warning)
	}
}
