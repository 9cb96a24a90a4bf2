package digest

import (
	_ "github.com/labstack/echo/v4" // want `room core/digest may not borrow github.com/labstack/echo/v4`
	_ "github.com/zeebo/blake3"
	_ "macronode/attic"      // want `attic stands in no room`
	_ "macronode/core/table" // want `room core/digest may not import core/table`
	_ "macronode/core/words"
)
