package server

import (
	"context"
	"crypto/subtle"
	"log/slog"
	"net/http"

	"macronode/adapters/adminapi"
	"macronode/adapters/httpserver"
	"macronode/adapters/nodedir"
	"macronode/adapters/readmodel"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/core/event"
	"macronode/core/types"
)

// adminHandler returns the admin API.
func (s *Server) adminHandler() http.Handler {
	ends := s.start.Core.Drain
	auth := adminAuthorizer{inbox: &s.inbox, readModel: s.store.readModel, applied: &s.applied, log: s.log}
	return adminapi.New(adminapi.Config{
		Status: s.inbox.status, Want: func(k event.SignalKind) { s.inbox.send(context.Background(), event.Signal{Kind: k}) },
		Metrics: s.metrics.Handler(), Queues: s.gauges.queues, Effective: func() string { return s.applied.Load().config.Effective() },
		Applied: s.reloader.status, Reload: s.reloader.reload, Decision: func(id string) (any, bool) { return s.decisions.Find(id) },
		Upstreams: s.applied.upstreamNames, Proof: s.certificates.status,
		Storage: s.objects.repairs.status, Scrub: s.objects.repairs.requestScrub, Repair: func() { wake(s.objects.repairs.look) }, Rebalance: func() { wake(s.objects.repairs.move) },
		Exports: exportsAdmin{s.exports}.config(),
		Turn:    func() uint64 { return s.applied.Load().Policy.Quantum },
		Hosts:   func() []string { return s.applied.Load().Admin.Hosts }, OpenMetrics: func() bool { return s.applied.Load().Admin.OpenMetrics },
		Authorize: auth.authorize, Authenticated: httpserver.MarkAuthenticated, Rejected: httpserver.MarkRejected, Longest: ends.LameDuck + ends.Drain + ends.Abort,
		Insecure: s.start.Listeners.InsecureAdmin, Token: s.runFile.contents().Token, Boot: datadir.Random64(), Log: s.log,
	})
}

// adminAuthorizer checks the credentials of the admin listener, except for the token of run.json.
type adminAuthorizer struct {
	inbox     *eventInbox
	readModel *readmodel.Follower
	applied   *currentConfig
	log       *slog.Logger
}

// authorize checks a credential, and returns its holder for the log.
func (a adminAuthorizer) authorize(credential string) (holder string, ok bool) {
	if k, err := nodedir.ParseKey(credential); err == nil {
		return "key " + k.String(), a.isAdminKey(k)
	}
	token, err := a.applied.Load().Admin.ReadToken()
	if err != nil {
		a.log.Error("admin.token_file is not accepted", "err", err)
		return "", false
	}
	return "admin.token_file", token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(credential)) == 1
}

// isAdminKey reports whether a key may operate the node: a valid key of the default tenant with scope admin, without limits on accounts or
// assets. Before the journal is read, no key may.
func (a adminAuthorizer) isAdminKey(k nodedir.Key) bool {
	at := a.inbox.status().At
	known, found := a.readModel.Find(k.ID)
	hash := k.Hash()
	return at > 0 && found && subtle.ConstantTimeCompare(hash[:], known.Hash[:]) == 1 &&
		!known.Revoked && (known.Expires == 0 || at < known.Expires) &&
		known.Tenant == types.DefaultTenant && known.Scopes&event.ScopeAdmin != 0 && known.Accounts.CoversAll() && known.Assets.CoversAll()
}
