package client_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The generator produces the committed file.
func TestGeneratedCodeIsFresh(t *testing.T) {
	const tool = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"
	if source := text(t, "wire/wire.go"); !strings.Contains(source, tool) {
		t.Fatal("another version is pinned in wire.go, or none")
	}
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	document, err := filepath.Abs("../httpapi/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", tool, "-config", "oapi.yaml", document)
	cmd.Dir = t.TempDir()
	for _, name := range []string{"oapi.yaml", "overlay.yaml"} {
		if err := os.WriteFile(filepath.Join(cmd.Dir, name), []byte(text(t, "wire/"+name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	local := "GOPROXY=file://" + filepath.Join(strings.TrimSpace(string(cache)), "cache", "download") // a test needs no network
	cmd.Env = append(os.Environ(), "GOFLAGS=", local, "GOSUMDB=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(string(output), "no such file or directory") || strings.Contains(string(output), "not found") {
			t.Skip("oapi-codegen is not in the module cache; go generate fetches it, and the golden conversation ties its output to the document")
		}
		t.Fatalf("%v: %s", err, output)
	}
	if text(t, filepath.Join(cmd.Dir, "wire.gen.go")) != text(t, "wire/wire.gen.go") {
		t.Fatal("wire/wire.gen.go is stale: go generate ./adapters/client/...")
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}
