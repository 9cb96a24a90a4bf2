package accounting

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"time"

	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/types"
)

// A LineKey identifies a line of a tenant: a price in a calendar month of UTC.
type LineKey struct {
	Tenant types.Tenant
	Price  types.NameHash // what the price is for, whatever it is
	Month  types.Time     // begin of the month
}

// HashInto mixes k into h.
func (k LineKey) HashInto(h types.Hash64) types.Hash64 {
	return k.Price.HashInto(k.Tenant.HashInto(h).Mix(uint64(k.Month)))
}

// Compare is the order of the lines of a record: by price, then by month.
func (k LineKey) Compare(o LineKey) int {
	return cmp.Or(bytes.Compare(k.Price[:], o.Price[:]), cmp.Compare(k.Month, o.Month))
}

// A Line is what prepaid usage adds up to. Its arrears are its cost, less what was paid. Events are recorded only if they leave no
// arrears; requests have been served when they are recorded. Other prices change no cost until usage is added.
type Line struct {
	Units types.Amount // that were recorded
	Paid  types.Amount // minor units of the asset of the price; it never decreases
	Cost  types.Amount // of the units, by the prices with which usage was added last
}

// Due returns the arrears of l.
func (l *Line) Due() types.Amount {
	if due, ok := l.Cost.Sub(l.Paid); ok {
		return due
	}
	return types.Amount{}
}

// HashInto mixes l into h. A line without a cost of its own, as of an older journal, has the hash that it had there.
func (l Line) HashInto(h types.Hash64) types.Hash64 {
	if h = l.Paid.HashInto(l.Units.HashInto(h)); l.Cost != l.Paid {
		h = l.Cost.HashInto(h)
	}
	return h
}

// A LineChange is a line after prepaid usage was recorded, or paid.
type LineChange struct {
	LineKey
	Line
}

// MonthOf returns the calendar month of UTC that a time after 1970 is in.
func MonthOf(at types.Time) Window {
	from := beginOfMonth(at)
	return Window{from, beginOfMonth(from.Add(31 * day))}
}

const day = 24 * time.Hour

func beginOfMonth(at types.Time) types.Time {
	_, _, n := time.UnixMilli(int64(at)).UTC().Date()
	midnight := at - at%types.Time(day/time.Millisecond)
	return midnight.Add(-time.Duration(n-1) * day)
}

// linger is more than the length of a window: an event counts for the month in which its window begins.
const linger = day

// closesAt returns when no event of the month of a line can be accepted any more.
func (k *LineKey) closesAt() types.Time { return MonthOf(k.Month).To.Add(MaxAge + linger) }

// The payload of kindLines: digest of the price list 32 · entries, in the order of their keys without the tenant
//
//	entry: price 16 · month 8 · units 16 · paid 16 · cost 16
//
// of kindPaid, whose lines have the cost that was paid: the same without the cost, and of kindLineClosed: price 16 · month 8.
const (
	lineKeySize   = 16 + 8
	paidEntrySize = lineKeySize + 2*16
	lineEntrySize = lineKeySize + 3*16
)

// lineEntryBytes returns the size of an entry in a record of lines.
func lineEntryBytes(kind uint8) int {
	if kind == kindPaid {
		return paidEntrySize
	}
	return lineEntrySize
}

// LineEntries is the number of lines of a record, at most.
const LineEntries = (types.MaxPlaneRecord - recordPrefix - digestSize) / lineEntrySize

// LineMonths is more than the months of the events of a command, and than those of the open lines of a price.
const LineMonths = 4

// LineBytes returns the bytes of the records of the lines of some prices, at most.
func LineBytes(prices int) int {
	lines := LineMonths * prices
	return (1+lines/LineEntries)*(recordPrefix+digestSize) + lines*lineEntrySize
}

func appendLineKey(b []byte, k *LineKey) []byte {
	return binary.LittleEndian.AppendUint64(append(b, k.Price[:]...), uint64(k.Month))
}

func appendLine(b []byte, l *Line) []byte {
	for _, n := range [...]uint64{l.Units.Lo, l.Units.Hi, l.Paid.Lo, l.Paid.Hi, l.Cost.Lo, l.Cost.Hi} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

func parseLineKey(t types.Tenant, b []byte) LineKey {
	return LineKey{t, types.NameHash(b[:16]), types.Time(binary.LittleEndian.Uint64(b[16:]))}
}

// parseLine reads the line of an entry with a size, after its key.
func parseLine(b []byte, size int) Line {
	n := func(i int) types.Amount {
		return types.Amount{Lo: binary.LittleEndian.Uint64(b[16*i:]), Hi: binary.LittleEndian.Uint64(b[16*i+8:])}
	}
	l := Line{Units: n(0), Paid: n(1), Cost: n(1)}
	if size == lineEntrySize {
		l.Cost = n(2)
	}
	return l
}

func validLines(b []byte, size int) bool {
	return len(b) > digestSize && (len(b)-digestSize)%size == 0
}

// isMonth reports whether a time is the begin of a month.
func isMonth(at types.Time) bool { return at >= 0 && MonthOf(at).From == at }

// fitsLines reports whether the lines of a record are valid, have room and did not become less.
func (p *Plane) fitsLines(kind uint8, r *record.Record) bool {
	size := lineEntryBytes(kind)
	if !validLines(r.Payload, size) {
		return false
	}
	added := 0
	entries := r.Payload[digestSize:]
	var last LineKey
	for b := entries; len(b) > 0; b = b[size:] {
		k, l := parseLineKey(r.Tenant, b), parseLine(b[lineKeySize:], size)
		if !isMonth(k.Month) || len(b) < len(entries) && last.Compare(k) >= 0 {
			return false
		}
		last = k
		was, exists := p.Line(k)
		if !exists {
			added++
		}
		if l.Units.Less(was.Units) || l.Paid.Less(was.Paid) {
			return false
		}
	}
	return added <= p.lines.Room()
}

// fitsClosed reports whether a record closes the line that is to be closed first.
func (p *Plane) fitsClosed(r *record.Record) bool {
	if len(r.Payload) != lineKeySize {
		return false
	}
	place, exists := p.lines.Find(parseLineKey(r.Tenant, r.Payload))
	first, any := p.closing.First()
	return exists && any && first == place
}

func (p *Plane) applyLines(kind uint8, r *record.Record) {
	size := lineEntryBytes(kind)
	for b := r.Payload[digestSize:]; len(b) > 0; b = b[size:] {
		p.setLine(parseLineKey(r.Tenant, b), parseLine(b[lineKeySize:], size))
	}
}

func (p *Plane) applyClosed(r *record.Record) {
	place, _ := p.lines.Find(parseLineKey(r.Tenant, r.Payload))
	p.closing.Remove(place, p.closesBefore)
	p.lines.Drop(place)
}

func (p *Plane) setLine(k LineKey, l Line) {
	if place, exists := p.lines.Find(k); exists {
		p.lines.Set(place, l)
		return
	}
	p.closing.Push(p.lines.Put(k, l), p.closesBefore)
}

// closesBefore reports whether the line at place a is closed before that at b.
func (p *Plane) closesBefore(a, b uint32) bool {
	ka, _ := p.lines.Row(a)
	kb, _ := p.lines.Row(b)
	return cmp.Or(cmp.Compare(ka.Month, kb.Month), cmp.Compare(ka.Tenant, kb.Tenant), bytes.Compare(ka.Price[:], kb.Price[:])) < 0
}

// expireLine fills r with the end of the line that is to be closed first, if it is time.
func (p *Plane) expireLine(at types.Time, r *record.Record) bool {
	first, any := p.closing.First()
	if !any {
		return false
	}
	k, _ := p.lines.Row(first)
	if k.closesAt() > at {
		return false
	}
	*r = record.Record{Kind: record.PlaneKind(types.PlaneAccounting, kindLineClosed), Tenant: k.Tenant, Payload: appendLineKey(p.payload[:0], &k)}
	return true
}

// LineCount returns the number of lines.
func (p *Plane) LineCount() int { return p.lines.Len() }

// Line returns a line; false if it has no usage, or is closed.
func (p *Plane) Line(k LineKey) (l Line, ok bool) {
	place, ok := p.lines.Find(k)
	if ok {
		_, l = p.lines.Row(place)
	}
	return l, ok
}

// Lines passes the lines of a tenant, in no particular order.
func (p *Plane) Lines(t types.Tenant, each func(LineChange)) {
	p.EachLine(func(l LineChange) {
		if l.Tenant == t {
			each(l)
		}
	})
}

// EachLine passes all lines, in no particular order.
func (p *Plane) EachLine(each func(LineChange)) {
	for at := range p.lines.Capacity() {
		if k, l, taken := p.lines.At(uint32(at)); taken {
			each(LineChange{k, l})
		}
	}
}

// A Prepaid decision records events that are paid. The steps are: CheckPrepaid, then the payment, then Record in the same
// frame. Metered usage has CheckMetered, RecordLines and AddMetered.
type Prepaid struct {
	plane  *Plane
	at     types.Time
	in     *RecordEvents
	report Report
}

// CheckPrepaid finds which events are new. If reply has a problem, it is that of RecordEvents, and nothing may be recorded.
func (p *Plane) CheckPrepaid(at types.Time, in *RecordEvents, f plane.Frame, reply *event.Reply) (d Prepaid) {
	types.Assert(in.prepaid, "accounting: prepaid events that are not sealed as such")
	return Prepaid{p, at, in, p.check(at, in, f, reply)}
}

// IsNew reports whether the i-th event is new, and returns the month of its line.
func (d *Prepaid) IsNew(i int) (month types.Time, ok bool) {
	if !d.plane.fresh[i] {
		return 0, false
	}
	return MonthOf(d.plane.windowAt(d.in.Events[i].Time).From).From, true
}

// LineShortage returns the shortage if there is no room for more lines.
func (p *Plane) LineShortage(more int) event.Shortage {
	if room := p.lines.Room(); more > room {
		return event.Shortage{Limit: event.UsageLines, Needed: uint64(more), Left: uint64(room)}
	}
	return event.Shortage{}
}

// Record records the new events as prepaid, and their lines by the price list with a digest. The lines are in the order
// of price and month, and are those of the tenant.
func (d *Prepaid) Record(list Digest, lines []LineChange, f plane.Frame, reply *event.Reply) {
	d.plane.RecordLines(d.in.Tenant, list, lines, f)
	d.plane.recordEvents(d.at, d.in, &d.report, f, reply)
}

// RecordLines records lines of a tenant by the price list with a digest. They are in the order of price and month. It returns the
// position of the last record.
func (p *Plane) RecordLines(t types.Tenant, list Digest, lines []LineChange, f plane.Frame) (last types.Position) {
	for len(lines) > 0 {
		n := min(len(lines), LineEntries)
		b := append(p.payload[:0], list[:]...)
		for i := range lines[:n] {
			b = appendLine(appendLineKey(b, &lines[i].LineKey), &lines[i].Line)
		}
		last = p.add(f, t, kindLines, b)
		lines = lines[n:]
	}
	return last
}
