package node

import (
	"macronode/core/event"
	"macronode/core/types"
)

// upstreamQuery chooses the endpoint for a request to an upstream, or decides about a retry.
func (n *Node) upstreamQuery(now types.Instant, in *event.UpstreamQuery, out *event.Effects) {
	reply := event.UpstreamReply{Slot: in.Slot}
	switch in.Kind {
	case event.QueryPick:
		reply.Picked = n.upstreams.Pick(now, in.Pick)
	case event.QueryRetry:
		reply.Picked = n.upstreams.Retry(now, in.Retry)
	case event.QueryReport:
		reply.Retry = n.upstreams.Report(now, in.Result)
	case event.QueryStats:
		reply.Stats = n.upstreams.Stats(in.Upstream)
	}
	out.UpstreamReplies = append(out.UpstreamReplies, reply)
}
