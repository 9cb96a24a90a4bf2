package novel // want `core/novel stands in no room`
