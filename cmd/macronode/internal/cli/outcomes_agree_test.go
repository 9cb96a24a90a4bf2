package cli

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"macronode/adapters/decisions"
	"macronode/cmd/macronode/internal/testkit"
)

var requestIDs atomic.Int64

// sendAndEnd sends a raw request whose NAME becomes a request ID, ends its connection, and returns the decision.
// The client may get no response, so the decision is found by that ID.
func (p process) sendAndEnd(t *testing.T, request string, end func(net.Conn)) decisions.Decision {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(p.HTTP, "http://"))
	testkit.Must(t, err)
	defer c.Close()
	id := fmt.Sprintf("by-hand-%d", requestIDs.Add(1))
	_, err = io.WriteString(c, strings.ReplaceAll(request, "NAME", id))
	testkit.Must(t, err)
	end(c)
	return p.decision(t, p.decisionOf(t, id))
}

// decisionOf waits for the access line of a request ID.
func (p process) decisionOf(t *testing.T, id string) string {
	t.Helper()
	for check := testkit.HangGuard(t); ; check() {
		for line := range strings.Lines(p.log.String()) {
			if !strings.Contains(line, `"request_id":"`+id+`"`) {
				continue
			}
			for decision := range accessLines(t, line) {
				return decision
			}
		}
	}
}

// compareRecords compares a decision with its access line.
func compareRecords(t *testing.T, what string, d *decisions.Decision, l *accessEntry) {
	t.Helper()
	is := fmt.Sprint(d.Status, d.Code, d.Why, d.Method, d.Path, d.Tenant)
	if line := fmt.Sprint(l.Status, l.Code, l.Reason, l.Method, l.Path, l.Tenant); line != is {
		t.Errorf("%s: the decision has %s, the access log %s", what, is, line)
	}
	if len(d.Legs) == 0 {
		if l.Upstream != "" || l.Outcome != "" {
			t.Errorf("%s: the access log has an upstream: %+v", what, l)
		}
		return
	}
	g := &d.Legs[0]
	if l.Upstream != g.Upstream || l.Outcome != g.Outcome || l.Tries != g.Count {
		t.Errorf("%s: the decision has %+v, the access log %+v", what, g, l)
	}
}
