// Package conf has the configurations of all gateways that are measured, each exactly as
// it is run, but for what the measurement sets.
package conf

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed nginx.conf haproxy.cfg Caddyfile macronode.yaml
var files embed.FS

var all = template.Must(template.ParseFS(files, "*"))

// Setting is what a measurement sets.
type Setting struct {
	Dir    string // of its own, of which it has the files that it writes
	Port   int    // of 127.0.0.1; macronode takes a free one
	Origin string // host:port of the service behind it
	Cores  int
	Rate   int // requests a second; 0: none at all
	Burst  int
	AtOnce int    // requests at the origin; 0: any number
	Turn   string // of a flow, in macronode; empty: as it comes
}

// Nginx is the rate as nginx wants it: none at all is one a minute, of which the one that
// asks whether it is up gets the first.
func (s Setting) Nginx() string {
	if s.Rate == 0 {
		return "1r/m"
	}
	return fmt.Sprintf("%dr/s", s.Rate)
}

// Write writes a configuration into the directory of its setting.
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
