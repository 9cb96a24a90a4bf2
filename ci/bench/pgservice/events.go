package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"macronode/core/accounting"
	"macronode/core/event"
)

// insertEvents has one order of rows, so that no two transactions wait for each other.
const insertEvents = `insert into usage_event (source, id, at, dimension, labels, value)
select * from unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[], $5::text[], $6::bigint[]) x (source, id, at, dimension, labels, value) order by source, id
on conflict (source, id) do nothing`

var errEvent = errors.New("a field is missing, or has an invalid value")

// events records a batch of usage events. An event with the source and id of an earlier one is a
// duplicate, whatever its content is.
func (d *desk) events(w http.ResponseWriter, r *http.Request) {
	raw, ok := d.body(w, r)
	if !ok {
		return
	}
	all, err := parseEvents(raw, time.Now())
	if err != nil {
		refuse(w, event.BadRequest, 0)
		return
	}
	ctx, stop := context.WithTimeout(r.Context(), patience)
	defer stop()
	recorded, err := d.record(ctx, all)
	if err != nil {
		refuse(w, event.OutcomeUnknown, 0)
		return
	}
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(http.StatusAccepted)
	_, _ = fmt.Fprintf(w, `{"recorded":%d,"duplicate":%d,"late":0}`, recorded, len(all.ids)-recorded) // the client may be gone; the events are recorded
}

// record inserts events in one round trip and one transaction, and returns how many are new.
func (d *desk) record(ctx context.Context, all *columns) (recorded int, err error) {
	for range tries {
		done, err := d.pool.Exec(ctx, insertEvents, all.sources, all.ids, all.times, all.dimensions, all.labels, all.values)
		if !is(err, deadlocked) {
			return int(done.RowsAffected()), err
		}
	}
	return 0, errors.New("deadlocked each time")
}

// columns are events by column.
type columns struct {
	sources, ids, dimensions, labels []string
	times                            []time.Time
	values                           []int64
}

// usage is the JSON of an event.
type usage struct {
	SpecVersion, Source, ID, Type string
	Time                          *time.Time
	Data                          struct {
		Dimension string
		Value     json.RawMessage
		Labels    struct{ Service, Region, Method, Route, Subject string }
	}
}

// parseEvents parses a batch that arrived at a time.
func parseEvents(raw []byte, now time.Time) (*columns, error) {
	var all []usage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	if len(all) == 0 || len(all) > accounting.MaxEvents {
		return nil, errors.New("a batch has 1 to 1,024 events")
	}
	c := &columns{}
	for i := range all {
		if err := c.add(&all[i], now); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *columns) add(u *usage, now time.Time) error {
	l := &u.Data.Labels
	var labels strings.Builder
	for _, label := range [...]struct{ name, value string }{{"service", l.Service}, {"region", l.Region}, {"method", l.Method}, {"route", l.Route}, {"subject", l.Subject}} {
		if label.value == "" {
			continue
		}
		if labels.Len() > 0 {
			labels.WriteByte(',')
		}
		labels.WriteString(label.name + "=" + label.value)
	}
	value, err := strconv.ParseInt(strings.Trim(string(u.Data.Value), `"`), 10, 64)
	if err != nil || value < 0 || u.SpecVersion != "1.0" || u.Type == "" || u.Source == "" || len(u.Source) > accounting.MaxSource ||
		u.ID == "" || len(u.ID) > accounting.MaxEventID || u.Data.Dimension == "" {
		return errEvent
	}
	if u.Time != nil {
		now = *u.Time
	}
	c.sources, c.ids, c.times = append(c.sources, u.Source), append(c.ids, u.ID), append(c.times, now)
	c.dimensions, c.labels, c.values = append(c.dimensions, u.Data.Dimension), append(c.labels, labels.String()), append(c.values, value)
	return nil
}
