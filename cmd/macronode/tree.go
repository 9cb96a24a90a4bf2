package main

import (
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

	Serve   serveCmd   `cmd:"" default:"withargs" help:"Run the node (what is done without a verb)."`
	Dev     devCmd     `cmd:"" help:"Run a node on a directory that is thrown away, and print its key."`
	Status  statusCmd  `cmd:"" help:"Say how the node that runs on the directory is."`
	Drain   drainCmd   `cmd:"" help:"End the node that runs on the directory, and wait until it is gone."`
	Wallet  walletCmd  `cmd:"" help:"Move money, and look at it."`
	Verify  verifyCmd  `cmd:"" help:"Check the journal of a directory on which no node runs."`
	Config  configCmd  `cmd:"" help:"Look at the configuration."`
	Version versionCmd `cmd:"" help:"Say which macronode this is."`
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
	verifyCmd struct{}

	statusCmd struct{}
	drainCmd  struct {
		Abort   bool          `help:"Give up what does not finish at once."`
		Timeout time.Duration `default:"30s" help:"How long to wait until it is gone."`
	}

	walletCmd struct {
		Issue    issueCmd    `cmd:"" help:"Let money come into being."`
		Transfer transferCmd `cmd:"" help:"Move money between two accounts."`
		Burn     burnCmd     `cmd:"" help:"Let money go out of being."`
		Balance  balanceCmd  `cmd:"" help:"Say what an account has of an asset."`
		Tx       txCmd       `cmd:"" help:"Show a receipt again."`
	}
	// reach is how a client finds its node and is let in.
	reach struct {
		URL        string        `placeholder:"URL" env:"MACRONODE_URL" help:"Where the node is; else the one that runs on the directory."`
		APIKey     string        `name:"api-key" placeholder:"KEY" help:"API key; else the bootstrap key of the directory."`
		APIKeyFile string        `name:"api-key-file" placeholder:"FILE" env:"MACRONODE_API_KEY_FILE" help:"File that holds the API key."`
		Timeout    time.Duration `default:"30s" help:"How long to try; what is busy or not ready is asked again."`
	}
	// paid is what all that moves money says.
	paid struct {
		reach  `embed:""`
		Asset  string `required:"" placeholder:"ASSET" help:"What is moved, for example EUR/2."`
		Amount string `required:"" placeholder:"MINOR" help:"How much, in minor units."`
		Memo   string `placeholder:"TEXT" help:"Kept with it."`
		Key    string `placeholder:"KEY" help:"Idempotency key: the same key is done once. Random where absent."`
	}
	issueCmd struct {
		To   string `required:"" placeholder:"ACCOUNT" help:"Who gets it."`
		paid `embed:""`
	}
	transferCmd struct {
		From  string `required:"" placeholder:"ACCOUNT" help:"Who gives it."`
		To    string `required:"" placeholder:"ACCOUNT" help:"Who gets it."`
		Nonce uint64 `placeholder:"N" help:"The number that the giver must use next; asked of the node where absent."`
		paid  `embed:""`
	}
	burnCmd struct {
		From  string `required:"" placeholder:"ACCOUNT" help:"Who gives it."`
		Nonce uint64 `placeholder:"N" help:"The number that the giver must use next; asked of the node where absent."`
		paid  `embed:""`
	}
	balanceCmd struct {
		Account string `arg:"" help:"Whose."`
		Asset   string `arg:"" help:"Of what, for example EUR/2."`
		reach   `embed:""`
	}
	txCmd struct {
		TxID  string `arg:"" name:"txid" help:"The receipt's txid."`
		reach `embed:""`
	}

	configCmd struct {
		Check     checkCmd     `cmd:"" help:"Say whether it can be used, and how much memory it takes."`
		Effective effectiveCmd `cmd:"" help:"Print every key with its value and where that came from."`
		Schema    schemaCmd    `cmd:"" help:"Print the JSON Schema of the file."`
	}
	checkCmd     struct{}
	effectiveCmd struct{}
	schemaCmd    struct{}

	versionCmd struct{}
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
	return cfg, cannot(err)
}

func (l listenFlags) flags() []config.Flag {
	return []config.Flag{
		{Name: "--http", Key: "listen.http", Text: l.HTTP},
		{Name: "--admin", Key: "listen.admin", Text: l.Admin},
	}
}
