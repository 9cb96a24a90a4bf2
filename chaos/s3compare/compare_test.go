package s3compare_test

import (
	"context"
	"encoding/json"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/adapters/s3"
	"macronode/chaos/kill"
	"macronode/chaos/s3compare"
)

var oracle = flag.String("oracle", "", "compare with this binary of versitygw")

// TestAgainstOracle sends every request of the table to this node and to versitygw.
func TestAgainstOracle(t *testing.T) {
	if *oracle == "" {
		t.Skip("no -oracle: ci/run s3compare builds it")
	}
	here, there := startNode(t), startOracle(t)
	var all []s3compare.Difference
	for _, q := range s3compare.Requests() {
		ours, err := here.Send(t.Context(), &q)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := there.Send(t.Context(), &q)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s3compare.Compare(q.Name, ours, theirs)...)
	}
	for _, finding := range s3compare.Unexplained(all, s3.Differences) {
		t.Error(finding)
	}
	t.Logf("evidence: s3compare.requests = %d requests, %d parts of answers differ, each for a listed reason", len(s3compare.Requests()), len(all))
}

// TestUnexplained shows that a difference without a line is found, and a line without a difference.
func TestUnexplained(t *testing.T) {
	known := []s3.Difference{{Request: "get*", Part: "answer", Here: "200", There: "*"}, {Request: "put", Part: "Etag", Here: "-", There: "-"}}
	seen := []s3compare.Difference{{Request: "get, range", Part: "answer", Here: "200", There: "206"}, {Request: "get", Part: "answer", Here: "404", There: "200"}}
	found := s3compare.Unexplained(seen, known)
	if len(found) != 2 || !strings.HasPrefix(found[0], "get: answer is 404 here") || !strings.HasPrefix(found[1], "put: Etag: the listed") {
		t.Errorf("%q", found)
	}
}

// TestNamesAreUnique checks the table: the list of known differences refers to the names.
func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, q := range s3compare.Requests() {
		if seen[q.Name] {
			t.Errorf("%s: twice", q.Name)
		}
		seen[q.Name] = true
	}
}

// TestEveryOperationIsCompared checks the table: every operation of the node has a request.
func TestEveryOperationIsCompared(t *testing.T) {
	compared := map[s3.Op]bool{}
	for _, q := range s3compare.Requests() {
		compared[q.Operation()] = true
	}
	for _, op := range s3.Ops() {
		if !compared[op] {
			t.Errorf("%s: no request", op)
		}
	}
}

// startNode runs the real binary.
func startNode(t *testing.T) *s3compare.Server {
	binary, err := kill.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	n := &kill.Node{Binary: binary, Data: filepath.Join(t.TempDir(), "data"), Args: []string{"--s3", "127.0.0.1:0"}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := n.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Kill)
	out, err := exec.Command(binary, "keys", "s3", "--json", "--data", n.Data).Output()
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		AccessKey string `json:"access_key_id"`
		Secret    string `json:"secret_access_key"`
		URL       string `json:"endpoint_url"`
	}
	if err := json.Unmarshal(out, &c); err != nil {
		t.Fatal(err)
	}
	return &s3compare.Server{URL: c.URL, AccessKey: c.AccessKey, Secret: c.Secret, Saved: map[string]string{}}
}

// startOracle runs versitygw over a directory. Its port is free when it is chosen.
func startOracle(t *testing.T) *s3compare.Server {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	const key = "oracle"
	cmd := exec.Command(*oracle, "--port", address, "--region", "us-east-1", "--access", key, "--secret", key, "--quiet", "posix", t.TempDir())
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for range 600 {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return &s3compare.Server{URL: "http://" + address, AccessKey: key, Secret: key, Saved: map[string]string{}}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the oracle does not listen")
	return nil
}
