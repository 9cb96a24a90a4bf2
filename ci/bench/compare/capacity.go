package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"macronode/ci/bench/conf"
	"macronode/ci/bench/flow"
	"macronode/ci/bench/sample"
)

// A work is a load that each gateway gets in turn.
type work struct {
	size    int
	rate    float64 // 0: 64 connections without a pause
	limit   int     // the quota
	long    int     // factor for the length of a turn
	skips   string  // the gateway that cannot do it
	refused bool    // answers of 429 count
}

const (
	never   = 1_000_000 // a limit that is not reached
	quota   = 5_000
	atFixed = 4_000
	keeping = 64 // connections
)

var (
	small    = work{size: 200, limit: never}
	large    = work{size: 16 << 10, limit: never}
	fixed    = work{size: 200, limit: never, rate: atFixed}
	refusing = work{size: 200, refused: true}
	twice    = work{size: 200, limit: quota, rate: 2 * quota, long: 1, skips: "Caddy"}
	tenfold  = work{size: 200, limit: quota, rate: 10 * quota, skips: "Caddy"}
	works    = [...]work{small, large, fixed, refusing, twice, tenfold}
)

// alone is the origin without a gateway.
const alone = "no gateway"

// parties returns the gateways that do the work, in turn.
func (w work) parties() (names []string) {
	for _, name := range fronts {
		if name != w.skips {
			names = append(names, name)
		}
	}
	if w == fixed || w == small {
		names = append(names, alone)
	}
	return names
}

func (w work) setting() conf.Setting {
	return conf.Setting{Rate: w.limit, Burst: max(1, min(w.limit/50, 100_000))}
}

func (w work) flow() flow.Flow {
	return flow.Flow{Path: "/" + strconv.Itoa(w.size), Size: w.size, Conns: keeping, Rate: w.rate}
}

// capacity is the result of all works.
type capacity struct {
	*gateways
	fronts map[int]map[string]*front // by limit and name
	turns  map[work]map[string][]turn
}

func (b *bench) gateway(ctx context.Context) (err error) {
	g, err := b.gateways()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	c := &capacity{gateways: g, fronts: map[int]map[string]*front{}, turns: map[work]map[string][]turn{}}
	f := &fairness{gateways: g}
	d := &decisions{bench: b}
	if err := c.open(ctx); err != nil {
		return err
	}
	if err := f.open(ctx); err != nil {
		return err
	}
	for round := range b.rounds {
		for _, w := range works {
			for _, name := range w.parties() {
				if err := c.turn(ctx, w, name); err != nil {
					return fmt.Errorf("round %d, %s: %w", round+1, name, err)
				}
			}
		}
		if err := f.round(ctx); err != nil {
			return fmt.Errorf("round %d, fairness: %w", round+1, err)
		}
		if err := d.round(ctx); err != nil {
			return fmt.Errorf("round %d, decisions: %w", round+1, err)
		}
		b.say("gateways, round %d of %d", round+1, b.rounds)
	}
	c.report()
	f.report()
	d.report()
	return nil
}

// open starts every gateway once per limit.
func (c *capacity) open(ctx context.Context) error {
	for _, w := range works {
		if c.fronts[w.limit] == nil {
			c.fronts[w.limit] = map[string]*front{alone: nil}
		}
		c.turns[w] = map[string][]turn{}
		for _, name := range w.parties() {
			if _, ok := c.fronts[w.limit][name]; ok {
				continue
			}
			f, err := c.start(ctx, name, w.setting())
			if err != nil {
				return err
			}
			c.fronts[w.limit][name] = f
		}
	}
	return nil
}

func (c *capacity) turn(ctx context.Context, w work, name string) error {
	t, err := c.offer(ctx, c.fronts[w.limit][name], time.Duration(1+w.long)*c.time, w.flow())
	if err != nil {
		return err
	}
	s := &t.seen[0]
	strange := s.Lost + s.Other
	switch w.limit {
	case never:
		strange += s.Refused.All
	case 0:
		strange += s.Served.All
	}
	switch {
	case 100*strange > t.answered():
		return fmt.Errorf("%d of %d answers are not what was asked for: %+v", strange, t.answered(), *s)
	case strange > 2: // nginx admits one, and one more at once
		c.page.Missing = append(c.page.Missing, fmt.Sprintf("of one turn of %s, limit %d, %d of %d answers: they were not what was asked for", name, w.limit, strange, t.answered()))
	}
	c.turns[w][name] = append(c.turns[w][name], t)
	return nil
}

// series returns the samples of the counted answers.
func (c *capacity) series(w work, name string) (s sample.Series) {
	for i := range c.turns[w][name] {
		t := &c.turns[w][name][i]
		if w.refused {
			s = append(s, t.with(t.seen[0].Refused))
		} else {
			s = append(s, t.with(t.seen[0].Served))
		}
	}
	return s
}

// spread returns the spread of a number over the turns.
func spread(turns []turn, of func(*turn) float64) sample.Spread {
	var all []float64
	for i := range turns {
		all = append(all, of(&turns[i]))
	}
	return sample.Of(all)
}

// ratio returns the spread of a number divided by that of another gateway in the same round.
func ratio(turns, others []turn, of func(*turn) float64) sample.Spread {
	var all []float64
	for i := range min(len(turns), len(others)) {
		if below := of(&others[i]); below > 0 {
			all = append(all, of(&turns[i])/below)
		}
	}
	return sample.Of(all)
}
