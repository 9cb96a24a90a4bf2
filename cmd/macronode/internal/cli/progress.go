package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"macronode/adapters/backup"
	"macronode/adapters/journalfile"
)

// progress returns a callback that shows the progress of a verification, if standard error is a terminal or always
// is set; otherwise nil.
func (c *Console) progress(always bool) func(journalfile.Progress) {
	f, ok := c.err.(*os.File)
	live := ok && isTerminalFile(f)
	if !live && !always {
		return nil
	}
	return progressReporter(c.err, live, c.now)
}

// progressReporter prints at most once a second, and at the end. If live is set, it rewrites one line.
func progressReporter(to io.Writer, live bool, now func() time.Time) func(journalfile.Progress) {
	last := now()
	return func(p journalfile.Progress) {
		over := p.Done >= p.Total
		if at := now(); !over && at.Sub(last) < time.Second {
			return
		} else {
			last = at
		}
		before, after := "", "\n"
		if live {
			before, after = "\r", map[bool]string{true: "\n", false: ""}[over]
		}
		share := 100 * float64(p.Done) / float64(max(1, p.Total))
		fmt.Fprintf(to, "%sverify: %5.1f %% of %s, %s, %v%s", before, share, megabytes(p.Total), p.Segment, p.Last, after) //nolint:errcheck // progress is optional
	}
}

// warnUnreadable warns that the index watermark of a directory cannot be read.
func (c *Console) warnUnreadable(err error) {
	fmt.Fprintf(c.err, "macronode: index watermark not readable: %v\n", err) //nolint:errcheck // it is no part of the answer
}

// copyProgress returns a callback that shows the progress of a copy, if standard error is a terminal; otherwise
// nil.
func (c *Console) copyProgress(what string) func(backup.Done) {
	f, ok := c.err.(*os.File)
	if !ok || !isTerminalFile(f) {
		return nil
	}
	return func(d backup.Done) {
		fmt.Fprintf(c.err, "\r%s: %v, %s", what, d.LSN, megabytes(d.Bytes)) //nolint:errcheck // progress is optional
	}
}
