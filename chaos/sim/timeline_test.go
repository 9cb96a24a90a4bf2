package sim

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"macronode/chaos/world"
)

// wishes is how often somebody in l made up what to ask for.
func wishes(l world.Log) (n int) {
	for _, c := range l {
		if c.Site == "op" {
			n++
		}
	}
	return n
}

// TestTimeline: the picture is well-formed, has every lane and whatever was asked,
// recovered and told, and ends with the rule that was broken.
func TestTimeline(t *testing.T) {
	l := slices.MaxFunc(lied(t), func(a, b world.Log) int { return cmp.Compare(wishes(a), wishes(b)) })
	var svg bytes.Buffer
	if err := liar(world.Replay(l)).picture(&svg, l); err != nil {
		t.Fatal(err)
	}
	said := ""
	for d := xml.NewDecoder(bytes.NewReader(svg.Bytes())); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		if text, ok := tok.(xml.CharData); ok {
			said += string(text) + "\n"
		}
	}
	rule := Rule(liar(world.Replay(l)).Run())
	for _, must := range []string{"clients", "node", "journal", "disk", "follower", "index", "asks", "decides", "recovered", "sync", "power", "durable", "Broken: " + rule} {
		if !strings.Contains(said, must) {
			t.Errorf("nowhere is %q", must)
		}
	}
	if end := said[strings.LastIndex(said, "Broken: "):]; !strings.Contains(end, rule) || len(end) > 3000 {
		t.Errorf("the end is %q", end)
	}
}

// TestListeningChangesNothing: a life is the same, whether it is told or not.
func TestListeningChangesNothing(t *testing.T) {
	for seed := range uint64(20) {
		quiet, told := New(Life(seed, 200)), New(Life(seed, 200))
		told.listen()
		if a, b := quiet.Run(), told.Run(); a != nil || b != nil || quiet.node.Hash() != told.node.Hash() || quiet.disk.Ops != told.disk.Ops {
			t.Fatalf("seed %d: %v and %v, %v and %v, %d and %d operations", seed, a, b, quiet.node.Hash(), told.node.Hash(), quiet.disk.Ops, told.disk.Ops)
		}
	}
}
