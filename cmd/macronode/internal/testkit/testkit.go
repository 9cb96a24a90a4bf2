// Package testkit has what the tests of several packages of macronode share. The program does not link it.
package testkit

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"macronode/adapters/config"
)

// Config returns the configuration that settings of the form KEY=VALUE give.
func Config(t testing.TB, sets ...string) *config.Config {
	t.Helper()
	var s config.Sources
	for _, set := range sets {
		key, text, _ := strings.Cut(set, "=")
		s.Flags = append(s.Flags, config.Flag{Name: "--set " + set, Key: key, Text: text})
	}
	cfg, err := config.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// SmallState returns settings with which a state needs little memory and is made quickly.
func SmallState() []string {
	return []string{"wallet.limits.accounts=100", "wallet.limits.holdings=100", "wallet.limits.holds=100", "wallet.idempotency.keys=1000"}
}

// Must ends the test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// HangGuard returns a check for a loop that waits. After two minutes the check ends the test, so
// that a hang is reported where it is and not when the whole run ends.
func HangGuard(t testing.TB) (check func()) {
	end := time.Now().Add(2 * time.Minute)
	return func() {
		t.Helper()
		if time.Now().After(end) {
			t.Fatal("still waiting after two minutes")
		}
	}
}

// Differences returns one sentence for each entry that only one of the lists has.
func Differences(shown, declared []string) (wrong []string) {
	for _, s := range shown {
		if !slices.Contains(declared, s) {
			wrong = append(wrong, s+" is shown and not declared")
		}
	}
	for _, d := range declared {
		if !slices.Contains(shown, d) {
			wrong = append(wrong, d+" is declared and not shown")
		}
	}
	if len(shown) != len(declared) && len(wrong) == 0 {
		wrong = append(wrong, "an entry occurs twice")
	}
	return wrong
}

// Until waits until done reports true. It panics after a minute, so that a bug is not seen as a
// test that hangs.
func Until(done func() bool) {
	for end := time.Now().Add(2 * time.Minute); !done(); runtime.Gosched() {
		if time.Now().After(end) {
			panic("the awaited condition did not become true within a minute")
		}
	}
}
