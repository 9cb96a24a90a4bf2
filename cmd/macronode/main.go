// Command macronode runs a node, and is the command line for its operators and clients.
//
//	main ─► internal/cli ─┬─► internal/server: runs a node
//	                      ├─► a client of a running node
//	                      └─► internal/offline: tools for a data directory
package main

import (
	"os"

	"macronode/cmd/macronode/internal/cli"
)

func main() { os.Exit(cli.Run(os.Args[1:], cli.Process())) }
