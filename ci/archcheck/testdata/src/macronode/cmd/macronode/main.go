package main

import (
	_ "macronode/adapters/journalfile" // want `layer cmd/macronode may not import adapters/journalfile`
	_ "macronode/cmd/macronode/internal/cli"
)

func main() {
	go main() // want `no goroutine here: only adapters and cmd may start one`
}
