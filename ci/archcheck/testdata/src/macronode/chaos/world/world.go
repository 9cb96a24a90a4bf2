package world

import (
	_ "macronode/adapters/fs"
	_ "macronode/chaos/faults"
	_ "macronode/cmd/simulate" // want `layer chaos may not import cmd/simulate`
	_ "macronode/core/event"
	_ "macronode/models/plain"
	_ "math/rand/v2"
	_ "sync"
)

func begin() { go begin() } // want `no goroutine here: only adapters and cmd may start one`
