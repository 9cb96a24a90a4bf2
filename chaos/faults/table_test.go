package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"time"
)

// row is a line of the table of states: the responses in one of them.
type row struct {
	phase  string
	ready  int // /readyz
	read   int // /readyz?for=read
	reads  int // 0: the listener is not open yet
	writes int
	unmet  []string
	ailing []string
	fault  string
}

const (
	yes = http.StatusOK
	no  = http.StatusServiceUnavailable
)

var wellness = row{phase: "ready", ready: yes, read: yes, reads: yes, writes: yes}

// readOnly returns the row of a journal that rejects writes.
func readOnly(ailing, fault string) row {
	return row{phase: "degraded", ready: no, read: yes, reads: yes, writes: no, ailing: []string{ailing}, fault: fault}
}

// ending returns the row of a phase in which new requests are rejected.
func ending(phase string) row { return row{phase: phase, ready: no, read: no, reads: no, writes: no} }

func (r row) and(why string) row {
	r.ailing = append(slices.Clone(r.ailing), why)
	return r
}

// view is the verbose readiness.
type view struct {
	Ready   bool      `json:"ready"`
	Phase   string    `json:"phase"`
	Reads   bool      `json:"reads"`
	Writes  bool      `json:"writes"`
	Unmet   []string  `json:"waiting_for"`
	Ailing  []string  `json:"degraded_by"`
	Fault   string    `json:"journal_fault"`
	LSN     uint64    `json:"lsn"`
	Durable uint64    `json:"durable_lsn"`
	Folded  uint64    `json:"folded_lsn"`
	At      time.Time `json:"at"`
	Offset  int64     `json:"clock_offset_ms"`
	Held    int       `json:"held_replies"`

	status int
}

func (h *faultyNode) verbose() view {
	a := h.ask(http.MethodGet, h.Admin+"/readyz?verbose", "", "")
	v := view{status: a.status}
	_ = json.Unmarshal(a.body, &v) // what is not said does not match
	return v
}

// in returns an error unless the view is that of a row.
func (v view) in(r row) error {
	same := v.Phase == r.phase && v.status == r.ready && v.Ready == (r.ready == yes) && v.Reads == (r.reads == yes) &&
		v.Writes == (r.writes == yes) && slices.Equal(v.Unmet, r.unmet) && slices.Equal(v.Ailing, r.ailing) && v.Fault == r.fault
	if !same {
		return fmt.Errorf("%+v is not of %+v", v, r)
	}
	return nil
}

// await waits until the node is in the state of a row.
func (h *faultyNode) await(r row) {
	h.t.Helper()
	h.until(fmt.Sprintf("%+v", r), func() error { return h.verbose().in(r) })
}

// checkRow compares every endpoint with the row. The node is in its state and stays there.
func (h *faultyNode) checkRow(r row) {
	h.t.Helper()
	if err := h.verbose().in(r); err != nil {
		h.t.Fatalf("%v\n%s", err, h.Output())
	}
	for _, path := range []string{"/livez", "/healthz"} {
		h.checkAnswer(h.ask(http.MethodGet, h.Admin+path, "", ""), http.StatusOK, "")
	}
	h.checkAnswer(h.ask(http.MethodGet, h.Admin+"/readyz", "", ""), r.ready, "")
	h.checkAnswer(h.ask(http.MethodGet, h.Admin+"/readyz?for=read", "", ""), r.read, "")
	level := 2.0
	switch {
	case r.ready != yes:
		level = 0
	case r.phase == "degraded":
		level = 1
	}
	if got := h.metric(`readyz_state{service="node"}`); got != level {
		h.t.Fatalf("readyz_state is %v in %+v", got, r)
	}
	if r.reads == 0 {
		if h.HTTP != "" {
			h.t.Fatalf("the public listener is up: %s", h.HTTP)
		}
		return
	}
	h.checkAPI(r)
	if err := h.verbose().in(r); err != nil {
		h.t.Fatalf("it did not stay so: %v\n%s", err, h.Output())
	}
}

// checkAPI compares the public API with the row.
func (h *faultyNode) checkAPI(r row) {
	h.t.Helper()
	balance, _ := h.balance("ann")
	reads := []answer{balance}
	if h.known.txid != "" {
		reads = append(reads, h.tx(h.known.txid))
	}
	for _, a := range reads {
		if r.reads == yes {
			h.checkAnswer(a, yes, "")
		} else {
			h.checkAnswer(a, no, "unavailable")
		}
	}
	if r.reads == yes && len(reads) == 2 && !bytes.Equal(reads[1].body, h.known.body) {
		h.t.Fatalf("the receipt is now\n%s", reads[1].body)
	}
	if r.reads == yes && h.known.txid != "" { // a retry writes nothing
		again := h.issue("known", "ann")
		if h.checkAnswer(again, yes, ""); !bytes.Equal(again.body, h.known.body) || again.header.Get("Idempotency-Replayed") != "true" {
			h.t.Fatalf("asked again it is\n%s", again.body)
		}
	}
	h.probes++
	before := h.metric(`rejected_total{plane="wallet",reason="unavailable"}`)
	a := h.issue(fmt.Sprintf("probe-%d", h.probes), "probe")
	if r.writes == yes {
		h.checkAnswer(a, yes, "")
		return
	}
	h.checkAnswer(a, no, "unavailable")
	if after := h.metric(`rejected_total{plane="wallet",reason="unavailable"}`); after <= before {
		h.t.Fatalf("a write that was refused is not counted: %v, then %v", before, after)
	}
}

// checkStale: balances report their age: as_of stays and stale_ms grows.
func (h *faultyNode) checkStale() {
	h.t.Helper()
	_, first := h.balance("ann")
	h.until("stale_ms grows", func() error {
		a, now := h.balance("ann")
		switch {
		case now.AsOf != first.AsOf || now.Seq != first.Seq || now.Stale < first.Stale:
			h.t.Fatalf("%+v, then %+v (%s)", first, now, a.body)
		case now.Stale <= first.Stale || now.Stale == 0:
			return fmt.Errorf("%+v", now)
		}
		return nil
	})
}

// checkFresh: balances are current.
func (h *faultyNode) checkFresh() {
	h.t.Helper()
	if a, now := h.balance("ann"); now.Stale != 0 {
		h.t.Fatalf("nothing is on its way, and: %s", a.body)
	}
}

// checkStays lets more than a second pass on the node's clock, so that everything that depends on time has
// happened.
func (h *faultyNode) checkStays(r row) {
	h.t.Helper()
	from := h.verbose().At
	h.until("a second goes by", func() error {
		v := h.verbose()
		if err := v.in(r); err != nil {
			h.t.Fatalf("it did not stay so: %v\n%s", err, h.Output())
		}
		if v.At.Sub(from) < 1100*time.Millisecond {
			return errors.New("not yet")
		}
		return nil
	})
}

// command runs the binary with other arguments until it ends.
func (h *faultyNode) command(args ...string) (output string, code int) {
	h.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 2*patience)
	defer stop()
	out, err := exec.CommandContext(ctx, h.Binary, args...).CombinedOutput()
	if ctx.Err() != nil {
		h.t.Fatalf("%q does not end: %s", args, out)
	}
	exit := &exec.ExitError{}
	if err != nil && !errors.As(err, &exit) {
		h.t.Fatal(err)
	}
	if err != nil {
		code = exit.ExitCode()
	}
	return string(out), code
}
