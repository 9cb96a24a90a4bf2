package cli

import (
	"bufio"
	"cmp"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json"

	"macronode/adapters/adminapi"
	"macronode/adapters/nodedir"
	"macronode/adapters/registry"
	"macronode/cmd/macronode/internal/testkit"
)

// process is the real program.
type process struct {
	greeting
	dir   string
	token string
	log   *testkit.Output
	last  *strings.Builder // its output after the greeting, once it has ended
	end   func()           // ends it, once
}

// startNode starts a node with some settings. It ends with the test.
func startNode(t *testing.T, sets ...string) process {
	t.Helper()
	var args []string
	for _, s := range sets {
		args = append(args, "--set", s)
	}
	return startWithFlags(t, args...)
}

// startWithFlags is startNode with any flags.
func startWithFlags(t *testing.T, flags ...string) (p process) {
	t.Helper()
	return startInDir(t, t.TempDir(), flags...)
}

// startInDir is startWithFlags in a directory.
func startInDir(t *testing.T, dir string, flags ...string) (p process) {
	t.Helper()
	return startCommand(t, dir, exec.Command("macronode", serveArgs(dir, flags)...)) // the program of this test, which is first in the path
}

// serveArgs returns the arguments with which startCommand finds a node.
func serveArgs(dir string, flags []string) []string {
	return slices.Concat([]string{"serve", "--data", dir, "--json"}, testkit.FreePorts, flags)
}

// startCommand starts a command that becomes a node on a directory.
func startCommand(t *testing.T, dir string, cmd *exec.Cmd) (p process) {
	t.Helper()
	p.dir = dir
	log := new(testkit.Output)
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(out)
	p.log, p.last, p.end = log, new(strings.Builder), sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_, _ = io.Copy(p.last, reader)
		if err := cmd.Wait(); err != nil {
			t.Errorf("it ended with %v\n%s", err, log)
		}
	})
	t.Cleanup(p.end)
	line, err := reader.ReadBytes('\n') // printed once it is ready
	if err == nil {
		err = json.Unmarshal(line, &p.greeting)
	}
	if err != nil {
		t.Fatalf("it does not greet: %v\n%s", err, log)
	}
	run, err := nodedir.Read(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	p.token = run.Token
	return p
}

// adminText reads a path of the admin listener.
func (p process) adminText(t *testing.T, path string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.Admin+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v\n%s", path, resp.StatusCode, err, text)
	}
	http.DefaultClient.CloseIdleConnections()
	return string(text)
}

// TestRunningNodeMatchesRegistry: the program shows exactly what is declared: each queue with its limit and
// policy, and each series of each metric.
func TestRunningNodeMatchesRegistry(t *testing.T) {
	t.Parallel()
	p := startNode(t, "node.in_flight=80", "index.memtable_frames=12345", `quotas=[{"name":"app","scope":"peer","requests_per_second":9000},{"name":"more","scope":"peer","requests_per_second":9000,"shadow":true}]`, `upstreams={"app":{"url":"http://127.0.0.1:9"},"more":{"url":"http://127.0.0.1:9"}}`,
		`exports.sinks=[{"name":"app","kind":"http","url":"http://127.0.0.1:9"},{"name":"more","kind":"file","dir":"out"}]`)
	var queues []adminapi.Queue
	if err := json.Unmarshal([]byte(p.adminText(t, "/debug/queues")), &queues); err != nil {
		t.Fatal(err)
	}
	for _, why := range testkit.Differences(shownQueues(queues), declaredQueues(t, "node.in_flight=80", "index.memtable_frames=12345")) {
		t.Error(why)
	}
	metrics := p.adminText(t, "/metrics")
	for check := testkit.HangGuard(t); strings.Count(metrics, "\nexport_sink_up{") < 2; check() { // they are absent until the node has read its streams
		metrics = p.adminText(t, "/metrics")
	}
	for _, why := range testkit.Differences(shownSeries(metrics), declaredSeries("app", "more")) {
		t.Error(why)
	}
}

func shownQueues(queues []adminapi.Queue) (all []string) {
	for _, q := range queues {
		all = append(all, strings.Join([]string{"queue", q.Name, "of", strconv.Itoa(q.Limit), q.Unit + ":", q.Policy}, " "))
	}
	return all
}

func declaredQueues(t *testing.T, sets ...string) (all []string) {
	t.Helper()
	for _, q := range registry.Queues {
		all = append(all, strings.Join([]string{"queue", q.Name, "of", strconv.Itoa(limitValue(t, q.Limit, sets...)), q.Unit + ":", string(q.Policy)}, " "))
	}
	return all
}

// limitValue returns a limit of the registry in a configuration: a number, or a key with a factor.
func limitValue(t *testing.T, limit string, sets ...string) int {
	t.Helper()
	if n, err := strconv.Atoi(limit); err == nil {
		return n
	}
	if first, rest, ok := strings.Cut(limit, " + "); ok {
		return limitValue(t, first, sets...) + limitValue(t, rest, sets...)
	}
	factor, part, most, key := 1, 1, 1<<62, limit
	key, least, _ := strings.Cut(key, ", at most ")
	if n, err := strconv.Atoi(least); err == nil {
		most = n
	}
	if before, after, ok := strings.Cut(key, "*"); ok {
		if n, err := strconv.Atoi(before); err == nil {
			factor, key = n, after
		} else {
			key = before
			number, _, _ := strings.Cut(after, "/")
			factor, _ = strconv.Atoi(number)
			_, after, _ = strings.Cut(after, "/")
			part = cmp.Or(atoi(after), 1)
		}
	} else if before, after, ok := strings.Cut(key, "/"); ok {
		key, part = before, cmp.Or(atoi(after), 1)
	}
	if i := slices.IndexFunc(registry.Queues, func(q registry.Queue) bool { return q.Name == key }); i >= 0 {
		return min(most, limitValue(t, registry.Queues[i].Limit, sets...)*factor/part) // of another queue
	}
	for _, s := range testkit.Config(t, sets...).Settings() {
		if s.Key == key {
			return min(most, size(s.Value)*factor/part)
		}
	}
	t.Fatalf("%s is no limit", limit)
	return 0
}

func atoi(text string) int { n, _ := strconv.Atoi(text); return n }

// size reads a number, or a size in MiB.
func size(text string) int {
	if n, ok := strings.CutSuffix(text, "MiB"); ok {
		return atoi(n) << 20
	}
	return atoi(text)
}

// shownSeries returns the series of a scrape that are ours, with names and labels, without values.
func shownSeries(text string) (all []string) {
	kind := make(map[string]string)
	for line := range strings.SplitSeq(text, "\n") {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, of, _ := strings.Cut(rest, " ")
			kind[name] = of
			continue
		}
		series, _, _ := strings.Cut(line, " ")
		name, labels, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		of := kind[name]
		if base, ok := strings.CutSuffix(name, "_count"); ok && kind[base] == "histogram" {
			name, of = base, "histogram"
		}
		if of == "" || strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") || strings.HasPrefix(name, "promhttp_") {
			continue // a comment, a bucket, a sum, or a series of the client library
		}
		all = append(all, of+" "+name+" "+labels)
	}
	return all
}

func declaredSeries(names ...string) (all []string) {
	for i := range registry.Metrics {
		m := &registry.Metrics[i]
		for _, values := range m.All(names...) {
			var labels []string
			for at, v := range values {
				labels = append(labels, m.Labels[at].Name+"="+strconv.Quote(v))
			}
			slices.Sort(labels)
			all = append(all, string(m.Type)+" "+m.Name+" "+strings.Join(labels, ","))
		}
	}
	return all
}
