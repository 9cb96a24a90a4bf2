// Command verify-usage verifies a bundle that macronode usage bundle has written, and computes its invoice again. It
// needs no node, no data directory and no key: only the bundle and, best, a digest that the reader got earlier.
//
//	verify-usage [--head DIMENSION=DIGEST]… [--prices DIGEST] [--json] FILE
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"macronode/cmd/internal/usagefile"
)

// The exit codes.
const (
	codeVerified = 0
	codeWrong    = 1 // the bundle is not right
	codeUnable   = 2 // wrong usage, or the file cannot be read
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// knownHeads reads --head.
type knownHeads []usagefile.Head

func (k *knownHeads) String() string { return "" }

func (k *knownHeads) Set(text string) error {
	dimension, hex, _ := strings.Cut(text, "=")
	d, ok := usagefile.ParseDigest(hex)
	if !ok || dimension == "" {
		return errors.New("must be DIMENSION=DIGEST, with a digest of 64 of 0-9 a-f")
	}
	*k = append(*k, usagefile.Head{Dimension: dimension, Digest: d})
	return nil
}

// knownPrices reads --prices.
type knownPrices struct{ of *usagefile.Known }

func (knownPrices) String() string { return "" }

func (k knownPrices) Set(text string) error {
	d, ok := usagefile.ParseDigest(text)
	switch {
	case !ok:
		return errors.New("must be a digest of 64 of 0-9 a-f")
	case k.of.Prices != nil:
		return errors.New("must be given once: a bundle has one price list")
	}
	k.of.Prices = &d
	return nil
}

// run executes a command line and returns the exit code.
func run(args []string, in io.Reader, out, failures io.Writer) int {
	flags := flag.NewFlagSet("verify-usage", flag.ContinueOnError)
	flags.SetOutput(failures)
	flags.Usage = func() {
		fmt.Fprint(failures, "usage: verify-usage [flags] FILE\n\nVerifies a bundle of usage, and computes its invoice again. - is standard input.\n"+ //nolint:errcheck // there is no other output
			"Exits with 0 if everything is correct, 1 with the first line and field that is not, 2 if the file cannot be read.\n\n")
		flags.PrintDefaults()
	}
	var known usagefile.Known
	flags.Var((*knownHeads)(&known.Heads), "head", "`DIMENSION=DIGEST` of a slice that you got earlier: the chain must have it; may be repeated")
	flags.Var(knownPrices{&known}, "prices", "`DIGEST` of the price list that was agreed")
	asJSON := flags.Bool("json", false, "print JSON")
	var names []string
	for { // flags may stand after the file too
		if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
			return codeVerified
		} else if err != nil {
			return codeUnable
		}
		if flags.NArg() == 0 {
			break
		}
		names, args = append(names, flags.Arg(0)), flags.Args()[1:]
	}
	unable := func(err error) int {
		fmt.Fprintln(failures, "verify-usage:", err) //nolint:errcheck // there is no other output
		return codeUnable
	}
	if len(names) != 1 {
		return unable(errors.New("needs one file; see verify-usage --help"))
	}
	if name := names[0]; name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return unable(err)
		}
		defer f.Close() //nolint:errcheck // it is only read
		in = f
	}
	v, err := usagefile.VerifyBundle(in, known)
	if err == nil {
		if err := report(out, v, known, *asJSON); err != nil {
			return unable(err)
		}
		return codeVerified
	}
	bad := new(usagefile.Problem)
	if !errors.As(err, &bad) {
		return unable(err)
	}
	fmt.Fprintln(failures, "verify-usage:", bad) //nolint:errcheck // the exit code is the result
	if *asJSON {
		if err := json.NewEncoder(out).Encode(bad); err != nil {
			return unable(err)
		}
	}
	return codeWrong
}

// report prints what was verified.
func report(to io.Writer, v *usagefile.Verified, known usagefile.Known, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(to).Encode(v)
	}
	var b strings.Builder
	for i := range v.Chains {
		fmt.Fprintf(&b, "%v\n", &v.Chains[i])
	}
	fmt.Fprintf(&b, "%v\n", &v.Invoice)
	if len(known.Heads) == 0 {
		b.WriteString("not compared with a digest from elsewhere: --head finds a chain that was made anew or that ends early\n")
	}
	if known.Prices == nil {
		b.WriteString("not compared with an agreed price list: --prices\n")
	}
	b.WriteString("the bundle is verified\n")
	_, err := io.WriteString(to, b.String())
	return err
}
