package lane

import (
	_ "github.com/anishathalye/porcupine"
	_ "macronode/core/queue"   // want `room models may not import core/queue`
	_ "macronode/models/plain" // want `room models may not import models/plain`
	_ "math/big"
	_ "os" // want `pure room models may not import os`
)
