package rooms

import _ "macronode/core/ledger" // want `room ci may not import core/ledger`
