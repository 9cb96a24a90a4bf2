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
	"strings"
	"syscall"
	"time"
)

// Node is a process of the real binary, and where it is reached.
type Node struct {
	Binary string
	Data   string
	Args   []string // beyond serve, --data and free ports

	cmd    *exec.Cmd
	out    bytes.Buffer
	HTTP   string // base URL
	Admin  string
	Key    string // the bootstrap key
	Token  string
	client http.Client
}

// Build makes the binary from this tree.
func Build(dir string) (binary string, err error) {
	binary = filepath.Join(dir, "macronode")
	cmd := exec.Command("go", "build", "-o", binary, "macronode/cmd/macronode")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return binary, nil
}

// Start runs the binary until it is ready.
func (n *Node) Start(ctx context.Context) error {
	args := append([]string{"serve", "--data", n.Data, "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, n.Args...)
	n.cmd = exec.Command(n.Binary, args...)
	n.out.Reset()
	n.cmd.Stdout, n.cmd.Stderr = &n.out, &n.out
	if err := n.cmd.Start(); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if n.find() == nil && n.ready(ctx) == nil {
			return nil
		}
		if n.cmd.ProcessState != nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("never ready: %w\n%s", ctx.Err(), n.out.String())
}

// find reads where this process listens, and the key.
func (n *Node) find() error {
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
	if run.PID != n.cmd.Process.Pid || run.Listen.HTTP == "" {
		return errors.New("run.json is of an earlier life, or not complete")
	}
	key, err := os.ReadFile(filepath.Join(n.Data, "bootstrap.key"))
	if err != nil {
		return err
	}
	n.HTTP, n.Admin, n.Token = "http://"+run.Listen.HTTP, "http://"+run.Listen.Admin, run.Token
	n.Key = strings.TrimSpace(string(key))
	return nil
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
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
	n.client.CloseIdleConnections()
}

// Stop asks the process to end, and returns what it said and how it ended.
func (n *Node) Stop() (said string, code int) {
	_ = n.cmd.Process.Signal(syscall.SIGTERM)
	_ = n.cmd.Wait()
	n.client.CloseIdleConnections()
	return n.out.String(), n.cmd.ProcessState.ExitCode()
}
