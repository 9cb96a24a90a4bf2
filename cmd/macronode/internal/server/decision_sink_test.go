package server

import (
	"log/slog"
	"strings"
	"testing"

	"macronode/adapters/accesslog"
	"macronode/adapters/decisions"
	"macronode/adapters/httpapi"
	"macronode/cmd/macronode/internal/explain"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/types"
)

// TestExplainAfterAdmission: explain describes a rejection after admission, a truncated response, and the route.
func TestExplainAfterAdmission(t *testing.T) {
	l := decisionSink{decisions: decisions.New(), accessLog: accesslog.New(slog.DiscardHandler)}
	ail := types.Conditions(0).With(types.DiskFull).With(types.JournalStalled)
	for _, c := range []struct {
		d        httpapi.Decision
		contains []string
	}{
		{httpapi.Decision{Status: 401, Code: "unauthorized", Detail: "It showed no API key."}, []string{"admission   admitted\n", "detail      It showed no API key.\n"}},
		{httpapi.Decision{Status: 503, Code: "unavailable", DegradedBy: ail}, []string{"node        not serving: degraded by journal_stalled, disk_full"}},
		{httpapi.Decision{Status: 503, Code: "unavailable", WaitingFor: types.Conditions(0).With(types.DependencyJournal)}, []string{"node        not serving: waiting for journal"}},
		{httpapi.Decision{Status: 200, Truncated: true}, []string{"response    200 aborted, "}},
		{httpapi.Decision{Status: 200}, []string{"response    200 ok, "}},
	} {
		c.d.ID, c.d.Config = "d_1", new(httpapi.ConfigSnapshot)
		l.Keep(c.d)
		d, _ := l.decisions.Find("d_1")
		if got := explain.Decision(&d); !testkit.ContainsAll(got, c.contains) {
			t.Errorf("%s\nwants %q", got, c.contains)
		}
	}
}

// TestDisconnectedClientWasNotAdmitted: if the client disconnected while it waited, explain neither says that the
// request was admitted nor shows a queue.
func TestDisconnectedClientWasNotAdmitted(t *testing.T) {
	l := decisionSink{decisions: decisions.New(), accessLog: accesslog.New(slog.DiscardHandler)}
	for code, want := range map[string]string{httpapi.ClientDisconnected: "admission   " + explain.Reasons[httpapi.ClientDisconnected] + "\n", "": "admission   admitted\nqueue       0 ahead of it"} {
		l.Keep(httpapi.Decision{ID: "d_" + code, Code: code, Config: new(httpapi.ConfigSnapshot)})
		d, _ := l.decisions.Find("d_" + code)
		if got := explain.Decision(&d); !strings.Contains(got, want) || strings.Contains(got, "admission   admitted") == (code == httpapi.ClientDisconnected) || strings.Contains(got, "queue") == (code == httpapi.ClientDisconnected) {
			t.Errorf("%q:\n%s", code, got)
		}
	}
}
