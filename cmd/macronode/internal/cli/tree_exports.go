package cli

// The verbs of exports.
type (
	exportsCmd struct {
		Status     exportsStatusCmd     `cmd:"" help:"Show what each sink of the running node has and lacks."`
		Quarantine exportsQuarantineCmd `cmd:"" help:"List the items that sinks have rejected."`
		Redrive    exportsRedriveCmd    `cmd:"" help:"Deliver quarantined items again."`
		Skip       exportsSkipCmd       `cmd:"" help:"Give up an item that is quarantined, or all items of a stream up to one."`
		Backfill   exportsBackfillCmd   `cmd:"" help:"Deliver the items of a stream again, from one on."`
		Remove     exportsRemoveCmd     `cmd:"" help:"Forget how far a sink is that the configuration no longer has."`
		Resume     exportsResumeCmd     `cmd:"" help:"Deliver again to a sink that is stopped, because it wanted no items."`
	}
	exportsStatusCmd struct {
		Sink string `arg:"" optional:"" placeholder:"SINK" help:"Only this sink, with its streams."`
	}
	exportsQuarantineCmd struct {
		Sink string `arg:"" optional:"" placeholder:"SINK" help:"Only of this sink."`
	}
	exportsRedriveCmd struct {
		Sink     string  `arg:"" placeholder:"SINK" help:"Name of the sink."`
		Stream   string  `arg:"" optional:"" placeholder:"STREAM" help:"Stream: usage/DIMENSION or wallet. Default: all streams."`
		Position *uint64 `arg:"" optional:"" placeholder:"POSITION" help:"Position of the item. Default: all quarantined items."`
		tenantFlag
	}
	exportsSkipCmd struct {
		laneArgs
		Position uint64 `arg:"" placeholder:"POSITION" help:"Position of a quarantined item, or of the last item to give up."`
	}
	exportsBackfillCmd struct {
		laneArgs
		From uint64 `arg:"" placeholder:"POSITION" help:"Position of the first item."`
	}
	exportsRemoveCmd struct {
		Sink string `arg:"" placeholder:"SINK" help:"Name of the sink."`
	}
	exportsResumeCmd struct {
		Sink string `arg:"" placeholder:"SINK" help:"Name of the sink."`
	}

	laneArgs struct {
		Sink   string `arg:"" placeholder:"SINK" help:"Name of the sink."`
		Stream string `arg:"" placeholder:"STREAM" help:"Stream: usage/DIMENSION or wallet."`
		tenantFlag
	}
	tenantFlag struct {
		Tenant string `default:"default" placeholder:"TENANT" help:"Tenant of the stream. Default: default."`
	}
)
