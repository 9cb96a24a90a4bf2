// Package kill runs the real binary, loads it, kills it, and compares it with every response that it gave.
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

// Node is a process of the real binary, and its addresses.
type Node struct {
	Binary string
	Data   string
	Args   []string // beyond serve, --data and free ports

	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process is gone
	out    *processOutput
	HTTP   string // base URL
	Admin  string
	Key    string // the bootstrap key
	Token  string
	client http.Client
}

// processOutput is the output of a process so far.
type processOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *processOutput) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *processOutput) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// Build builds the binary of this tree, with further arguments of go build.
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
	return fmt.Errorf("never ready: %w\n%s", ctx.Err(), n.Output())
}

// Launch runs the binary without waiting. The disk of a busy machine may block for seconds, so the settings treat
// that as slow and not as failed.
func (n *Node) Launch() error {
	args := append([]string{"serve", "--data", n.Data, "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--set", "journal.sync_timeout=1m"}, n.Args...)
	n.cmd, n.ended, n.out = exec.Command(n.Binary, args...), make(chan struct{}), new(processOutput)
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

// Gone reports whether the process has ended, Output returns its output so far.
func (n *Node) Gone() bool {
	select {
	case <-n.ended:
		return true
	default:
		return false
	}
}
func (n *Node) Output() string { return n.out.String() }

// Find reads the addresses of this process, as far as it listens, and the key, if there is one.
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
		return errors.New("run.json is of an earlier run")
	}
	n.HTTP, n.Admin, n.Token = base(run.Listen.HTTP), base(run.Listen.Admin), run.Token
	key, err := os.ReadFile(filepath.Join(n.Data, "bootstrap.key"))
	if err == nil {
		n.Key = strings.TrimSpace(string(key))
	}
	return nil
}

// base returns the URL of an address, or nothing if it is empty.
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

// Gauges returns the metrics whose names, with labels, begin with any of these.
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

// AtGate returns the gauges of admission, which are 0 if no request is in progress and no permit was revoked.
func AtGate() []string {
	return []string{"semaphore_inflight{", "fq_inflight{", "fq_queued{", "permits_revoked_total"}
}

// Get sends a GET to the public listener.
func (n *Node) Get(ctx context.Context, path string) (status int, body []byte, err error) {
	return n.get(ctx, n.HTTP+path, n.Key)
}

// GetIndexed is Get for what the index answers. While it opens after a start, the node answers 503: then it is asked again, for half a
// minute.
func (n *Node) GetIndexed(ctx context.Context, path string) (status int, body []byte, err error) {
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		status, body, err = n.Get(ctx, path)
		if err != nil || status != http.StatusServiceUnavailable || time.Now().After(end) {
			return status, body, err
		}
	}
}

// Post sends an operation under a key.
func (n *Node) Post(ctx context.Context, path, key, body string) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.HTTP+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	return n.do(req, n.Key)
}

// Kill kills the process and waits until it has ended.
func (n *Node) Kill() {
	n.Signal(syscall.SIGKILL)
	_, _ = n.Wait()
}

// Stop terminates the process, and returns its output and its exit code.
func (n *Node) Stop() (output string, code int) {
	n.Signal(syscall.SIGTERM)
	return n.Wait()
}

// Signal sends a signal. A process that has ended does not get it.
func (n *Node) Signal(what syscall.Signal) { _ = n.cmd.Process.Signal(what) }

// Wait waits for the process, and returns its output and its exit code.
func (n *Node) Wait() (output string, code int) {
	<-n.ended
	n.client.CloseIdleConnections()
	return n.Output(), n.cmd.ProcessState.ExitCode()
}
