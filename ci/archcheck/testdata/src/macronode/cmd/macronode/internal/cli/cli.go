package cli

import (
	_ "macronode/adapters/journalfile"
	_ "macronode/chaos/faults"                   // want `layer cmd/macronode/internal/cli may not import chaos/faults`
	_ "macronode/cmd/macronode/internal/testkit" // want `layer cmd/macronode/internal/cli may not import cmd/macronode/internal/testkit`
	_ "macronode/core/node"
)

func start() { go start() }
