package cli

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"macronode/adapters/fs"
	"macronode/adapters/nodedir"
	"macronode/cmd/macronode/internal/settings"
	"macronode/cmd/macronode/internal/testkit"
)

// fewFiles are settings of a node that needs few files itself.
var fewFiles = []string{"permits.storage=8", "storage.uploads=4"}

// filesOf returns the open files of a node with settings.
func filesOf(t *testing.T, sets ...string) settings.Files {
	t.Helper()
	return settings.FilesOf(testkit.Config(t, sets...))
}

// underLimit returns a command that runs this program under a limit of open files.
func underLimit(limit uint64, args []string) *exec.Cmd {
	return exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, limit), "macronode"}, args...)...)
}

// crowd opens connections to a listener that it never uses again after their first request, and replaces those that are closed, until the test ends.
type crowd struct {
	to string

	mu    sync.Mutex
	conns map[net.Conn]bool
	tried int
	over  bool
	group sync.WaitGroup
}

// join opens n connections from addresses of their own.
func (c *crowd) join(n, address int) {
	d := net.Dialer{Timeout: time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(address))}}
	for range n {
		c.group.Go(func() {
			for {
				conn, err := d.Dial("tcp", c.to)
				c.mu.Lock()
				c.tried++
				over := c.over
				if err == nil && !over {
					c.conns[conn] = true
				}
				c.mu.Unlock()
				switch {
				case over && err == nil:
					_ = conn.Close()
					return
				case over:
					return
				case err != nil:
					time.Sleep(10 * time.Millisecond)
					continue
				}
				_, _ = io.WriteString(conn, "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
				_, _ = io.Copy(io.Discard, conn) // until the node closes it
				_ = conn.Close()
				c.mu.Lock()
				delete(c.conns, conn)
				c.mu.Unlock()
				time.Sleep(2 * time.Second)
			}
		})
	}
}

// attempts returns how many connections were tried.
func (c *crowd) attempts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tried
}

func (c *crowd) leave() {
	c.mu.Lock()
	c.over = true
	for conn := range c.conns {
		_ = conn.Close()
	}
	c.mu.Unlock()
	c.group.Wait()
}

// openFiles returns what a process has open: the targets of its descriptors.
func openFiles(t *testing.T, pid int) (all []string) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	names, err := os.ReadDir(dir)
	testkit.Must(t, err)
	for _, n := range names {
		if to, err := os.Readlink(filepath.Join(dir, n.Name())); err == nil { // else it was closed meanwhile
			all = append(all, to)
		}
	}
	return all
}

// keyed sends a request with the bootstrap key, again if its connection ends, and returns the status and the response.
func (p process) keyed(t *testing.T, by *http.Client, method, path string, body []byte) (status int, text string) {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(p.dir, "bootstrap.key"))
	testkit.Must(t, err)
	id := rand.Text()
	for check := testkit.HangGuard(t); ; check() {
		req, err := http.NewRequestWithContext(t.Context(), method, p.HTTP+path, bytes.NewReader(body))
		testkit.Must(t, err)
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(key)))
		req.Header.Set("Idempotency-Key", id)
		req.Header.Set("Content-Type", "application/json")
		resp, err := by.Do(req)
		if err != nil { // a new connection may give way before its header is read
			continue
		}
		got, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err == nil {
			return resp.StatusCode, string(got)
		}
	}
}

// TestIdleConnectionsLeaveFiles: idle connections, more than the process may have files open, leave those that the node needs: the
// journal begins its next segment, and the index and the objects are written and read.
func TestIdleConnectionsLeaveFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a segment of the journal: too slow with the race detector")
	}
	t.Parallel()
	files := filesOf(t, fewFiles...)
	limit := files.Required() + 40
	if own, err := fs.OpenFiles(); err != nil || own < 3*limit {
		t.Skipf("this test needs %d open files for its connections, and may have %d: %v", 3*limit, own, err)
	}
	dir := t.TempDir()
	p := startCommand(t, dir, underLimit(limit, serveArgs(dir, sets(fewFiles...))))
	<-p.log.Await("the limit of open files is too low for the configuration")
	run, err := nodedir.Read(dir)
	testkit.Must(t, err)

	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	if status, text := p.keyed(t, client, http.MethodGet, "/v1/balance?account=ann&asset=EUR/2", nil); status != http.StatusOK { // a connection from before the crowd
		t.Fatalf("%d, %s", status, text)
	}
	crowd := &crowd{to: strings.TrimPrefix(p.HTTP, "http://"), conns: map[net.Conn]bool{}}
	defer crowd.leave()
	for address := range 8 {
		crowd.join(int(limit)/4, 41+address)
	}
	for check := testkit.HangGuard(t); crowd.attempts() < int(limit)*3/2; check() {
		time.Sleep(10 * time.Millisecond)
	}
	batch := issues(1000)
	rolled := filepath.Join(dir, "journal", "00000002.seg")
	const most = 1 + 64<<20/(1000*200) // the memos alone fill a segment
	for n := 0; ; n++ {
		if n > most {
			t.Fatalf("%d batches, and no other segment", n)
		}
		if status, text := p.keyed(t, client, http.MethodPost, "/v1/batch", batch); status != http.StatusOK {
			t.Fatalf("a write: %d, %.300s\n%s", status, text, p.log)
		}
		if _, err := os.Stat(rolled); err == nil {
			break
		}
	}
	if n := len(openFiles(t, run.PID)); n > int(limit) {
		t.Errorf("%d open files, with a limit of %d", n, limit)
	}
	content := []byte("content")
	if status, text := p.keyed(t, client, http.MethodPut, "/o/"+addressOf(content), content); status/100 != 2 {
		t.Errorf("an upload: %d, %.300s", status, text)
	}
	if status, text := p.keyed(t, client, http.MethodGet, "/o/"+addressOf(content), nil); status != http.StatusOK || text != string(content) {
		t.Errorf("a download: %d, %.300s", status, text)
	}
	for check := testkit.HangGuard(t); !strings.Contains(p.adminText(t, "/readyz?verbose"), `"degraded_by":[]`); check() {
		time.Sleep(10 * time.Millisecond) // until the index has all frames
	}
	if status, text := p.keyed(t, client, http.MethodGet, "/v1/accounts/ann/entries?limit=1", nil); status != http.StatusOK {
		t.Errorf("a read of the index: %d, %.300s", status, text)
	}
	if bad := p.log.String(); strings.Contains(bad, "too many open files") {
		t.Errorf("the log has it: %s", bad)
	}
}

// TestTooFewFilesRefuseTheStart: below the files of the node and of its fewest connections, it does not start, and says what to do.
func TestTooFewFilesRefuseTheStart(t *testing.T) {
	t.Parallel()
	files := filesOf(t, fewFiles...)
	dir := t.TempDir()
	out, err := underLimit(files.Required()-1, serveArgs(dir, sets(fewFiles...))).CombinedOutput()
	want := fmt.Sprintf("the limit of open files is %d, and this configuration needs %d, ", files.Required()-1, files.Required())
	if code, ok := errors.AsType[*exec.ExitError](err); !ok || code.ExitCode() != 2 || !strings.Contains(string(out), want) || !strings.Contains(string(out), "raise LimitNOFILE (ulimit -n) to ") {
		t.Errorf("%v, %s; want %s", err, out, want)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("the directory has %v, %v", names, err)
	}
}

// TestBusyNodeOpensFewFiles: what a node really has open, by the place of the files, while it stores and sends objects with two copies, writes its
// journal and its index, and exports: in no place more than settings.FilesOf says.
func TestBusyNodeOpensFewFiles(t *testing.T) {
	t.Parallel()
	disks := t.TempDir()
	keys := []string{"permits.storage=16", "storage.uploads=8", "permits.flow_share=100", providersIn(disks, "a", "b"), "index.memtable_frames=100",
		`exports.sinks=[{"name":"out","kind":"file","dir":"` + filepath.Join(disks, "out") + `","streams":["wallet"]}]`}
	p := startNode(t, keys...)
	run, err := nodedir.Read(p.dir)
	testkit.Must(t, err)
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()

	large := bytes.Repeat([]byte("0123456789abcdef"), 2<<20) // more than the buffers of a connection
	if status, text := p.keyed(t, client, http.MethodPut, "/o/"+addressOf(large), large); status/100 != 2 {
		t.Fatalf("%d, %s", status, text)
	}
	const uploads, downloads = 4, 4
	for n := range uploads {
		body := bytes.Repeat([]byte{byte(n)}, 4<<20)
		conn := p.unfinished(t, "PUT /o/"+addressOf(body), fmt.Sprintf("Content-Length: %d\r\n", len(body)))
		_, err := conn.Write(body[:2<<20])
		testkit.Must(t, err)
	}
	for range downloads {
		p.unfinished(t, "GET /o/"+addressOf(large), "")
	}
	bound := filesByPlace(filesOf(t, keys...), p.dir, disks)
	atWork := false
	for check := testkit.HangGuard(t); !atWork; check() {
		if status, text := p.keyed(t, client, http.MethodPost, "/v1/batch", issues(20)); status != http.StatusOK {
			t.Fatalf("%d, %.300s", status, text)
		}
		open := map[string]int{}
		for _, f := range openFiles(t, run.PID) {
			open[placeOf(f, bound)]++
		}
		for place, n := range open {
			if most, ok := bound[place]; ok && n > most {
				t.Fatalf("%d files are open in %q, want at most %d", n, place, most)
			}
		}
		atWork = open[disks+"/"] >= 2*uploads+downloads && open[filepath.Join(p.dir, "index")+"/"] > 4 && open[filepath.Join(p.dir, "journal")+"/"] > 0
	}
}

// unfinished sends the header of a request with the bootstrap key, and reads no response.
func (p process) unfinished(t *testing.T, line, header string) net.Conn {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(p.dir, "bootstrap.key"))
	testkit.Must(t, err)
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.HTTP, "http://"))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nIdempotency-Key: %s\r\n%s\r\n", line, bytes.TrimSpace(key), rand.Text(), header)
	testkit.Must(t, err)
	return conn
}

// issues returns the body of a batch of issues with memos.
func issues(n int) []byte {
	items := strings.Repeat(fmt.Sprintf(`{"op":"issue","to":"ann","asset":"EUR/2","amount_minor":"1","memo":%q},`, strings.Repeat("m", 200)), n)
	return []byte(`{"atomic":true,"items":[` + strings.TrimSuffix(items, ",") + `]}`)
}

// filesByPlace returns how many files a node may have open below a directory: prefix of the path -> files. What is in no directory, beside
// connections, is of the process.
func filesByPlace(f settings.Files, dir, disks string) map[string]int {
	terms := map[string]int{}
	for _, term := range f.Own {
		terms[strings.SplitN(term.Of, " (", 2)[0]] = term.Count * term.Each
	}
	objects := terms["uploads of objects"] + terms["downloads of objects"] + terms["repairs"] + terms["providers"]
	return map[string]int{
		filepath.Join(dir, "journal") + "/":   terms["the journal and its archive"],
		filepath.Join(dir, "snapshots") + "/": terms["snapshots"],
		filepath.Join(dir, "index") + "/":     terms["the index, beside its tables"] + f.Index.Most,
		filepath.Join(dir, "audit.log"):       terms["the audit log"],
		disks + "/":                           objects + terms["sinks"],
		"":                                    terms["the process, its listeners and locks"],
	}
}

// placeOf returns the prefix of a file in places; "socket:" for a connection.
func placeOf(file string, places map[string]int) string {
	if strings.HasPrefix(file, "socket:") {
		return "socket:"
	}
	for place := range places {
		if place != "" && strings.HasPrefix(file+"/", place) {
			return place
		}
	}
	return ""
}
