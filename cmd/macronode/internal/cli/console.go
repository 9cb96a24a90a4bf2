package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"macronode/adapters/client"
	"macronode/adapters/config"
	"macronode/adapters/hostclock"
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/server"
)

// A Console is the environment of a command: streams, variables, clock and randomness.
type Console struct {
	in            io.Reader
	out, err      io.Writer
	environ       []string
	isTerminal    bool // out is a terminal
	isErrTerminal bool // err is a terminal
	now           func() time.Time
	sleep         func(context.Context, time.Duration) error
	random        func() float64 // in [0, 1)
	newKey        func() string  // a random text, different each time

	tree       *tree // the parsed command line
	logsInJSON bool  // errors are logged as JSON
	executions executions
	outputErr  error // why output could not be written
}

// Run executes a command line and returns the exit code. --help ends the process.
func Run(args []string, c *Console) int {
	c.executions, c.outputErr = executions{}, nil
	output := c.output(c.out)
	c.out = output
	defer func() { c.out = output.Writer }()
	c.tree = new(tree)
	err := c.lostOutput(c.execute(args))
	c.logsInJSON = c.logsJSON(args)
	code := c.reportError(err)
	if err != nil && output.n == 0 && (c.tree.JSON || slices.Contains(args, "--json")) {
		if err := c.printJSON(jsonFailure(err)); err != nil {
			_ = c.reportError(err)
		}
	}
	return code
}

func (c *Console) execute(args []string) error {
	parser, err := newParser(c.tree, c.out, c.err)
	if err != nil {
		return err
	}
	command, err := parser.Parse(args)
	if err != nil {
		return exit.Unable(fmt.Errorf("%w; see macronode --help", err))
	}
	if flag := repeated(command); flag != "" {
		return exit.Unable(fmt.Errorf("--%s is given more than once", flag))
	}
	if c.tree.ShowBuild {
		return new(versionCmd).Run(c)
	}
	return command.Run(c)
}

// repeated returns the name of a required flag that is given more than once; empty: none is. Such flags say what is done, as --amount
// does: of two amounts, neither is surely meant. A wrapper's defaults of other flags can be replaced.
func repeated(command *kong.Context) string {
	given := map[*kong.Flag]bool{}
	for _, at := range command.Path {
		if at.Flag == nil || !at.Flag.Required || at.Flag.IsCumulative() {
			continue
		}
		if given[at.Flag] {
			return at.Flag.Name
		}
		given[at.Flag] = true
	}
	return ""
}

// reportError prints an error on standard error, one sentence a line, and returns the exit code.
func (c *Console) reportError(err error) (code int) {
	if err == nil {
		return exit.CodeDone
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if c.logsInJSON {
			log, _ := server.NewLog(config.Log{Format: "json"}, c.err)
			log.Error("macronode failed", "err", line)
			continue
		}
		fmt.Fprintf(c.err, "macronode: %s\n", line) //nolint:errcheck // there is no other output
	}
	return exitCode(err)
}

// exitCode returns the exit code of an error. If the outcome of a request is unknown, that decides, whatever else has failed.
func exitCode(err error) int {
	var e *exit.Error
	switch coded := errors.As(err, &e); {
	case errors.Is(err, client.ErrUnknown):
		return exit.CodeUnknown
	case coded:
		return e.Code
	}
	return exit.CodeFailed
}

// logsJSON reports whether a command line serves a node with a JSON log, by a flag, a variable or the file. Then
// standard error has only log lines, even if the command line is invalid.
func (c *Console) logsJSON(args []string) bool {
	if !servesNode(args) {
		return false
	}
	format := config.FileLogFormat(c.tree.ConfigFile)
	for _, variable := range c.environ {
		if value, ok := strings.CutPrefix(variable, "MACRONODE_LOG__FORMAT="); ok {
			format = value
		}
	}
	for i, arg := range args {
		set, joined := strings.CutPrefix(arg, "--set=")
		if arg == "--set" && i+1 < len(args) {
			set, joined = args[i+1], true
		}
		if value, ok := strings.CutPrefix(set, "log.format="); joined && ok {
			format = value
		}
	}
	return format == "json"
}

// servesNode reports whether the command of a possibly invalid command line is serve or dev.
func servesNode(args []string) bool {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--set" || arg == "--config" || arg == "--data" || arg == "--http" || arg == "--admin" || arg == "--s3":
			i++ // the value of the flag
		case !strings.HasPrefix(arg, "-"):
			return arg == "serve" || arg == "dev"
		}
	}
	return true // serve is the default command
}

// jsonFailure returns an error as a JSON value: a problem as the node sent it, or an outcome and a detail.
func jsonFailure(err error) any {
	var d *unknownOutcome
	if errors.As(err, &d) {
		return d
	}
	outcome, p := "failed", new(client.Problem)
	switch code := exitCode(err); {
	case code == exit.CodeUnable:
		outcome = "unable"
	case code == exit.CodeUnknown:
		outcome = "unknown"
	case errors.As(err, &p):
		return p
	}
	return struct {
		Outcome string `json:"outcome"`
		Detail  string `json:"detail"`
	}{outcome, err.Error()}
}

// interruptible returns a context that ends with an interrupt or a termination.
func interruptible() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
}

func isTerminalFile(f *os.File) bool {
	is, err := f.Stat()
	return err == nil && is.Mode()&os.ModeCharDevice != 0
}

func newParser(t *tree, out, err io.Writer) (*kong.Kong, error) {
	parser, failed := kong.New(t, kong.Name("macronode"), kong.Writers(out, err),
		kong.Description("Run a node (API gateway, object store, wallet, usage accounting), operate it, and use its API.\n\n"+exit.Help),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: false}))
	if failed == nil {
		addManual(parser.Model.Node)
	}
	return parser, failed
}

// Process returns the console of this process.
func Process() *Console {
	return &Console{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.Environ(), isTerminal: isTerminalFile(os.Stdout), isErrTerminal: isTerminalFile(os.Stderr),
		now: time.Now, sleep: hostclock.Sleep, random: mathrand.Float64, newKey: rand.Text,
	}
}
