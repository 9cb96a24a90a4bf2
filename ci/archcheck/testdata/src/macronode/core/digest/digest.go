package digest

import (
	_ "github.com/labstack/echo/v4" // want `layer core/digest may not import module github.com/labstack/echo/v4`
	_ "github.com/zeebo/blake3"
	_ "macronode/attic"      // want `attic is in no layer`
	_ "macronode/core/table" // want `layer core/digest may not import core/table`
	_ "macronode/core/types"
)
