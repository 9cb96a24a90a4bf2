package follower

import (
	_ "macronode/adapters/journalfile" // want `room adapters/follower may not import adapters/journalfile`
	_ "macronode/chaos/world"          // want `room adapters/follower may not import chaos/world`
	_ "macronode/core/node"            // want `room adapters/follower may not import core/node`
	_ "macronode/core/state"
)
