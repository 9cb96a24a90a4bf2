package wire

import _ "macronode/core/wallet/ledger" // want `layer adapters/httpapi may not import core/wallet/ledger`
