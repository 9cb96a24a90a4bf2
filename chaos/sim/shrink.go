package sim

import (
	"fmt"
	"os"

	"macronode/chaos/world"
)

// Recorded makes a run of c and returns its log; err as of Run.
func Recorded(c world.Chooser) (l world.Log, err error) {
	err = New(world.Recorded(c, &l)).Run()
	return l, err
}

// Shrink reduces the log of a failing run, within a number of runs, and returns how many it took.
// The result violates the same rule.
func Shrink(l world.Log, most int) (small world.Log, rule string, runs int) {
	s := world.Shrinker{Run: Failed, Steps: Steps(), Most: most}
	small, rule = s.Shrink(l)
	return small, rule, s.Runs
}

// Save writes a log after comment lines.
func Save(name string, l world.Log, testified ...string) error {
	text, err := l.MarshalText()
	if err != nil {
		return err
	}
	head := ""
	for _, line := range testified {
		head += "# " + line + "\n"
	}
	if err := os.WriteFile(name, append([]byte(head), text...), 0o600); err != nil {
		return fmt.Errorf("write the log: %w", err)
	}
	return nil
}

// Load reads a log.
func Load(name string) (l world.Log, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	if err := l.UnmarshalText(text); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return l, nil
}
