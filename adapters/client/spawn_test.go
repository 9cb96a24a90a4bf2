package client_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// The examples speak to a real node, of this tree: one process for all of them.
var spawned struct {
	*exec.Cmd
	dir string
}

// node is where it listens, and a key that may do all. It is begun when it is first
// asked for.
var node = sync.OnceValues(func() (address, key string) {
	dir, err := os.MkdirTemp("", "client-example-")
	if err != nil {
		panic(err)
	}
	spawned.dir = dir
	binary := filepath.Join(dir, "macronode")
	build := exec.Command("go", "build", "-o", binary, "macronode/cmd/macronode")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as everywhere, also where a check for races needs C
	if said, err := build.CombinedOutput(); err != nil {
		panic(string(said))
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

// stop ends what was spawned.
func stop(code int) {
	if spawned.Cmd != nil {
		_ = spawned.Process.Kill()
		_ = spawned.Wait()
	}
	_ = os.RemoveAll(spawned.dir)
	os.Exit(code)
}
