package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"macronode/ci/bench/conf"
	"macronode/ci/bench/flow"
	"macronode/ci/bench/gauge"
	"macronode/ci/bench/sample"
)

// A turn is the result of one gateway with one plan.
type turn struct {
	seen      []flow.Seen
	used      time.Duration // CPU time of the gateway
	otherLoad float64
	resident  int64
}

// answered counts the answers of all flows, of any status.
func (t *turn) answered() (n uint64) {
	for i := range t.seen {
		n += t.seen[i].Served.All + t.seen[i].Refused.All + t.seen[i].Other
	}
	return n
}

// with returns a sample with the gateway's CPU time.
func (t *turn) with(s sample.Sample) sample.Sample {
	s.CPU, s.Over, s.OtherLoad = t.used, t.answered(), t.otherLoad
	return s
}

// gateways has the origin and the gateways.
type gateways struct {
	*bench
	origin   *program
	originAt string
	open     map[string][]*front // by their settings
	all      []*front
}

func (b *bench) gateways() (*gateways, error) {
	origin, at, err := spoken(exec.Command(b.binary("origin")))
	return &gateways{bench: b, origin: origin, originAt: at, open: map[string][]*front{}}, err
}

func (g *gateways) start(ctx context.Context, name string, s conf.Setting) (*front, error) {
	s.Origin = g.originAt
	f, err := g.front(ctx, name, s)
	if err == nil {
		g.all = append(g.all, f)
	}
	return f, err
}

func (g *gateways) close() (err error) {
	for _, f := range g.all {
		err = errors.Join(err, f.end())
	}
	if g.origin != nil {
		_ = g.origin.stop() // it has no other way to stop
	}
	return err
}

// offer runs a plan against a gateway; nil: against the origin.
func (g *gateways) offer(ctx context.Context, f *front, span time.Duration, flows ...flow.Flow) (t turn, err error) {
	p := flow.Plan{Addr: g.originAt, Warm: g.warm, Time: span, Flows: flows}
	at := g.origin.pid()
	if f != nil {
		p.Addr, at = f.at, f.pid()
	}
	used := func() (front, all time.Duration, err error) {
		if front, _, err = gauge.Family(at); err != nil || f == nil {
			return front, front, err
		}
		origin, err := gauge.CPU(g.origin.pid())
		return front, front + origin, err
	}
	end, err := watch()
	if err != nil {
		return t, err
	}
	front, all, err := used()
	if err != nil {
		return t, err
	}
	if t.seen, err = g.carryOut(ctx, p); err != nil {
		return t, err
	}
	frontAfter, allAfter, err := used()
	if err != nil {
		return t, err
	}
	t.used = frontAfter - front
	if t.otherLoad, err = end(allAfter - all); err != nil {
		return t, err
	}
	g.noise = append(g.noise, t.otherLoad)
	t.resident, err = gauge.Resident(at)
	return t, err
}

// carryOut runs a plan in its own process.
func (g *gateways) carryOut(ctx context.Context, p flow.Plan) (seen []flow.Seen, err error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	var out, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, g.binary("offer"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), &out, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("offer: %w: %s", err, stderr.String())
	}
	return seen, json.Unmarshal(out.Bytes(), &seen)
}
