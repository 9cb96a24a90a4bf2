package server

import (
	"macronode/adapters/index"
	"macronode/adapters/readmodel"
)

// usageViews are the usage as the public API reads it.
type usageViews struct {
	*index.Indexer
	*readmodel.Follower
}

// sampleUsage declares the gauges of usage.
func (s *Server) sampleUsage() {
	rows := s.store.readModel
	s.metrics.Sample("usage_rows", func() float64 { n, _, _ := rows.UsageRows(); return float64(n) })
	s.metrics.Sample("usage_streams", func() float64 { _, n, _ := rows.UsageRows(); return float64(n) })
	s.metrics.Sample("usage_seal_lag_seconds", func() float64 { _, _, lag := rows.UsageRows(); return lag.Seconds() })
}
