package httpapi

import (
	_ "github.com/labstack/echo/v4"
	_ "github.com/prometheus/client_golang/prometheus" // want `room adapters/httpapi may not borrow github.com/prometheus/client_golang/prometheus`
	_ "macronode/adapters/httpapi/wire"
)
