package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/core/record"
	"macronode/core/types"
)

// TestSeriesOfTheIndex: each series of the index is what the index says of itself, while no two of
// them are the same.
func TestSeriesOfTheIndex(t *testing.T) {
	m := newMetered(t, "index.memtable_frames=100")
	m.index.Rebuild()
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	for range 105 {
		m.pays()
	}
	index := m.index
	go func() { over <- index.Run(ctx) }()
	until(func() bool { return index.Mark().LSN == 105 && index.Stats().Tables > 0 })
	for range 3 {
		n := m.journal.Durable() + 1
		m.pays()
		must(t, m.journal.Range(n, func(s record.Sealed) error { index.Offer([]record.Sealed{s}); return nil }))
	}
	until(func() bool { return index.Mark().LSN == 108 })
	for range 2 {
		go index.Await(ctx, types.DefaultTenant, 1000)
	}
	until(func() bool { n, _ := index.Awaited(); return n == 2 })
	tail, _ := index.Tails()
	is := index.Stats()
	want := map[string]float64{"index_tables": float64(is.Tables), "index_disk_bytes": float64(is.Disk), "index_rebuilds_total": float64(is.Rebuilt),
		queueSeries("index_tail"): float64(tail), queueSeries("index_await"): 2, "index_lag_lsn": 0}
	got := m.values()
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %v, and the index has %v", name, got[name], value)
		}
		for other, same := range want {
			if other != name && same == value {
				t.Errorf("%s and %s both have %v: neither is told from the other", name, other, value)
			}
		}
	}
	stop()
	must(t, <-over)
}

// TestBodiesAndStreamsAreCounted: a large body that has not arrived, and a stream of changes, are
// each counted while they last, and by their own gauge.
func TestBodiesAndStreamsAreCounted(t *testing.T) {
	p := serves(t, "log.level=error", "http.read_timeout=1m", "http.request_deadline=1m")
	raw, err := os.ReadFile(filepath.Join(p.dir, "bootstrap.key"))
	must(t, err)
	key := strings.TrimSpace(string(raw))
	open := func(text string) net.Conn {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.HTTP, "http://"))
		must(t, err)
		_, err = io.WriteString(conn, strings.ReplaceAll(text, "KEY", key))
		must(t, err)
		return conn
	}
	gauges := func() string {
		text := p.asks(t, "/metrics")
		_, large, _ := strings.Cut(text, "\n"+queueSeries("large_bodies")+" ")
		_, streams, _ := strings.Cut(text, "\n"+seriesOf("semaphore_inflight", "facet", "streams")+" ")
		large, _, _ = strings.Cut(large, "\n")
		streams, _, _ = strings.Cut(streams, "\n")
		return large + " " + streams
	}
	become := func(want string) {
		t.Helper()
		is := ""
		for range 1000 {
			if is = gauges(); is == want {
				return
			}
			time.Sleep(time.Millisecond) // the next scrape
		}
		t.Errorf("bodies and streams are %s, want %s", is, want)
	}
	become("0 0")
	until(func() bool { // the index is open
		status, _ := p.asked(t, http.MethodGet, "/v1/changes", "Authorization", "Bearer "+key)
		return status == http.StatusOK
	})
	body := open("POST /v1/batch HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\nIdempotency-Key: one\r\nContent-Length: 100000\r\n\r\n{")
	become("1 0")
	stream := open("GET /v1/changes HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer KEY\r\nAccept: text/event-stream\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(stream), nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	become("1 1")
	must(t, body.Close())
	become("0 1")
	must(t, stream.Close())
	become("0 0")
}
