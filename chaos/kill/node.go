// Package kill runs the real binary, loads it, kills it, and holds it to every
// answer that it ever gave.
package kill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Node is a process of the real binary, and where it is reached.
type Node struct {
	Binary string
	Data   string
	Args   []string // beyond serve, --data and free ports

	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process is gone
	out    *said
	HTTP   string // base URL
	Admin  string
	Key    string // the bootstrap key
	Token  string
	client http.Client
}

// said is what a process has written so far.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// Build makes the binary from this tree, with what else go build is told.
func Build(dir string, more ...string) (binary string, err error) {
	binary = filepath.Join(dir, "macronode")
	cmd := exec.Command("go", slices.Concat([]string{"build", "-o", binary}, more, []string{"macronode/cmd/macronode"})...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return binary, nil
}

// Start runs the binary until it is ready.
func (n *Node) Start(ctx context.Context) error {
	if err := n.Launch(); err != nil {
		return err
	}
	for ctx.Err() == nil && !n.Gone() {
		if n.Find() == nil && n.HTTP != "" && n.Key != "" && n.ready(ctx) == nil {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("never ready: %w\n%s", ctx.Err(), n.Said())
}

// Launch runs the binary, and does not wait for anything. A disk that stands still for some
// seconds, as that of a busy machine does, is slow to it and has not failed.
func (n *Node) Launch() error {
	args := append([]string{"serve", "--data", n.Data, "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--set", "journal.sync_timeout=1m"}, n.Args...)
	n.cmd, n.ended, n.out = exec.Command(n.Binary, args...), make(chan struct{}), new(said)
	n.cmd.Stdout, n.cmd.Stderr = n.out, n.out
	if err := n.cmd.Start(); err != nil {
		return err
	}
	cmd, ended := n.cmd, n.ended
	var waits sync.WaitGroup
	waits.Go(func() {
		_ = cmd.Wait() // how it ended is in its state
		close(ended)
	})
	return nil
}

// Gone reports that the process has ended, Said what it has said so far.
func (n *Node) Gone() bool {
	select {
	case <-n.ended:
		return true
	default:
		return false
	}
}
func (n *Node) Said() string { return n.out.String() }

// Find reads where this process listens, as far as it does yet, and the key, if there
// is one.
func (n *Node) Find() error {
	raw, err := os.ReadFile(filepath.Join(n.Data, "run.json"))
	if err != nil {
		return err
	}
	var run struct {
		PID    int
		Token  string
		Listen struct{ HTTP, Admin string }
	}
	if err := json.Unmarshal(raw, &run); err != nil {
		return err
	}
	if run.PID != n.cmd.Process.Pid {
		return errors.New("run.json is of an earlier life")
	}
	n.HTTP, n.Admin, n.Token = base(run.Listen.HTTP), base(run.Listen.Admin), run.Token
	key, err := os.ReadFile(filepath.Join(n.Data, "bootstrap.key"))
	if err == nil {
		n.Key = strings.TrimSpace(string(key))
	}
	return nil
}

// base is the URL of an address, where there is one.
func base(address string) string {
	if address == "" {
		return ""
	}
	return "http://" + address
}

func (n *Node) ready(ctx context.Context) error {
	status, _, err := n.get(ctx, n.Admin+"/readyz", "")
	if err == nil && status != http.StatusOK {
		return fmt.Errorf("readyz: %d", status)
	}
	return err
}

func (n *Node) get(ctx context.Context, url, bearer string) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	return n.do(req, bearer)
}

func (n *Node) do(req *http.Request, bearer string) (status int, body []byte, err error) {
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	resp, err := n.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// Gauges are the numbers that the node tells of itself, under their names with labels: those
// whose names begin with any of these.
func (n *Node) Gauges(ctx context.Context, of ...string) (map[string]float64, error) {
	status, text, err := n.get(ctx, n.Admin+"/metrics", "")
	if err == nil && status != http.StatusOK {
		err = errors.New(http.StatusText(status))
	}
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	all := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !slices.ContainsFunc(of, func(begins string) bool { return strings.HasPrefix(name, begins) }) {
			continue
		}
		if all[name], err = strconv.ParseFloat(value, 64); err != nil {
			return nil, fmt.Errorf("metrics: %q: %w", line, err)
		}
	}
	return all, nil
}

// AtGate are the gauges of who is at the gate, or kept a permit for too long: 0 where nobody is.
func AtGate() []string {
	return []string{"semaphore_inflight{", "fq_inflight{", "fq_queued{", "permits_revoked_total"}
}

// Get reads from the public listener.
func (n *Node) Get(ctx context.Context, path string) (status int, body []byte, err error) {
	return n.get(ctx, n.HTTP+path, n.Key)
}

// Post asks for a money operation under a key.
func (n *Node) Post(ctx context.Context, path, key, body string) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.HTTP+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	return n.do(req, n.Key)
}

// Kill ends the process as the kernel does, and waits until it is gone.
func (n *Node) Kill() {
	n.Signal(syscall.SIGKILL)
	_, _ = n.Wait()
}

// Stop asks the process to end, and returns what it said and how it ended.
func (n *Node) Stop() (said string, code int) {
	n.Signal(syscall.SIGTERM)
	return n.Wait()
}

// Signal tells the process something. One that is gone does not hear it.
func (n *Node) Signal(what syscall.Signal) { _ = n.cmd.Process.Signal(what) }

// Wait returns, when the process is gone, what it said and how it ended.
func (n *Node) Wait() (said string, code int) {
	<-n.ended
	n.client.CloseIdleConnections()
	return n.Said(), n.cmd.ProcessState.ExitCode()
}
