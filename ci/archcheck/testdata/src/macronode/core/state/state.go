package state

import (
	_ "macronode/core/clock" // want `layer core/state may not import core/clock`
	_ "macronode/core/wallet/ledger"
)
