// Package graph has the specifications in Go as well, so that their steps can be compared with
// those of TLC: no edge more, no edge less.
//
//	Admission, Clock … ──Explore──► Graph ──Digest──► testdata, for machines without Java
//	TLC's dump ──Read──► Graph ──Minus, both ways──► no difference
package graph

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// A State is a digest of a state's canonical text.
type State uint64

func digest(text string) State {
	sum := sha256.Sum256([]byte(text))
	return State(binary.BigEndian.Uint64(sum[:8]))
}

// An Edge is a step of a specification.
type Edge struct {
	From   State
	Action string
	To     State
}

// Graph has all reachable states and all steps between them. Text has the text of each state.
type Graph struct {
	Text  map[State]string
	Edges map[Edge]struct{}
}

func empty() *Graph { return &Graph{Text: map[State]string{}, Edges: map[Edge]struct{}{}} }

// state adds a state, and reports whether it is new.
func (g *Graph) state(text string) (s State, fresh bool) {
	s = digest(text)
	_, known := g.Text[s]
	g.Text[s] = text
	return s, !known
}

// Spec is a specification: its initial states and its steps. States are immutable.
type Spec[S fmt.Stringer] struct {
	Init S
	Next func(s S, step func(action string, to S))
}

// most states of a graph: a bug can make a specification infinite.
const most = 1 << 18

// Explore visits all of a specification, up to the limit.
func Explore[S fmt.Stringer](spec Spec[S]) *Graph {
	type found struct {
		is S
		at State
	}
	g := empty()
	at, _ := g.state(spec.Init.String())
	for left := []found{{spec.Init, at}}; len(left) > 0 && len(g.Text) < most; {
		from := left[len(left)-1]
		left = left[:len(left)-1]
		spec.Next(from.is, func(action string, to S) {
			at, fresh := g.state(to.String())
			g.Edges[Edge{from.at, action, at}] = struct{}{}
			if fresh {
				left = append(left, found{to, at})
			}
		})
	}
	return g
}

// Minus returns edges of g that other does not have: some of them as text, and their number.
func (g *Graph) Minus(other *Graph) (some []string, count int) {
	for e := range g.Edges {
		if _, ok := other.Edges[e]; ok {
			continue
		}
		if count++; count <= 3 {
			some = append(some, fmt.Sprintf("%s\n  from %s\n  to   %s", e.Action, g.Text[e.From], g.Text[e.To]))
		}
	}
	return some, count
}

// Digest returns a line with the number of states and edges, and a digest of all edges in order.
func (g *Graph) Digest() string {
	lines := make([]string, 0, len(g.Edges))
	for e := range g.Edges {
		lines = append(lines, fmt.Sprintf("%016x %s %016x\n", uint64(e.From), e.Action, uint64(e.To)))
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return fmt.Sprintf("%d states, %d edges, %s", len(g.Text), len(g.Edges), hex.EncodeToString(sum[:]))
}
