package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"macronode/adapters/adminapi"
	"macronode/adapters/fs"
	"macronode/cmd/macronode/internal/testkit"
)

// sinksText returns a configuration with sinks.
func sinksText(sinks ...string) string {
	return "exports:\n  sinks: [" + strings.Join(sinks, ", ") + "]\n"
}

func httpSink(name, url, more string) string {
	return fmt.Sprintf("{name: %s, kind: http, url: %q, streams: [wallet]%s}", name, url, more)
}

func fileSink(name, dir string) string {
	return fmt.Sprintf("{name: %s, kind: file, dir: %q, streams: [wallet]}", name, dir)
}

// TestSinksAreReloaded: a reload under traffic adds, changes and removes sinks. Each movement is delivered in order, and to one receiver
// only. Sinks that stay are not disturbed, and a reload that cannot be applied changes nothing.
func TestSinksAreReloaded(t *testing.T) {
	t.Parallel()
	one, two, late := newReceiver(t), newReceiver(t), newReceiver(t)
	out, other := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "other")
	c := startWithFile(t, sinksText(httpSink("app", one.URL, ""), fileSink("kept", out), fileSink("files", other)))
	n := &exportsNode{process: c.process, t: t}
	reload := func(sinks ...string) {
		t.Helper()
		if is, status := c.reload(sinksText(sinks...)); status != http.StatusOK || !is.Last.Applied {
			t.Fatalf("%d %+v", status, is.Last)
		}
	}
	movements := func(r *receiver) int { return len(r.positions("movements/default")) }
	var made int
	var payers sync.WaitGroup
	stop := make(chan struct{})
	payers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				n.run("wallet issue --to ann --asset EUR/2 --amount 1", 0)
				made++
			}
		}
	})
	testkit.Until(func() bool { return movements(one) > 2 })

	// The receiver changes, a sink is removed, and another one is added that begins now.
	reload(httpSink("app", two.URL, ""), fileSink("kept", out), httpSink("late", late.URL, ", from: now"))
	testkit.Until(func() bool { return movements(two) > 2 && movements(late) > 2 })
	lock, err := fs.Lock(fs.Dir(other), "a test") // it is free
	if err != nil {
		t.Fatal(err)
	}
	if text := c.adminText(t, "/metrics"); !strings.Contains(text, `export_pending{sink="late"}`) || strings.Contains(text, `sink="files"`) {
		t.Error("the series are not those of the sinks")
	}
	if got := n.run("exports status", 0); !strings.Contains(got, "unknown") {
		t.Error(got)
	}

	// A directory that is not free, and one of the node, reject the whole reload.
	for _, dir := range []string{other, filepath.Join(c.dir, "journal")} {
		is, status := c.reload(sinksText(httpSink("app", one.URL, ""), fileSink("files", dir)))
		if status == http.StatusOK || is.Last.Applied || !strings.Contains(strings.Join(is.Last.Why, "\n"), dir) {
			t.Errorf("%d %+v", status, is.Last)
		}
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}

	// A receiver that does not answer is replaced, and so is one that was never reached.
	two.answer(0)
	testkit.Until(func() bool { return n.sink().InFlight == 1 })
	reload(httpSink("app", "http://127.0.0.1:9", ""), fileSink("kept", out), fileSink("files", other))
	reload(httpSink("app", one.URL, ""), fileSink("kept", out), fileSink("files", other))
	before := movements(one)
	testkit.Until(func() bool { return movements(one) > before+2 })
	close(stop)
	payers.Wait()
	lines := func(dir string) int {
		text, _ := os.ReadFile(filepath.Join(dir, "wallet-00000001.ndjson")) // none at first
		return strings.Count(string(text), "\n")
	}
	testkit.Until(func() bool {
		return movements(one)+movements(two) >= made && lines(out) >= made && lines(other) >= made
	})
	first, second := one.positions("movements/default"), two.positions("movements/default")
	all := slices.Concat(first, second)
	slices.Sort(all)
	want := make([]int, made)
	for i := range want {
		want[i] = i + 1
	}
	if !slices.Equal(all, want) || !slices.IsSorted(first) || !slices.IsSorted(second) {
		t.Errorf("of %d movements one has %v, two has %v", made, first, second)
	}
	if got := late.positions("movements/default"); got[0] <= 2 || !slices.IsSorted(got) || got[len(got)-1]-got[0] != len(got)-1 {
		t.Errorf("late has %v", got)
	}
	if lines(out) != made || lines(other) != made {
		t.Errorf("of %d movements the files have %d and %d", made, lines(out), lines(other))
	}
	n.end()
	for line := range strings.Lines(c.log.String()) {
		if strings.Contains(line, "sink is failing") && !strings.Contains(line, "sink=app ") { // its receiver was away for a time
			t.Error("a sink that stays has failed")
		}
	}
}

// TestLinkToTheDirectoryOfAFailingSink: a sink whose directory lacks its files fails, and has no lock. A reload with another sink whose
// directory is a link to that one is rejected, as a start would be.
func TestLinkToTheDirectoryOfAFailingSink(t *testing.T) {
	t.Parallel()
	r, dir := newReceiver(t), t.TempDir()
	out, link := filepath.Join(dir, "out"), filepath.Join(dir, "link")
	testkit.Must(t, os.Mkdir(out, 0o700))
	testkit.Must(t, os.Symlink(out, link))
	c := startWithFile(t, sinksText(httpSink("app", r.URL, "")))
	n := &exportsNode{process: c.process, t: t}
	n.run("wallet issue --to ann --asset EUR/2 --amount 1", 0)
	testkit.Until(func() bool {
		left := n.sink().Pending
		return len(r.positions("movements/default")) == 1 && left != nil && *left == 0
	})
	if is, status := c.reload(sinksText(fileSink("app", out))); status != http.StatusOK || !is.Last.Applied {
		t.Fatalf("%d %+v", status, is.Last)
	}
	n.run("wallet issue --to ann --asset EUR/2 --amount 1", 0)
	<-n.log.Await("has no file of the stream")
	for check := testkit.HangGuard(t); ; check() {
		is, status := c.reload(sinksText(fileSink("app", out), fileSink("t", link)))
		if status == http.StatusOK || is.Last.Applied {
			t.Fatalf("%d %+v", status, is.Last)
		}
		why := strings.Join(is.Last.Why, "\n")
		if strings.Contains(why, link+" is "+out+", that of sink app") {
			break
		}
		if !strings.Contains(why, "the directory is in use") { // an attempt of the sink has the lock for a moment
			t.Fatal(why)
		}
	}
	n.end()
}

// TestChangedSinkWaitsForOldOne: after a reload, the old receiver gets only what is being delivered, and the new one gets nothing before
// that has ended.
func TestChangedSinkWaitsForOldOne(t *testing.T) {
	t.Parallel()
	const stream, long = "movements/default", 200 * time.Millisecond
	next, begun, reloaded := newReceiver(t), make(chan struct{}, 100), make(chan struct{})
	old := newReceiver(t)
	old.before = func(gone context.Context) {
		begun <- struct{}{}
		select {
		case <-reloaded:
		case <-gone.Done():
		}
		for until := time.Now().Add(long); time.Now().Before(until) && gone.Err() == nil && len(next.positions(stream)) == 0; {
			time.Sleep(5 * time.Millisecond)
		}
	}
	c := startWithFile(t, sinksText(httpSink("app", old.URL, "")))
	n := &exportsNode{process: c.process, t: t}
	issue := func() { n.run("wallet issue --to ann --asset EUR/2 --amount 1", 0) }
	issue()
	issue()
	<-begun
	if is, status := c.reload(sinksText(httpSink("app", next.URL, ""))); status != http.StatusOK || !is.Last.Applied {
		t.Fatalf("%d %+v", status, is.Last)
	}
	issue()
	close(reloaded)
	testkit.Until(func() bool { return slices.Contains(next.positions(stream), 3) })
	if !slices.Equal(old.positions(stream), []int{1}) || !slices.Equal(next.positions(stream), []int{2, 3}) {
		t.Errorf("the old receiver has %v, the new one %v", old.positions(stream), next.positions(stream))
	}
	n.end()
}

// TestHangingReceiverIsReplaced: a reload ends the attempts of sinks with receivers that take a connection and say nothing, and the new receivers
// get the items.
func TestHangingReceiverIsReplaced(t *testing.T) {
	t.Parallel()
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer silent.Close()
	var open atomic.Int64 // connections that the node has not closed
	kinds := []string{"http", "webhook", "cloudevents"}
	go func() {
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			open.Add(1)
			go func() {
				defer open.Add(-1)
				_, _ = io.Copy(io.Discard, conn) // until the node has closed it
				_ = conn.Close()
			}()
		}
	}()
	secret := filepath.Join(t.TempDir(), "secret")
	testkit.Must(t, os.WriteFile(secret, []byte("whsec_"+strings.Repeat("A", 32)+"\n"), 0o600))
	next := newReceiver(t)
	sinks := func(base string) (all []string) {
		for _, kind := range kinds {
			text := fmt.Sprintf("{name: %s, kind: %[1]s, url: %q, streams: [wallet]", kind, base+"/"+kind+"/default/1")
			if kind == "webhook" {
				text += fmt.Sprintf(", secret_file: %q", secret)
			}
			all = append(all, text+"}")
		}
		return all
	}
	c := startWithFile(t, sinksText(sinks("http://"+silent.Addr().String())...))
	n := &exportsNode{process: c.process, t: t}
	n.run("wallet issue --to ann --asset EUR/2 --amount 1", 0)
	testkit.Until(func() bool {
		var is adminapi.Exports
		testkit.Must(t, json.Unmarshal([]byte(n.run("exports status --json", 0)), &is))
		return len(is.Sinks) == len(kinds) && !slices.ContainsFunc(is.Sinks, func(s adminapi.Sink) bool { return s.InFlight == 0 })
	})
	if is, status := c.reload(sinksText(sinks(next.URL)...)); status != http.StatusOK || !is.Last.Applied {
		t.Fatalf("%d %+v", status, is.Last)
	}
	limit := time.Now().Add(40 * time.Second) // by itself an attempt ends after 60
	for replaced := false; !replaced; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("the attempts have not ended:\n%s", n.run("exports status", 0))
		}
		next.mu.Lock()
		replaced = open.Load() == 0 && !slices.ContainsFunc(kinds, func(kind string) bool {
			return !slices.ContainsFunc(next.got, func(path string) bool { return strings.HasPrefix(path, kind+"/default/1") })
		})
		next.mu.Unlock()
	}
	n.end()
}

// TestSinkWithoutItsFileFails: a file of a sink that cannot be read is a failure of the sink. The node starts, and a reload is applied.
func TestSinkWithoutItsFileFails(t *testing.T) {
	t.Parallel()
	text := sinksText(`{name: app, kind: postgres, database: "postgres://a@127.0.0.1:1/db?sslmode=verify-full&sslrootcert=/nowhere/ca.pem", streams: [wallet]}`)
	c := startWithFile(t, text)
	n := &exportsNode{process: c.process, t: t}
	n.run("wallet issue --to ann --asset EUR/2 --amount 1", 0)
	n.await("the sink fails", func(s adminapi.Sink) bool {
		return s.Reason == "the file of sslrootcert cannot be read: no such file or directory"
	})
	for _, next := range []string{text + "  quarantine_after: 11s\n", strings.ReplaceAll(text, "verify-full", "verify-ca")} {
		if is, status := c.reload(next); status != http.StatusOK || !is.Last.Applied {
			t.Errorf("%d %+v", status, is.Last)
		}
	}
	n.end()
}
