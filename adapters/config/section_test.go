package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/adapters/config"
)

type notes struct {
	Most   int `key:"most" default:"10" min:"1" max:"100" change:"restart" doc:"Maximum notes."`
	Tenant int `key:"tenant_most" default:"=notes.most" min:"1" max:"100" change:"restart" doc:"Maximum notes of one tenant."`
}

func (n *notes) Check() error {
	if n.Tenant > n.Most {
		return errors.New("tenant_most is more than notes.most")
	}
	return nil
}

// TestSectionOfAPlane: a section that a plane adds is loaded, checked and shown like those of the tree.
func TestSectionOfAPlane(t *testing.T) {
	section := config.Section{Key: "notes", Doc: "Notes.", New: func() any { return new(notes) }}
	load := func(file string, environ ...string) (*config.Config, error) {
		name := filepath.Join(t.TempDir(), "macronode.yaml")
		if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		return config.Load(config.Sources{File: name, Environ: environ, Sections: []config.Section{section}})
	}
	c, err := load("notes:\n  most: 7\n", "MACRONODE_NOTES__TENANT_MOST=5")
	if err != nil {
		t.Fatal(err)
	}
	if got := *c.Section(&section).(*notes); got != (notes{7, 5}) {
		t.Errorf("the section is %+v", got)
	}
	if text := c.Effective(); !strings.Contains(text, "notes:\n  most: 7 # file") || !strings.Contains(text, "tenant_most: 5 # environment") {
		t.Errorf("the section is not shown: %s", text)
	}
	if c, err = load("{}"); err != nil || *c.Section(&section).(*notes) != (notes{10, 10}) {
		t.Errorf("the default is %+v, %v", c.Section(&section), err)
	}
	for file, want := range map[string]string{
		"notes:\n  most: 700\n":                  "notes.most (file",
		"notes:\n  last: 1\n":                    "notes.last (file",
		"notes:\n  most: 3\n  tenant_most: 4\n":  "notes.tenant_most is more than notes.most",
		"notes:\n  most: 3\n  tenant_most: -1\n": "must be a whole number from 1 to 100",
	} {
		if _, err := load(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", file, err, want)
		}
	}
	if schema := string(config.Schema(section)); !strings.Contains(schema, "\"notes\": {") || strings.Contains(string(config.Schema()), "\"notes\": {") {
		t.Errorf("the schema is %s", schema)
	}
	without, err := config.Load(config.Sources{})
	if err != nil || without.Section(&section).(*notes).Most != 10 {
		t.Errorf("without the section: %+v, %v", without.Section(&section), err)
	}
}
