package journalfile

import (
	_ "macronode/adapters/fs"
	_ "macronode/adapters/httpapi" // want `room adapters/journalfile may not import adapters/httpapi`
	_ "macronode/core/words"
)
