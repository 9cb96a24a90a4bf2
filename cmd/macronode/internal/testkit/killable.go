package testkit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"macronode/adapters/nodedir"
)

// Killable is a node that may be killed.
type Killable struct {
	*exec.Cmd
	Log *Output
	url string
	key string
}

func StartKillable(t *testing.T, dir string, flags ...string) *Killable {
	t.Helper()
	k := &Killable{Log: new(Output)}
	k.Cmd = exec.Command("macronode", slices.Concat([]string{"serve", "--data", dir, "--json"}, FreePorts, flags)...)
	k.Stderr = k.Log
	out, err := k.StdoutPipe()
	if err == nil {
		err = k.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.End)
	var g struct {
		HTTP string `json:"http"`
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &g)
	}
	key, keyErr := nodedir.ReadKey(dir)
	if err != nil || keyErr != nil {
		t.Fatalf("%v, %v\n%s", err, keyErr, k.Log)
	}
	k.url, k.key = g.HTTP, key.Text()
	return k
}

// End kills it.
func (k *Killable) End() {
	if k.ProcessState == nil {
		_ = k.Process.Kill()
		_ = k.Wait() // it was killed
	}
}

// Object asks for an object and returns the status and the body.
func (k *Killable) Object(t *testing.T, method, path string, body []byte) (status int, got []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, k.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	r.Header.Set("Authorization", "Bearer "+k.key)
	r.Header.Set("Expect", "100-continue") // else a refusal before the body may end the connection before it is read
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%v\n%s", err, k.Log)
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	got, err = io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, got
}

// Half sends half of an upload and leaves the connection open.
func (k *Killable) Half(t *testing.T, body []byte) net.Conn {
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

// FreePorts is at ports that are free. A disk that is busy with other tests makes no node degraded.
var FreePorts = []string{"--set", "listen.http=127.0.0.1:0", "--set", "listen.admin=127.0.0.1:0", "--set", "journal.stall_threshold=4s"}
