package cli

import (
	"fmt"
	"log/slog"
	"strings"

	"macronode/adapters/nodedir"
	"macronode/core/event"
	"macronode/core/types"
)

// greeting is what a new user needs to know about a node that is ready.
type greeting struct {
	HTTP  string `json:"http"`
	Admin string `json:"admin"`
	S3    string `json:"s3,omitzero"` // the S3 listener, if there is one
	Data  string `json:"data"`
	Key   string `json:"api_key,omitzero"` // the bootstrap key, if it may be shown
}

// printGreeting prints the greeting. If the key cannot be read, it is left out.
func (c nodeReport) printGreeting(log *slog.Logger, dir string, r nodedir.Run, show bool) {
	g := greeting{HTTP: scheme(r.Listen.TLS.HTTP) + r.Listen.HTTP, Admin: scheme(r.Listen.TLS.Admin) + r.Listen.Admin, Data: dir}
	if r.Listen.S3 != "" {
		g.S3 = scheme(r.Listen.TLS.HTTP) + r.Listen.S3
	}
	if show {
		k, err := nodedir.ReadKey(dir)
		if err != nil {
			log.Warn("bootstrap key not printed", "err", err)
		} else {
			g.Key = k.Text()
		}
	}
	var err error
	if c.tree.JSON {
		err = c.printJSON(g)
	} else {
		err = c.printLine("%s", g.text())
	}
	if err != nil {
		log.Warn("greeting not printed", "err", err)
	}
}

// printDrainReport prints what a drain did.
func (c nodeReport) printDrainReport(log *slog.Logger, s event.Status) {
	var err error
	if c.tree.JSON {
		err = c.printJSON(struct {
			Finished uint64    `json:"finished"`
			Refused  uint64    `json:"refused"`
			Aborted  uint64    `json:"aborted"`
			Durable  types.LSN `json:"durable_lsn"`
			Last     types.LSN `json:"lsn"`
		}{s.Report.Finished, s.Report.Rejected, s.Report.Aborted, s.Durable, s.LSN})
	} else {
		err = c.printLine("drained: %d finished, %d refused, %d aborted; the journal is durable to %d of %d",
			s.Report.Finished, s.Report.Rejected, s.Report.Aborted, s.Durable, s.LSN)
	}
	if err != nil {
		log.Warn("drain report not printed", "err", err)
	}
}

func (g greeting) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "macronode is ready on %s (admin %s), data in %s\n", g.HTTP, g.Admin, g.Data)
	if g.S3 != "" {
		fmt.Fprintf(&b, "S3: %s; macronode keys s3 prints credentials\n", g.S3)
	}
	if g.Key != "" {
		fmt.Fprintf(&b, "API key: %s\n", g.Key)
	}
	where := " --data " + quote(g.Data)
	b.WriteString("Try:\n  macronode wallet issue --to ann --asset EUR/2 --amount 1000" + where)
	b.WriteString("\n  macronode wallet transfer --from ann --to bob --asset EUR/2 --amount 250" + where)
	b.WriteString("\n  macronode wallet balance bob EUR/2" + where)
	return b.String()
}

// quote returns s as one word of a shell.
func quote(s string) string {
	odd := func(r rune) bool {
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@,", r)
		return !plain
	}
	if s != "" && !strings.ContainsFunc(s, odd) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
