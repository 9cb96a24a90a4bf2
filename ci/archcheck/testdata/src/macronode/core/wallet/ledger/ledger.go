package ledger

import (
	_ "macronode/core/clock"
	_ "macronode/core/digest"
	_ "macronode/core/event"
	_ "macronode/core/queue"
	_ "macronode/core/record"
	_ "macronode/core/table"
	_ "macronode/core/types"
)
