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

// TestStarting: while the journal is read nobody is served, and operators are told what
// is missing.
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
			h := newHouse(t, "node.start_deadline="+c.deadline)
			h.start()
			h.stop()
			held := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Read}, Hold: true})
			h.launch()
			<-held.Met()
			h.ready()
			h.await(c.row)
			h.is(c.row)
			held.End()
			h.await(wellness)
			h.is(wellness)
			h.stop()
		})
	}
}

// TestFirstStart: a node whose first key is not durable lets nobody in; when that takes
// too long it says so, and it is ready when the disk has answered.
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
			h := newHouse(t, "node.start_deadline="+c.deadline)
			held := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Sync}, Of: first, Hold: true})
			h.launch()
			<-held.Met()
			h.ready()
			h.await(c.row)
			h.is(c.row)
			h.says("node state changed", "state="+c.phase, "waiting_for=key", c.ailing[len(c.ailing)-1])
			held.End()
			h.starts()
			h.stop()
			h.verify()
		})
	}
}

// TestLameDuck: a node that has been told to end serves on as long as it was told to,
// and sends traffic elsewhere; told again, it ends.
func TestLameDuck(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "node.lame_duck=5m")
	h.start()
	h.Signal(syscall.SIGTERM)
	lame := row{phase: "lame_duck", ready: no, read: no, reads: yes, writes: yes}
	h.await(lame)
	h.is(lame)
	h.disk.Leave(0)
	full := lame
	full.writes, full.ailing = no, []string{"disk_full"}
	h.await(full)
	h.is(full)
	h.stop()
	h.verify()
}

// TestDraining: what is in when a node drains is answered when the disk answers; what
// comes is refused; then the node has ended well.
func TestDraining(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "node.drain=5s", "http.header_timeout=1m", "http.read_timeout=1m")
	h.start()
	for attempt := 0; !h.drains(fmt.Sprintf("in-%d", attempt)); attempt++ {
		if attempt == 3 {
			t.Fatalf("five seconds of draining were never enough\n%s", h.Said())
		}
		h.start()
	}
	h.verify()
}

// drains reports that it was in time to see all of it.
func (h *house) drains(key string) bool {
	h.t.Helper()
	held := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Sync}, Hold: true})
	waits := h.send(key, 1)
	h.await(readOnly("journal_stalled", ""))
	comes := []*caller{h.calls("GET /v1/balance?account=ann&asset=EUR/2"), h.calls("GET /v1/tx/" + h.known.txid), h.calls("POST /v1/issue")}
	h.Signal(syscall.SIGTERM)
	draining := ending("draining")
	draining.ailing = []string{"journal_stalled"}
	h.await(draining)
	var told []answer
	for _, c := range comes {
		told = append(told, c.says())
	}
	inTime := h.verbose().in(draining) == nil
	held.End()
	last := h.ends(waits)
	said, code := h.Wait()
	if !inTime {
		return false
	}
	for _, a := range told {
		h.wants(a, no, "unavailable")
	}
	if code != 0 || !strings.Contains(said, "drained: 1 finished, 3 refused, 0 aborted") {
		h.t.Fatalf("exit %d:\n%s", code, said)
	}
	h.start()
	h.keeps(waits, last)
	h.stop()
	return true
}

// TestAborting: told twice, a node gives up what is in, and does not wait for a disk
// that does not answer to say so; the process goes when the disk lets it.
func TestAborting(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.start()
	held := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Sync}, Hold: true})
	waits := h.send("waits", 1)
	h.await(readOnly("journal_stalled", ""))
	h.Signal(syscall.SIGTERM)
	h.until("it drains", func() error { return h.said("signal received", "again=false") })
	h.Signal(syscall.SIGTERM)
	if a := h.ends(waits); a.err == nil {
		h.wants(a, http.StatusGatewayTimeout, "outcome_unknown") // or its connection was cut
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
	said, code := h.Wait()
	if code != 0 || !strings.Contains(said, " 1 aborted") {
		t.Fatalf("exit %d:\n%s", code, said)
	}
	h.start()
	h.settles(waits, true)
	h.stop()
	h.verify()
}

// TestUnwatched: a disk that nobody can look at is a named reason, and keeps nobody from
// reading and writing; looking too often in vain is another.
func TestUnwatched(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.start()
	fails := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Free}, Err: syscall.EIO})
	<-fails.Met()
	held := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Free}, Hold: true})
	fails.End()
	<-held.Met()
	unwatched := row{phase: "degraded", ready: yes, read: yes, reads: yes, writes: yes, unmet: []string{"sampler"}}
	h.await(unwatched)
	h.is(unwatched)
	h.says("service failed", "service=sampler", "input/output error")
	held.End()
	h.await(wellness)
	if n := h.metric(`service_restarts_total{service="sampler"}`); n < 1 {
		t.Fatalf("%v restarts are counted", n)
	}
	h.is(wellness)
	h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Free}, Err: syscall.EIO})
	often := unwatched.and("crash_loop")
	h.await(often)
	h.is(often)
	h.disk.Heal()
	often.unmet = nil // it is remembered for a minute
	h.await(often)
	h.is(often)
	h.stop()
}

// caller is on a connection that has begun its request, and not ended it.
type caller struct {
	conn net.Conn
	rest string
}

// calls begins a request.
func (h *house) calls(what string) *caller {
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

// says ends the request, and is what it is told.
func (c *caller) says() (a answer) {
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
