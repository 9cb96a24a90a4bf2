package sim

import (
	"fmt"
	"os"

	"macronode/chaos/world"
)

// Recorded is the life of c with its log; err as of Run.
func Recorded(c world.Chooser) (l world.Log, err error) {
	err = New(world.Recorded(c, &l)).Run()
	return l, err
}

// Shrink makes the log of a life that fails small, within so many lives, and says how many
// it took. The life of what it returns breaks the same rule.
func Shrink(l world.Log, most int) (small world.Log, rule string, lives int) {
	s := world.Shrinker{Run: Failed, Steps: Steps(), Most: most}
	small, rule = s.Shrink(l)
	return small, rule, s.Runs
}

// Save writes a log, behind lines for people.
func Save(name string, l world.Log, said ...string) error {
	text, err := l.MarshalText()
	if err != nil {
		return err
	}
	head := ""
	for _, line := range said {
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
