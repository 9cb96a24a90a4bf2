package idempotency

import (
	_ "macronode/core/event"
	_ "macronode/core/state"         // want `layer core/idempotency may not import core/state`
	_ "macronode/core/wallet/ledger" // want `layer core/idempotency may not import core/wallet/ledger`
)
