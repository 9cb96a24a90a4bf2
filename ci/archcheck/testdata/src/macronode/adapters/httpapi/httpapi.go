package httpapi

import (
	_ "github.com/labstack/echo/v4"
	_ "github.com/prometheus/client_golang/prometheus" // want `layer adapters/httpapi may not import module github.com/prometheus/client_golang/prometheus`
	_ "macronode/adapters/httpapi/wire"
)
