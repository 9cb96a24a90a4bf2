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

// first is the oldest segment.
func first(c faults.Call) bool { return c.Name == "00000001.seg" }

// TestUnreadable: an old answer that the disk does not give back is told as the node's
// own fault, by its txid and under its key, never as what is not there; everything else
// goes on, and the same bytes come when the disk gives them.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.start()
	old := sent{key: "old", to: "old"}
	told := h.issue(old.key, old.to)
	h.keeps(old, told)
	h.load(kept) // and nobody asks for the old one, which would lie aside
	trouble := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Read}, Of: first, Err: syscall.EIO})
	errors := h.metric(`io_errors_total{op="journal"}`)
	h.wants(h.tx(told.txid), http.StatusInternalServerError, "internal")
	<-trouble.Met()
	h.wants(h.issue(old.key, old.to), http.StatusInternalServerError, "internal")
	if now := h.metric(`io_errors_total{op="journal"}`); now != errors+2 {
		t.Fatalf("%v failures were counted, then %v", errors, now)
	}
	h.says("frame not readable", "input/output error")
	recent := sent{key: "recent", to: "recent"}
	h.keeps(recent, h.issue(recent.key, recent.to))
	if _, b := h.balance("old"); b.Amount != "5" {
		t.Fatalf("%+v", b)
	}
	h.known = answer{} // it is old as well
	h.is(wellness)
	trouble.End()
	h.keeps(old, told)
	h.stop()
	h.cannotRead()
	h.start()
	h.keeps(old, told)
	h.stop()
	h.verify()
}

// cannotRead: a start that cannot read its journal says so and is none.
func (h *house) cannotRead() {
	h.t.Helper()
	trouble := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Read}, Of: first, Err: syscall.EIO})
	defer trouble.End()
	if err := h.Launch(); err != nil {
		h.t.Fatal(err)
	}
	said, code := h.Wait()
	if code != 2 || !strings.Contains(said, "00000001.seg") || !strings.Contains(said, "input/output error") {
		h.t.Fatalf("exit %d:\n%s", code, said)
	}
}

// load moves money so many times.
func (h *house) load(times int) {
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

func (h *house) one(client *http.Client, i int) error {
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
	var said bytes.Buffer
	_, err = said.ReadFrom(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d %s", resp.StatusCode, said.String())
	}
	return errors.Join(err, resp.Body.Close())
}
