package node

import (
	_ "macronode/adapters/fs" // want `layer core/node may not import adapters/fs`
	_ "macronode/core/state"
)
