package node_test

import (
	"testing"
	"time"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/idempotency"
	"macronode/core/lifecycle/drain"
	"macronode/core/node"
	"macronode/core/plane"
	"macronode/core/state"
	"macronode/core/storage"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

// TestRejectionWaitsForStateItReveals: a delete that finds nothing because of an earlier delete that is not
// durable waits for that one, and so does a condition that an earlier put has changed. Otherwise a read after the
// response would find the old state, and a crash would bring it back.
func TestRejectionWaitsForStateItReveals(t *testing.T) {
	limits := state.Limits{Ledger: ledger.Limits{Accounts: 2, Holdings: 2, Assets: 2, Tenants: 2, TenantAccounts: 2, TenantHoldings: 2, TenantAssets: 2, Holds: 1, TenantHolds: 1},
		Idempotency: idempotency.Limits{Keys: 64, PerTenant: 64, Tenants: 2, TTL: time.Hour}, Keys: 2,
		Planes: []plane.Spec{storage.Spec(storage.Limits{Objects: 4, Holdings: 4, Buckets: 4, Uploads: 1, Parts: 1, TenantBuckets: 4,
			TenantQuota: storage.Usage{Bytes: 99, Objects: 4}, BucketQuota: storage.Usage{Bytes: 99, Objects: 4}})}}
	now, out := types.Now{Mono: 1, Wall: 1_700_000_000_000}, event.Effects{}
	n := node.New(node.Config{State: limits, MaxHeldReplies: 64, MaxReplayWaiters: 16, MaxHeldPerTenant: 64, MaxUnsyncedBytes: 1 << 20, CommitTimeout: time.Hour,
		StallThreshold: time.Hour, SyncTimeout: time.Hour, HeartbeatInterval: time.Hour, SweepInterval: time.Second, StartTimeout: time.Hour,
		Drain: drain.Times{Drain: time.Second, Abort: time.Second}}, state.New(limits, 1), now.Mono, types.NewRand(1))
	frames, size := types.LSN(0), uint64(0)
	step := func(in event.Event) []event.Reply {
		out.Reset()
		n.Step(now, in, &out)
		for _, f := range out.Frames {
			frames, size = frames+1, size+uint64(f.Len)
		}
		return out.Replies
	}
	sync := func() []event.Reply {
		step(event.Durable{Upto: frames, Bytes: size})
		size = 0
		return step(event.Applied{Upto: frames})
	}
	key := event.Key{ID: 7, Tenant: 1, Scopes: event.AllScopes, Bootstrap: true}
	step(event.Recovered{Recovery: event.Recovery{Journal: 9}})
	for c := range types.NumServices {
		step(event.ServiceUp{Service: c})
	}
	step(&event.CreateKey{Tenant: 1, Key: key})
	sync()

	ticket := types.Ticket(0)
	execute := func(c func(command.Header) command.Command) []event.Reply {
		ticket++
		return step(&event.Execute{Command: c(command.Header{Ticket: ticket, Caller: key.ID, Tenant: 1})})
	}
	bucket, name := storage.Bucket("photos"), storage.ObjectName("cat")
	create := func(h command.Header) command.Command { return &storage.CreateBucket{Header: h, Bucket: bucket} }
	put := func(h command.Header) command.Command {
		return &storage.Put{Header: h, Bucket: bucket, Name: name, Address: storage.Address{1}, Size: 1, File: 1, Match: storage.Match{Absent: true}}
	}
	remove := func(h command.Header) command.Command {
		return &storage.Delete{Header: h, Bucket: bucket, Name: name}
	}
	for _, c := range []struct {
		command func(command.Header) command.Command
		second  event.Problem
	}{{create, event.PreconditionFailed}, {put, event.PreconditionFailed}, {remove, event.NotFound}} {
		for range 2 {
			if r := execute(c.command); len(r) > 0 {
				t.Fatalf("%+v before the frame is durable", r)
			}
		}
		if r := sync(); len(r) != 2 || r[0].Problem != event.None || r[1].Problem != c.second {
			t.Fatalf("%+v, want a success and %q", r, c.second.Code())
		}
		if r := execute(c.command); len(r) != 1 || r[0].Problem != c.second {
			t.Fatalf("%+v, want %q at once", r, c.second.Code())
		}
	}
}
