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
		Ended:   func(o metering.Outcome, requests uint64) { meter.Metered(string(o), requests) },
		Prepaid: func() map[types.Tenant]*flow.Terms { return s.applied.Load().Face.Prepaid },
		Read:    s.store.readModel.ReadBooks, Status: s.inbox.status})
}

// meteredWaiting returns the number of requests that are metered and not recorded yet.
func (s *Server) meteredWaiting() float64 {
	if s.metering == nil {
		return 0
	}
	return float64(s.metering.Waiting())
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
		s.metering.Close(services.Hard(ctx))
		return err
	}
}
