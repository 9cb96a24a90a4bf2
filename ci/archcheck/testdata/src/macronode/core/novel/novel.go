package novel // want `core/novel is in no layer`
