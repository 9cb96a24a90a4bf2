package main

import (
	"context"
	"path/filepath"

	"macronode/adapters/audit"
	"macronode/adapters/config"
	"macronode/adapters/httpapi"
	"macronode/adapters/index"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
	rendered "macronode/core/wallet/receipt"
)

// What stands beside the ledger: views of its journal, and the file of who did what.

// indexName is the directory of the views, in that of the node.
const indexName = "index"

// newIndex is the views of the journal that was recovered. They run as a child.
func (l *life) newIndex(ctx context.Context) *index.Indexer {
	c := l.settings().index
	return index.New(index.Config{Dir: filepath.Join(string(l.dir), indexName), TTL: c.ttl, Log: l.log,
		Limits:  c.limits,
		Journal: scroll{l},
		Indexed: func(upto types.LSN) { l.ear.say(ctx, event.Indexed{Upto: upto}) },
		Aged:    func() bool { return l.ear.status().MayHaveForgotten },
	})
}

func (l *life) indexes(ctx context.Context, up func()) error {
	if l.known.index > l.follower.Mark() && l.damaged.Load() {
		l.log.Error("index kept but not served: it contains frames lost from the damaged journal", "index_lsn", uint64(l.known.index))
		<-ctx.Done()
		return nil
	}
	return l.index.RunNotify(ctx, up)
}

// fold takes in frames that are durable: first those who answer, then the views.
func (l *life) fold(batch []record.Sealed) error {
	if err := l.follower.Fold(batch); err != nil {
		return err
	}
	l.index.Offer(batch)
	return nil
}

// scroll is the journal as the views read it, which are there before it is open.
type scroll struct{ *life }

func (s scroll) Chain(lsn types.LSN) (types.JournalID, types.Root, bool, error) {
	return s.journal.Chain(lsn)
}

func (s scroll) Range(from types.LSN, each func(record.Sealed) error) error {
	return s.journal.Range(from, each)
}

// newAudit is the file of who used which key for what. It is written by a child.
func (l *life) newAudit() *audit.Log {
	return audit.New(string(l.dir), l.settings().audit, l.log)
}

func auditLimits(c *config.Config) audit.Limits {
	limits := audit.DefaultLimits()
	limits.Size, limits.Keep = int64(c.Audit.Size), c.Audit.Keep
	return limits
}

func (l *life) audits(ctx context.Context, up func()) error {
	up()
	return l.audit.Run(ctx)
}

// auditor writes down what the public API tells of.
type auditor struct{ *audit.Log }

func (a auditor) Note(u httpapi.Use) {
	line := audit.Line{Decision: u.Decision, Key: u.Key, Tenant: u.Tenant, Route: u.Route, Peer: u.Peer, Status: u.Status, Code: u.Code}
	if u.TxID.Position().LSN > 0 {
		id := rendered.TxID(u.TxID)
		line.TxID = string(id[:])
	}
	a.Log.Note(line)
}
