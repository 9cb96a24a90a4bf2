package cli

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"macronode/cmd/macronode/internal/testkit"
)

// TestNodeOutlivesTheReaderOfItsLog: if the reader of the log and of the output ends, the node serves on, and drains.
func TestNodeOutlivesTheReaderOfItsLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, written, err := os.Pipe()
	testkit.Must(t, err)
	node := exec.Command("macronode", slices.Concat([]string{"serve", "--data", dir, "--json"}, testkit.FreePorts)...)
	node.Stderr = written
	out, err := node.StdoutPipe()
	testkit.Must(t, errors.Join(err, node.Start(), written.Close()))
	defer node.Process.Kill() //nolint:errcheck // it has ended
	_, err = bufio.NewReader(out).ReadBytes('\n')
	testkit.Must(t, errors.Join(err, log.Close(), out.Close()))
	for range 3 { // a reload writes to the log
		text, err := exec.Command("macronode", "config", "reload", "--data", dir).CombinedOutput()
		if err != nil {
			t.Fatalf("%v %s", err, text)
		}
	}
	testkit.Must(t, node.Process.Signal(syscall.SIGTERM))
	if err := node.Wait(); err != nil {
		t.Error(err)
	}
}
