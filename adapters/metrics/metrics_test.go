package metrics

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"macronode/adapters/registry"
	"macronode/core/event"
	"macronode/core/types"
)

var rewrite = flag.Bool("rewrite", false, "accept what is counted now")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func starting() event.Status {
	return event.Status{Phase: types.Starting, WaitingFor: types.AllDependencies}
}

// used returns metrics to which several kinds of events have been reported.
func used(status func() event.Status) *Metrics {
	m := New(status)
	w := m.Wallet()
	answered, busy := w.Endpoint("transfer", "POST")
	answered(time.Millisecond, 200, []byte("d_1"))
	busy()
	w.Refused(types.FacetWallet, event.BadRequest)
	w.Decided(time.Millisecond)
	w.Replayed()
	w.TimedOut(event.OutcomeUnknown)
	w.TimedOut(event.Timeout)
	w.Panicked()
	m.Flushed(3, 999, time.Millisecond)
	m.Failed("journal")
	m.TimedOut("reply")
	m.Retried("enrol")
	m.Crowded()
	m.Sample("queue_depth", func() float64 { return 7 }, "work_authed")
	m.Sample("worker_inflight", func() float64 { return 5 })
	m.Sample("tasks_spawned_total", func() float64 { return 3 }, "http")
	return m
}

// ours reports whether a metric is not one of the client library.
func ours(name string) bool {
	return !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") && !strings.HasPrefix(name, "promhttp_")
}

// The names, labels and values are a contract, so they are compared with testdata/names.
func TestNamesAndLabels(t *testing.T) {
	families, err := used(starting).registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var now strings.Builder
	for _, f := range families {
		if !ours(f.GetName()) {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			if value == 0 && len(labels) > 0 && f.GetName() != "readyz_state" {
				continue // each series exists from the start
			}
			fmt.Fprintf(&now, "%s{%s} %v\n", f.GetName(), strings.Join(labels, ","), value)
		}
	}
	if *rewrite {
		if err := os.WriteFile("testdata/names", []byte(now.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile("testdata/names")
	if err != nil {
		t.Fatal(err)
	}
	if now.String() != string(was) {
		t.Fatalf("the metrics are now\n%s", &now)
	}
}

func TestPrometheusLikesTheNames(t *testing.T) {
	problems, err := testutil.GatherAndLint(used(starting).registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if ours(p.Metric) {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// TestAllSeriesExist checks that each declared series exists, counters with 0 and sampled metrics
// once they have a function, and that no other series exists.
func TestAllSeriesExist(t *testing.T) {
	m := New(starting)
	m.Name([]string{"gone", "app"})
	m.Name([]string{"app", "more"})
	m.NameQuotas([]string{"gone", "app"})
	m.NameQuotas([]string{"app", "more"})
	m.Standings(func(string) (event.UpstreamStats, bool) { return event.UpstreamStats{}, true })
	m.Exports("app").Attempted("ok")
	m.Exports("more").Attempted("stopped")
	for i := range registry.Metrics {
		d := &registry.Metrics[i]
		all := d.All()
		if d.OfSinks() {
			all = d.All("app", "more")
		}
		for _, values := range all {
			if d.Sampled && !ofStatus(d.Name) && !slices.Equal(values, []string{"request"}) {
				m.Sample(d.Name, zero, values...)
			}
		}
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	there := make(map[string]int)
	for _, f := range families {
		there[f.GetName()] = len(f.GetMetric())
	}
	for i := range registry.Metrics {
		d := &registry.Metrics[i]
		if all := d.All("app", "more"); there[d.Name] != len(all) {
			t.Errorf("%s has %d series, want %d", d.Name, there[d.Name], len(all))
		}
		delete(there, d.Name)
	}
	for name := range there {
		if ours(name) {
			t.Errorf("%s is not declared", name)
		}
	}
}

// ofStatus reports whether New registers the sampled metric.
func ofStatus(name string) bool {
	return slices.Contains([]string{"readyz_state", "ready_dependency_unmet", "service_restarts_total", "journal_lsn",
		"follower_lag_lsn", "clock_offset_seconds"}, name)
}

// An undeclared label value is a programming error and panics.
func TestLabelsAreEnums(t *testing.T) {
	m := New(starting)
	for name, count := range map[string]func(){
		"endpoint": func() { m.Wallet().Endpoint("stranger", "GET") },
		"method":   func() { m.Wallet().Endpoint("tx", "BREW") },
		"pair":     func() { m.Wallet().Endpoint("tx", "POST") },
		"sample":   func() { m.Sample("queue_depth", zero, "stranger") },
		"name":     func() { m.Sample("stranger", zero) },
		"too many": func() { m.Sample("worker_inflight", zero, "stranger") },
		"counted":  func() { m.Sample("io_errors_total", zero, "journal") },
		"twice":    func() { m.Sample("tasks_aborted_total", zero, "request") },
		"op":       func() { m.Failed("stranger") },
		"wait":     func() { m.TimedOut("stranger") },
		"retry":    func() { m.Retried("stranger") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				err, _ := recover().(error)
				var broken types.InvariantError
				if !errors.As(err, &broken) {
					t.Fatalf("ended with %v", err)
				}
			}()
			count()
		})
	}
}

func zero() float64 { return 0 }

func TestReadyState(t *testing.T) {
	for _, c := range []struct {
		status event.Status
		want   float64
	}{
		{event.Status{Phase: types.Starting}, 0},
		{event.Status{Phase: types.Ready, Ready: true}, 2},
		{event.Status{Phase: types.Degraded, Ready: true}, 1},
		{event.Status{Phase: types.Degraded, Ready: false}, 0},
		{event.Status{Phase: types.LameDuck}, 0},
	} {
		if got := state(c.status); got != c.want {
			t.Errorf("%v, ready %v: %v", c.status.Phase, c.status.Ready, got)
		}
	}
}

func scrape(t *testing.T, m *Metrics, accept string) string {
	t.Helper()
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, r)
	b, err := io.ReadAll(w.Body)
	if err != nil || w.Code != 200 {
		t.Fatalf("scraped %d, %v", w.Code, err)
	}
	return string(b)
}

func TestSlowAnswersNameTheirDecision(t *testing.T) {
	m := New(starting)
	answered, _ := m.Wallet().Endpoint("transfer", "POST")
	answered(time.Millisecond, 200, []byte("d_first"))
	answered(time.Millisecond, 200, []byte("d_quick"))
	answered(time.Second, 200, []byte("d_slow"))
	text := scrape(t, m, "application/openmetrics-text; version=1.0.0")
	for id, want := range map[string]bool{"d_first": true, "d_quick": false, "d_slow": true} {
		if strings.Contains(text, `# {decision_id="`+id+`"}`) != want {
			t.Errorf("%s: want %v in\n%s", id, want, text)
		}
	}
}

func TestNodesShareNothing(t *testing.T) {
	one, other := New(starting), New(starting)
	one.Wallet().Replayed()
	const line = "idempotency_replays_total 1\n"
	if !strings.Contains(scrape(t, one, ""), line) || strings.Contains(scrape(t, other, ""), line) {
		t.Fatal("the metrics of the other node changed")
	}
}

func TestLagIsNeverNegative(t *testing.T) {
	m := New(func() event.Status { return event.Status{LSN: 4, Applied: 5} })
	if text := scrape(t, m, ""); !strings.Contains(text, "follower_lag_lsn 0\n") {
		t.Fatal(text)
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	w := New(starting).Wallet()
	answered, busy := w.Endpoint("transfer", "POST")
	id := []byte("d_1")
	answered(time.Millisecond, 200, id) // the first observation has an exemplar
	if n := testing.AllocsPerRun(100, func() {
		answered(time.Millisecond, 200, id)
		busy()
		w.Refused(types.FacetWallet, event.Busy)
		w.Decided(time.Millisecond)
		w.Replayed()
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

// Only problems that reject a request before any work count as rejections.
func TestAnswersAreNoRejections(t *testing.T) {
	w := New(starting).Wallet()
	before := testutil.CollectAndCount(w.of.counters["rejected_total"])
	for p := event.None; p.Known() || p == event.None; p++ {
		for f := range types.NumFacets {
			w.Refused(f, p)
		}
	}
	if after := testutil.CollectAndCount(w.of.counters["rejected_total"]); before != after || after != 3*len(registry.BeforeWork)+5 { // 5 series of the listener
		t.Fatalf("%d series before, %d after", before, after)
	}
	for plane, want := range map[string]float64{"wallet": 3, "proxy": 1, "storage": 1} {
		if n := testutil.ToFloat64(w.of.counter("rejected_total", plane, "busy")); n != want {
			t.Errorf("%s: busy counted %v times", plane, n)
		}
	}
}

func BenchmarkAnswered(b *testing.B) {
	answered, _ := New(starting).Wallet().Endpoint("transfer", "POST")
	id := []byte("d_0123456789abcdef0123456789abcdef")
	b.ReportAllocs()
	for b.Loop() {
		answered(time.Millisecond, 200, id)
	}
}
