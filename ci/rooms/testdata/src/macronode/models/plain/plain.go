package plain

import _ "macronode/core/words"
