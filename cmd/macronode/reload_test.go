package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
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
	"macronode/adapters/config"
	"macronode/core/event"
	"macronode/core/types"
)

// changing is a node that was started with a file, which a test writes anew.
type changing struct {
	process
	t    *testing.T
	file string
}

func startsWith(t *testing.T, text string) *changing {
	t.Helper()
	c := &changing{t: t, file: filepath.Join(t.TempDir(), "macronode.yaml")}
	c.write(text)
	c.process = starts(t, "--config", c.file)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the node says\n%s", c.log.String())
		}
	})
	for check := hangGuard(t); strings.Contains(c.asks(t, "/readyz?verbose"), "index_behind"); check() { // it is, right after a start
	}
	return c
}

func (c *changing) write(text string) {
	c.t.Helper()
	if err := os.WriteFile(c.file, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// reload has the node read what the file says now.
func (c *changing) reload(text string) (is adminapi.Applied, status int) {
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

// told is what a path of the public listener answers.
func (c *changing) told(path string) (status int, body, policy string) {
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

// run runs a verb beside the node, with the file that it was started with.
func (c *changing) run(args ...string) (code int, out, said string) {
	c.t.Helper()
	var o, e bytes.Buffer
	cmd := exec.CommandContext(c.t.Context(), "macronode", slices.Concat(args, []string{"--data", c.dir, "--config", c.file}, somewhere)...)
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		c.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// says is a service that says its name.
func says(t *testing.T, name string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// before is a configuration with one route.
func before(url, more string) string {
	return fmt.Sprintf("upstreams:\n  app: { url: %q }\nroutes:\n  - { path: /app, upstream: app, auth: none }\n%s", url, more)
}

// TestReload: a change is applied whole: routes, upstreams, quotas, and who is told what.
func TestReload(t *testing.T) {
	one, two := says(t, "one"), says(t, "two")
	c := startsWith(t, before(one, ""))
	if status, body, policy := c.told("/app"); status != 200 || body != "one" || policy != "" {
		t.Fatalf("%d %q %q", status, body, policy)
	}
	first := c.applied()
	is, status := c.reload(before(two, `quotas: [{ name: each, scope: peer, requests_per_second: 1000, burst: 50 }]`))
	if status != 200 || !is.Last.Applied || is.Changes != 1 || is.Version == first.Version || len(is.Last.Changed) != 2 {
		t.Fatalf("%d %+v", status, is)
	}
	if status, body, policy := c.told("/app"); status != 200 || body != "two" || policy != `"each";q=50;w=1` {
		t.Errorf("%d %q %q", status, body, policy)
	}
	if effective := c.asks(t, "/config/effective"); !strings.Contains(effective, two) || strings.Contains(effective, one) {
		t.Error(effective)
	}
	// A route that is gone is gone, and one that is new is there.
	moved := strings.Replace(before(two, ""), "/app", "/other", 1)
	if is, _ := c.reload(moved); is.Changes != 2 {
		t.Fatalf("%+v", is)
	}
	if status, _, policy := c.told("/app"); status != 404 || policy != "" {
		t.Errorf("%d %q", status, policy)
	}
	if status, body, _ := c.told("/other"); status != 200 || body != "two" {
		t.Errorf("%d %q", status, body)
	}
	// To read the same again changes nothing.
	if is, status := c.reload(moved); status != 200 || is.Changes != 2 || !is.Last.Applied || len(is.Last.Changed) != 0 {
		t.Errorf("%d %+v", status, is)
	}
	// From no route at all to one.
	if is, _ := c.reload("queue: { max_wait: 30ms }\n"); is.Changes != 3 {
		t.Fatalf("%+v", is)
	}
	if is, _ := c.reload(before(one, "")); is.Changes != 4 {
		t.Fatalf("%+v", is)
	}
	if status, body, _ := c.told("/app"); status != 200 || body != "one" {
		t.Errorf("%d %q", status, body)
	}
}

func (c *changing) applied() (is adminapi.Applied) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.asks(c.t, "/config/status")), &is); err != nil {
		c.t.Fatal(err)
	}
	return is
}

// Praisonai5144: the old one was torn down before the new one was proven. What cannot be
// applied whole is not applied: the old one serves on, and it is said why.
func TestPraisonai5144(t *testing.T) {
	one := says(t, "one")
	good := before(one, `quotas: [{ name: each, scope: peer, requests_per_second: 1000, burst: 50 }]`)
	c := startsWith(t, good)
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
		if status, body, policy := c.told("/app"); status != 200 || body != "one" || policy != `"each";q=50;w=1` {
			t.Errorf("%s: %d %q %q", name, status, body, policy)
		}
	}
}

// TestAChangeIsRehearsed: what the configuration itself cannot say, and would let nobody in,
// is not given to the node.
func TestAChangeIsRehearsed(t *testing.T) {
	l := &life{config: configured(t), log: slog.New(slog.DiscardHandler)}
	is, err := l.edit(l.config, &edition{})
	if err != nil {
		t.Fatal(err)
	}
	next := func(set ...string) *edition {
		e, err := l.edit(configured(t, set...), is)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	good := next("queue.max_wait=50ms", `quotas=[{"name":"all","scope":"peer","requests_per_second":1}]`)
	if _, err := l.rehearsed(is, good); err != nil {
		t.Error(err)
	}
	for why, spoil := range map[string]func(*event.Policy){
		"that is all":          func(g *event.Policy) { g.Quotas[0].Rate = 0 },
		"authed callers of ":   func(g *event.Policy) { g.Facets[types.FacetQuery].PerClass[types.ClassAuthed] = 0 },
		"more places than the": func(g *event.Policy) { g.Facets[types.FacetWallet].Queue += 1 << 16 },
	} {
		bad := next(`quotas=[{"name":"all","scope":"peer","requests_per_second":1}]`)
		spoil(&bad.gate)
		if _, err := l.rehearsed(is, bad); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// TestWhatIsRehearsedInVain: a configuration that is read, compared and made, and at whose
// rehearsal somebody would never be let in, is refused; the old one stays, and it is said why.
// No file can say so as long as what reads it and what the rehearsal finds are of one mind.
func TestWhatIsRehearsedInVain(t *testing.T) {
	c := configured(t, `quotas=[{"name":"all","scope":"peer","requests_per_second":1}]`)
	l := &life{config: configured(t), log: slog.New(slog.DiscardHandler), changes: newChanges(func() (*config.Config, error) { return c, nil })}
	was, err := l.edit(l.config, &edition{})
	if err != nil {
		t.Fatal(err)
	}
	l.edition.Store(was)
	l.changes.begin(was)
	l.changes.life = t.Context()
	if _, err := l.proven(was, new(adminapi.Attempt)); err != nil {
		t.Error(err)
	}
	c.Quotas[0].Requests.Units = 0
	next, err := l.proven(was, new(adminapi.Attempt))
	if err == nil {
		t.Errorf("%+v is proven", next.gate.Quotas)
	}
	is := l.reload()
	if why := strings.Join(is.Last.Why, "\n"); is.Last.Applied || len(is.Last.Changed) != 1 || !strings.Contains(why, "would never be let in, even alone: quota 1 lets nobody go: that is all") {
		t.Errorf("%+v", is.Last)
	}
	if is.Refused != 1 || is.Changes != 0 || is.Version != was.face.Version || l.edition.Load() != was {
		t.Errorf("%+v", is)
	}
}

// Agentgateway3035: the status showed the file that was rejected. What is told is what is
// applied.
func TestAgentgateway3035(t *testing.T) {
	one, two := says(t, "one"), says(t, "two")
	c := startsWith(t, before(one, ""))
	was := c.asks(t, "/config/effective")
	c.reload(before(two, "node: { drain: 1s }\n"))
	if is := c.asks(t, "/config/effective"); is != was {
		t.Error(is)
	}
	if is := c.asks(t, "/readyz?verbose"); !strings.Contains(is, `"phase":"degraded"`) || !strings.Contains(is, `"config_rejected"]`) {
		t.Error(is)
	}
	if code, out, said := c.run("config", "diff"); code != 1 || !strings.Contains(out, "node.drain: 3s -> 1s, at its next start") || !strings.Contains(out, "\nupstreams.app.urls: [") {
		t.Errorf("%d %s%s", code, out, said)
	}
	if code, out, said := c.run("config", "status"); code != 1 || !strings.Contains(out, "rejected: node.drain takes effect") {
		t.Errorf("%d %s%s", code, out, said)
	}
	c.write(before(two, ""))
	if code, out, said := c.run("config", "reload"); code != 0 || !strings.Contains(out, "1 changes applied, 1 rejected") {
		t.Errorf("%d %s%s", code, out, said)
	}
	if is := c.asks(t, "/readyz?verbose"); !strings.Contains(is, `"degraded_by":[]`) {
		t.Error(is)
	}
	if code, out, said := c.run("config", "diff"); code != 0 || out != "nothing differs\n" {
		t.Errorf("%d %s%s", code, out, said)
	}
}

// TestReloadUnderLoad: changes to and fro, while callers ask without a pause: nobody is
// refused, cut or answered by nobody.
func TestReloadUnderLoad(t *testing.T) {
	one, two := says(t, "one"), says(t, "two")
	c := startsWith(t, before(one, ""))
	ctx, stop := context.WithCancel(t.Context())
	went := make(chan struct{}) // an answer each, to who waits for some
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{MaxIdleConns: 1}}
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				if err := answered(client, c.HTTP+"/app", "one", "two"); err != nil {
					t.Error(err)
				}
				select {
				case went <- struct{}{}:
				default: // nobody waits: the next one
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

// answered asks once, and wants one of some answers.
func answered(client *http.Client, url string, want ...string) error {
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

// TestNoChangeBeforeItIsReady: a node that starts is asked for nothing, also where nothing
// would change, and its service manager is not told that it is ready.
func TestNoChangeBeforeItIsReady(t *testing.T) {
	to := filepath.Join(t.TempDir(), "notify")
	heard, err := net.ListenPacket("unixgram", to)
	if err != nil {
		t.Fatal(err)
	}
	defer heard.Close()
	t.Setenv("NOTIFY_SOCKET", to)
	c := configured(t)
	l := &life{config: c, log: slog.New(slog.DiscardHandler), changes: newChanges(func() (*config.Config, error) { return c, nil })}
	is := l.reload()
	if is.Last.Applied || is.Refused != 1 || !strings.Contains(is.Last.Why[0], "when it is ready") {
		t.Errorf("%+v", is.Last)
	}
	notifyStopping(l.log) // the first that is heard
	said := make([]byte, 100)
	if n, _, err := heard.ReadFrom(said); err != nil || string(said[:n]) != "STOPPING=1" {
		t.Errorf("%q, %v", said[:n], err)
	}
}
