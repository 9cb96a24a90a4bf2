package node

import (
	_ "macronode/adapters/fs" // want `room core/node may not import adapters/fs`
	_ "macronode/core/state"
)
