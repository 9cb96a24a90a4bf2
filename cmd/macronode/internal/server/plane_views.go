package server

import (
	"macronode/adapters/index"
	"macronode/adapters/readmodel"
	"macronode/cmd/macronode/internal/settings"
)

// planeViews are the states of planes and their views in the index, as the public API reads them.
type planeViews struct {
	*index.Indexer
	*readmodel.Follower
}

// samplePlanes registers the gauges of the states of planes.
func (s *Server) samplePlanes() {
	settings.Planes().Sample(s.metrics.Sample, s.store.readModel.ReadPlane)
}
