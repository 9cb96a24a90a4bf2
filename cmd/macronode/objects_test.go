package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"macronode/adapters/fs"
	"macronode/adapters/nodedir"
	"macronode/core/digest"
	"macronode/core/storage"
)

// killable is a node that may be killed.
type killable struct {
	*exec.Cmd
	log *written
	url string
	key string
}

func startKillable(t *testing.T, dir string, flags ...string) *killable {
	t.Helper()
	k := &killable{log: new(written)}
	k.Cmd = exec.Command("macronode", slices.Concat([]string{"serve", "--data", dir, "--json"}, somewhere, flags)...)
	k.Stderr = k.log
	out, err := k.StdoutPipe()
	if err == nil {
		err = k.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.end)
	var g greeting
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &g)
	}
	key, keyErr := nodedir.ReadKey(dir)
	if err != nil || keyErr != nil {
		t.Fatalf("%v, %v\n%s", err, keyErr, k.log)
	}
	k.url, k.key = g.HTTP, key.Text()
	return k
}

// end kills it.
func (k *killable) end() {
	if k.ProcessState == nil {
		_ = k.Process.Kill()
		_ = k.Wait() // it was killed
	}
}

// object asks for an object and returns the status and the body.
func (k *killable) object(t *testing.T, method, path string, body []byte) (status int, got []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, k.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	r.Header.Set("Authorization", "Bearer "+k.key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%v\n%s", err, k.log)
	}
	defer resp.Body.Close()
	got, err = io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, got
}

// half sends half of an upload and leaves the connection open.
func (k *killable) half(t *testing.T, body []byte) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(k.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "POST /o HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", k.key, len(body), body[:len(body)/2]); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestObjectsSurvive kills a node beside an unfinished upload: acknowledged objects are there and deleted ones are not,
// and the files that no object needs are removed.
func TestObjectsSurvive(t *testing.T) {
	dir := t.TempDir()
	k := startKillable(t, dir, "--set", "storage.collect_interval=24h")
	content := func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, []int{0, 5, 200_000, 70_000}[n]) }
	at := func(n int) string { return "/o/" + storage.Address(digest.Sum(content(n))).String() }
	for n := range 4 {
		if status, got := k.object(t, http.MethodPut, at(n), content(n)); status != http.StatusCreated {
			t.Fatalf("object %d: %d %s", n, status, got)
		}
	}
	if status, _ := k.object(t, http.MethodDelete, at(3), nil); status != http.StatusOK {
		t.Fatalf("delete: %d", status)
	}
	k.half(t, make([]byte, 400_000))
	files := func() (n int) {
		found, _ := filepath.Glob(filepath.Join(dir, "objects", "*"))
		return len(found)
	}
	for check := hangGuard(t); files() < 8; time.Sleep(time.Millisecond) { // the half upload has one, and one of nodes
		check()
	}
	k.end()

	k = startKillable(t, dir, "--set", "storage.collect_interval=20ms")
	for check := hangGuard(t); files() > 4; time.Sleep(time.Millisecond) {
		check()
	}
	for n := range 3 {
		if status, got := k.object(t, http.MethodGet, at(n), nil); status != http.StatusOK || !bytes.Equal(got, content(n)) {
			t.Errorf("object %d: %d, %d bytes", n, status, len(got))
		}
	}
	if status, _ := k.object(t, http.MethodGet, at(3), nil); status != http.StatusNotFound {
		t.Errorf("the deleted object: %d", status)
	}
	k.end()

	lost, _ := filepath.Glob(filepath.Join(dir, "objects", "*"))
	slices.Sort(lost)
	for _, name := range lost {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	k = startKillable(t, dir)
	if status, got := k.object(t, http.MethodGet, at(2), nil); status != http.StatusInternalServerError || !strings.Contains(string(got), "object_unreadable") {
		t.Errorf("an object without its file: %d %s", status, got)
	}
	if log := k.log.String(); !strings.Contains(log, "objects without a file") || !strings.Contains(log, "objects=3") {
		t.Errorf("the log does not report the missing files:\n%s", log)
	}
	if status, got := k.object(t, http.MethodPut, at(2), content(2)); status != http.StatusOK {
		t.Errorf("put again: %d %s", status, got)
	}
	if status, got := k.object(t, http.MethodGet, at(2), nil); status != http.StatusOK || !bytes.Equal(got, content(2)) {
		t.Errorf("after it was put again: %d, %d bytes", status, len(got))
	}
}

// TestObjectsNeedTheirJournal: a new journal would have no row of an object, and the collector would remove its file.
func TestObjectsNeedTheirJournal(t *testing.T) {
	l := &life{config: configured(t), dir: fs.Dir(t.TempDir())}
	live, err := fs.Make(l.segments())
	if err == nil {
		l.disk, err = openDisk("", live)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := l.whole(); err != nil {
		t.Errorf("an empty directory: %v", err)
	}
	if err := os.Mkdir(l.objectFiles(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.whole(); err == nil || !strings.Contains(err.Error(), "objects shows that there was a journal") {
		t.Errorf("a directory with objects: %v", err)
	}
}
