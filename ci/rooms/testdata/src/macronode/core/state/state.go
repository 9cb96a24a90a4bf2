package state

import (
	_ "macronode/core/clock" // want `room core/state may not import core/clock`
	_ "macronode/core/ledger"
)
