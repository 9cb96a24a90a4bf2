package main

import (
	"fmt"
	"log/slog"
	"strings"

	"macronode/adapters/nodedir"
	"macronode/core/event"
	"macronode/core/types"
)

// greeting is what a newcomer needs to know of a node that has just become ready.
type greeting struct {
	HTTP  string `json:"http"`
	Admin string `json:"admin"`
	Data  string `json:"data"`
	Key   string `json:"api_key,omitzero"` // the bootstrap key, where it may be shown
}

// greet prints it; a key that cannot be read is not worth an end.
func (c *console) greet(log *slog.Logger, dir string, r nodedir.Run, show bool) {
	g := greeting{HTTP: scheme(r.Listen.TLS.HTTP) + r.Listen.HTTP, Admin: scheme(r.Listen.TLS.Admin) + r.Listen.Admin, Data: dir}
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
		err = c.print(g)
	} else {
		err = c.say("%s", g.text())
	}
	if err != nil {
		log.Warn("greeting not printed", "err", err)
	}
}

// farewell prints what a drain did.
func (c *console) farewell(log *slog.Logger, s event.Status) {
	var err error
	if c.tree.JSON {
		err = c.print(struct {
			Finished uint64    `json:"finished"`
			Refused  uint64    `json:"refused"`
			Aborted  uint64    `json:"aborted"`
			Durable  types.LSN `json:"durable_lsn"`
			Last     types.LSN `json:"lsn"`
		}{s.Report.Finished, s.Report.Rejected, s.Report.Aborted, s.Durable, s.LSN})
	} else {
		err = c.say("drained: %d finished, %d refused, %d aborted; the journal is durable to %d of %d",
			s.Report.Finished, s.Report.Rejected, s.Report.Aborted, s.Durable, s.LSN)
	}
	if err != nil {
		log.Warn("drain report not printed", "err", err)
	}
}

func (g greeting) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "macronode is ready on %s (admin %s), data in %s\n", g.HTTP, g.Admin, g.Data)
	if g.Key != "" {
		fmt.Fprintf(&b, "API key: %s\n", g.Key)
	}
	where := " --data " + quote(g.Data)
	b.WriteString("Try:\n  macronode wallet issue --to ann --asset EUR/2 --amount 1000" + where)
	b.WriteString("\n  macronode wallet transfer --from ann --to bob --asset EUR/2 --amount 250" + where)
	b.WriteString("\n  macronode wallet balance bob EUR/2" + where)
	return b.String()
}

// quote makes one word of s for a shell.
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
