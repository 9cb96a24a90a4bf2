package record

import _ "macronode/core/event"
