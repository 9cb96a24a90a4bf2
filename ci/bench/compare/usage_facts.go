package main

import (
	"context"

	"macronode/ci/bench/sheet"
)

// usageFacts returns the machine, the versions and the settings that the numbers of usage depend
// on. meter.test names no modules; the probe is built with the same ones.
func (b *bench) usageFacts(ctx context.Context) ([]sheet.Fact, error) {
	all, err := b.hostFacts(ctx)
	if err != nil {
		return nil, err
	}
	all = append(all, postgresFacts(ctx)...)
	for _, m := range [...]struct{ what, program, module string }{
		{"pgx", "pgservice", "github.com/jackc/pgx/v5"}, {"client_golang", "probe", "github.com/prometheus/client_golang"}} {
		v, err := b.version(m.program, m.module)
		if err != nil {
			return nil, err
		}
		all = append(all, sheet.Fact{What: m.what, Is: m.module + " " + v})
	}
	return append(all, b.turns()), nil
}
