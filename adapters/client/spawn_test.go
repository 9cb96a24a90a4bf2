package client_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// The examples use a real node, built from this tree: one process for all of them.
var spawned struct {
	*exec.Cmd
	dir string
}

// node returns its address and a key with all scopes. It starts the node at the first call.
var node = sync.OnceValues(func() (address, key string) {
	dir, err := os.MkdirTemp("", "client-example-")
	if err != nil {
		panic(err)
	}
	spawned.dir = dir
	binary := filepath.Join(dir, "macronode")
	build := exec.Command("go", "build", "-o", binary, "macronode/cmd/macronode")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as everywhere, even where the race detector needs cgo
	if output, err := build.CombinedOutput(); err != nil {
		panic(string(output))
	}
	cmd := exec.Command(binary, "dev", "--json", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	cmd.Env = []string{"TMPDIR=" + dir}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		panic(err)
	}
	spawned.Cmd = cmd
	var greeting struct {
		HTTP string `json:"http"`
		Key  string `json:"api_key"`
	}
	if err := json.NewDecoder(out).Decode(&greeting); err != nil {
		panic(err)
	}
	return greeting.HTTP, greeting.Key
})

// stop ends the process.
func stop(code int) {
	if spawned.Cmd != nil {
		_ = spawned.Process.Kill()
		_ = spawned.Wait()
	}
	_ = os.RemoveAll(spawned.dir)
	os.Exit(code)
}
