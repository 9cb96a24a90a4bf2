package cli

import (
	"bufio"
	"errors"
	"io"

	"macronode/cmd/internal/usagefile"
	"macronode/cmd/macronode/internal/exit"
	"macronode/core/accounting"
)

// Run verifies an export.
func (v *verifyUsageCmd) Run(c *Console) error {
	from, bar, err := c.openFile("verify", v.File)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // it was read
	streams, err := verifyUsage(bar.reader(from), v.Partial)
	bar.End()
	switch bad := new(usagefile.Problem); {
	case errors.As(err, &bad) && c.tree.JSON:
		return errors.Join(err, c.printJSON(bad))
	case err != nil:
		return err
	}
	return c.sayVerified(streams)
}

// verifyUsage verifies lines, and that no chain has a gap unless gaps are accepted. Its error is a *usagefile.Problem,
// or that of from.
func verifyUsage(from io.Reader, partial bool) ([]accounting.VerifiedStream, error) {
	lines := bufio.NewScanner(from) // a slice has less than 64 KiB as JSON
	v := accounting.NewVerifier()
	for n := 1; lines.Scan(); n++ {
		if _, err := usagefile.AddSlice(v, lines.Bytes()); err != nil {
			if bad := new(usagefile.Problem); errors.As(err, &bad) {
				bad.Line = n
			}
			return nil, err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, &usagefile.Problem{Detail: "a line is longer than that of any slice"}
	} else if err != nil {
		return nil, exit.Unable(err)
	}
	all := v.Streams()
	for i := range all {
		if err := usagefile.MissingSlices(&all[i], "; --partial accepts gaps"); err != nil && !partial {
			return nil, err
		}
	}
	return all, nil
}

// sayVerified prints a line for each chain.
func (c *Console) sayVerified(streams []accounting.VerifiedStream) error {
	if len(streams) == 0 {
		return exit.Unable(errors.New("there is no slice to verify"))
	}
	chains, all := make([]usagefile.Chain, len(streams)), uint64(0)
	for i := range streams {
		chains[i] = usagefile.NewChain(&streams[i])
		all += chains[i].Slices
	}
	if c.tree.JSON {
		return c.printJSON(struct {
			OK     bool              `json:"ok"`
			Slices uint64            `json:"slices"`
			Chains []usagefile.Chain `json:"chains"`
		}{true, all, chains})
	}
	for i := range chains {
		if err := c.printLine("%s", &chains[i]); err != nil {
			return err
		}
	}
	return c.printLine("%d slices of %d chains are verified", all, len(chains))
}
