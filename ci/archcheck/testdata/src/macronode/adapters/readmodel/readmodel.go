package readmodel

import (
	_ "macronode/adapters/journalfile" // want `layer adapters/readmodel may not import adapters/journalfile`
	_ "macronode/chaos/world"          // want `layer adapters/readmodel may not import chaos/world`
	_ "macronode/core/node"            // want `layer adapters/readmodel may not import core/node`
	_ "macronode/core/state"
)
