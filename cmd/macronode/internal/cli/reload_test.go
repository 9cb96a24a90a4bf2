package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"macronode/adapters/adminapi"
	"macronode/cmd/macronode/internal/testkit"
)

// A reloadableNode is a node with a configuration file that the test rewrites.
type reloadableNode struct {
	process
	t    *testing.T
	file string
}

func startWithFile(t *testing.T, text string) *reloadableNode {
	t.Helper()
	c := &reloadableNode{t: t, file: filepath.Join(t.TempDir(), "macronode.yaml")}
	c.write(text)
	c.process = startWithFlags(t, "--config", c.file)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the node says\n%s", c.log.String())
		}
	})
	for check := testkit.HangGuard(t); strings.Contains(c.adminText(t, "/readyz?verbose"), "index_behind"); check() { // it is, right after a start
	}
	return c
}

func (c *reloadableNode) write(text string) {
	c.t.Helper()
	if err := os.WriteFile(c.file, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// reload writes a file and makes the node reload it.
func (c *reloadableNode) reload(text string) (is adminapi.Applied, status int) {
	c.t.Helper()
	c.write(text)
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.Admin+"/config/reload", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.UnmarshalRead(resp.Body, &is); err != nil {
		c.t.Fatal(err)
	}
	return is, resp.StatusCode
}

// get returns the response of a path of the public listener.
func (c *reloadableNode) get(path string) (status int, body, policy string) {
	c.t.Helper()
	resp, err := http.Get(c.HTTP + path) //nolint:noctx // the test is over before it could be needed
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header.Get("RateLimit-Policy")
}

// run runs a command with the configuration file of the node.
func (c *reloadableNode) run(args ...string) (code int, out, errOut string) {
	c.t.Helper()
	var o, e bytes.Buffer
	cmd := exec.CommandContext(c.t.Context(), "macronode", slices.Concat(args, []string{"--data", c.dir, "--config", c.file}, testkit.FreePorts)...)
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		c.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// namedUpstream is an upstream that responds with its name.
func namedUpstream(t *testing.T, name string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// before returns a configuration with one route.
func before(url, more string) string {
	return fmt.Sprintf("upstreams:\n  app: { url: %q }\nroutes:\n  - { path: /app, upstream: app, auth: none }\n%s", url, more)
}

// TestReload: a change of routes, upstreams, quotas and trusted proxies is applied as a whole.
func TestReload(t *testing.T) {
	t.Parallel()
	one, two := namedUpstream(t, "one"), namedUpstream(t, "two")
	c := startWithFile(t, before(one, ""))
	if status, body, policy := c.get("/app"); status != 200 || body != "one" || policy != "" {
		t.Fatalf("%d %q %q", status, body, policy)
	}
	first := c.applied()
	is, status := c.reload(before(two, `quotas: [{ name: each, scope: peer, requests_per_second: 1000, burst: 50 }]`))
	if status != 200 || !is.Last.Applied || is.Changes != 1 || is.Version == first.Version || len(is.Last.Changed) != 2 {
		t.Fatalf("%d %+v", status, is)
	}
	if status, body, policy := c.get("/app"); status != 200 || body != "two" || policy != `"each";q=50;w=1` {
		t.Errorf("%d %q %q", status, body, policy)
	}
	if effective := c.adminText(t, "/config/effective"); !strings.Contains(effective, two) || strings.Contains(effective, one) {
		t.Error(effective)
	}
	// A removed route is gone, and a new one is served.
	moved := strings.Replace(before(two, ""), "/app", "/other", 1)
	if is, _ := c.reload(moved); is.Changes != 2 {
		t.Fatalf("%+v", is)
	}
	if status, _, policy := c.get("/app"); status != 404 || policy != "" {
		t.Errorf("%d %q", status, policy)
	}
	if status, body, _ := c.get("/other"); status != 200 || body != "two" {
		t.Errorf("%d %q", status, body)
	}
	// An unchanged file changes nothing.
	if is, status := c.reload(moved); status != 200 || is.Changes != 2 || !is.Last.Applied || len(is.Last.Changed) != 0 {
		t.Errorf("%d %+v", status, is)
	}
	// From no route to one.
	if is, _ := c.reload("queue: { max_wait: 30ms }\n"); is.Changes != 3 {
		t.Fatalf("%+v", is)
	}
	if is, _ := c.reload(before(one, "")); is.Changes != 4 {
		t.Fatalf("%+v", is)
	}
	if status, body, _ := c.get("/app"); status != 200 || body != "one" {
		t.Errorf("%d %q", status, body)
	}
}

func (c *reloadableNode) applied() (is adminapi.Applied) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.adminText(c.t, "/config/status")), &is); err != nil {
		c.t.Fatal(err)
	}
	return is
}

// Praisonai5144: the old configuration was removed before the new one was checked. A configuration that cannot be
// applied as a whole is not applied: the old one remains active, and the reason is reported.
func TestPraisonai5144(t *testing.T) {
	t.Parallel()
	one := namedUpstream(t, "one")
	good := before(one, `quotas: [{ name: each, scope: peer, requests_per_second: 1000, burst: 50 }]`)
	c := startWithFile(t, good)
	first := c.applied()
	for name, bad := range map[string]struct{ text, why string }{
		"no YAML":            {"upstreams: [", "macronode.yaml"},
		"a key that is none": {before(one, "qoutas: []\n"), "qoutas"},
		"a value":            {before(one, "queue: { max_wait: 30 }\n"), "queue.max_wait"},
		"a path of ours":     {strings.Replace(good, "/app", "/v1/app", 1), "reserved for the node's own API"},
		"an upstream":        {strings.Replace(good, "upstream: app", "upstream: ape", 1), "ape"},
		"a relation":         {before(one, "queue: { weights: { internal: 0, authed: 0, anon: 0 } }\n"), "weights"},
		"what takes a start": {good + "\nnode: { drain: 1s }\n", "node.drain takes effect only at the next start: it is 3s and would become 1s"},
	} {
		is, status := c.reload(bad.text)
		if status != 422 || is.Last.Applied || !strings.Contains(strings.Join(is.Last.Why, "\n"), bad.why) {
			t.Errorf("%s: %d %+v", name, status, is.Last)
		}
		if is.Version != first.Version || is.Changes != 0 || !is.Since.Equal(first.Since) {
			t.Errorf("%s: %+v", name, is)
		}
		if status, body, policy := c.get("/app"); status != 200 || body != "one" || policy != `"each";q=50;w=1` {
			t.Errorf("%s: %d %q %q", name, status, body, policy)
		}
	}
}

// Agentgateway3035: the status showed the rejected file. It must show the applied configuration.
func TestAgentgateway3035(t *testing.T) {
	t.Parallel()
	one, two := namedUpstream(t, "one"), namedUpstream(t, "two")
	c := startWithFile(t, before(one, ""))
	was := c.adminText(t, "/config/effective")
	c.reload(before(two, "node: { drain: 1s }\n"))
	if is := c.adminText(t, "/config/effective"); is != was {
		t.Error(is)
	}
	if is := c.adminText(t, "/readyz?verbose"); !strings.Contains(is, `"phase":"degraded"`) || !strings.Contains(is, `"config_rejected"]`) {
		t.Error(is)
	}
	if code, out, errOut := c.run("config", "diff"); code != 1 || !strings.Contains(out, "node.drain: 3s -> 1s, at its next start") || !strings.Contains(out, "\nupstreams.app.urls: [") {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	if code, out, errOut := c.run("config", "status"); code != 1 || !strings.Contains(out, "rejected: node.drain takes effect") {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	c.write(before(two, ""))
	if code, out, errOut := c.run("config", "reload"); code != 0 || !strings.Contains(out, "1 changes applied, 1 rejected") {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	if is := c.adminText(t, "/readyz?verbose"); strings.Contains(is, "config_rejected") {
		t.Error(is)
	}
	if code, out, errOut := c.run("config", "diff"); code != 0 || out != "nothing differs\n" {
		t.Errorf("%d %s%s", code, out, errOut)
	}
}

// TestReloadUnderLoad: configurations alternate under constant traffic. No request is rejected, cut or unanswered.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	one, two := namedUpstream(t, "one"), namedUpstream(t, "two")
	c := startWithFile(t, before(one, ""))
	ctx, stop := context.WithCancel(t.Context())
	went := make(chan struct{}) // one value for each response
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{MaxIdleConns: 1}}
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				if err := getOneOf(client, c.HTTP+"/app", "one", "two"); err != nil {
					t.Error(err)
				}
				select {
				case went <- struct{}{}:
				default: // no receiver waits
				}
			}
		})
	}
	changes := 20
	if testing.Short() {
		changes = 5
	}
	for i := range changes {
		texts := [...]string{before(two, ""), strings.ReplaceAll(before(one, ""), "app:", "ape:"), before(one, "")}
		text := strings.ReplaceAll(texts[i%3], "upstream: app", "upstream: "+map[bool]string{true: "ape", false: "app"}[i%3 == 1])
		if is, status := c.reload(text); status != 200 {
			t.Errorf("%d %+v", status, is.Last)
		}
		for range 20 {
			<-went
		}
	}
	stop()
	wg.Wait()
}

// getOneOf sends one request and requires one of some responses.
func getOneOf(client *http.Client, url string, want ...string) error {
	resp, err := client.Get(url) //nolint:noctx // it ends
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !slices.Contains(want, string(text)) {
		return fmt.Errorf("%d %s %w", resp.StatusCode, text, err)
	}
	return nil
}

// TestBrokenFileIsReportedByTheNode: with an invalid configuration file, reload and status ask the node, which has
// the reason. Both exit with 1. Only if the file hides which node is meant, nothing is asked.
func TestBrokenFileIsReportedByTheNode(t *testing.T) {
	t.Parallel()
	one := namedUpstream(t, "one")
	c := startWithFile(t, before(one, ""))
	for _, broken := range []string{"routes: [{ path: /app, upstream: nowhere }]\n", "data: {\n"} {
		testkit.Must(t, os.WriteFile(c.file, []byte(broken), 0o600))
		for _, verb := range []string{"reload", "status"} {
			code, out, errOut := c.run("config", verb)
			if code != 1 || !strings.Contains(out, "rejected: ") || !strings.Contains(errOut, "the previous one remains active") {
				t.Errorf("%q, %s: %d\n%s%s", broken, verb, code, out, errOut)
			}
		}
	}
	unnamed := exec.CommandContext(t.Context(), "macronode", "config", "status", "--config", c.file)
	if out, _ := unnamed.CombinedOutput(); unnamed.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "give its data directory: --data DIR") {
		t.Errorf("without a directory: %d\n%s", unnamed.ProcessState.ExitCode(), out)
	}
}
