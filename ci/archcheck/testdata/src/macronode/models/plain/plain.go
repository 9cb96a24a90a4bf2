package plain

import _ "macronode/core/types"
