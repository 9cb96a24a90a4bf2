package server

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"macronode/adapters/adminapi"
	"macronode/adapters/export"
	"macronode/adapters/hostclock"
	"macronode/cmd/macronode/internal/settings"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/lanes"
	"macronode/core/types"
)

// changeSinks makes a change as a reload does.
func (m *metered) changeSinks(sinks ...settings.Sink) {
	m.t.Helper()
	c, err := m.exports.prepare(sinks)
	testkit.Must(m.t, err)
	m.exports.apply(c)
}

// sinkNamed returns the state of a sink.
func (m *metered) sinkNamed(name string) adminapi.Sink {
	m.t.Helper()
	for _, s := range (exportsAdmin{m.exports}).status().Sinks {
		if s.Name == name {
			return s
		}
	}
	m.t.Fatalf("no sink %s", name)
	return adminapi.Sink{}
}

// remove asks the admin API to forget a sink.
func (m *metered) remove(sink string) string {
	api := adminapi.New(adminapi.Config{Token: "t", Log: slog.New(slog.DiscardHandler), Metrics: http.NotFoundHandler(), Exports: exportsAdmin{m.exports}.config()})
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/exports/remove?sink="+sink, nil)
	r.Header.Set("Authorization", "Bearer t")
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	return w.Body.String()
}

// TestChangedSinkShowsWhatItWaitsFor: while a delivery of before a change has not ended, the sink of its name is not ok, and has its lag, and so has
// the sink that has its directory next. The sink cannot be removed, and the error says why. When it has ended, all of that is over.
func TestChangedSinkShowsWhatItWaitsFor(t *testing.T) {
	m := newMetered(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer func() {
		cancel()
		m.exports.running.Wait()
	}()
	m.exports.ctx = ctx
	testkit.Must(t, m.exports.claim())
	old, app := m.exports.exporter("more"), m.exports.exporter("app").settings
	moved, next := old.settings, old.settings
	moved.Dir, next.Name = t.TempDir(), "next"
	ago := func(d time.Duration) map[laneKey]time.Time {
		return map[laneKey]time.Time{laneOf(1): time.Now().Add(-d)}
	}
	defer func() { testkit.Must(t, old.sink.Close()) }()
	old.began, old.oldest = ago(100*time.Hour), ago(200*time.Hour) // it is in a call of the operating system
	const reason, lag = "the earlier delivery of this sink has not ended for 100h", 200 * 60 * 60

	for range 2 { // also a sink that waits can be changed
		moved.Dir = t.TempDir()
		m.changeSinks(app, moved, next)
		if s := m.sinkNamed("more"); s.State != "waiting" || !strings.HasPrefix(s.Reason, reason) || s.LagSeconds < lag {
			t.Errorf("moved: %+v", s)
		}
	}
	if s := m.sinkNamed("next"); s.State != "waiting" || !strings.HasPrefix(s.Reason, "the delivery of sink more, which has the directory, has not ended for 100h") {
		t.Errorf("next: %+v", s)
	}
	if s := m.sinkNamed("app"); s.State != "ok" || s.LagSeconds != 0 {
		t.Errorf("another sink: %+v", s)
	}
	values := m.values()
	if up, is := values[testkit.Series("export_sink_up", "sink", "more")], values[testkit.Series("export_lag_seconds", "sink", "more")]; up != 1 || is < lag {
		t.Errorf("metrics: up %v, lag %v", up, is)
	}

	m.changeSinks(app)
	if answer := m.remove("more"); !strings.Contains(answer, `"detail":"The sink cannot be removed yet: `+reason) || !strings.Contains(answer, `.","code":"busy"`) {
		t.Errorf("remove: %s", answer)
	}
	m.changeSinks(app, old.settings) // its directory is locked still
	close(old.done)
	testkit.Until(func() bool { return m.sinkNamed("more").State == "ok" })
	if s := m.sinkNamed("more"); s.Reason != "" || s.LagSeconds != 0 {
		t.Errorf("at the end: %+v", s)
	}
}

// TestDeliveryThatDoesNotEndIsLogged: what has not ended after it was cut is in the log, once, if a changed sink waits for it. A drain does not.
func TestDeliveryThatDoesNotEndIsLogged(t *testing.T) {
	t.Run("change", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			got := logOfUnended(t, (*exporter).leave)
			if strings.Count(got, "has not ended") != 1 || !strings.Contains(got, "sink=app for=10s") {
				t.Errorf("the log says %q", got)
			}
		})
	})
	t.Run("drain", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			if got := logOfUnended(t, (*exporter).stop); got != "" {
				t.Errorf("the log says %q", got)
			}
		})
	})
}

// logOfUnended returns what an exporter logs within an hour after it was ended while its delivery hangs.
func logOfUnended(t *testing.T, end func(*exporter)) string {
	var log bytes.Buffer
	of := &exports{log: slog.New(slog.NewTextHandler(&log, nil)), lanes: 4, drainTime: maxExportDrain} // the node takes no command
	e, err := newExporter(of, settings.Sink{Config: export.Config{Name: "app", Kind: export.KindHTTP, URL: "http://127.0.0.1:9", Inflight: 2}})
	if err != nil {
		t.Fatal(err)
	}
	e.machine.Offer(types.LaneID{Tenant: 1}, 0, 1)
	s, ok := e.machine.Next(hostclock.Mono())
	if !ok {
		t.Fatal("nothing is due")
	}
	e.machine.Sent(hostclock.Mono(), s, lanes.Result{Outcome: lanes.OK}) // so it is to be recorded
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); e.run(ctx) }()
	synctest.Wait()
	end(e)
	time.Sleep(time.Hour)
	synctest.Wait()
	cancel()
	<-ended
	return log.String()
}
