package server

import (
	"context"

	"macronode/adapters/index"
	"macronode/adapters/metering"
	"macronode/adapters/readmodel"
	"macronode/adapters/services"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/types"
)

// usageViews are the usage as the public API reads it.
type usageViews struct {
	*index.Indexer
	*readmodel.Follower
}

// newMetering returns what records the requests that the node serves; nil if they are not metered.
func (s *Server) newMetering() *metering.Recorder {
	if s.start.Metering == 0 {
		return nil
	}
	meter := s.metrics.Wallet()
	return metering.New(metering.Config{Window: s.start.Usage.Window, Interval: s.start.Metering, Log: s.log,
		Execute: func(ctx context.Context, c command.Command) (event.Reply, bool) {
			return s.dispatcher.Execute(ctx, types.ClassInternal, c)
		},
		Ended: func(o metering.Outcome, requests uint64) { meter.Metered(string(o), requests) }})
}

// metered returns the work of a service whose requests are metered. What they used is recorded before the service is
// down: then the node may stop.
func (s *Server) metered(run services.Run) services.Run {
	if s.metering == nil {
		return run
	}
	both := together(run, func(ctx context.Context, up func()) error {
		up()
		s.metering.Run(ctx, services.Hard(ctx))
		return nil
	})
	return func(ctx context.Context, up func()) error {
		err := both(ctx, up)
		s.metering.Flush(services.Hard(ctx))
		return err
	}
}

// sampleUsage declares the gauges of usage.
func (s *Server) sampleUsage() {
	rows := s.store.readModel
	s.metrics.Sample("usage_rows", func() float64 { n, _, _ := rows.UsageRows(); return float64(n) })
	s.metrics.Sample("usage_streams", func() float64 { _, n, _ := rows.UsageRows(); return float64(n) })
	s.metrics.Sample("usage_seal_lag_seconds", func() float64 { _, _, lag := rows.UsageRows(); return lag.Seconds() })
}
