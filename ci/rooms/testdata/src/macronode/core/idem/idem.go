package idem

import (
	_ "macronode/core/event"
	_ "macronode/core/ledger" // want `room core/idem may not import core/ledger`
	_ "macronode/core/state"  // want `room core/idem may not import core/state`
)
