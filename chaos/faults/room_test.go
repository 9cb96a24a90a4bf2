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

// TestRoom: with less free than the reserve no write is taken and all is read; room that
// is made ends that, and nobody has to do anything else.
func TestRoom(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.start()
	full := readOnly("disk_full", "")
	for range 2 {
		h.disk.Leave(256<<20 - 1<<12)
		h.await(full)
		h.is(full)
		h.fresh() // nothing is on its way
		h.says("node state changed", "state=degraded", "degraded_by=disk_full", "reads=true", "writes=false")
		h.disk.Leave(256 << 20)
		h.await(wellness)
		h.is(wellness)
	}
	h.disk.Leave(0)
	h.await(full)
	h.stop() // the reserve is for this
	h.launch()
	h.await(full) // and so is a start; it is not ready, and is read
	h.ready()
	h.is(full)
	h.disk.Honest()
	h.await(wellness)
	h.is(wellness)
	h.stop()
	h.verify()
}

// TestNoRoomAhead: that the disk has none for what is to be written later is no failure.
func TestNoRoomAhead(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ahead := h.disk.Begin(faults.Trouble{On: []faults.Op{faults.Write}, Err: syscall.ENOSPC,
		Of: func(c faults.Call) bool { return len(bytes.Trim(c.Data, "\x00")) == 0 }})
	h.start()
	<-ahead.Met()
	for _, key := range []string{"one", "two"} {
		h.keeps(sent{key: key, to: key}, h.issue(key, key))
	}
	h.is(wellness)
	h.stop()
	h.verify()
	h.disk.Heal()
	h.start()
	h.settles(sent{key: "two", to: "two"}, true)
	h.stop()
}

// TestFullDisk: the same on a real disk that a neighbour fills, to the last byte. What
// was told stays told, a start says what must be, and gets on when there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	h := plainHouse(t, "journal.min_free_bytes=64MiB")
	small := h.Data
	wanted(t, syscall.Mount("faults", small, "tmpfs", 0, "size=80m"))
	t.Cleanup(func() {
		h.raze()
		if err := syscall.Unmount(small, 0); err != nil {
			t.Error(err)
		}
	})
	h.start()
	neighbour := filepath.Join(small, "neighbour")
	h.fill(neighbour)
	full := readOnly("disk_full", "")
	h.await(full)
	h.is(full)
	h.stop()
	h.fill(neighbour) // also what the node gave back when it ended
	said, code := h.command("serve", "--data", h.Data, "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	if code != 2 || !strings.Contains(said, "free space on the disk") || !strings.Contains(said, "nothing is lost") {
		t.Fatalf("exit %d:\n%s", code, said)
	}
	if err := os.Truncate(neighbour, 40<<20); err != nil {
		t.Fatal(err)
	}
	h.launch() // there is room for that, and not for writes
	h.await(full)
	h.ready()
	h.is(full)
	if err := os.Remove(neighbour); err != nil {
		t.Fatal(err)
	}
	h.await(wellness)
	h.is(wellness)
	h.stop()
	h.verify()
}

// fill leaves no byte.
func (h *house) fill(path string) {
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
