package faults_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"macronode/chaos/faults"
)

// kept is more than the frames that a node keeps in memory.
const kept = 1<<14 + 1<<9

// first selects the oldest segment.
func first(c faults.Call) bool { return c.Name == "00000001.seg" }

// TestUnreadable: an old response that the disk cannot read is an error of the node, by txid and under its key,
// and never a 404. Other requests continue, and the same bytes are returned when the disk recovers.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	h := newFaultyNode(t)
	h.start()
	old := sent{key: "old", to: "old"}
	receipt := h.issue(old.key, old.to)
	h.checkKept(old, receipt)
	h.load(kept) // so that the old frame is not in memory, and not prefetched
	trouble := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Read}, Of: first, Err: syscall.EIO})
	errors := h.metric(`io_errors_total{op="journal"}`)
	h.checkAnswer(h.tx(receipt.txid), http.StatusInternalServerError, "internal")
	<-trouble.Met()
	h.checkAnswer(h.issue(old.key, old.to), http.StatusInternalServerError, "internal")
	if now := h.metric(`io_errors_total{op="journal"}`); now != errors+2 {
		t.Fatalf("%v failures were counted, then %v", errors, now)
	}
	h.awaitLogLine("frame not readable", "input/output error")
	recent := sent{key: "recent", to: "recent"}
	h.checkKept(recent, h.issue(recent.key, recent.to))
	if _, b := h.balance("old"); b.Amount != "5" {
		t.Fatalf("%+v", b)
	}
	h.known = answer{} // it is old as well
	h.checkRow(wellness)
	trouble.End()
	h.checkKept(old, receipt)
	h.stop()
	h.checkUnreadableStart()
	h.start()
	h.checkKept(old, receipt)
	h.stop()
	h.verify()
}

// checkUnreadableStart: a start that cannot read its journal fails with a reason.
func (h *faultyNode) checkUnreadableStart() {
	h.t.Helper()
	trouble := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Read}, Of: first, Err: syscall.EIO})
	defer trouble.End()
	if err := h.Launch(); err != nil {
		h.t.Fatal(err)
	}
	output, code := h.Wait()
	if code != 2 || !strings.Contains(output, "00000001.seg") || !strings.Contains(output, "input/output error") {
		h.t.Fatalf("exit %d:\n%s", code, output)
	}
}

// load makes a number of movements.
func (h *faultyNode) load(times int) {
	h.t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	next := make(chan int, times)
	for i := range times {
		next <- i
	}
	close(next)
	var all sync.WaitGroup
	errs := make([]error, 64)
	for n := range errs {
		all.Go(func() {
			for i := range next {
				errs[n] = errors.Join(errs[n], h.one(client, i))
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		h.t.Fatal(err)
	}
}

func (h *faultyNode) one(client *http.Client, i int) error {
	body := bytes.NewReader([]byte(`{"to":"many","asset":"EUR/2","amount_minor":"1"}`))
	req, err := http.NewRequest(http.MethodPost, h.HTTP+"/v1/issue", body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+h.Key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", fmt.Sprintf("load-%d", i))
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	var output bytes.Buffer
	_, err = output.ReadFrom(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d %s", resp.StatusCode, output.String())
	}
	return errors.Join(err, resp.Body.Close())
}
