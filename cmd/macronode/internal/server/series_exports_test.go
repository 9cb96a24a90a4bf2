package server

import (
	"macronode/adapters/index"
	"macronode/cmd/macronode/internal/testkit"
)

func init() {
	causes["exports_total"] = func(m *metered, l []string) (float64, testkit.Moves) {
		m.exports.exporter(l[0]).metrics.Attempted(l[1])
		return 1, nil
	}
	causes["export_sink_up"] = func(m *metered, l []string) (float64, testkit.Moves) {
		m.exports.exporter(l[0]).state.Failing = true
		return -1, nil
	}
	head := uint64(0)
	causes["export_pending"] = func(m *metered, l []string) (float64, testkit.Moves) {
		head += 5
		m.exports.streams.known.Store(&[]streamHead{{index.Stream{Tenant: 1, Dimension: "requests"}, head}, {index.Stream{Tenant: 1}, 100}}) // no sink wants the second
		other := map[string]string{"app": "more", "more": "app"}[l[0]]
		return 5, testkit.Moves{testkit.Series("export_pending", "sink", other): 5}
	}
}
