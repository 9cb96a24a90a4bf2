package simulate

import _ "macronode/chaos/faults"
