package faults_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"macronode/chaos/faults"
)

// TestStarting: while the journal is read, requests are rejected and the status names the missing conditions.
func TestStarting(t *testing.T) {
	starting := row{phase: "starting", ready: no, read: no, reads: no, writes: no, unmet: []string{"journal", "key", "sampler"}}
	late := starting.and("start_timeout")
	late.phase = "degraded"
	for name, c := range map[string]struct {
		deadline string
		row
	}{"in time": {"10m", starting}, "late": {"1s", late}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFaultyNode(t, "node.start_deadline="+c.deadline)
			h.start()
			h.stop()
			held := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Read}, Hold: true})
			h.launch()
			<-held.Met()
			h.findListener()
			h.await(c.row)
			h.checkRow(c.row)
			held.End()
			h.await(wellness)
			h.checkRow(wellness)
			h.stop()
		})
	}
}

// TestFirstStart: a node whose first key is not durable is not ready. If that takes too long it is degraded, and
// it is ready when the disk has answered.
func TestFirstStart(t *testing.T) {
	starting := row{phase: "starting", ready: no, read: no, reads: no, writes: no, unmet: []string{"key"}, ailing: []string{"journal_stalled"}}
	late := starting.and("start_timeout")
	late.phase = "degraded"
	for name, c := range map[string]struct {
		deadline string
		row
	}{"in time": {"10m", starting}, "late": {"1s", late}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFaultyNode(t, "node.start_deadline="+c.deadline)
			held := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Sync}, Of: first, Hold: true})
			h.launch()
			<-held.Met()
			h.findListener()
			h.await(c.row)
			h.checkRow(c.row)
			h.awaitLogLine("node state changed", "state="+c.phase, "waiting_for=key", c.ailing[len(c.ailing)-1])
			held.End()
			h.awaitReady()
			h.stop()
			h.verify()
		})
	}
}

// TestLameDuck: after a termination the node serves for the lame-duck time and reports that it is not ready. A
// second signal ends that.
func TestLameDuck(t *testing.T) {
	t.Parallel()
	h := newFaultyNode(t, "node.lame_duck=5m")
	h.start()
	h.Signal(syscall.SIGTERM)
	lame := row{phase: "lame_duck", ready: no, read: no, reads: yes, writes: yes}
	h.await(lame)
	h.checkRow(lame)
	h.disk.Leave(0)
	full := lame
	full.writes, full.ailing = no, []string{"disk_full"}
	h.await(full)
	h.checkRow(full)
	h.stop()
	h.verify()
}

// TestDraining: requests in progress at a drain are answered when the disk answers, and new ones are rejected.
// Then the node exits with 0.
func TestDraining(t *testing.T) {
	t.Parallel()
	h := newFaultyNode(t, "node.drain=5s", "http.header_timeout=1m", "http.read_timeout=1m")
	h.start()
	for attempt := 0; !h.checkDrain(fmt.Sprintf("in-%d", attempt)); attempt++ {
		if attempt == 3 {
			t.Fatalf("five seconds of draining were never enough\n%s", h.Output())
		}
		h.start()
	}
	h.verify()
}

// checkDrain reports whether it was in time to see all of the drain.
func (h *faultyNode) checkDrain(key string) bool {
	h.t.Helper()
	held := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Sync}, Hold: true})
	waits := h.send(key, 1)
	h.await(readOnly("journal_stalled", ""))
	comes := []*caller{h.beginRequest("GET /v1/balance?account=ann&asset=EUR/2"), h.beginRequest("GET /v1/tx/" + h.known.txid), h.beginRequest("POST /v1/issue")}
	h.Signal(syscall.SIGTERM)
	draining := ending("draining")
	draining.ailing = []string{"journal_stalled"}
	h.await(draining)
	var answers []answer
	for _, c := range comes {
		answers = append(answers, c.finish())
	}
	inTime := h.verbose().in(draining) == nil
	held.End()
	last := h.awaitAnswer(waits)
	output, code := h.Wait()
	if !inTime {
		return false
	}
	for _, a := range answers {
		h.checkAnswer(a, no, "unavailable")
	}
	if code != 0 || !strings.Contains(output, "drained: 1 finished, 3 refused, 0 aborted") {
		h.t.Fatalf("exit %d:\n%s", code, output)
	}
	h.start()
	h.checkKept(waits, last)
	h.stop()
	return true
}

// TestAborting: after a second signal the node aborts the requests in progress and does not wait for a disk that
// does not answer. The process ends when the disk lets it.
func TestAborting(t *testing.T) {
	t.Parallel()
	h := newFaultyNode(t)
	h.start()
	held := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Sync}, Hold: true})
	waits := h.send("waits", 1)
	h.await(readOnly("journal_stalled", ""))
	h.Signal(syscall.SIGTERM)
	h.until("it drains", func() error { return h.missingLogLine("signal received", "again=false") })
	h.Signal(syscall.SIGTERM)
	if a := h.awaitAnswer(waits); a.err == nil {
		h.checkAnswer(a, http.StatusGatewayTimeout, "outcome_unknown") // or its connection was cut
	}
	h.until("it has stopped", func() error {
		switch v := h.verbose(); v.Phase {
		case "stopped":
			return nil
		case "aborting":
			return v.in(row{phase: "aborting", ready: no, read: no, reads: no, writes: no, ailing: []string{"journal_stalled"}})
		default:
			return errors.New(v.Phase)
		}
	})
	held.End()
	output, code := h.Wait()
	if code != 0 || !strings.Contains(output, " 1 aborted") {
		t.Fatalf("exit %d:\n%s", code, output)
	}
	h.start()
	h.checkSettled(waits, true)
	h.stop()
	h.verify()
}

// TestUnreadableFreeSpace: if the free space cannot be read, that is a named condition and requests are served.
// Failing too often is another condition.
func TestUnreadableFreeSpace(t *testing.T) {
	t.Parallel()
	h := newFaultyNode(t)
	h.start()
	fails := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Free}, Err: syscall.EIO})
	<-fails.Met()
	held := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Free}, Hold: true})
	fails.End()
	<-held.Met()
	unwatched := row{phase: "degraded", ready: yes, read: yes, reads: yes, writes: yes, unmet: []string{"sampler"}}
	h.await(unwatched)
	h.checkRow(unwatched)
	h.awaitLogLine("service failed", "service=sampler", "input/output error")
	held.End()
	h.await(wellness)
	if n := h.metric(`service_restarts_total{service="sampler"}`); n < 1 {
		t.Fatalf("%v restarts are counted", n)
	}
	h.checkRow(wellness)
	h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Free}, Err: syscall.EIO})
	often := unwatched.and("crash_loop")
	h.await(often)
	h.checkRow(often)
	h.disk.Heal()
	often.unmet = nil // it is remembered for a minute
	h.await(often)
	h.checkRow(often)
	h.stop()
}

// caller is a connection with an incomplete request.
type caller struct {
	conn net.Conn
	rest string
}

// beginRequest sends the first part of a request.
func (h *faultyNode) beginRequest(what string) *caller {
	h.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.HTTP, "http://"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	body := ""
	if strings.HasPrefix(what, http.MethodPost) {
		body = `{"to":"late","asset":"EUR/2","amount_minor":"5"}`
	}
	begin := what + " HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer " + h.Key
	c := &caller{conn, fmt.Sprintf("\r\nIdempotency-Key: late\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)}
	if body == "" {
		c.rest = "\r\n\r\n"
	}
	if _, err := io.WriteString(conn, begin); err != nil {
		h.t.Fatal(err)
	}
	return c
}

// finish sends the rest, and returns the response.
func (c *caller) finish() (a answer) {
	if a.err = c.conn.SetDeadline(time.Now().Add(patience)); a.err != nil {
		return a
	}
	if _, a.err = io.WriteString(c.conn, c.rest); a.err != nil {
		return a
	}
	resp, err := http.ReadResponse(bufio.NewReader(c.conn), nil)
	if a.err = err; err != nil {
		return a
	}
	return read(resp)
}
