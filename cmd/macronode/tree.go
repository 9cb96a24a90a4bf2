package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"macronode/adapters/config"
)

// tree is the grammar: verbs and flags. docs/cli.md is generated from it.
type tree struct {
	ConfigFile string   `name:"config" placeholder:"FILE" env:"MACRONODE_CONFIG" help:"YAML file of keys; the environment and flags are over it."`
	Data       string   `placeholder:"DIR" help:"Directory of the node, the key data; ./macronode-data where nobody says."`
	Set        []string `placeholder:"KEY=VALUE" sep:"none" help:"Set any key of the configuration; may be repeated."`
	JSON       bool     `help:"Print JSON on standard output."`
	ShowBuild  bool     `name:"version" help:"Say which macronode this is, as the verb does."`

	Serve   serveCmd   `cmd:"" default:"withargs" help:"Run the node (what is done without a verb)."`
	Dev     devCmd     `cmd:"" help:"Run a node on a directory that is thrown away, and print its key."`
	Status  statusCmd  `cmd:"" help:"Say how the node that runs on the directory is."`
	Drain   drainCmd   `cmd:"" help:"End the node that runs on the directory, and wait until it is gone."`
	Wallet  walletCmd  `cmd:"" help:"Move money, and look at it."`
	Keys    keysCmd    `cmd:"" help:"Say who may do what."`
	Verify  verifyCmd  `cmd:"" help:"Check the journal of a directory on which no node runs."`
	Backup  backupCmd  `cmd:"" help:"Copy the journal, also of a node that runs; again brings the copy up to date."`
	Restore restoreCmd `cmd:"" help:"Check a copy, or bring it back as another journal."`
	Config  configCmd  `cmd:"" help:"Look at the configuration."`
	Explain explainCmd `cmd:"" help:"Say where a number comes from, or why a request was refused."`
	Version versionCmd `cmd:"" help:"Say which macronode this is."`

	Completion completionCmd `cmd:"" help:"Print the lines that teach a shell to complete."`
	Complete   completeCmd   `cmd:"" hidden:"" help:"Say how a command line goes on, for a shell."`
	Help       helpCmd       `cmd:"" help:"Say what a verb does."`
}

type (
	listenFlags struct {
		HTTP  string `placeholder:"ADDR" help:"Public listener, the key listen.http."`
		Admin string `placeholder:"ADDR" help:"Admin listener, the key listen.admin."`
	}
	serveCmd struct {
		listenFlags `embed:""`
	}
	devCmd struct {
		listenFlags `embed:""`
	}
	verifyCmd struct {
		Deep     bool `help:"Also fold each snapshot anew, and compare every byte."`
		Progress bool `help:"Say on standard error how far it is, also where that is no terminal."`
	}

	statusCmd struct{}
	drainCmd  struct {
		Abort   bool          `help:"Give up what does not finish at once."`
		Timeout time.Duration `placeholder:"DURATION" help:"How long to wait until it is gone; else 10 s longer than its drain may take, and at least 30 s."`
	}

	configCmd struct {
		Check     checkCmd     `cmd:"" help:"Say whether it can be used, and how much memory it takes."`
		Effective effectiveCmd `cmd:"" help:"Print every key with its value and where that came from."`
		Schema    schemaCmd    `cmd:"" help:"Print the JSON Schema of the file."`
		Diff      diffCmd      `cmd:"" help:"Say what would change in the node that runs."`
		Reload    reloadCmd    `cmd:"" help:"Have the node that runs read its configuration again."`
		Status    appliedCmd   `cmd:"" help:"Say which configuration the node that runs has applied."`
	}
	checkCmd struct {
		listenFlags `embed:""`
	}
	effectiveCmd struct {
		listenFlags `embed:""`
	}
	schemaCmd struct{}
	diffCmd   struct {
		listenFlags `embed:""`
	}
	reloadCmd  struct{}
	appliedCmd struct{}

	explainCmd struct {
		Memory   memoryCmd   `cmd:"" help:"Add up the memory that the configuration bounds, part by part."`
		Decision decisionCmd `cmd:"" default:"withargs" help:"Say what became of a request, and why."`
	}
	memoryCmd   struct{}
	decisionCmd struct {
		ID string `arg:"" help:"Of the decision: X-Decision-Id of an answer, decision_id of a problem."`
	}

	versionCmd struct{}

	completionCmd struct {
		Shell string `arg:"" enum:"bash,zsh,fish" help:"Which: bash, zsh or fish."`
	}
	completeCmd struct {
		Shell string `arg:"" help:"Which asks."`
		Line  string `arg:"" help:"The command line up to the cursor."`
	}
	helpCmd struct {
		Verb []string `arg:"" optional:"" help:"Which; else all of them, shortly."`
	}
)

// elsewhere are the variables that are no keys of the configuration.
func elsewhere() []string {
	return []string{"MACRONODE_CONFIG", "MACRONODE_URL", "MACRONODE_API_KEY_FILE"}
}

// load reads the configuration that the command line, the environment and the file
// amount to.
func (c *console) load(own ...config.Flag) (*config.Config, error) {
	s := config.Sources{File: c.tree.ConfigFile, Environ: c.environ, Elsewhere: elsewhere()}
	for _, set := range c.tree.Set {
		key, text, ok := strings.Cut(set, "=")
		if !ok {
			return nil, cannot(fmt.Errorf("--set %s wants KEY=VALUE", set))
		}
		s.Flags = append(s.Flags, config.Flag{Name: "--set " + set, Key: key, Text: text})
	}
	own = append(own, config.Flag{Name: "--data", Key: "data", Text: c.tree.Data})
	for _, f := range own {
		if f.Text != "" {
			s.Flags = append(s.Flags, f)
		}
	}
	cfg, err := config.Load(s)
	if err == nil {
		err = errors.Join(usable(cfg), ownPaths(cfg))
	}
	return cfg, cannot(err)
}

func (l listenFlags) flags() []config.Flag {
	return []config.Flag{
		{Name: "--http", Key: "listen.http", Text: l.HTTP},
		{Name: "--admin", Key: "listen.admin", Text: l.Admin},
	}
}
