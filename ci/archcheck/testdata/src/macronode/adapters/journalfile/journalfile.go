package journalfile

import (
	_ "macronode/adapters/fs"
	_ "macronode/adapters/httpapi" // want `layer adapters/journalfile may not import adapters/httpapi`
	_ "macronode/core/types"
)
