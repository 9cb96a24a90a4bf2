package main

import (
	"context"
	"net/http"

	"macronode/adapters/adminapi"
	"macronode/core/event"
)

// adminHandler is the node as its operators see it.
func (l *life) adminHandler() http.Handler {
	return adminapi.New(adminapi.Config{
		Status: l.ear.status, Want: l.want, Metrics: l.metrics.Handler(), Queues: l.queues, Effective: func() string { return l.edition.Load().config.Effective() }, Applied: l.changes.applied, Reload: l.reload, Decision: l.decision, Upstreams: l.upstreamNames, Proof: l.proof,
		Insecure: l.settings().listeners.insecureAdmin, Token: l.run.Token, Boot: random64(), Log: l.log,
	})
}

// want carries an operator's wish to the node.
func (l *life) want(what event.Signals) { l.ear.say(context.Background(), event.Signal{What: what}) }
