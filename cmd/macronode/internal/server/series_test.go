package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"

	"macronode/adapters/config"
	"macronode/adapters/fs"
	"macronode/adapters/httpserver"
	"macronode/adapters/loop"
	"macronode/adapters/metrics"
	"macronode/adapters/registry"
	"macronode/adapters/services"
	"macronode/cmd/macronode/internal/settings"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/event"
	"macronode/core/storage"
	"macronode/core/types"
)

// fixedCore is a core whose status a test sets.
type fixedCore struct{ status event.Status }

func (c *fixedCore) Send(context.Context, event.Event) bool { return true }
func (c *fixedCore) Status() event.Status                   { return c.status }

// metered is a node with all of its metrics, as serve puts it together, in which nothing happens
// by itself: its loop does not run, and a test sets the status of the core and of the upstreams.
type metered struct {
	*Server
	t         *testing.T
	core      *fixedCore
	running   *loop.Loop
	plane     *storage.Plane // what the read model has folded
	tenants   types.Tenant   // that had usage
	signals   *signals
	meter     *metrics.Wallet
	upstreams map[string]*event.UpstreamStats
	fail      chan struct{}      // ends a child by itself
	last      map[string]float64 // values after the last cause
}

func newMetered(t *testing.T, sets ...string) *metered {
	t.Helper()
	quota := `{"name":%q,"scope":"peer","requests_per_second":9000}`
	dir := t.TempDir()
	cfg := testkit.Config(t, append(append(testkit.SmallState(), sets...), "data="+dir, `upstreams={"app":{"url":"http://127.0.0.1:9"},"more":{"url":"http://127.0.0.1:9"}}`,
		"quotas=["+fmt.Sprintf(quota, "app")+","+fmt.Sprintf(quota, "more")+"]", "listen.max_conns=16",
		`exports.sinks=[{"name":"app","kind":"http","url":"http://127.0.0.1:9"},{"name":"more","kind":"file","dir":"out"}]`)...)
	log, signals := slog.New(slog.DiscardHandler), &signals{make(chan os.Signal, 8)}
	l, err := newServer(cfg, settings.NewStart(cfg), Options{Log: log, Level: new(slog.LevelVar), Signals: signals, Load: func() (*config.Config, error) { return cfg, nil }})
	testkit.Must(t, err)
	m := &metered{Server: l, t: t, core: &fixedCore{}, signals: signals, fail: make(chan struct{}),
		upstreams: map[string]*event.UpstreamStats{"app": {}, "more": {}}}
	l.reloader.nameSeries(l.applied.Load())
	l.services = services.New(l.log, func(event.Event) {})
	for c := range types.NumServices {
		l.services.Add(c, m.child)
	}
	testkit.Must(t, l.openDirectory(t.Context(), fs.Dir(dir), nil))
	addStartGauges(l)
	l.metrics.Standings(func(name string) (event.UpstreamStats, bool) { return *m.upstreams[name], true })
	st, _, err := l.store.recover()
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, l.store.journal.Close()) })
	m.running = l.newLoop(st)
	addJournalGauges(l, m.running)
	m.plane = storage.New(l.start.Storage, 1)
	testkit.Must(t, l.objects.recover())
	l.objects.addGauges(&l.gauges)
	l.samplePlanes()
	l.exports.addGauges()
	l.exports.streams.known.Store(&[]streamHead{}) // the streams are read
	l.inbox.loop = m.core
	l.publicHandler()
	m.meter = l.metrics.Wallet()
	return m
}

// child runs until it is cancelled, or fails when the test closes fail.
func (m *metered) child(ctx context.Context, up func()) error {
	up()
	select {
	case <-ctx.Done():
	case <-m.fail:
	}
	return nil
}

// hooks are those of the public listener.
func (m *metered) hooks() httpserver.Hooks { return m.listeners.hooks(m.gauges.publicListener()) }

// values are all series of a scrape, without those of buckets and of the client library.
func (m *metered) values() map[string]float64 {
	m.t.Helper()
	m.exports.gauges.forget()
	all := map[string]float64{}
	for line := range strings.SplitSeq(scrape(m.metrics), "\n") {
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' || strings.Contains(line, "_bucket{") || strings.HasPrefix(line, "go_") || strings.HasPrefix(line, "process_") || strings.HasPrefix(line, "promhttp_") {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		testkit.Must(m.t, err)
		all[line[:at]] = value
	}
	return all
}

// A cause is one thing that happens, and what it moves beside its own series.
type cause func(m *metered, labels []string) (own float64, others testkit.Moves)

// movedByOtherTests has the series for which no cause can be made here, and the test that moves each.
var movedByOtherTests = map[string]string{
	testkit.Series("queue_dropped_total", "queue", "work", "reason", "oldest"): "nothing that was accepted is ever dropped",
	testkit.QueueSeries("usage_scans"):                                         "TestUsageScansAreLimited",
	testkit.QueueSeries("history_reads"):                                       "adapters/httpapi TestStreamsReadInTurn",
	testkit.QueueSeries("large_bodies"):                                        "TestBodiesAndStreamsAreCounted",
	testkit.QueueSeries("decompressors"):                                       "adapters/proxy TestInflatersLimit",
	testkit.QueueSeries("decompressor_waits"):                                  "adapters/proxy TestFlowWithoutInflaterGetsOne",
	testkit.QueueSeries("folds"):                                               "adapters/loop TestWaitingFoldsAreCounted",
	testkit.QueueSeries("index_tail"):                                          "TestSeriesOfTheIndex",
	testkit.QueueSeries("index_await"):                                         "TestSeriesOfTheIndex",
	testkit.Series("export_lag_seconds", "sink", "app"):                        "internal/cli TestExports",
	testkit.Series("export_lag_seconds", "sink", "more"):                       "internal/cli TestExports",
	testkit.Series("export_quarantined", "sink", "app"):                        "internal/cli TestExports",
	testkit.Series("export_quarantined", "sink", "more"):                       "internal/cli TestExports",
	"index_tables":            "TestSeriesOfTheIndex",
	"index_disk_bytes":        "TestSeriesOfTheIndex",
	"index_rebuilds_total":    "TestSeriesOfTheIndex",
	"index_abandoned_engines": "chaos/faults TestAbandonedEnginesAreCounted",
}

// TestEverySeriesHasItsCause: each series of the registry is moved by one cause, by its amount.
// Nothing else moves but what the cause lists.
func TestEverySeriesHasItsCause(t *testing.T) {
	shared := newMetered(t)
	for i := range registry.Metrics {
		d := &registry.Metrics[i]
		m := shared
		if strings.HasPrefix(d.Name, "audit_") || strings.HasPrefix(d.Name, "tasks_") || d.Name == "access_lines_total" || d.Name == "queue_depth" {
			m = newMetered(t) // what is turned on, or has ended, stays so
		}
		for _, labels := range d.All("app", "more") {
			var pairs []string
			for n, l := range d.Labels {
				pairs = append(pairs, l.Name, labels[n])
			}
			own := testkit.Series(d.Name, pairs...)
			if _, ok := movedByOtherTests[own]; ok {
				continue
			}
			if d.Type == registry.Histogram {
				own = testkit.Series(d.Name+"_count", pairs...)
			}
			do := causes[cmp.Or(d.Name, "")]
			if d.Name == "queue_depth" {
				do = queueCauses[labels[0]]
			}
			if do == nil {
				t.Errorf("%s has no cause in the table", own)
				continue
			}
			if m.last == nil {
				m.last = m.values()
			}
			was := m.last
			by, want := do(m, labels)
			if want == nil {
				want = testkit.Moves{}
			}
			if want[own] += by; by == 0 {
				t.Errorf("%s: the cause moves it by nothing", own)
			}
			m.last = m.values()
			if got := testkit.SeriesMoved(was, m.last); !got.Same(want) {
				t.Errorf("%s: moved%v\nwant%v", own, got, want)
			}
		}
	}
}
