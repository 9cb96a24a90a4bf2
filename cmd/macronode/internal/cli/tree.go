package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"macronode/adapters/config"
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/settings"
)

// tree is the grammar: verbs and flags. docs/cli.md is generated from it.
type tree struct {
	ConfigFile string   `name:"config" placeholder:"FILE" env:"MACRONODE_CONFIG" help:"YAML configuration file. Environment variables and flags take precedence."`
	Data       string   `placeholder:"DIR" help:"Data directory, the key data. Default: ./macronode-data."`
	Set        []string `placeholder:"KEY=VALUE" sep:"none" help:"Set a configuration key; may be repeated."`
	JSON       bool     `help:"Print JSON on standard output."`
	ShowBuild  bool     `name:"version" help:"Print the version, like the command version."`

	Serve   serveCmd   `cmd:"" default:"withargs" help:"Run a node. This is the default command."`
	Dev     devCmd     `cmd:"" help:"Run a node on a temporary directory and print its API key."`
	Status  statusCmd  `cmd:"" help:"Show the state of the running node."`
	Drain   drainCmd   `cmd:"" help:"Drain the running node and wait until its process has ended."`
	Wallet  walletCmd  `cmd:"" help:"Move money and read the ledger."`
	Object  objectCmd  `cmd:"" help:"Store and read objects."`
	Usage   usageCmd   `cmd:"" help:"Record, sum, export and verify usage."`
	Exports exportsCmd `cmd:"" help:"Show and change what is delivered to other systems."`
	Storage storageCmd `cmd:"" help:"Show, verify and restore the copies of objects."`
	Keys    keysCmd    `cmd:"" help:"Manage API keys."`
	Verify  verifyCmd  `cmd:"" help:"Check the journal of a stopped node."`
	Backup  backupCmd  `cmd:"" help:"Back up the journal of a running or stopped node."`
	Restore restoreCmd `cmd:"" help:"Check a backup, or restore it as a new journal."`
	Config  configCmd  `cmd:"" help:"Check, show and reload the configuration."`
	Explain explainCmd `cmd:"" help:"Explain a decision on a request, the memory limit, or the open files."`
	Version versionCmd `cmd:"" help:"Print the version."`

	Completion completionCmd `cmd:"" help:"Print a completion script for a shell."`
	Complete   completeCmd   `cmd:"" hidden:"" help:"Complete a command line, for a shell."`
	Help       helpCmd       `cmd:"" help:"Show the help of a command."`
}

type (
	listenFlags struct {
		HTTP  string `placeholder:"ADDR" help:"Address of the public listener, the key listen.http."`
		Admin string `placeholder:"ADDR" help:"Address of the admin listener, the key listen.admin."`
		S3    string `name:"s3" placeholder:"ADDR" help:"Address of the S3 listener, the key listen.s3."`
	}
	serveCmd struct {
		listenFlags `embed:""`
	}
	devCmd struct {
		listenFlags `embed:""`
	}
	verifyCmd struct {
		Deep     bool `help:"Also rebuild each snapshot and compare every row."`
		Fast     bool `help:"Check the names and sizes of the files of objects, not their contents."`
		Progress bool `help:"Show progress on standard error, even if it is no terminal."`
	}

	storageCmd struct {
		Status storageStatusCmd `cmd:"" help:"Show the copies in each provider of the running node."`
		Scrub  storageScrubCmd  `cmd:"" help:"Read and verify all copies, and wait for the end."`
		Repair storageRepairCmd `cmd:"" help:"Look for missing copies, and wait until they are restored."`

		Rebalance storageRebalanceCmd `cmd:"" help:"Move copies and shards to the providers where new objects would have them, and wait for the end."`
	}
	storageStatusCmd struct{}
	storageScrubCmd  struct{}
	storageRepairCmd struct{}

	storageRebalanceCmd struct{}

	statusCmd struct{}
	drainCmd  struct {
		Abort   bool          `help:"Abort requests in progress."`
		Timeout time.Duration `placeholder:"DURATION" help:"Time to wait for the end. Default: 10 s longer than its drain can take, at least 30 s."`
	}

	configCmd struct {
		Check     checkCmd     `cmd:"" help:"Check the configuration and show how much memory it can use."`
		Effective effectiveCmd `cmd:"" help:"Print every key with its value and source."`
		Schema    schemaCmd    `cmd:"" help:"Print the JSON Schema of the configuration file."`
		Diff      diffCmd      `cmd:"" help:"Show what would change in the running node."`
		Reload    reloadCmd    `cmd:"" help:"Reload the configuration of the running node."`
		Status    appliedCmd   `cmd:"" help:"Show the configuration that the running node has applied."`
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
		Memory   memoryCmd   `cmd:"" help:"Show how much memory the configuration can use, part by part."`
		Files    filesCmd    `cmd:"" help:"Show how many files and connections the configuration can have open, part by part."`
		Decision decisionCmd `cmd:"" default:"withargs" help:"Explain what happened to a request, and why."`
	}
	memoryCmd   struct{}
	filesCmd    struct{}
	decisionCmd struct {
		ID string `arg:"" help:"Id of the decision: X-Decision-Id of a response, decision_id of a problem."`
	}

	versionCmd struct{}

	completionCmd struct {
		Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell: bash, zsh or fish."`
	}
	completeCmd struct {
		Shell string `arg:"" help:"Shell that completes."`
		Line  string `arg:"" help:"The command line up to the cursor."`
	}
	helpCmd struct {
		Verb []string `arg:"" optional:"" help:"Command. Default: a list of all commands."`
	}
)

// otherVariables are the variables that are not keys of the configuration.
func otherVariables() []string {
	return []string{"MACRONODE_CONFIG", "MACRONODE_URL", "MACRONODE_API_KEY_FILE"}
}

// load reads the configuration from the command line, the environment and the file.
func (c *Console) load(own ...config.Flag) (*config.Config, error) {
	s, err := c.sources(own...)
	if err != nil {
		return nil, err
	}
	cfg, err := config.Load(s)
	if err == nil {
		err = errors.Join(settings.CheckPolicy(cfg), settings.CheckPaths(cfg), settings.CheckSinks(cfg))
	}
	return cfg, exit.Unable(err)
}

// dataDir returns the data directory. A command that asks the running node needs no more of the configuration, whose
// file may be invalid meanwhile: the node then reports why it has rejected it.
func (c *Console) dataDir() (string, error) {
	cfg, err := c.load()
	if err == nil {
		return cfg.Data, nil
	}
	s, wrong := c.sources()
	if wrong != nil {
		return "", err
	}
	apart := s
	apart.File = ""
	if _, wrong = config.Load(apart); wrong != nil { // flags and variables must be right
		return "", err
	}
	if dir, ok := config.DataDir(s); ok {
		return dir, nil
	}
	return "", exit.Unable(fmt.Errorf("%w\nto ask a running node all the same, give its data directory: --data DIR", err))
}

// sources returns the layers of the configuration.
func (c *Console) sources(own ...config.Flag) (config.Sources, error) {
	s := config.Sources{File: c.tree.ConfigFile, Environ: c.environ, Elsewhere: otherVariables(), Sections: settings.Planes().Sections()}
	for _, set := range c.tree.Set {
		key, text, ok := strings.Cut(set, "=")
		if !ok {
			return s, exit.Unable(fmt.Errorf("--set %s must be KEY=VALUE", set))
		}
		s.Flags = append(s.Flags, config.Flag{Name: "--set " + set, Key: key, Text: text})
	}
	own = append(own, config.Flag{Name: "--data", Key: "data", Text: c.tree.Data})
	for _, f := range own {
		if f.Text != "" {
			s.Flags = append(s.Flags, f)
		}
	}
	return s, nil
}

func (l listenFlags) flags() []config.Flag {
	return []config.Flag{
		{Name: "--http", Key: "listen.http", Text: l.HTTP},
		{Name: "--admin", Key: "listen.admin", Text: l.Admin},
		{Name: "--s3", Key: "listen.s3", Text: l.S3},
	}
}
