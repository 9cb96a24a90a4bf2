package kill_test

import (
	"os"
	"sync"
	"testing"

	"macronode/chaos/kill"
)

// builds is the directory of the shared binary.
var builds string

// build builds the binary once.
var build = sync.OnceValues(func() (string, error) { return kill.Build(builds) })

func TestMain(m *testing.M) {
	var err error
	if builds, err = os.MkdirTemp("", "macronode-kill-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(builds) // the tests have their result
	os.Exit(code)
}
