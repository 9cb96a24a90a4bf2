// Command macronode is the node, and what an operator says to it.
//
//	flags, environment, file ──► config ──► serve: the adapters around the loop
//	                                   └──► a client of a node that runs
package main

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
)

func main() {
	os.Exit(run(os.Args[1:], &console{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.Environ(), terminal: isTerminal(os.Stdout), watched: isTerminal(os.Stderr),
		now: time.Now, sleep: sleep, roll: mathrand.Float64, draw: rand.Text,
	}))
}

// console is what a verb has of the world.
type console struct {
	in       io.Reader
	out, err io.Writer
	environ  []string
	terminal bool // out is read by a person, right now
	watched  bool // err is
	now      func() time.Time
	sleep    func(context.Context, time.Duration) error
	roll     func() float64 // in [0, 1)
	draw     func() string  // a text that nobody draws twice

	tree  *tree // what was said
	lines bool  // err is a log of JSON
}

// run carries out one command line and returns the exit code. Help ends the process
// by itself.
func run(args []string, c *console) int {
	said := &counted{Writer: c.out}
	c.out = said
	defer func() { c.out = said.Writer }()
	c.tree = new(tree)
	err := c.carryOut(args)
	c.lines = c.logsJSON(args)
	code := c.tell(err)
	if err != nil && said.n == 0 && (c.tree.JSON || slices.Contains(args, "--json")) {
		if err := c.print(failure(err)); err != nil {
			_ = c.tell(err)
		}
	}
	return code
}

func (c *console) carryOut(args []string) error {
	parser, err := newParser(c.tree, c.out, c.err)
	if err != nil {
		return err
	}
	said, err := parser.Parse(args)
	if err != nil {
		return cannot(fmt.Errorf("%w; see macronode --help", err))
	}
	if c.tree.ShowBuild {
		return new(versionCmd).Run(c)
	}
	return said.Run(c)
}

// counted counts the bytes that are written to it.
type counted struct {
	io.Writer
	n int
}

func (w *counted) Write(p []byte) (int, error) {
	w.n += len(p)
	return w.Writer.Write(p)
}

// tell says on standard error what went wrong, one sentence a line.
func (c *console) tell(err error) (code int) {
	if err == nil {
		return done
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if c.lines {
			log, _ := newLog(config.Log{Format: "json"}, c.err)
			log.Error("macronode failed", "err", line)
			continue
		}
		fmt.Fprintf(c.err, "macronode: %s\n", line) //nolint:errcheck // there is nowhere else to say it
	}
	var e *ending
	if errors.As(err, &e) {
		return e.code
	}
	return refused
}

// logsJSON reports a command line that serves a node whose log is asked for in JSON, by a
// flag, by the environment or by the file: then there is nothing else on standard error, whatever is wrong
// with the rest.
func (c *console) logsJSON(args []string) bool {
	if !servesNode(args) {
		return false
	}
	format := config.FileLogFormat(c.tree.ConfigFile)
	for _, variable := range c.environ {
		if said, ok := strings.CutPrefix(variable, "MACRONODE_LOG__FORMAT="); ok {
			format = said
		}
	}
	for i, arg := range args {
		set, joined := strings.CutPrefix(arg, "--set=")
		if arg == "--set" && i+1 < len(args) {
			set, joined = args[i+1], true
		}
		if said, ok := strings.CutPrefix(set, "log.format="); joined && ok {
			format = said
		}
	}
	return format == "json"
}

// servesNode reports that the verb of a command line, which may be wrong, is serve or dev.
func servesNode(args []string) bool {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--set" || arg == "--config" || arg == "--data" || arg == "--http" || arg == "--admin":
			i++ // its value
		case !strings.HasPrefix(arg, "-"):
			return arg == "serve" || arg == "dev"
		}
	}
	return true // the verb where there is none
}

// Exit codes. They are a contract: scripts decide by them.
const (
	done    = 0
	refused = 1 // it was not done: refused, failed, or not there
	unable  = 2 // nothing was tried: the command line or the configuration is wrong, or the node cannot start
	unknown = 3 // nobody can say whether it was done: ask again with the same key
)

const exitCodes = `Exit codes: 0 done; 1 refused or failed; 2 wrong usage or configuration, or the node cannot start; ` +
	`3 the outcome is not known: ask again with the same key.`

// ending is an error with its exit code.
type ending struct {
	code int
	error
}

func (e *ending) Unwrap() error { return e.error }

// failure is an error for those who want JSON and have got nothing yet: a refusal as it
// came, and of all else what it is.
func failure(err error) any {
	var d *doubt
	if errors.As(err, &d) {
		return d
	}
	outcome, e, p := "failed", new(ending), new(client.Problem)
	switch {
	case errors.As(err, &e) && e.code == unable:
		outcome = "unable"
	case errors.As(err, &e) && e.code == unknown:
		outcome = "unknown"
	case errors.As(err, &p):
		return p
	}
	return struct {
		Outcome string `json:"outcome"`
		Detail  string `json:"detail"`
	}{outcome, err.Error()}
}

// cannot is an error that stops a verb before it has tried anything.
func cannot(err error) error {
	if err == nil {
		return nil
	}
	return &ending{unable, err}
}

// interruptible ends with an interrupt or a termination.
func interruptible() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func isTerminal(f *os.File) bool {
	is, err := f.Stat()
	return err == nil && is.Mode()&os.ModeCharDevice != 0
}

func newParser(t *tree, out, err io.Writer) (*kong.Kong, error) {
	parser, failed := kong.New(t, kong.Name("macronode"), kong.Writers(out, err),
		kong.Description("A node that moves money durably, and what an operator says to it.\n\n"+exitCodes),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: false}))
	if failed == nil {
		explain(parser.Model.Node)
	}
	return parser, failed
}
