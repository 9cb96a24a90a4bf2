package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"time"

	"macronode/ci/bench/gauge"
	"macronode/ci/bench/objplan"
	"macronode/ci/bench/sample"
)

// An objectWork is what every server of objects does by turns.
type objectWork struct {
	name    string
	put     bool
	size    uint64
	part    uint64 // of a range; 0: whole objects
	objects int    // that are read
}

const objectConns = 16

var (
	putSmall    = objectWork{name: "PUT 64 KiB", put: true, size: 64 << 10}
	putLarge    = objectWork{name: "PUT 1 MiB", put: true, size: 1 << 20}
	getSmall    = objectWork{name: "GET 64 KiB", size: 64 << 10, objects: 64}
	getLarge    = objectWork{name: "GET 1 MiB", size: 1 << 20, objects: 64}
	rangeLarge  = objectWork{name: "4 KiB of 1 MiB", size: 1 << 20, part: 4 << 10, objects: 64}
	rangeHuge   = objectWork{name: "4 KiB of 1 GiB", size: 1 << 30, part: 4 << 10, objects: 1}
	objectWorks = [...]objectWork{putSmall, putLarge, getSmall, getLarge, rangeLarge, rangeHuge}
)

// An objectTurn is what one server did in one turn.
type objectTurn struct {
	objplan.Result
	server string
}

// objects is the stage.
type objects struct {
	*bench
	names  []string // of the servers that are there
	open   map[string]*objectServer
	paths  map[string]map[uint64][]string // of the objects that are read, by server and size
	turns  map[objectWork]map[string][]objectTurn
	memory []objectMemory
	salt   uint64
}

// objects measures PUT, GET and ranges of all servers by turns.
func (b *bench) objects(ctx context.Context) (err error) {
	o := &objects{bench: b, open: map[string]*objectServer{}, paths: map[string]map[uint64][]string{}, turns: map[objectWork]map[string][]objectTurn{}}
	for _, w := range objectWorks {
		o.turns[w] = map[string][]objectTurn{}
	}
	defer func() {
		for _, s := range o.open {
			err = errors.Join(err, s.close())
		}
	}()
	for _, name := range objectServers {
		if _, isPeer := objectPeers[name]; isPeer {
			if _, err := objectPeer(ctx, name); err != nil {
				b.page.Missing = append(b.page.Missing, name+": "+err.Error())
				continue
			}
		}
		if err := o.prepare(ctx, name); err != nil {
			return err
		}
		o.names = append(o.names, name)
	}
	for round := range b.rounds {
		for _, w := range objectWorks {
			for _, name := range o.names {
				if err := o.turn(ctx, w, name); err != nil {
					return fmt.Errorf("round %d, %s, %s: %w", round+1, name, w.name, err)
				}
			}
		}
		b.say("objects, round %d of %d", round+1, b.rounds)
	}
	if err := o.measureMemory(ctx); err != nil {
		return err
	}
	o.report()
	return nil
}

// objectPeers are the programs of the peers.
var objectPeers = map[string]string{versity: "versitygw", rcloneS3: "rclone", nginxFiles: "nginx"}

// prepare starts a server and stores what is read from it.
func (o *objects) prepare(ctx context.Context, name string) error {
	s, err := o.objectServer(ctx, name)
	if err != nil {
		return err
	}
	o.open[name], o.paths[name] = s, map[uint64][]string{}
	for _, w := range objectWorks {
		for n := len(o.paths[name][w.size]); n < w.objects; n++ {
			path, err := s.store(ctx, uint64(n), w.size)
			if err != nil {
				return fmt.Errorf("%s: fill: %w", name, err)
			}
			o.paths[name][w.size] = append(o.paths[name][w.size], path)
		}
	}
	o.say("objects: %s is filled", name)
	return nil
}

// turn measures one server. New objects are stored in a new server.
func (o *objects) turn(ctx context.Context, w objectWork, name string) (err error) {
	s := o.open[name]
	var p objplan.Plan
	if w.put {
		if s, err = o.objectServer(ctx, name); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.close()) }()
		o.salt++
		p = s.puts(o.salt)
	} else {
		p = s.plan()
		p.Method, p.Status, p.Paths, p.Range = http.MethodGet, http.StatusOK, o.paths[name][w.size], w.part
		if w.part > 0 && name != rcloneS3 { // it answers 200, with the right part
			p.Status = http.StatusPartialContent
		}
	}
	p.Size, p.Conns, p.Warm, p.Time = w.size, objectConns, o.warm, o.time
	t, err := o.load(ctx, s, p)
	t.server = name
	o.turns[w][name] = append(o.turns[w][name], t)
	return err
}

// load carries out a plan in a process of its own.
func (o *objects) load(ctx context.Context, s *objectServer, p objplan.Plan) (t objectTurn, err error) {
	text, err := json.Marshal(p)
	if err != nil {
		return t, err
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, o.binary("objload"))
	cmd.Stdin, cmd.Stdout = bytes.NewReader(text), &out
	used, otherLoad, err := o.watched(cmd, func() (time.Duration, error) {
		used, _, err := gauge.Family(s.pid())
		return used, err
	})
	if err != nil {
		return t, err
	}
	if err := json.Unmarshal(out.Bytes(), &t.Result); err != nil {
		return t, err
	}
	t.CPU, t.Over, t.OtherLoad = used, t.All, otherLoad
	return t, nil
}

// series returns the samples of a server.
func (o *objects) series(w objectWork, name string) (s sample.Series) {
	for _, t := range o.turns[w][name] {
		s = append(s, t.Sample)
	}
	return s
}

// has reports whether a server was measured.
func (o *objects) has(name string) bool { return slices.Contains(o.names, name) }
