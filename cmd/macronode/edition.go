package main

import (
	"context"

	"macronode/adapters/config"
	"macronode/adapters/httpserver"
)

// An edition is a configuration as it is applied: what may change of it is swapped whole, and
// the next one takes its place.
type edition struct {
	config  *config.Config
	numbers numbering
	reloadSettings
	beyond *beyond                 // nil: nothing is sent on
	shown  *httpserver.Certificate // nil: the listeners have none
	stop   context.CancelFunc      // of its health checks
}

// edit makes the edition of a configuration behind another. Nothing of it is applied.
func (l *life) edit(c *config.Config, before *edition) (e *edition, err error) {
	e = &edition{config: c}
	if e.shown, err = readCertificate(c); err != nil {
		return nil, err
	}
	if e.numbers, err = before.numbers.renumber(c); err != nil {
		return nil, err
	}
	if e.reloadSettings, err = newReloadSettings(c, e.numbers, before); err != nil {
		return nil, err
	}
	if _, err = e.admin.readToken(); err != nil {
		return nil, err
	}
	if e.beyond, err = l.newBeyond(&e.reloadSettings); err != nil {
		return nil, err
	}
	if e.beyond != nil {
		e.face.Beyond = e.beyond
	}
	return e, nil
}

// publish makes the endpoints of e known to requests in flight, and returns the function that
// takes that back.
func (e *edition) publish() (restore func()) {
	if e.beyond == nil {
		return func() {}
	}
	return e.beyond.PublishEndpoints()
}

// run begins its health checks.
func (e *edition) run(ctx context.Context) {
	ctx, e.stop = context.WithCancel(ctx)
	if e.beyond != nil {
		go e.beyond.Run(ctx) //nolint:errcheck // it ends with ctx
	}
}

// retire ends its health checks, and lets go of connections that nothing uses. What it serves
// goes on.
func (e *edition) retire() {
	e.stop()
	if e.beyond != nil {
		e.beyond.Retire()
	}
}
