package cli

import (
	"fmt"
	"strings"

	"macronode/cmd/macronode/internal/settings"
)

// Run shows how much memory the configuration can use.
func (v *memoryCmd) Run(c *Console) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	m := settings.MemoryBound(cfg)
	if !c.tree.JSON {
		_, err := fmt.Fprint(c.out, memoryTable(m))
		return err
	}
	type part struct {
		settings.MemoryPart
		Bytes int64 `json:"bytes"`
	}
	var parts []part
	for _, s := range m {
		parts = append(parts, part{s, s.Bytes()})
	}
	return c.printJSON(struct {
		Memory int64  `json:"memory_bytes"`
		Parts  []part `json:"parts"`
	}{m.Total(), parts})
}

// memoryTable returns m as text: a line for each part, and its terms below it.
func memoryTable(m settings.Memory) string {
	var b strings.Builder
	for _, s := range m {
		fmt.Fprintf(&b, "%14s  %s\n", megabytes(s.Bytes()), s.Name)
		for _, t := range s.Terms {
			fmt.Fprintf(&b, "%14s    %d × %s  %s\n", "", t.Count, sizeText(t.Each), t.Of)
		}
	}
	fmt.Fprintf(&b, "%14s  total; the memory limit of the Go runtime is set to it unless GOMEMLIMIT is set\n", megabytes(m.Total()))
	return b.String()
}

// sizeText returns a size in the largest unit of which it has at least one.
func sizeText(n int64) string {
	switch {
	case n >= 1<<20:
		return megabytes(n)
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
