package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"macronode/adapters/nodedir"
	"macronode/cmd/macronode/internal/testkit"
)

func (p *peer) at() string { return p.Listener.Addr().String() }

func TestStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answer, flags string
		code          int
		want          string
	}{
		{`200 {"phase":"ready","reads":true,"writes":true,"waiting_for":[],"degraded_by":[],"lsn":7,"durable_lsn":6}`, "", 0,
			"ready: reads yes, writes yes, durable to 6 of 7\nprocess PID, v1, http h:1, admin ADMIN\n"},
		{`503 {"phase":"degraded","reads":true,"waiting_for":["http","key"],"degraded_by":["disk_full"]}`, "", 1,
			"degraded, waiting for http, key, degraded by disk_full: reads yes, writes no, durable to 0 of 0\nprocess PID, v1, http h:1, admin ADMIN\n" +
				"macronode: the node is not ready\n"},
		{`200 {"phase":"degraded","reads":true,"writes":true,"waiting_for":[],"degraded_by":["clock_untrusted","circuit_open"],"broken_upstreams":["app","more"],"broken_upstreams_anonymous":["app","public"]}`, "", 0,
			"degraded, degraded by clock_untrusted, circuit_open (app, more, public for anonymous callers): reads yes, writes yes, durable to 0 of 0\nprocess PID, v1, http h:1, admin ADMIN\n"},
		{`200 {"phase":"degraded","reads":true,"writes":true,"waiting_for":[],"degraded_by":["no_healthy_endpoint"],"unhealthy_upstreams":["app","more"]}`, "", 0,
			"degraded, degraded by no_healthy_endpoint (app, more): reads yes, writes yes, durable to 0 of 0\nprocess PID, v1, http h:1, admin ADMIN\n"},
		{`503 {"phase":"starting","waiting_for":["upstreams","key"],"degraded_by":["journal_failed"],"awaited_upstreams":["app"],"journal_fault":"damaged"}`, "", 1,
			"starting, waiting for upstreams (app), key, degraded by journal_failed (damaged): reads no, writes no, durable to 0 of 0\nprocess PID, v1, http h:1, admin ADMIN\n" +
				"macronode: the node is not ready\n"},
		{`200 {"phase":"ready","reads":true,"writes":true,"waiting_for":[],"degraded_by":[],"certificate":{"ends":"2026-01-02T03:04:05Z","age":"over"}}`, "", 0,
			"ready: reads yes, writes yes, durable to 0 of 0\nprocess PID, v1, http h:1, admin ADMIN\n" +
				"the certificate expired at 2026-01-02T03:04:05Z: clients reject it\n"},
		{`200 {"phase":"ready","reads":true,"writes":true,"waiting_for":[],"degraded_by":[],"certificate":{"ends":"2026-01-02T03:04:05Z","age":"old"}}`, "", 0,
			"ready: reads yes, writes yes, durable to 0 of 0\nprocess PID, v1, http h:1, admin ADMIN\nthe certificate expires at 2026-01-02T03:04:05Z\n"},
		{`200 {"phase":"ready","reads":true,"writes":true,"waiting_for":[],"degraded_by":[],"certificate":{"ends":"2026-01-02T03:04:05Z","age":"young"}}`, "", 0,
			"ready: reads yes, writes yes, durable to 0 of 0\nprocess PID, v1, http h:1, admin ADMIN\n"},
		{"200 ok", "", 1, "macronode: what answers is no node of ours: 200 OK\n"},
		{`200 {"ready": true}`, "--json", 0, `{"ready":true,"pid":PID,"version":"v1","listen":{"http":"h:1","admin":"ADMIN"},"readyz":{"ready":true}}` + "\n"},
		{"503 <\"", "--json", 1, `{"ready":false,"pid":PID,"version":"v1","listen":{"http":"h:1","admin":"ADMIN"},"readyz":"<\""}` + "\nmacronode: the node is not ready\n"},
		{"cut", "", 1, "macronode: the node does not answer: EOF\n"},
	} {
		p, d := newPeer(t, c.answer), newTestConsole()
		dir, _ := writeRunFiles(t, os.Getpid(), "h:1", p.at())
		code := Run(append(strings.Fields("status "+c.flags), "--data", dir), d.Console)
		want := strings.NewReplacer("PID", strconv.Itoa(os.Getpid()), "ADMIN", p.at()).Replace(c.want)
		if output := d.out.String() + d.err.String(); code != c.code || output != want {
			t.Errorf("%s: %d\n%swant\n%s", c.answer, code, output, want)
		}
		if p.requests()[0] != "GET /readyz?verbose  Bearer token" {
			t.Errorf("asked %q", p.requests())
		}
	}
}

// killableNode is a process in place of a node, and its directory.
type killableNode struct {
	*exec.Cmd
	dir string
}

func (n killableNode) nothing() error { return nil }
func (n killableNode) dies() error    { return errors.Join(n.Process.Kill(), ignore(n.Wait())) }
func (n killableNode) leaves() error  { return os.Remove(filepath.Join(n.dir, "run.json")) }
func (n killableNode) ends() error    { return errors.Join(n.leaves(), n.dies()) }
func (n killableNode) succeeded() error {
	return errors.Join(n.dies(), nodedir.Write(n.dir, nodedir.Run{PID: os.Getpid(), Token: "another"}))
}

// ignore drops what Wait says of a process that was killed.
func ignore(error) error { return nil }

func TestDrain(t *testing.T) {
	t.Parallel()
	type then = func(killableNode) error
	const asked, gone = "POST /drain  Bearer token", "the node has ended\n"
	for _, c := range []struct {
		name, answer, flags string
		then                []then // what the node does before each poll
		code                int
		asked, want         string
		looks               int
	}{
		{"ends", "202", "", []then{killableNode.nothing, killableNode.ends}, 0, asked, gone, 2},
		{"ends, in JSON", "202", "--json", []then{killableNode.ends}, 0, asked, `{"drained":true}` + "\n", 1},
		{"has left, and is not gone yet", "202", "", []then{killableNode.leaves, killableNode.nothing, killableNode.dies}, 0, asked, gone, 3},
		{"another has come since", "202", "", []then{killableNode.succeeded}, 0, asked, gone, 1},
		{"aborts", "202", "--abort", []then{killableNode.ends}, 0, "POST /drain?abort  Bearer token", gone, 1},
		{"dies", "202", "", []then{killableNode.dies}, 1, asked, "macronode: the node (process PID) has ended without cleaning up: see its log\n", 1},
		{"does not end", "202", "--timeout 1s", nil, 1, asked, "macronode: the node has not ended after 1s; --abort aborts the remaining requests\n", 10},
		{"does not end, and says how long it may take", `202 {"phase":"draining","longest_ms":60000}`, "", nil, 1, asked, "macronode: the node has not ended after 1m10s; --abort aborts the remaining requests\n", 700},
		{"does not end, and says nothing of it", "202", "", nil, 1, asked, "macronode: the node has not ended after 30s; --abort aborts the remaining requests\n", 300},
		{"is not let in", barred, "", nil, 1, asked, "macronode: forbidden: May not\n", 0},
		{"is interrupted", "202", "", []then{func(killableNode) error { return errors.New("interrupted") }}, 1, asked,
			"macronode: the node continues to shut down: interrupted\n", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, d, n := newPeer(t, c.answer), newTestConsole(), killableNode{Cmd: exec.Command("sleep", "600")}
			if err := n.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = n.dies() })
			n.dir, _ = writeRunFiles(t, n.Process.Pid, "", p.at())
			passes := d.sleep
			d.Console.sleep = func(ctx context.Context, w time.Duration) error {
				if len(c.then) > 0 {
					if err := c.then[0](n); err != nil {
						return err
					}
					c.then = c.then[1:]
				}
				return passes(ctx, w)
			}
			code := Run(append(strings.Fields("drain "+c.flags), "--data", n.dir), d.Console)
			want := strings.ReplaceAll(c.want, "PID", strconv.Itoa(n.Process.Pid))
			if output := d.out.String() + d.err.String(); code != c.code || output != want || p.requests()[0] != c.asked || len(d.waits) != c.looks {
				t.Fatalf("%d, asked %q, waited %v\n%swant\n%s", code, p.requests(), d.waits, output, want)
			}
		})
	}
}

// TestBrokenFileReachesNode: while the configuration file is not YAML, status and drain reach the node if they have its data directory, and
// say so if they have not.
func TestBrokenFileReachesNode(t *testing.T) {
	t.Parallel()
	p := startNode(t)
	file := filepath.Join(t.TempDir(), "broken.yaml")
	testkit.Must(t, os.WriteFile(file, []byte("{"), 0o600))
	command := func(args ...string) (string, error) {
		cmd := exec.Command("macronode", args...)
		cmd.Env = append(os.Environ(), "MACRONODE_CONFIG="+file)
		output, err := cmd.CombinedOutput()
		return string(output), err
	}
	for _, what := range []string{"status", "drain"} {
		output, err := command(what)
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 2 || !strings.Contains(output, "give its data directory: --data DIR") {
			t.Errorf("%s: %v\n%s", what, err, output)
		}
		if output, err = command(what, "--data", p.dir); err != nil {
			t.Errorf("%s with --data: %v\n%s", what, err, output)
		}
	}
}
