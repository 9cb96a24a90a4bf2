package server

import (
	"log/slog"

	"macronode/adapters/config"
	"macronode/adapters/nodedir"
	"macronode/core/event"
)

// Options are what a node needs beside its configuration.
type Options struct {
	Log     *slog.Logger
	Version string
	Signals *signals                       // signals of the operator
	Ready   func(nodedir.Run)              // called once, when the node is ready
	Drained func(event.Status)             // called once, when the node has drained
	Load    func() (*config.Config, error) // loads the configuration again
	Level   *slog.LevelVar                 // of log
}
