package server

import (
	"context"

	"macronode/adapters/metering"
	"macronode/adapters/services"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/types"
)

// newMetering returns what records the requests that the node serves, if they are metered, and collects arrears.
func (s *Server) newMetering() *metering.Recorder {
	meter := s.metrics.Wallet()
	return metering.New(metering.Config{Window: s.start.Usage.Window, Interval: s.start.Flush, Log: s.log,
		Execute: func(ctx context.Context, c command.Command) (event.Reply, bool) {
			return s.dispatcher.Execute(ctx, types.ClassInternal, c)
		},
		Ended:     func(o metering.Outcome, requests uint64) { meter.Metered(string(o), requests) },
		Prepaid:   func() map[types.Tenant]*flow.Terms { return s.applied.Load().Face.Prepaid },
		Collected: func() map[types.Tenant]*flow.Terms { return s.applied.Load().Arrears.Collected },
		Prices:    func() *flow.Terms { return s.applied.Load().Arrears.Prices },
		Read:      s.store.readModel.ReadBooks, Status: s.inbox.status})
}

// metered returns the work of a service with the requests that are metered. What they used is recorded before the service is
// down: then the node may stop.
func (s *Server) metered(run services.Run) services.Run {
	both := together(run, func(ctx context.Context, up func()) error {
		up()
		s.metering.Run(ctx, services.Hard(ctx))
		return nil
	})
	return func(ctx context.Context, up func()) error {
		err := both(ctx, up)
		s.metering.Close(services.Hard(ctx))
		return err
	}
}
