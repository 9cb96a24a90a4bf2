package testkit

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Moves are the series that one cause moves, and by how much.
type Moves map[string]float64

// Series is a series as a scrape has it.
func Series(name string, labels ...string) string {
	var all []string
	for i := 0; i < len(labels); i += 2 {
		all = append(all, labels[i]+"="+strconv.Quote(labels[i+1]))
	}
	slices.Sort(all)
	if len(all) == 0 {
		return name
	}
	return name + "{" + strings.Join(all, ",") + "}"
}

func QueueSeries(name string) string { return Series("queue_depth", "queue", name) }

// SeriesMoved returns the series of two scrapes that differ.
func SeriesMoved(was, is map[string]float64) Moves {
	all := Moves{}
	for _, name := range slices.Collect(maps.Keys(is)) {
		if d := is[name] - was[name]; d != 0 {
			all[name] = d
		}
	}
	for name := range was {
		if _, there := is[name]; !there {
			all[name+" (gone)"] = 1
		}
	}
	return all
}

func (m Moves) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "\n\t%s %+g", name, m[name])
	}
	return b.String()
}

// Same reports that both have the same series, by the same amounts up to the precision of a float.
func (m Moves) Same(as Moves) bool {
	return maps.EqualFunc(m, as, func(a, b float64) bool { return max(a-b, b-a) <= 1e-6*max(1, max(a, -a)) })
}
