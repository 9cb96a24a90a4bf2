package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"macronode/adapters/config"
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/settings"
)

// Run checks the configuration and the files that it names.
func (v *checkCmd) Run(c *Console) error {
	cfg, err := c.load(v.flags()...)
	if err != nil {
		return err
	}
	if _, err := settings.ReadCertificate(cfg); err != nil {
		return exit.Unable(err)
	}
	admin := settings.NewAdmin(cfg)
	if _, err := admin.ReadToken(); err != nil {
		return exit.Unable(err)
	}
	m, warnings := settings.MemoryBound(cfg), cfg.Warnings()
	for _, s := range settings.ExposedSecrets(cfg) {
		warnings = append(warnings, s.String())
	}
	if c.tree.JSON {
		return c.printJSON(struct {
			OK       bool     `json:"ok"`
			Memory   int64    `json:"memory_bytes"`
			Warnings []string `json:"warnings,omitempty"`
		}{true, m.Total(), warnings})
	}
	for _, warning := range warnings {
		if err := c.printLine("warning: %s", warning); err != nil {
			return err
		}
	}
	return c.printLine("the configuration is valid; it can use up to %s of memory: macronode explain memory shows the parts", megabytes(m.Total()))
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// Run prints every key with its value and source.
func (v *effectiveCmd) Run(c *Console) error {
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
	return c.printJSON(all)
}

// Run prints the JSON Schema.
func (v *schemaCmd) Run(c *Console) error {
	_, err := c.out.Write(config.Schema(settings.Planes().Sections()...))
	return err
}

// build identifies this program.
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

// Run prints the version.
func (v *versionCmd) Run(c *Console) error {
	b := thisBuild()
	if c.tree.JSON {
		return c.printJSON(b)
	}
	text := "macronode " + b.Version
	if b.Revision != "" {
		text += " " + b.Revision
	}
	if b.Modified {
		text += " (modified)"
	}
	return c.printLine("%s %s %s", text, b.Go, b.Platform)
}

// printLine prints a line.
func (c *Console) printLine(format string, args ...any) error {
	_, err := fmt.Fprintf(c.out, format+"\n", args...)
	return err
}

// printJSON prints a value as one line of JSON.
func (c *Console) printJSON(v any) error {
	text, err := json.Marshal(v, jsontext.EscapeForHTML(false))
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return c.printLine("%s", text)
}
