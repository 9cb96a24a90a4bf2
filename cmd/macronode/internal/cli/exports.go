package cli

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"macronode/adapters/adminapi"
	"macronode/cmd/macronode/internal/exit"
)

// Run shows the state of each sink.
func (v *exportsStatusCmd) Run(c *Console) error {
	is, err := exportsOf[adminapi.Exports](c, http.MethodGet, "/exports", nil)
	if err != nil {
		return err
	}
	if v.Sink != "" {
		is.Sinks = slices.DeleteFunc(is.Sinks, func(s adminapi.Sink) bool { return s.Name != v.Sink })
		if len(is.Sinks) == 0 {
			return exit.Unable(fmt.Errorf("the node has no sink %s", v.Sink))
		}
	}
	switch {
	case c.tree.JSON:
		return c.printJSON(is)
	case len(is.Sinks) == 0:
		return c.printLine("the node has no sinks: see exports.sinks in the configuration")
	}
	columns := []column{{"sink", 16}, {"kind", 12}, {"state", 8}, {"pending", 8}, {"quarantined", 11}, {"redriven", 8}, {"lag", 10}, {"reason", 0}}
	if err := c.printHeads(columns); err != nil {
		return err
	}
	for _, s := range is.Sinks {
		pending := "-" // not known yet
		if s.Pending != nil {
			pending = strconv.FormatUint(*s.Pending, 10)
		}
		if s.State == "ok" && pending == "0" && s.Quarantined == 0 {
			s.Reason = "" // it is over
		}
		lag := time.Duration(s.LagSeconds * float64(time.Second)).Round(time.Second)
		err := c.printRow(columns, s.Name, s.Kind, s.State, pending, strconv.Itoa(s.Quarantined), strconv.Itoa(s.Redriven), lag.String(), s.Reason)
		if err != nil {
			return err
		}
	}
	if v.Sink == "" {
		return nil
	}
	return c.printLanes(&is.Sinks[0])
}

// printLanes prints the streams of a sink.
func (c *Console) printLanes(s *adminapi.Sink) error {
	columns := []column{{"tenant", 10}, {"stream", 32}, {"delivered to", 12}, {"last", 12}, {"quarantined", 11}, {"redriven", 0}}
	if err := errors.Join(c.printLine(""), c.printHeads(columns)); err != nil {
		return err
	}
	for _, l := range s.Lanes {
		if err := c.printRow(columns, l.Tenant, l.Stream, strconv.FormatUint(l.Cursor, 10), strconv.FormatUint(l.Head, 10), strconv.Itoa(l.Quarantined), strconv.Itoa(l.Redriven)); err != nil {
			return err
		}
	}
	if s.MoreLanes > 0 {
		return c.printLine("and %d more streams", s.MoreLanes)
	}
	return nil
}

// Run lists quarantined items.
func (v *exportsQuarantineCmd) Run(c *Console) error {
	is, err := exportsOf[adminapi.Quarantine](c, http.MethodGet, "/exports/quarantine", laneQuery(v.Sink, "", "", nil))
	switch {
	case err != nil:
		return err
	case c.tree.JSON:
		return c.printJSON(is)
	case len(is.Items) == 0:
		return c.printLine("no item is quarantined")
	}
	columns := []column{{"sink", 16}, {"tenant", 10}, {"stream", 24}, {"position", 10}, {"reason", 10}, {"status", 6}, {"at", 24}, {"redrive", 0}}
	if err := c.printHeads(columns); err != nil {
		return err
	}
	for _, q := range is.Items {
		status, due := "", ""
		if q.Status > 0 {
			status = strconv.Itoa(q.Status)
		}
		if q.Due {
			due = "due"
		}
		if err := c.printRow(columns, q.Sink, q.Tenant, q.Stream, strconv.FormatUint(q.Position, 10), q.Reason, status, q.At.Format(stampLayout), due); err != nil {
			return err
		}
	}
	if is.More > 0 {
		return c.printLine("and %d more", is.More)
	}
	return nil
}

// Run marks items to be delivered again.
func (v *exportsRedriveCmd) Run(c *Console) error {
	is, err := exportsOf[struct {
		Items int `json:"items"`
	}](c, http.MethodPost, "/exports/redrive", laneQuery(v.Sink, v.Tenant, v.Stream, v.Position))
	switch {
	case err != nil:
		return err
	case c.tree.JSON:
		return c.printJSON(is)
	}
	return c.printLine("%d quarantined items are delivered again", is.Items)
}

// Run gives up items.
func (v *exportsSkipCmd) Run(c *Console) error {
	return c.moveLane("/exports/skip", &v.laneArgs, v.Position, "position %d of %s is given up for %s")
}

// Run delivers items again.
func (v *exportsBackfillCmd) Run(c *Console) error {
	return c.moveLane("/exports/backfill", &v.laneArgs, v.From, "from position %d on, %s is delivered again to %s")
}

// movedLane is the answer to a change of a lane.
type movedLane struct {
	Position uint64 `json:"position"`
}

func (c *Console) moveLane(path string, at *laneArgs, position uint64, done string) error {
	is, err := exportsOf[movedLane](c, http.MethodPost, path, laneQuery(at.Sink, at.Tenant, at.Stream, &position))
	switch {
	case err != nil:
		return err
	case c.tree.JSON:
		return c.printJSON(is)
	}
	return c.printLine(done, is.Position, at.Stream, at.Sink)
}

// Run forgets a sink.
func (v *exportsRemoveCmd) Run(c *Console) error {
	is, err := exportsOf[struct {
		Lanes int `json:"lanes"`
	}](c, http.MethodPost, "/exports/remove", laneQuery(v.Sink, "", "", nil))
	switch {
	case err != nil:
		return err
	case c.tree.JSON:
		return c.printJSON(is)
	}
	return c.printLine("%d streams of %s are forgotten: a sink of this name begins at the first item", is.Lanes, v.Sink)
}

// Run resumes a stopped sink.
func (v *exportsResumeCmd) Run(c *Console) error {
	is, err := exportsOf[struct {
		Resumed bool `json:"resumed"`
	}](c, http.MethodPost, "/exports/resume", laneQuery(v.Sink, "", "", nil))
	switch {
	case err != nil:
		return err
	case c.tree.JSON:
		return c.printJSON(is)
	case !is.Resumed:
		return c.printLine("%s was not stopped", v.Sink)
	}
	return c.printLine("%s is resumed", v.Sink)
}

// laneQuery is the query that names a lane, or a part of that.
func laneQuery(sink, tenant, stream string, position *uint64) url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"sink": sink, "tenant": tenant, "stream": stream} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if position != nil {
		q.Set("position", strconv.FormatUint(*position, 10))
	}
	return q
}

// exportsOf sends a request about exports to the running node.
func exportsOf[T any](c *Console, method, path string, query url.Values) (is T, err error) {
	ctx, stop := interruptible()
	defer stop()
	_, run, err := c.node().findNode()
	if err != nil {
		return is, err
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	got, err := c.node().callAdmin(ctx, run, method, path, attemptTimeout)
	if err != nil {
		return is, err
	}
	if err := json.Unmarshal(got.body, &is); err != nil || !got.ok() {
		return is, got.problem()
	}
	return is, nil
}
