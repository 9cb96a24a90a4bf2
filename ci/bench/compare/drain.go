package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"macronode/ci/bench/conf"
	"macronode/ci/bench/flow"
	"macronode/ci/bench/sample"
	"macronode/ci/bench/sheet"
)

// drained is the result of one drain.
type drained struct {
	cut    float64       // sent requests without a complete answer
	turned float64       // requests that got 503
	served float64       // successes, before and after the signal
	took   time.Duration // from the signal until the process had ended
}

const (
	working  = 20 * time.Millisecond // time of the origin per request
	drainAt  = 2000                  // requests a second: forty are in progress
	drainEnd = 20 * time.Second      // timeout of clients
)

// drain stops gateways during requests over 64 kept connections. A closed connection is reopened
// until the listener is closed.
func (b *bench) drain(ctx context.Context) (err error) {
	g, err := b.gateways()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	ends := map[string][]drained{}
	for round := range b.rounds {
		for _, name := range fronts {
			d, err := g.drainOne(ctx, name)
			if err != nil {
				return fmt.Errorf("round %d, %s: %w", round+1, name, err)
			}
			ends[name] = append(ends[name], d)
		}
		b.say("drain, round %d of %d", round+1, b.rounds)
	}
	b.reportDrain(ends)
	return nil
}

func (g *gateways) drainOne(ctx context.Context, name string) (d drained, err error) {
	f, err := g.front(ctx, name, conf.Setting{Origin: g.originAt, Rate: never, Burst: 100_000})
	if err != nil {
		return d, err
	}
	type outcome struct {
		seen []flow.Seen
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		seen, err := g.carryOut(ctx, flow.Plan{Addr: f.at, Time: drainEnd,
			Flows: []flow.Flow{{Path: fmt.Sprintf("/200/%v", working), Size: 200, Conns: keeping, Rate: drainAt}}})
		done <- outcome{seen, err}
	}()
	pause(ctx, g.warm+g.time/4)
	began := time.Now()
	err = f.end()
	d.took = time.Since(began)
	saw := <-done
	if err = errors.Join(err, saw.err); err != nil {
		return d, err
	}
	d.cut, d.turned, d.served = float64(saw.seen[0].Lost), float64(saw.seen[0].Other), float64(saw.seen[0].Served.All)
	if d.served < keeping {
		return d, fmt.Errorf("it served %v requests before its end", d.served)
	}
	return d, nil
}

func (b *bench) reportDrain(ends map[string][]drained) {
	rows := [][]string{}
	number := func(name string, of func(drained) float64) sample.Spread {
		var all []float64
		for _, d := range ends[name] {
			all = append(all, of(d))
		}
		return sample.Of(all)
	}
	cut := func(d drained) float64 { return d.cut }
	turned := func(d drained) float64 { return d.turned }
	took := func(d drained) float64 { return float64(d.took.Microseconds()) / 1000 }
	for _, name := range fronts {
		rows = append(rows, []string{name, how[name], spread1(number(name, cut), ""), spread1(number(name, turned), ""), spread1(number(name, took), ""),
			spread1(number(name, func(d drained) float64 { return d.served }), "")})
	}
	b.page.Sections = append(b.page.Sections, sheet.Section{Title: "Gateway: shutdown", Text: fmt.Sprintf(drainText, drainAt, keeping, working),
		Head: []string{"server", "signal", "requests cut", "got 503", "ms until the process ended", "served in all"}, Rows: rows})
	b.page.Goals = append(b.page.Goals,
		sheet.Goal{What: "drain under load: requests that were cut, at most", Want: sheet.Most(0), Got: number("macronode", cut).Most},
		sheet.Goal{What: "drain under load: from the signal to the end", Want: sheet.Most(working.Seconds()*1000 + 350), Got: number("macronode", took).Median, Unit: " ms"})
}

// how each is stopped without cutting requests.
var how = map[string]string{"nginx": "`-s quit`: SIGQUIT", "HAProxy": "soft stop: SIGUSR1", "Caddy": "SIGTERM, as `caddy stop`", "ReverseProxy": "SIGTERM: `Server.Shutdown`", "macronode": "SIGTERM"}

const drainText = `The load is %d requests a second, due as above, over %d keep-alive connections. The origin answers after %v. During the load the gateway gets the signal to shut down. If a connection is closed, or
announced as closed, the client opens a new one, until the port is closed. A request is cut if it was sent and got no whole response: its client cannot know the outcome. A client that gets 503 knows the outcome and can use
another server; so can one that cannot connect.`
