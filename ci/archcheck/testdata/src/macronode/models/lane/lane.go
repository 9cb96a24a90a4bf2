package lane

import (
	_ "github.com/anishathalye/porcupine"
	_ "macronode/core/queue"   // want `layer models may not import core/queue`
	_ "macronode/models/plain" // want `layer models may not import models/plain`
	_ "math/big"
	_ "os" // want `pure layer models may not import os`
)
