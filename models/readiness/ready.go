// Package readiness is the reference model of core/lifecycle/readiness: a table from conditions
// to what the node serves.
package readiness

import "macronode/core/types"

// Node has the conditions of a node.
type Node struct {
	Missing []types.Condition
	Wrong   []types.Condition
	Began   bool // all dependencies were present once
	Late    bool
	Wanted  []int // upstreams that were never healthy
	Free    int   // eighths of the reserve of the disk; 8: all of it, and more
}

// A Row is a row of the table: the phase, and what is served.
type Row struct {
	Phase                         string
	Readyz, ForRead, Reads, Wrote bool
	Revokes                       bool // once the node has begun
}

// New returns a node without any dependency that waits for some upstreams.
func New(wanted ...int) Node {
	n := Node{Missing: []types.Condition{types.DependencyJournal, types.DependencyKey, types.DependencyHTTP, types.DependencyAdmin, types.DependencySampler}, Wanted: wanted, Free: 8}
	if len(wanted) > 0 {
		n.Missing = append(n.Missing, types.DependencyUpstreams)
	}
	return n
}

// Well handles an upstream that is healthy or removed. What happens to it later does not matter.
func (n *Node) Well(upstream int) {
	var rest []int
	for _, u := range n.Wanted {
		if u != upstream {
			rest = append(rest, u)
		}
	}
	if n.Wanted = rest; len(rest) == 0 {
		n.Satisfy(types.DependencyUpstreams)
	}
}

// Satisfy, Unsatisfy, Degrade and Restore handle changes of conditions.
func (n *Node) Satisfy(c types.Condition) {
	if n.Missing = without(n.Missing, c); len(n.Missing) == 0 {
		n.Began = true
	}
}
func (n *Node) Unsatisfy(c types.Condition) { n.Missing = append(without(n.Missing, c), c) }
func (n *Node) Degrade(c types.Condition)   { n.Wrong = append(without(n.Wrong, c), c) }
func (n *Node) Restore(c types.Condition)   { n.Wrong = without(n.Wrong, c) }

// HasFree handles the free space of the disk.
func (n *Node) HasFree(eighths int) {
	n.Free = eighths
	if eighths < 8 {
		n.Degrade(types.DiskFull)
	} else {
		n.Restore(types.DiskFull)
	}
}

// Waited handles the start deadline.
func (n *Node) Waited() { n.Late = !n.Began }

// Row returns the row of n.
func (n *Node) Row() Row {
	if !n.Began {
		if n.Late {
			return Row{Phase: "degraded"}
		}
		return Row{Phase: "starting"}
	}
	row := Row{"ready", true, true, true, true, n.Free > 0}
	if len(n.Missing) > 0 || len(n.Wrong) > 0 {
		row.Phase = "degraded"
	}
	for _, c := range n.Wrong {
		if c == types.JournalStalled || c == types.JournalFailed || c == types.DiskFull {
			row.Readyz, row.Wrote = false, false
			row.Revokes = row.Revokes && c == types.DiskFull
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
