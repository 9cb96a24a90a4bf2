package main

import (
	"context"
	"net/http"

	"macronode/adapters/adminapi"
	"macronode/adapters/loop"
	"macronode/core/event"
)

// adminHandler is the node as its operators see it.
func (l *life) adminHandler() http.Handler {
	return adminapi.New(adminapi.Config{
		Status: l.ear.status, Want: l.want, Metrics: l.metrics.Handler(), Queues: l.queues, Effective: l.config.Effective,
		Insecure: l.config.Listen.Insecure, Token: l.run.Token, Boot: random64(), Log: l.log,
	})
}

// want carries an operator's wish to the node.
func (l *life) want(what event.Signals) { l.ear.say(context.Background(), event.Signal{What: what}) }

// queues is everything bounded that something waits in.
func (l *life) queues() []adminapi.Queue {
	const reject = "reject newest, 429"
	all := []adminapi.Queue{}
	for c := range loop.Classes {
		all = append(all, adminapi.Queue{Name: "work_" + c.String(), Depth: l.desk.Depth(c), Limit: l.desk.Limit(c), Policy: reject})
	}
	s, n := l.ear.status(), nodeConfig(l.config)
	return append(all,
		adminapi.Queue{Name: "held_replies", Depth: int(s.Held), Limit: n.Held, Policy: reject},
		adminapi.Queue{Name: "idempotency_keys", Depth: int(s.Keys), Limit: n.State.Idem.Keys, Policy: reject},
		adminapi.Queue{Name: "backlog_bytes", Depth: int(s.Backlog), Limit: int(n.Backlog), Policy: reject})
}
