package cli

import (
	"fmt"
	"strings"

	"macronode/cmd/macronode/internal/settings"
)

// Run shows how many files the configuration can have open.
func (v *filesCmd) Run(c *Console) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	f := settings.FilesOf(cfg)
	if !c.tree.JSON {
		_, err := fmt.Fprint(c.out, filesTable(&f))
		return err
	}
	type use struct {
		Of    string `json:"of"`
		Most  int    `json:"most"`
		Least int    `json:"least"`
		Each  int    `json:"each_files"`
	}
	var uses []use
	for _, u := range f.Uses() {
		uses = append(uses, use{u.Of, u.Most, u.Least, u.Each})
	}
	return c.printJSON(struct {
		Needed   uint64              `json:"needed_files"`
		Required uint64              `json:"required_files"`
		Own      []settings.FileTerm `json:"own"`
		Uses     []use               `json:"uses"`
	}{f.Needed(), f.Required(), f.Own, uses})
}

// filesTable returns f as text: a line for each term and each use.
func filesTable(f *settings.Files) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%8d  files of the node itself\n", f.OwnFiles())
	for _, t := range f.Own {
		fmt.Fprintf(&b, "%8s    %d × %d  %s\n", "", t.Count, t.Each, t.Of)
	}
	for _, u := range f.Uses() {
		fmt.Fprintf(&b, "%8d  %d × %d  %s, at least %d\n", u.Files(u.Most), u.Most, u.Each, u.Of, u.Least)
	}
	fmt.Fprintf(&b, "%8d  total: with a lower limit of open files (ulimit -n) there are fewer connections; below %d the node does not start\n", f.Needed(), f.Required())
	return b.String()
}
