package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"macronode": main}) }

// The scripts are what a user types, and the output.
//
//	code N program args...  runs it, and requires that exit code
//	node args...            runs macronode until it has printed its greeting; one at a time
//	signal KILL|TERM        is sent to it
//	holds NAME              sets the variable to the hold that was printed last
//	keyid NAME FILE         sets the variable to the ID of the API key in the file
//	ago NAME DURATION       sets the variable to a time that long ago
//	month NAME N            sets the variable to the month (UTC) that is N months after this one, such as 2026-01
//	ended N                 waits for its end, requires that exit code, and writes its output to the files output and log
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:             "testdata",
		ContinueOnError: true,
		Setup: func(e *testscript.Env) error {
			e.Values["node"] = new(background)
			for _, name := range [...]string{"GORACE", "MUTANT_OF_MACRONODE"} { // variables of test runs that all processes inherit
				e.Setenv(name, os.Getenv(name))
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": func(ts *testscript.TestScript, _ bool, args []string) {
				wantCode(ts, args[0], ts.Exec(args[1], args[2:]...))
			},
			"holds": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Setenv(args[0], regexp.MustCompile("hold_[0-9a-f]{32}").FindString(ts.ReadFile("stdout")))
			},
			"keyid": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Setenv(args[0], strings.Split(ts.ReadFile(args[1]), "_")[1])
			},
			"ago": func(ts *testscript.TestScript, _ bool, args []string) {
				d, err := time.ParseDuration(args[1])
				ts.Check(err)
				ts.Setenv(args[0], time.Now().Add(-d).UTC().Format(time.RFC3339))
			},
			"month": func(ts *testscript.TestScript, _ bool, args []string) {
				n, err := strconv.Atoi(args[1])
				ts.Check(err)
				year, month, _ := time.Now().UTC().Date()
				ts.Setenv(args[0], time.Date(year, month+time.Month(n), 1, 0, 0, 0, 0, time.UTC).Format("2006-01"))
			},
			// starts ARGS…: a node that need not print a greeting. eventually waits for it.
			"starts": func(ts *testscript.TestScript, _ bool, args []string) { its(ts).starts(ts, args) },
			"node":   func(ts *testscript.TestScript, _ bool, args []string) { its(ts).greets(ts, args) },
			"signal": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(its(ts).Process.Signal(map[string]os.Signal{"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM}[args[0]]))
			},
			// eventually PATTERN COMMAND…: repeats the command until its output matches, for 20 seconds.
			"eventually": func(ts *testscript.TestScript, _ bool, args []string) {
				pattern := regexp.MustCompile(args[0])
				for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
					_ = ts.Exec(args[1], args[2:]...) // its output decides
					if pattern.MatchString(ts.ReadFile("stdout")) {
						return
					}
					if time.Now().After(end) {
						ts.Fatalf("%s prints %q and %q, nothing like %s", args[1], ts.ReadFile("stdout"), ts.ReadFile("stderr"), args[0])
					}
				}
			},
			"ended": func(ts *testscript.TestScript, _ bool, args []string) {
				n := its(ts)
				for n.out.Scan() {
					n.stdout.WriteString(n.out.Text() + "\n")
				}
				wantCode(ts, args[0], n.Wait())
				ts.Check(os.WriteFile(ts.MkAbs("output"), n.stdout.Bytes(), 0o600))
				ts.Check(os.WriteFile(ts.MkAbs("log"), n.log.Bytes(), 0o600))
			},
		},
	})
}

func wantCode(ts *testscript.TestScript, want string, err error) {
	got := 0
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != want {
		ts.Fatalf("exit code %d, not %s", got, want)
	}
}

// background is the node of a script.
type background struct {
	*exec.Cmd
	out         *bufio.Scanner
	stdout, log bytes.Buffer
}

func its(ts *testscript.TestScript) *background { return ts.Value("node").(*background) }

// greets starts a node, and returns once it has printed the last line of its greeting.
func (n *background) greets(ts *testscript.TestScript, args []string) {
	n.starts(ts, args)
	for n.out.Scan() {
		n.stdout.WriteString(n.out.Text() + "\n")
		if strings.Contains(n.out.Text(), "wallet balance") {
			return
		}
	}
	ts.Fatalf("the node has not greeted: %v\n%s%s", n.Wait(), &n.stdout, &n.log)
}

// starts starts a node.
func (n *background) starts(ts *testscript.TestScript, args []string) {
	*n = background{}
	bin, _, _ := strings.Cut(ts.Getenv("PATH"), string(os.PathListSeparator))
	n.Cmd = exec.Command(filepath.Join(bin, "macronode"), args...)
	n.Dir, n.Stderr = ts.MkAbs("."), &n.log
	n.Env = []string{"TMPDIR=" + ts.Getenv("TMPDIR"), "MUTANT_OF_MACRONODE=" + os.Getenv("MUTANT_OF_MACRONODE")}
	out, err := n.StdoutPipe()
	ts.Check(err)
	n.out = bufio.NewScanner(out)
	ts.Check(n.Start())
	ts.Defer(func() { _ = n.Process.Kill(); _ = n.Wait() })
}
