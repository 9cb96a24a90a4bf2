package server

import (
	"context"
	"net/http"

	"macronode/adapters/audit"
	"macronode/adapters/httpapi"
	"macronode/adapters/httpserver"
	"macronode/adapters/loop"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/settings"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/types"
	rendered "macronode/core/wallet/receipt"
)

// publicHandler returns the public API.
func (s *Server) publicHandler() http.Handler { return s.publicAPI() }

// publicAPI returns the public API, which the public listener and the S3 listener share. It is made once: its metrics cannot be declared
// twice.
func (s *Server) publicAPI() *httpapi.API {
	s.apiOnce.Do(s.makeAPI)
	return s.api.Load()
}

func (s *Server) makeAPI() {
	rows := s.store.readModel
	c := httpapi.Config{Node: nodeAPI{s.dispatcher, &s.inbox, s.store}, Admission: s.dispatcher.Admission,
		Decisions: s.sink, Snapshot: s.applied.Load().Face, ReadModel: rows, Index: indexViews{s.index}, Meter: s.metrics.Wallet(),
		Usage: planeViews{s.index, rows},
		Added: settings.Planes().Routes(), Planes: planeViews{s.index, rows},
		Rows: rows, Names: names{s.index, rows, s.start.Deadline}, Contents: s.objects.files, Transfers: s.metrics.Objects(), Paid: !s.start.Core.Price.IsFree(), UploadTTL: s.start.Storage.UploadTTL, Secret: s.s3.secret, Region: s.start.S3.Region,
		Audit: auditSink{s.audit}, Log: s.log,
		Boot: datadir.Random64(), Deadline: s.start.Deadline, MaxLargeBodies: settings.LargeBodies, ShutdownCause: httpserver.ErrShutdown}
	c.Authenticated, c.Rejected = httpserver.MarkAuthenticated, httpserver.MarkRejected
	if s.start.Metered {
		c.Metering = s.metering
	}
	a := httpapi.New(c)
	s.api.Store(a)
	s.gauges.add("large_bodies", a.LargeBodies)
	s.gauges.add("usage_scans", a.UsageScans)
	s.gauges.add("history_reads", a.HistoryReads)
}

// nodeAPI is the node as the public API uses it.
type nodeAPI struct {
	dispatcher *loop.Dispatcher
	inbox      *eventInbox
	store      *journalStore
}

// Status returns the status of the core, Journal the id of the journal.
func (n nodeAPI) Status() event.Status     { return n.inbox.status() }
func (n nodeAPI) Journal() types.JournalID { return n.store.journal.ID() }

// Submit, Find, Execute, CreateKey and RevokeKey pass requests to the core.
func (n nodeAPI) Submit(ctx context.Context, in *event.Request) (event.Reply, bool) {
	return n.dispatcher.Submit(ctx, types.ClassAuthed, in)
}

func (n nodeAPI) Find(ctx context.Context, in *event.FindOutcome) (event.Reply, bool) {
	return n.dispatcher.Find(ctx, types.ClassAuthed, in)
}

func (n nodeAPI) Execute(ctx context.Context, in command.Command) (event.Reply, bool) {
	return n.dispatcher.Execute(ctx, types.ClassAuthed, in)
}

func (n nodeAPI) CreateKey(ctx context.Context, in *event.CreateKey) (event.Reply, bool) {
	return n.dispatcher.CreateKey(ctx, in)
}

func (n nodeAPI) RevokeKey(ctx context.Context, in *event.RevokeKey) (event.Reply, bool) {
	return n.dispatcher.RevokeKey(ctx, in)
}

// auditSink writes the use of API keys to the audit log.
type auditSink struct{ *audit.Log }

// Note takes one use of a key.
func (a auditSink) Note(u httpapi.AuditRecord) {
	line := audit.Line{Decision: u.Decision, Key: u.Key, Tenant: u.Tenant, Route: u.Route, Peer: u.Peer, Status: u.Status, Code: u.Code}
	if u.TxID.Position().LSN > 0 {
		id := rendered.TxID(u.TxID)
		line.TxID = string(id[:])
	}
	a.Log.Note(line)
}
