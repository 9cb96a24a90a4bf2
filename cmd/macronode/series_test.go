package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"macronode/adapters/accesslog"
	"macronode/adapters/config"
	"macronode/adapters/decisions"
	"macronode/adapters/fs"
	"macronode/adapters/httpserver"
	"macronode/adapters/loop"
	"macronode/adapters/metrics"
	"macronode/adapters/proxy"
	"macronode/adapters/registry"
	"macronode/adapters/services"
	"macronode/core/event"
	"macronode/core/storage"
	"macronode/core/types"
)

// fixedCore is a core whose status a test sets.
type fixedCore struct{ status event.Status }

func (c *fixedCore) Say(context.Context, event.Event) bool { return true }
func (c *fixedCore) Status() event.Status                  { return c.status }

// metered is a node with all of its metrics, as serve puts it together, in which nothing happens
// by itself: its loop does not run, and a test sets the status of the core and of the upstreams.
type metered struct {
	*life
	t         *testing.T
	core      *fixedCore
	running   *loop.Loop
	plane     *storage.Plane // what the read model has folded
	signals   *signals
	meter     *metrics.Wallet
	upstreams map[string]*event.UpstreamStats
	fail      chan struct{} // ends a child by itself
}

func newMetered(t *testing.T, sets ...string) *metered {
	t.Helper()
	quota := `{"name":%q,"scope":"peer","requests_per_second":9000}`
	cfg := configured(t, append(append(small(), sets...), `upstreams={"app":{"url":"http://127.0.0.1:9"},"more":{"url":"http://127.0.0.1:9"}}`,
		"quotas=["+fmt.Sprintf(quota, "app")+","+fmt.Sprintf(quota, "more")+"]", "listen.max_conns=16")...)
	l := &life{config: cfg, log: slog.New(slog.DiscardHandler), level: new(slog.LevelVar), dir: fs.Dir(t.TempDir()), changes: newChanges(func() (*config.Config, error) { return cfg, nil })}
	m := &metered{life: l, t: t, core: &fixedCore{}, signals: &signals{make(chan os.Signal, 8)}, fail: make(chan struct{}),
		upstreams: map[string]*event.UpstreamStats{"app": {}, "more": {}}}
	is := l.settings()
	l.metrics = metrics.New(l.ear.status)
	l.desk, l.decisions = loop.NewDesk(is.dispatcher.work, is.dispatcher.admission, is.dispatcher.upstream), decisions.New()
	l.tunnels, l.inflaters, l.access = proxy.NewTunnels(), proxy.NewInflaters(), accesslog.New(l.log.Handler())
	first, err := l.edit(cfg, &edition{})
	must(t, err)
	l.edition.Store(first)
	l.nameCounted(first)
	l.children = services.New(l.log, func(event.Event) {})
	for c := range types.NumServices {
		l.children.Add(c, m.child)
	}
	l.audit, l.index = l.newAudit(), l.newIndex(t.Context())
	l.follower = l.newFollower()
	l.showDoor(m.signals)
	l.metrics.Standings(func(name string) (event.UpstreamStats, bool) { return *m.upstreams[name], true })
	st, _, err := l.recover()
	must(t, err)
	t.Cleanup(func() { must(t, l.journal.Close()) })
	m.running = l.node(st)
	l.showBooks(m.running)
	m.plane = storage.New(is.storage, 1)
	l.objects = l.newObjects()
	must(t, l.recoverObjects())
	l.showObjects()
	l.ear.loop = m.core
	l.publicHandler()
	m.meter = l.metrics.Wallet()
	return m
}

// child runs until it is told to end, or fails when the test says so.
func (m *metered) child(ctx context.Context, up func()) error {
	up()
	select {
	case <-ctx.Done():
	case <-m.fail:
	}
	return nil
}

// hooks are those of the public listener.
func (m *metered) hooks() httpserver.Hooks { return m.listenerHooks(m.board.publicListener()) }

// moves are the series that one cause moves, and by how much.
type moves map[string]float64

// seriesOf is a series as a scrape has it.
func seriesOf(name string, labels ...string) string {
	var all []string
	for i := 0; i < len(labels); i += 2 {
		all = append(all, labels[i]+"="+strconv.Quote(labels[i+1]))
	}
	slices.Sort(all)
	if len(all) == 0 {
		return name
	}
	return name + "{" + strings.Join(all, ",") + "}"
}

func queueSeries(name string) string { return seriesOf("queue_depth", "queue", name) }

// values are all series of a scrape, without those of buckets and of the client library.
func (m *metered) values() map[string]float64 {
	m.t.Helper()
	all := map[string]float64{}
	for line := range strings.SplitSeq(scraped(m.metrics), "\n") {
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' || strings.Contains(line, "_bucket{") || strings.HasPrefix(line, "go_") || strings.HasPrefix(line, "process_") || strings.HasPrefix(line, "promhttp_") {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		must(m.t, err)
		all[line[:at]] = value
	}
	return all
}

// seriesMoved returns the series of two scrapes that differ.
func seriesMoved(was, is map[string]float64) moves {
	all := moves{}
	for _, name := range slices.Collect(maps.Keys(is)) {
		if d := is[name] - was[name]; d != 0 {
			all[name] = d
		}
	}
	for name := range was {
		if _, there := is[name]; !there {
			all[name+" (gone)"] = 1
		}
	}
	return all
}

func (m moves) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "\n\t%s %+g", name, m[name])
	}
	return b.String()
}

// same reports that both have the same series, by the same amounts up to the precision of a float.
func (m moves) same(as moves) bool {
	return maps.EqualFunc(m, as, func(a, b float64) bool { return max(a-b, b-a) <= 1e-6*max(1, max(a, -a)) })
}

// A cause is one thing that happens, and what it moves beside the series that it is of.
type cause func(m *metered, labels []string) (own float64, others moves)

// movedByOtherTests has the series for which no cause can be made here, and the test that moves each.
var movedByOtherTests = map[string]string{
	seriesOf("queue_dropped_total", "queue", "work", "reason", "oldest"): "nothing that was accepted is ever dropped",
	queueSeries("large_bodies"):  "TestBodiesAndStreamsAreCounted",
	queueSeries("decompressors"): "adapters/proxy TestInflatersAreFew",
	queueSeries("folds"):         "adapters/loop TestOrder",
	queueSeries("index_tail"):    "TestSeriesOfTheIndex",
	queueSeries("index_await"):   "TestSeriesOfTheIndex",
	"index_tables":               "TestSeriesOfTheIndex",
	"index_disk_bytes":           "TestSeriesOfTheIndex",
	"index_rebuilds_total":       "TestSeriesOfTheIndex",
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
			own := seriesOf(d.Name, pairs...)
			if _, ok := movedByOtherTests[own]; ok {
				continue
			}
			if d.Type == registry.Histogram {
				own = seriesOf(d.Name+"_count", pairs...)
			}
			do := causes[cmp.Or(d.Name, "")]
			if d.Name == "queue_depth" {
				do = queueCauses[labels[0]]
			}
			if do == nil {
				t.Errorf("%s has no cause in the table", own)
				continue
			}
			was := m.values()
			by, want := do(m, labels)
			if want == nil {
				want = moves{}
			}
			if want[own] += by; by == 0 {
				t.Errorf("%s: the cause moves it by nothing", own)
			}
			if got := seriesMoved(was, m.values()); !got.same(want) {
				t.Errorf("%s: moved%v\nwant%v", own, got, want)
			}
		}
	}
}
