package faults_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"macronode/chaos/faults"
)

// TestLowSpaceStopsWrites: with less free space than the reserve, writes are rejected and reads served. More free
// space ends that without an operator.
func TestLowSpaceStopsWrites(t *testing.T) {
	t.Parallel()
	h := newFaultyNode(t)
	h.start()
	full := readOnly("disk_full", "")
	for range 2 {
		h.disk.Leave(256<<20 - 1<<12)
		h.await(full)
		h.checkRow(full)
		h.checkFresh() // nothing is on its way
		h.awaitLogLine("node state changed", "state=degraded", "degraded_by=disk_full", "reads=true", "writes=false")
		h.disk.Leave(256 << 20)
		h.await(wellness)
		h.checkRow(wellness)
	}
	h.disk.Leave(0)
	h.await(full)
	h.stop() // the reserve is for this
	h.launch()
	h.await(full) // and so is a start; it is not ready, and is read
	h.findListener()
	h.checkRow(full)
	h.disk.Honest()
	h.await(wellness)
	h.checkRow(wellness)
	h.stop()
	h.verify()
}

// TestPreallocationFailureIsIgnored: it is not an error that the disk cannot preallocate space.
func TestPreallocationFailureIsIgnored(t *testing.T) {
	t.Parallel()
	h := newFaultyNode(t)
	ahead := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Write}, Err: syscall.ENOSPC,
		Of: func(c faults.Call) bool { return len(bytes.Trim(c.Data, "\x00")) == 0 }})
	h.start()
	<-ahead.Met()
	for _, key := range []string{"one", "two"} {
		h.checkKept(sent{key: key, to: key}, h.issue(key, key))
	}
	h.checkRow(wellness)
	h.stop()
	h.verify()
	h.disk.Heal()
	h.start()
	h.checkSettled(sent{key: "two", to: "two"}, true)
	h.stop()
}

// TestFullDisk: the same on a real disk that another program fills to the last byte. Acknowledged outcomes stay, a
// start names what is needed, and succeeds when there is space.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	h := newPlainNode(t, "journal.min_free_bytes=64MiB")
	small := h.Data
	skipWithoutDisk(t, syscall.Mount("faults", small, "tmpfs", 0, "size=170m"))
	t.Cleanup(func() {
		h.killAll()
		if err := syscall.Unmount(small, 0); err != nil {
			t.Error(err)
		}
	})
	h.start()
	neighbour := filepath.Join(small, "neighbour")
	h.fill(neighbour)
	full := readOnly("disk_full", "").and("uploads_refused")
	h.await(full)
	h.checkRow(full)
	h.stop()
	h.fill(neighbour) // also what the node gave back when it ended
	output, code := h.command("serve", "--data", h.Data, "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	if code != 2 || !strings.Contains(output, "free space or inodes on the disk") || !strings.Contains(output, "nothing is lost") {
		t.Fatalf("exit %d:\n%s", code, output)
	}
	if err := os.Truncate(neighbour, 130<<20); err != nil {
		t.Fatal(err)
	}
	h.launch() // there is room for that, and not for writes
	h.await(full)
	h.findListener()
	h.checkRow(full)
	if err := os.Truncate(neighbour, 60<<20); err != nil { // there is room for writes, and not for uploads
		t.Fatal(err)
	}
	scarce := wellness.and("uploads_refused")
	scarce.phase = "degraded"
	h.await(scarce)
	h.checkRow(scarce)
	if err := os.Remove(neighbour); err != nil {
		t.Fatal(err)
	}
	h.await(wellness)
	h.checkRow(wellness)
	h.stop()
	h.verify()
}

// fill fills the disk to the last byte.
func (h *faultyNode) fill(path string) {
	h.t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		h.t.Fatal(err)
	}
	for size := 1 << 20; size > 0; {
		n, err := f.Write(make([]byte, size))
		if n == 0 || err != nil {
			size /= 2
		}
	}
	if err := f.Close(); err != nil {
		h.t.Fatal(err)
	}
}
