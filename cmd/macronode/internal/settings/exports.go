package settings

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"macronode/adapters/config"
	"macronode/adapters/export"
	"macronode/cmd/macronode/internal/datadir"
	plane "macronode/core/export"
	"macronode/core/lanes"
	"macronode/core/types"
)

// A Sink is what a sink delivers, and where.
type Sink struct {
	export.Config
	FromNow bool           // if it is seen for the first time, it gets the items after that
	Streams []string       // export.Usage, export.Wallet
	Tenants []types.Tenant // sorted; none: all
	Weights []TenantWeight // of tenants that have not weight 1
	Budget  time.Duration  // of an item that is rejected, before its quarantine
}

// A TenantWeight is the share of a tenant while several have items.
type TenantWeight struct {
	Tenant types.Tenant
	Weight uint8
}

// Delivers reports whether the sink gets a stream of a tenant.
func (s *Sink) Delivers(t types.Tenant, stream string) bool {
	if _, listed := slices.BinarySearch(s.Tenants, t); len(s.Tenants) > 0 && !listed {
		return false
	}
	return slices.Contains(s.Streams, stream)
}

// Weight returns the share of a tenant.
func (s *Sink) Weight(t types.Tenant) uint8 {
	for _, w := range s.Weights {
		if w.Tenant == t {
			return w.Weight
		}
	}
	return 1
}

// exportLimits returns the limits of the export plane.
func exportLimits(c *config.Config) plane.Limits {
	e := &c.Exports
	return plane.Limits{Lanes: e.Lanes, TenantLanes: e.TenantLanes, Rows: e.Rows, TenantRows: e.TenantRows}
}

// commandsOfSink is the number of commands that a sink has with the node at once. A command settles several items of a lane.
const commandsOfSink = 8

// LaneLimits returns the limits of the scheduler of a sink, if all sinks together have a number of lanes. The only tenant of a sink leaves no room
// for others.
func (s *Sink) LaneLimits(all int) lanes.Limits {
	l := lanes.DefaultLimits()
	l.Active, l.Inflight, l.Commands, l.Budget = min(l.Active, all), s.Inflight, commandsOfSink, s.Budget
	if len(s.Tenants) == 1 {
		l.Tenant = l.Inflight
	}
	return l
}

// itemBytes is the memory of an item that is being delivered: its text, and the request with it.
const itemBytes = 256 << 10

// exportBytes returns the memory of all sinks.
func exportBytes(c *config.Config) (all int64) {
	for _, s := range sinks(c) {
		items := s.Inflight
		switch s.Kind {
		case export.KindKafka:
			items += export.KafkaRecords
			all += export.KafkaBytes
		case export.KindPostgres:
			all += export.PostgresBytes * int64(s.Inflight)
		case export.KindNATS:
			all += export.NATSBytes
		case export.KindFile:
			all += export.FileBytes * int64(len(s.Streams))
		}
		all += lanes.Bytes(s.LaneLimits(c.Exports.Lanes)) + int64(items)*itemBytes
	}
	return all
}

// sinks returns the sinks of the configuration.
func sinks(c *config.Config) (all []Sink) {
	for i := range c.Exports.Sinks {
		s := &c.Exports.Sinks[i]
		is := Sink{Config: export.Config{Name: s.Name, Kind: s.Kind, URL: cmp.Or(s.URL, s.Database), SecretFile: s.SecretFile, Inflight: s.Inflight,
			Servers: s.Servers, Stream: s.Stream, Subject: s.Subject, Topic: s.Topic, SASL: s.SASL, CAFile: s.CAFile}, FromNow: s.From == "now", Streams: s.Streams, Budget: c.Exports.Budget}
		if s.Dir != "" {
			is.Dir, is.Reserved = c.SinkDir(s), reservedDirs(c)
		}
		for _, text := range s.Tenants {
			t, _ := types.ParseTenant(text) // the configuration was checked
			is.Tenants = append(is.Tenants, t)
		}
		slices.Sort(is.Tenants)
		for _, w := range s.Weights {
			t, _ := types.ParseTenant(w.Tenant)
			is.Weights = append(is.Weights, TenantWeight{t, uint8(w.Weight)})
		}
		all = append(all, is)
	}
	return all
}

// reservedDirs returns the directories of the node that no file sink may use. Directories of an operator, such as a provider that is a
// whole disk, can have others in them.
func reservedDirs(c *config.Config) []export.Reserved {
	in := func(name string) string { return filepath.Join(c.Data, name) }
	all := []export.Reserved{{Path: in(datadir.Journal), What: "the directory of the journal"}, {Path: in(datadir.Snapshots), What: "the directory of snapshots"},
		{Path: in(datadir.Index), What: "the directory of the index"}, {Path: in(datadir.Objects), What: "the directory of objects"}}
	for _, p := range c.ObjectProviders() {
		if p.Path == "" { // a bucket
			all = append(all, export.Reserved{Path: c.SpoolDir(&p), What: "the directory of drafts of provider " + p.Name})
			continue
		}
		all = append(all, export.Reserved{Path: p.Path, What: "the directory of provider " + p.Name, Only: true})
	}
	if c.Journal.Archive != "" {
		all = append(all, export.Reserved{Path: c.Journal.Archive, What: "the archive of the journal", Only: true})
	}
	return append(all, export.Reserved{Path: filepath.Clean(c.Data), What: "the data directory itself", Only: true})
}

// CheckSinks rejects databases with invalid options, and file sinks in directories of the node, as far as their paths show it. What is in
// files that a sink names is not checked: while such a file cannot be used, the sink fails, and the node does not.
func CheckSinks(c *config.Config) error {
	for i, s := range sinks(c) {
		if s.Kind == export.KindPostgres {
			if err := export.CheckDatabase(s.URL); err != nil {
				return fmt.Errorf("exports.sinks[%d].database %w", i, err)
			}
		}
		for _, r := range s.Reserved {
			below, err := filepath.Rel(r.Path, s.Dir)
			if err == nil && (below == "." || !r.Only && filepath.IsLocal(below)) {
				return fmt.Errorf("exports.sinks[%d].dir is %s, which is or is in %s, %s: name another directory", i, c.Exports.Sinks[i].Dir, r.Path, r.What)
			}
		}
	}
	return nil
}
