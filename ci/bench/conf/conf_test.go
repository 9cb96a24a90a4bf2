package conf

import (
	"os"
	"strings"
	"testing"
)

// TestWrite: the settings are in each configuration.
func TestWrite(t *testing.T) {
	for name, wants := range map[string][]string{
		"nginx.conf":     {"rate=7r/s;", "burst=3 ", "server 127.0.0.1:9000;", "listen 127.0.0.1:8000 ", "worker_processes 2;"},
		"haproxy.cfg":    {"ge 7 ", "server one 127.0.0.1:9000 maxconn 8", "bind 127.0.0.1:8000 ", "nbthread 2"},
		"Caddyfile":      {"reverse_proxy 127.0.0.1:9000 ", "http://127.0.0.1:8000 "},
		"macronode.yaml": {"requests_per_second: 7, burst: 3", `"http://127.0.0.1:9000"`, "proxy: 8", "quantum_bytes: 4KiB"},

		"nginx-objects.conf":     {"listen 127.0.0.1:8000 ", "worker_processes 2;", "dav_methods PUT;"},
		"macronode-objects.yaml": {"s3: 127.0.0.1:8000", "/data"},
	} {
		file, err := Write(name, Setting{Dir: t.TempDir(), Port: 8000, Origin: "127.0.0.1:9000", Cores: 2, Rate: 7, Burst: 3, AtOnce: 8, Turn: "4KiB"})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(raw), want) {
				t.Errorf("%s has no %q:\n%s", name, want, raw)
			}
		}
	}
	none, err := Write("nginx.conf", Setting{Dir: t.TempDir(), Burst: 1})
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(none); err != nil || !strings.Contains(string(raw), "rate=1r/m;") {
		t.Errorf("%v\n%s", err, raw)
	}
}
