package main

import (
	"fmt"
	"strings"
)

// Run says what the memory is that a configuration bounds.
func (v *memoryCmd) Run(c *console) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	m := memoryBound(cfg)
	if !c.tree.JSON {
		_, err := fmt.Fprint(c.out, m.table())
		return err
	}
	type part struct {
		share
		Bytes int64 `json:"bytes"`
	}
	var parts []part
	for _, s := range m {
		parts = append(parts, part{s, s.Bytes()})
	}
	return c.print(struct {
		Memory int64  `json:"memory_bytes"`
		Parts  []part `json:"parts"`
	}{m.Total(), parts})
}

// table is m as a person reads it: a line a part, and below it what it is the sum of.
func (m memory) table() string {
	var b strings.Builder
	for _, s := range m {
		fmt.Fprintf(&b, "%14s  %s\n", megabytes(s.Bytes()), s.Name)
		for _, t := range s.Terms {
			fmt.Fprintf(&b, "%14s    %d × %s  %s\n", "", t.Count, sized(t.Each), t.Of)
		}
	}
	fmt.Fprintf(&b, "%14s  total; the memory limit of the Go runtime is set to it unless GOMEMLIMIT is set\n", megabytes(m.Total()))
	return b.String()
}

// sized is a size in the largest unit of which it is at least one.
func sized(n int64) string {
	switch {
	case n >= 1<<20:
		return megabytes(n)
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
