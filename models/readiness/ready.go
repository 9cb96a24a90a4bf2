// Package readiness is the table of what a node may be asked for, by what is wrong
// with it.
package readiness

import "macronode/core/types"

// Node is what is known of one.
type Node struct {
	Missing []types.Condition
	Wrong   []types.Condition
	Began   bool // nothing was missing, once
	Late    bool
	Wanted  []int // upstreams that were never well
}

// A Row is one of the table: the phase, and who is let in.
type Row struct {
	Phase                         string
	Readyz, ForRead, Reads, Wrote bool
}

// New misses everything, and wants some upstreams.
func New(wanted ...int) Node {
	n := Node{Missing: []types.Condition{types.DependencyJournal, types.DependencyKey, types.DependencyHTTP, types.DependencyAdmin, types.DependencySampler}, Wanted: wanted}
	if len(wanted) > 0 {
		n.Missing = append(n.Missing, types.DependencyUpstreams)
	}
	return n
}

// Well is heard of an upstream that is well, or gone. What becomes of it later is nothing
// to the node.
func (n *Node) Well(upstream int) {
	var rest []int
	for _, u := range n.Wanted {
		if u != upstream {
			rest = append(rest, u)
		}
	}
	if n.Wanted = rest; len(rest) == 0 {
		n.Met(types.DependencyUpstreams)
	}
}

// Met, Missed, Ails and Heals are what is heard.
func (n *Node) Met(c types.Condition) {
	if n.Missing = without(n.Missing, c); len(n.Missing) == 0 {
		n.Began = true
	}
}
func (n *Node) Missed(c types.Condition) { n.Missing = append(without(n.Missing, c), c) }
func (n *Node) Ails(c types.Condition)   { n.Wrong = append(without(n.Wrong, c), c) }
func (n *Node) Heals(c types.Condition)  { n.Wrong = without(n.Wrong, c) }

// Waited is what the deadline of the start finds.
func (n *Node) Waited() { n.Late = !n.Began }

// Row is where n stands in the table.
func (n *Node) Row() Row {
	if !n.Began {
		if n.Late {
			return Row{Phase: "degraded"}
		}
		return Row{Phase: "starting"}
	}
	row := Row{"ready", true, true, true, true}
	if len(n.Missing) > 0 || len(n.Wrong) > 0 {
		row.Phase = "degraded"
	}
	for _, c := range n.Wrong {
		if c == types.JournalStalled || c == types.JournalFailed || c == types.DiskFull {
			row.Readyz, row.Wrote = false, false
		}
	}
	for _, c := range n.Missing {
		if c == types.DependencyHTTP {
			row.Readyz, row.ForRead = false, false
		}
	}
	return row
}

func without(list []types.Condition, c types.Condition) (rest []types.Condition) {
	for _, x := range list {
		if x != c {
			rest = append(rest, x)
		}
	}
	return rest
}
