package archcheck

import _ "macronode/core/wallet/ledger" // want `layer ci may not import core/wallet/ledger`
