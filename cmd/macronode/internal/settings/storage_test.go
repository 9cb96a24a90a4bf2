package settings

import (
	"errors"
	"testing"
	"testing/synctest"

	"macronode/adapters/config"
	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/adapters/provider"
	"macronode/cmd/macronode/internal/testkit"
)

// TestDirectoriesHaveTimeLimits: a change of a directory that hangs ends. Then reads of one of several directories end too, and those of a
// single one go on.
func TestDirectoriesHaveTimeLimits(t *testing.T) {
	var list []Provider
	for range 2 {
		list = append(list, Provider{Dir: fs.Dir(t.TempDir())})
		for i, p := range OpenProviders(list) {
			synctest.Test(t, func(t *testing.T) { checkTimeLimit(t, i, len(list), p) })
		}
	}
}

func checkTimeLimit(t *testing.T, i, of int, p objectstore.Provider) {
	t.Helper()
	answer := make(chan struct{})
	_, ok, err := provider.Change(p.Port, func(fs.Dir) (int, error) {
		<-answer
		return 0, nil
	}, func(int) {})
	if !ok || !errors.Is(err, provider.ErrUnavailable) {
		t.Errorf("directory %d of %d: a change that hangs: %v, %v", i, of, ok, err)
	}
	if _, err := p.Port.List(); errors.Is(err, provider.ErrUnavailable) != (of > 1) {
		t.Errorf("directory %d of %d: a list while a change hangs: %v", i, of, err)
	}
	close(answer)
}

// TestTimedCallsAreInTheMemoryBound: it has the calls to each directory, also of a node without storage.providers.
func TestTimedCallsAreInTheMemoryBound(t *testing.T) {
	const a, b, bucket = `{"name":"a","path":"a"}`, `{"name":"b","path":"b"}`, `{"name":"s","endpoint":"http://s3.example","bucket":"copies","credentials_file":"/s"}`
	for providers, want := range map[string]int64{"": provider.MaxCalls + provider.MaxOnlyReads, a: provider.MaxCalls + provider.MaxOnlyReads, a + "," + b: 2 * provider.MaxCalls,
		a + "," + bucket: provider.MaxCalls, bucket: 0} {
		if got := timedCalls(configOf(t, providers)); got != want {
			t.Errorf("providers %s: %d calls, want %d", providers, got, want)
		}
	}
}

func configOf(t *testing.T, providers string) *config.Config {
	t.Helper()
	if providers == "" {
		return testkit.Config(t)
	}
	return testkit.Config(t, "storage.providers=["+providers+"]")
}
