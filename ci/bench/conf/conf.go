// Package conf has the configurations of all measured gateways, exactly as they run, except for
// the settings of a measurement.
package conf

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed nginx.conf nginx-objects.conf haproxy.cfg Caddyfile macronode.yaml macronode-objects.yaml
var files embed.FS

var all = template.Must(template.ParseFS(files, "*"))

// Setting is what a measurement sets.
type Setting struct {
	Dir    string // its directory for the files that it writes
	Port   int    // of 127.0.0.1; macronode takes a free one, except for S3
	Origin string // host:port of the service behind it
	Cores  int
	Rate   int // requests a second; 0: none
	Burst  int
	AtOnce int    // concurrent requests at the origin; 0: unlimited
	Turn   string // of a flow, in macronode; empty: default
}

// Nginx returns the rate for nginx: none is one a minute, which the readiness check uses.
func (s Setting) Nginx() string {
	if s.Rate == 0 {
		return "1r/m"
	}
	return fmt.Sprintf("%dr/s", s.Rate)
}

// Write writes a configuration to the directory of its setting.
func Write(name string, s Setting) (file string, err error) {
	file = filepath.Join(s.Dir, name)
	f, err := os.Create(file)
	if err != nil {
		return "", err
	}
	if err := all.ExecuteTemplate(f, name, s); err != nil {
		_ = f.Close() // the other error says more
		return "", err
	}
	return file, f.Close()
}
