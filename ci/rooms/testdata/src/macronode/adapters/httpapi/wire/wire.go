package wire

import _ "macronode/core/ledger" // want `room adapters/httpapi may not import core/ledger`
