package sim

import (
	"encoding/binary"
	"fmt"

	"macronode/chaos/trace"
	"macronode/core/digest"
	"macronode/core/idempotency"
	"macronode/core/record"
	"macronode/core/types"
	meaning "macronode/models/accounting"
)

// The kinds of the records of the accounting plane, repeated here independently of core, as are their payloads.
const (
	recordReported   = 0
	recordSlice      = 2
	recordUsageKinds = 7
)

// refOf returns the ref of an event.
func refOf(t types.Tenant, e trace.UsageEvent) idempotency.Key {
	return idempotency.Key{Tenant: t, Name: e.Name, Ref: true}
}

// A usageSlice is a slice with its place in its chain.
type usageSlice struct {
	meaning.Slice
	lsn              types.LSN
	due              types.Time
	previous, digest string
}

// usageFrame is what a frame has of usage.
type usageFrame struct {
	lsn    types.LSN
	at     types.Time
	report *meaning.Counts
	place  types.Position // of report
	tenant types.Tenant   // of report
	usage  []trace.UsageEvent
	slices []usageSlice

	metered      []meaning.Metered // without times
	meteredPlace types.Position    // of the last
	prepaidRows  int               // of metered
	isPaidUsage  bool              // usage, all of it

	lines      []prepaidLines
	linesPlace types.Position // of the last
	closed     []prepaidLine
	moves      []prepaidMove // of the money of the tenant
	moved      int           // of moves, those that are the effect of a request
	stored     bool          // an object of the tenant
}

// isUsage reports whether r is a record of the accounting plane, and its kind.
func isUsage(r *record.Record) (kind int, ok bool) {
	first := record.PlaneKind(types.PlaneAccounting, 0)
	return int(r.Kind - first), r.Kind >= first && r.Kind < first+recordUsageKinds
}

// readUsage reads a frame.
func readUsage(w *World, body []byte) (f usageFrame) {
	h, rest, err := record.Open(body)
	if err != nil {
		w.fail("usage-unreadable", "a frame: %v", err)
		return f
	}
	f.lsn, f.at = h.LSN, h.At
	var r record.Record
	for i := range h.Count {
		if rest, err = record.Next(rest, &r); err != nil {
			w.fail("usage-unreadable", "%v: %v", h.LSN, err)
			return f
		}
		kind, ok := isUsage(&r)
		switch {
		case !ok && w.usage.prepaid != nil && r.Tenant == usageTenant:
			f.readOther(types.NewTxID(w.jour.ID(), types.Position{LSN: h.LSN, Index: i}), &r)
		case !ok:
		case kind == recordReported && len(r.Payload) == 14 && f.report == nil:
			n := func(at int) int { return int(binary.LittleEndian.Uint16(r.Payload[at:])) }
			f.report, f.place, f.tenant = &meaning.Counts{Recorded: n(8), Duplicate: n(10), Late: n(12)}, types.Position{LSN: h.LSN, Index: i}, r.Tenant
		case kind == trace.UsageKind && f.report != nil && r.Tenant == f.tenant:
			f.isPaidUsage = r.Payload[0]&prepaidFlag > 0 && (f.isPaidUsage || len(f.usage) == 0)
			f.usage = append(f.usage, trace.UsageEvents(&r)...)
		case kind == recordMetered && r.Tenant == usageTenant:
			m, ok := readMetered(&r)
			if !ok {
				w.fail("usage-unreadable", "%v: metered usage of %d bytes", h.LSN, len(r.Payload))
			}
			f.metered, f.meteredPlace = append(f.metered, m), types.Position{LSN: h.LSN, Index: i}
			f.prepaidRows += int(r.Payload[0] & prepaidFlag / prepaidFlag)
		case kind == recordLines && r.Tenant == usageTenant:
			l, ok := readLines(r.Payload)
			if !ok {
				w.fail("usage-unreadable", "%v: lines of %d bytes", h.LSN, len(r.Payload))
			}
			l.before = f.report == nil
			f.lines, f.linesPlace = append(f.lines, l), types.Position{LSN: h.LSN, Index: i}
		case kind == recordLineClosed && r.Tenant == usageTenant && len(r.Payload) == 16+8:
			f.closed = append(f.closed, readLine(r.Payload))
		case kind == recordSlice:
			if s, why := readUsageSlice(&r); why != "" {
				w.fail("usage-unreadable", "%v: a slice: %s", h.LSN, why)
			} else {
				s.lsn = h.LSN
				f.slices = append(f.slices, s)
			}
		default:
			w.fail("usage-unreadable", "%v: record %d of kind %d", h.LSN, i, kind)
		}
	}
	return f
}

// readOther reads a record of the prepaid tenant that is not of usage.
func (f *usageFrame) readOther(id types.TxID, r *record.Record) {
	if r.Kind.Plane() == types.PlaneStorage {
		f.stored = true
		return
	}
	if m, ok := readMove(id, f.at, r); ok {
		if f.moves = append(f.moves, m); !m.isLapse && !m.isPayment {
			f.moved++
		}
	}
}

// readUsageSlice reads and verifies a slice. It returns why it is invalid.
func readUsageSlice(r *record.Record) (s usageSlice, why string) {
	b, n := r.Payload, func(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
	if len(b) < 8+1+3*8+32+1+2+32 {
		return s, fmt.Sprintf("%d bytes", len(b))
	}
	content := append([]byte("macronode slice 1\n"), byte(r.Tenant), byte(r.Tenant>>8), byte(r.Tenant>>16), byte(r.Tenant>>24))
	sum := digest.Sum(append(content, b[8:len(b)-32]...))
	if s.digest = string(b[len(b)-32:]); s.digest != string(sum[:]) {
		return s, "another digest"
	}
	s.due, b = types.Time(n(b)), b[8:len(b)-32]
	s.Slice = meaning.Slice{Tenant: r.Tenant, Late: b[0]%2 == 0, Prepaid: b[0] > 2, Seq: int(n(b[1:])), From: int64(n(b[9:])), To: int64(n(b[17:]))}
	s.previous, b = string(b[25:57]), b[57:]
	s.Dimension, b = string(b[1:1+b[0]]), b[1+b[0]:]
	rows := int(binary.LittleEndian.Uint16(b))
	for b = b[2:]; len(b) > 16; b = b[1+16+int(b[0]):] {
		labels := b[1 : 1+b[0]]
		s.Rows = append(s.Rows, meaning.Row{Labels: string(labels), Value: n(b[1+len(labels):]), Events: int(n(b[9+len(labels):]))})
	}
	if len(b) > 0 || len(s.Rows) != rows {
		return s, fmt.Sprintf("%d rows of %d, %d bytes are left", len(s.Rows), rows, len(b))
	}
	return s, ""
}
