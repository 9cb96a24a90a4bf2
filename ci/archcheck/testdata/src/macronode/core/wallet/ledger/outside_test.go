package ledger_test

import _ "macronode/core/idempotency"
