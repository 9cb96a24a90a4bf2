package export_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"macronode/ci/transcript"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/export"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/types"
	reference "macronode/models/export"
)

// direct is the frame of a plane without a node.
type direct struct {
	plane.Frame
	plane *export.Plane
	at    types.Time
	rec   record.Record
	lsn   types.LSN
}

func (d *direct) Record() *record.Record { return &d.rec }

func (d *direct) Add() types.Position {
	types.Assert(d.plane.Fits(&d.rec), "a record that does not fit")
	d.lsn++
	d.plane.Apply(d.at, types.NewTxID(9, types.Position{LSN: d.lsn}), &d.rec)
	return types.Position{LSN: d.lsn}
}

// do decides a command of the node.
func (d *direct) do(c command.Command) (r event.Reply) {
	if err := c.ValidateFields(); err != nil {
		r.Problem = event.BadRequest
		return r
	}
	d.plane.Decide(d.at, c, d, &r)
	return r
}

var reasons = map[string]types.ExportReason{"rejected": types.ExportRejected, "too_large": types.ExportTooLarge, "unreadable": types.ExportUnreadable}

// TestLanes plays transcripts. A lane is tenant:sink:stream.
//
//	at 50                                sets the time
//	begin SINK start · begin SINK now · forget SINK
//	open LANE · open LANE 7 · remove LANE
//	settle LANE 1 3
//	quarantine LANE 4 rejected 400
//	resolve LANE 4 · redrive LANE 4 · discard LANE 4
//	skip LANE 9 · rewind LANE 2
//	show
//	plane 8 0 4 0                        begins an empty plane for so many lanes, of one tenant, quarantined positions, of one tenant
//	reload                               loads a dump into a plane with another seed
func TestLanes(t *testing.T) {
	limits := export.Limits{Lanes: 3, TenantLanes: 2, Rows: 3, TenantRows: 2}
	d := &direct{plane: export.New(limits, 1)}
	transcript.Play(t, "testdata/lanes", func(w []string) string {
		number := func(i int) uint64 {
			n, err := strconv.ParseUint(w[i], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		switch w[0] {
		case "at":
			d.at = types.Time(number(1))
			return ""
		case "plane":
			limits = export.Limits{Lanes: int(number(1)), TenantLanes: int(number(2)), Rows: int(number(3)), TenantRows: int(number(4))}
			d = &direct{plane: export.New(limits, 1)}
			return ""
		case "show":
			return show(d.plane)
		case "reload":
			next := export.New(limits, 2)
			d.plane.Dump(func(kind uint8, b []byte) {
				if err := next.Load(kind, b); err != nil {
					t.Fatal(err)
				}
			})
			if next.Hash() != d.plane.Hash() {
				return "another state"
			}
			d.plane = next
			return "the same state"
		}
		switch w[0] {
		case "begin":
			return answer(d, &export.Begin{Header: command.Header{Tenant: types.DefaultTenant}, Sink: []byte(w[1]), Now: w[2] == "now"})
		case "forget":
			return answer(d, &export.Forget{Header: command.Header{Tenant: types.DefaultTenant}, Sink: []byte(w[1])})
		}
		parts := strings.Split(w[1], ":")
		tenant, _ := strconv.Atoi(parts[0])
		l := laneOf(reference.Name{Tenant: types.Tenant(tenant), Sink: parts[1], Stream: strings.Join(parts[2:], ":")})
		h := command.Header{Tenant: l.Tenant}
		var c command.Command
		switch w[0] {
		case "open":
			in := &export.Open{Header: h, Lane: l}
			if len(w) > 2 {
				in.After = number(2)
			}
			c = in
		case "remove":
			c = &export.Remove{Header: h, Lane: l.LaneID}
		case "settle":
			c = &export.Settle{Header: h, Lane: l.LaneID, From: number(2), To: number(3)}
		case "quarantine":
			c = &export.Quarantine{Header: h, Lane: l.LaneID, Position: number(2), Reason: reasons[w[3]], Status: uint16(number(4))}
		case "resolve":
			c = &export.Resolve{Header: h, Lane: l.LaneID, Position: number(2)}
		case "redrive":
			c = &export.Redrive{Header: h, Lane: l.LaneID, Position: number(2)}
		case "discard":
			c = &export.Discard{Header: h, Lane: l.LaneID, Position: number(2)}
		case "skip":
			c = &export.Skip{Header: h, Lane: l.LaneID, To: number(2)}
		case "rewind":
			c = &export.Rewind{Header: h, Lane: l.LaneID, To: number(2)}
		default:
			t.Fatalf("unknown: %v", w)
		}
		return answer(d, c)
	})
}

// answer decides a command, and says what became of it.
func answer(d *direct, c command.Command) string {
	r := d.do(c)
	switch err := d.plane.Check(); {
	case err != nil:
		return err.Error()
	case r.Shortage.Limit != event.NoLimit:
		return r.Problem.Code() + ": " + r.Shortage.Detail()
	case r.Problem != event.None:
		return r.Problem.Code()
	case r.Position.LSN == 0:
		return "no change"
	}
	return "recorded"
}

// show lists the sinks, and the lanes with their quarantine.
func show(p *export.Plane) string {
	var out []string
	p.Sinks(func(name []byte, after types.LSN) bool {
		out = append(out, fmt.Sprintf("%s after frame %d", name, after))
		return true
	})
	for _, l := range lanesOf(p) {
		line := fmt.Sprintf("%d:%s:%s at %d", l.Tenant, l.Sink, l.Stream, l.Cursor)
		for _, r := range l.Rows {
			line += fmt.Sprintf(", %d %v %d at %d", r.Position, types.ExportReason(r.Reason), r.Status, r.At)
			if r.Due {
				line += " due"
			}
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}
