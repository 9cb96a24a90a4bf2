package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"macronode/adapters/adminapi"
	"macronode/cmd/macronode/internal/testkit"
)

// TestScrubsAtOnceReportDamage: copies are damaged while automatic scrubs follow each other, or before two commands at once. Whichever scrub
// finds the damage first, each command exits with 1.
func TestScrubsAtOnceReportDamage(t *testing.T) {
	t.Parallel()
	const objects, size = 8, 128 << 10 // both copies of all objects take about two seconds
	for interval, commands := range map[string]int{"1s": 1, "168h": 2} {
		t.Run(fmt.Sprintf("%d of %s", commands, interval), func(t *testing.T) {
			t.Parallel()
			dir, disks := t.TempDir(), t.TempDir()
			flags := sets(providersIn(disks, "a", "b"), "storage.repair.rate=1MiB", "storage.repair.burst=128KiB", "storage.scrub.interval="+interval)
			k := testkit.StartKillable(t, dir, flags...)
			for n := range objects {
				putObjects(t, k, bytes.Repeat([]byte{byte(n)}, size))
			}
			for _, name := range copyFiles(filepath.Join(disks, "b")) {
				testkit.Must(t, flipByte(name, 1000))
			}
			var all sync.WaitGroup
			for n := range commands {
				all.Go(func() {
					output, err := exec.Command("macronode", "storage", "scrub", "--data", dir).CombinedOutput()
					if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 || !strings.Contains(string(output), "damaged copies found; ") {
						t.Errorf("command %d: %v\n%s", n, err, output)
					}
					if !strings.Contains(string(output), " bytes were verified at ") {
						t.Errorf("the result is not of a scrub that has ended:\n%s", output)
					}
				})
			}
			all.Wait()
		})
	}
}

// TestScrubShowsItsResult: the command waits for the scrub that it has requested, and shows what that has found, also if others have ended
// or begun since.
func TestScrubShowsItsResult(t *testing.T) {
	t.Parallel()
	results := func(from, to uint64) (all []adminapi.Scrub) {
		for n := from; n <= to; n++ {
			all = append(all, adminapi.Scrub{Number: n, Total: 1000 + n, Damaged: n % 2, ByProvider: []adminapi.ScrubOfProvider{{Damaged: n % 2}}})
		}
		return all
	}
	running := func(after uint64) adminapi.Scrub { return adminapi.Scrub{Number: after, Running: true, Total: 7} }
	disk := []adminapi.Provider{{Name: "disk"}}
	for what, c := range map[string]struct {
		before, after adminapi.Storage
		code          int
		want          string
	}{
		"the next one runs":     {adminapi.Storage{Requested: 5}, adminapi.Storage{Scrub: running(5), Scrubs: results(4, 5), Providers: disk}, 1, "scrub: 1005 bytes were verified at "},
		"others have ended":     {adminapi.Storage{Requested: 5}, adminapi.Storage{Scrub: adminapi.Scrub{Number: 8}, Scrubs: results(1, 8), Providers: disk}, 1, "1 damaged at the last scrub"},
		"intact":                {adminapi.Storage{Requested: 6}, adminapi.Storage{Scrub: running(7), Scrubs: results(5, 7), Providers: disk}, 0, "0 damaged at the last scrub"},
		"found before it began": {adminapi.Storage{Requested: 1}, adminapi.Storage{Scrub: running(1), Scrubs: []adminapi.Scrub{{Number: 1, Before: 2}}}, 1, ", 0 damaged copies; the scrub before has found 2 since this one was requested\n"},
		"forgotten":             {adminapi.Storage{Requested: 5}, adminapi.Storage{Scrub: running(40), Scrubs: results(25, 40)}, 1, "repeat the scrub"},
	} {
		state := func(status int, is adminapi.Storage) string {
			text, err := json.Marshal(is)
			testkit.Must(t, err)
			return fmt.Sprintf("%d %s", status, text)
		}
		early := adminapi.Storage{Scrub: running(c.before.Requested - 1), Scrubs: results(1, c.before.Requested-1)} // it has not ended
		p := newPeer(t, state(202, c.before), state(200, early), state(200, c.after))
		dir, _ := writeRunFiles(t, os.Getpid(), "", p.Listener.Addr().String())
		d := newTestConsole()
		code := Run([]string{"storage", "scrub", "--data", dir}, d.Console)
		if output := d.out.String() + d.err.String(); code != c.code || !strings.Contains(output, c.want) || len(p.received) != 3 {
			t.Errorf("%s: %d, %d requests\n%s", what, code, len(p.received), output)
		}
	}
}
