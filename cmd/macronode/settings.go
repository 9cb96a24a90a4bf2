package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"macronode/adapters/config"
)

// Run says whether the configuration can be used, and the files that it names.
func (v *checkCmd) Run(c *console) error {
	cfg, err := c.load(v.flags()...)
	if err != nil {
		return err
	}
	if _, err := readCertificate(cfg); err != nil {
		return cannot(err)
	}
	admin := newAdminSettings(cfg)
	if _, err := admin.readToken(); err != nil {
		return cannot(err)
	}
	m := memoryBound(cfg)
	if c.tree.JSON {
		return c.print(struct {
			OK       bool     `json:"ok"`
			Memory   int64    `json:"memory_bytes"`
			Warnings []string `json:"warnings,omitempty"`
		}{true, m.Total(), cfg.Warnings()})
	}
	for _, warning := range cfg.Warnings() {
		if err := c.say("warning: %s", warning); err != nil {
			return err
		}
	}
	return c.say("the configuration is valid; it can use up to %s of memory: macronode explain memory shows the parts", megabytes(m.Total()))
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// Run prints every key.
func (v *effectiveCmd) Run(c *console) error {
	cfg, err := c.load(v.flags()...)
	if err != nil {
		return err
	}
	if !c.tree.JSON {
		_, err := fmt.Fprint(c.out, cfg.Effective())
		return err
	}
	type setting struct {
		Key   string `json:"key"`
		Value string `json:"value"`
		From  string `json:"from"`
	}
	var all []setting
	for _, s := range cfg.Settings() {
		all = append(all, setting(s))
	}
	return c.print(all)
}

// Run prints the JSON Schema.
func (v *schemaCmd) Run(c *console) error {
	_, err := c.out.Write(config.Schema())
	return err
}

// build is which macronode this is.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitzero"`
	Modified bool   `json:"modified,omitzero"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisBuild() build {
	b := build{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if is, ok := debug.ReadBuildInfo(); ok {
		b.Version = is.Main.Version
		for _, s := range is.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Revision = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	return b
}

// Run says which macronode this is.
func (v *versionCmd) Run(c *console) error {
	b := thisBuild()
	if c.tree.JSON {
		return c.print(b)
	}
	text := "macronode " + b.Version
	if b.Revision != "" {
		text += " " + b.Revision
	}
	if b.Modified {
		text += " (modified)"
	}
	return c.say("%s %s %s", text, b.Go, b.Platform)
}

// say prints a line.
func (c *console) say(format string, args ...any) error {
	_, err := fmt.Fprintf(c.out, format+"\n", args...)
	return err
}

// print writes a value as one line of JSON.
func (c *console) print(v any) error {
	text, err := json.Marshal(v, jsontext.EscapeForHTML(false))
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return c.say("%s", text)
}
