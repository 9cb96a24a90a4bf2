package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"path/filepath"
	"time"

	"macronode/ci/bench/cluster"
	"macronode/ci/bench/gauge"
	"macronode/ci/bench/sample"
)

// eventWorks are batches of usage events.
var eventWorks = [...]kind{{conns: 16, items: 100}, {conns: 16, items: 1000}, {conns: 16, items: 1000, random: true}}

// eventRate is about what a small machine records in a second.
const eventRate = 250_000

// events is the stage: it measures the recording of usage events, in turn: macronode, and the service over
// PostgreSQL; then counting and sealing in process.
type events struct {
	*bench
	benchmarked
	cluster *cluster.Cluster
	node    *node
	peer    *peer
	turn    int
	total   [2]uint64     // recorded events of node and peer
	front   time.Duration // CPU of the service without PostgreSQL

	ours, service map[kind]sample.Series
}

func (b *bench) usage(ctx context.Context) (err error) {
	u := &events{bench: b, ours: map[kind]sample.Series{}, service: map[kind]sample.Series{}}
	defer func() { err = errors.Join(err, u.close()) }()
	if err := u.open(ctx); err != nil {
		return err
	}
	for round := range b.rounds {
		if _, err := u.cluster.SQL(ctx, "checkpoint"); err != nil {
			return err
		}
		for _, k := range eventWorks {
			if err := u.round(ctx, k); err != nil {
				return fmt.Errorf("round %d, %d events a request: %w", round+1, k.items, err)
			}
		}
		if err := u.inProcess(ctx); err != nil {
			return err
		}
		b.say("usage, round %d of %d", round+1, b.rounds)
	}
	if u.front, err = gauge.CPU(u.peer.pid()); err != nil {
		return err
	}
	if err := u.audit(ctx); err != nil {
		return err
	}
	u.report()
	return nil
}

// keys returns the room for ids: about those of all turns are in memory. More would make the table
// of ids larger, and so slower, than it has to be.
func (u *events) keys() int {
	events := float64(u.rounds*len(eventWorks)) * (u.warm + u.time).Seconds() * eventRate
	return int(events) / 3 * 4 // events use three quarters
}

func (u *events) open(ctx context.Context) (err error) {
	if u.cluster, err = u.postgres(ctx, "cluster"); err != nil {
		return err
	}
	data := filepath.Join(u.work, "usage")
	config, err := u.config(data, 1000, u.keys(), "24h")
	if err != nil {
		return err
	}
	if u.node, err = u.serve(ctx, config, data); err != nil {
		return err
	}
	u.peer, err = u.bench.peer(u.cluster.DSN(), u.node.keyFile())
	return err
}

func (u *events) close() (err error) {
	if u.peer != nil {
		err = errors.Join(err, u.peer.stop())
	}
	if u.node != nil {
		err = errors.Join(err, u.node.stop())
	}
	if u.cluster != nil {
		err = errors.Join(err, u.cluster.Stop())
	}
	return err
}

// round is one turn of each.
func (u *events) round(ctx context.Context, k kind) error {
	s, err := u.load(ctx, u.node.http, k, u.node.cpu)
	if err != nil {
		return fmt.Errorf("%s: %w", usageNode, err)
	}
	u.ours[k], u.total[0] = append(u.ours[k], s), u.total[0]+s.All
	if s, err = u.load(ctx, u.peer.http, k, func() (time.Duration, error) { return u.peer.cpu(u.cluster) }); err != nil {
		return fmt.Errorf("%s: %w", usageService, err)
	}
	u.service[k], u.total[1] = append(u.service[k], s), u.total[1]+s.All
	return nil
}

// load sends batches with new ids. The sample counts events; its times are those of requests. Its
// CPU includes the work that the servers do afterwards, which would otherwise fall into the next
// turn.
func (u *events) load(ctx context.Context, addr string, k kind, servers func() (time.Duration, error)) (sample.Sample, error) {
	u.turn++
	before, err := servers()
	if err != nil {
		return sample.Sample{}, err
	}
	s, err := u.sampled(exec.CommandContext(ctx, u.binary("load"), "-addr", addr, "-key-file", u.node.keyFile(), "-conns", fmt.Sprint(k.conns),
		"-events", fmt.Sprint(k.items), fmt.Sprintf("-random=%t", k.random), "-salt", fmt.Sprintf("t%d", u.turn), "-warm", u.warm.String(), "-time", u.time.String()), servers)
	if err != nil {
		return s, err
	}
	if _, err := quiet(ctx, servers); err != nil {
		return s, err
	}
	after, err := servers()
	s.CPU = after - before
	return k.counted(s), err
}

// audit compares the sums of both with the events that were answered: each has the value 1.
func (u *events) audit(ctx context.Context) error {
	reply, err := u.cluster.SQL(ctx, "select count(*) from usage_event", "select sum(value) from usage_event")
	if want := fmt.Sprintf("%d\n%d", u.total[1], u.total[1]); err != nil || reply != want {
		return errors.Join(err, fmt.Errorf("PostgreSQL has %q, want %q", reply, want))
	}
	now := time.Now().UTC()
	at := func(d time.Duration) string { return url.QueryEscape(now.Add(d).Format(time.RFC3339)) }
	var got struct {
		Usage []struct {
			Value  string
			Events uint64
		}
	}
	err = u.node.get(ctx, "/v1/usage?from="+at(-24*time.Hour)+"&to="+at(time.Hour), func(r io.Reader) error { return json.NewDecoder(r).Decode(&got) })
	if err != nil || len(got.Usage) != 1 || got.Usage[0].Events != u.total[0] || got.Usage[0].Value != fmt.Sprint(u.total[0]) {
		return errors.Join(err, fmt.Errorf("macronode has %+v, %d events were answered", got.Usage, u.total[0]))
	}
	return nil
}
