package kill_test

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"macronode/chaos/kill"
	"macronode/chaos/mutants"
	"macronode/core/types"
)

var bugs = flag.Bool("bugs", false, "see the certificate refuse binaries that have bugs: builds one each")

// A bug is a change of the source, and the text with which the certificate rejects what clients saw.
type bug struct {
	name     string
	edits    []mutants.Edit
	runs     int
	contains string
}

// put replaces the only occurrence of was in a file.
func put(file, was, now string) mutants.Edit { return mutants.Edit{File: file, Old: was, New: now} }

func broken() []bug {
	const journal, follower, node = "adapters/journalfile/journal.go", "adapters/readmodel/follower.go", "core/node/node.go"
	return []bug{
		{"answered before it is written", []mutants.Edit{ // zeros first: the node notices a file that is too short
			put(journal, "\t\"sync/atomic\"\n", "\t\"sync/atomic\"\n\t\"time\"\n"),
			put(journal, "if _, err := j.file.WriteAt(buf, j.size); err != nil {",
				"file, at := j.file, j.size\n\ttime.AfterFunc(time.Millisecond, func() { _, _ = file.WriteAt(buf, at) })\n\tif _, err := file.WriteAt(make([]byte, len(buf)), at); err != nil {"),
		}, 6, "was answered, and"},
		{"keys forgotten at recovery", []mutants.Edit{ // it would not start a third time: a key that is there twice is broken
			put(node, "\t\"macronode/core/event\"\n", "\t\"macronode/core/event\"\n\t\"macronode/core/idempotency\"\n"),
			put(node, "\tseed := dice\n", "\tseed := dice\n\ts.Idempotency = idempotency.New(c.State.Idempotency, types.Hash64(seed.Uint64n(1<<62)))\n"),
		}, 2, "has a record at a position that no answer has"},
		{"balances without what is held", []mutants.Edit{
			put(follower, "b.Available, _ = b.Amount.Sub(b.Held)", "b.Available = b.Amount"),
		}, 2, "was answered otherwise than the model answers"},
		{"balances of a while ago", []mutants.Edit{
			put(follower, "\t\"sync\"\n", "\t\"sync\"\n\t\"sync/atomic\"\n"),
			put(follower, "// Older reads", "var (\n\told  sync.Map\n\tasks atomic.Int64\n)\n\n// Older reads"),
			put(follower, "\tname, kind := digest.Name(account), digest.Name(asset)\n\tof, own",
				"\tif was, ok := old.Load(string(account)); ok && asks.Add(1)%8 > 0 {\n\t\treturn was.(event.Balance)\n\t}\n"+
					"\tdefer func() { old.Store(string(account), b) }()\n\tname, kind := digest.Name(account), digest.Name(asset)\n\tof, own"),
		}, 2, "returned before the call of one that precedes it"},
	}
}

// lay writes the files with the bug. It returns the overlay of a build with them.
func (b *bug) lay(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := mutants.Mutant{Name: b.name, Edits: b.edits}.Lay(root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return overlay
}

// TestBugs: each bug can still be applied. With -bugs the certificate alone, without comparing responses, names
// the first affected operation.
func TestBugs(t *testing.T) {
	for _, b := range broken() {
		overlay := b.lay(t)
		if !*bugs {
			continue
		}
		binary, err := kill.Build(t.TempDir(), "-overlay", overlay)
		if err != nil {
			t.Fatal(err)
		}
		dice := types.NewRand(*seed)
		for try := range 8 { // what a bug breaks, few moments of a kill show
			n, all := &kill.Node{Binary: binary, Data: t.TempDir()}, clients(16)
			for range b.runs {
				start(t, n)
				if err := underLoad(t, n, all, &dice); err != nil {
					first, _, _ := strings.Cut(err.Error(), "\n")
					t.Logf("%s: a client: %s", b.name, first)
				}
			}
			if _, err = kill.Certify(n.Data, all); err != nil && strings.Contains(err.Error(), b.contains) {
				t.Logf("%s, try %d: %v", b.name, try, err)
				break
			}
		}
		if err == nil || !strings.Contains(err.Error(), b.contains) {
			t.Errorf("%s: %v", b.name, err)
		}
	}
}
