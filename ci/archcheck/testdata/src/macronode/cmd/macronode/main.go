package main

import (
	_ "macronode/adapters/journalfile"
	_ "macronode/chaos/faults" // want `layer cmd/macronode may not import chaos/faults`
	_ "macronode/core/node"
)

func main() { go main() }
