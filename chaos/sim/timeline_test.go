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

// wishes counts the drawn requests in l.
func wishes(l world.Log) (n int) {
	for _, c := range l {
		if c.Site == "op" {
			n++
		}
	}
	return n
}

// TestTimelineShowsTheRun: the picture is well-formed, has every lane, the requests, recoveries
// and answers, and the violated rule at the end.
func TestTimelineShowsTheRun(t *testing.T) {
	l := slices.MaxFunc(lied(t), func(a, b world.Log) int { return cmp.Compare(wishes(a), wishes(b)) })
	var svg bytes.Buffer
	if err := liar(world.Replay(l)).picture(&svg, l); err != nil {
		t.Fatal(err)
	}
	testified := ""
	for d := xml.NewDecoder(bytes.NewReader(svg.Bytes())); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		if text, ok := tok.(xml.CharData); ok {
			testified += string(text) + "\n"
		}
	}
	rule := Rule(liar(world.Replay(l)).Run())
	for _, must := range []string{"clients", "node", "journal", "disk", "follower", "index", "asks", "decides", "recovered", "sync", "power", "durable", "Broken: " + rule} {
		if !strings.Contains(testified, must) {
			t.Errorf("nowhere is %q", must)
		}
	}
	if end := testified[strings.LastIndex(testified, "Broken: "):]; !strings.Contains(end, rule) || len(end) > 3000 {
		t.Errorf("the end is %q", end)
	}
}

// TestTimelineDoesNotChangeTheRun: recording does not change a run.
func TestTimelineDoesNotChangeTheRun(t *testing.T) {
	for seed := range uint64(20) {
		quiet, answered := New(Choices(seed, 200)), New(Choices(seed, 200))
		answered.listen()
		if a, b := quiet.Run(), answered.Run(); a != nil || b != nil || quiet.node.Hash() != answered.node.Hash() || quiet.disk.Ops != answered.disk.Ops {
			t.Fatalf("seed %d: %v and %v, %v and %v, %d and %d operations", seed, a, b, quiet.node.Hash(), answered.node.Hash(), quiet.disk.Ops, answered.disk.Ops)
		}
	}
}
