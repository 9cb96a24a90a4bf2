package accounting_test

import (
	"encoding/binary"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/accounting"
	"macronode/core/record"
	"macronode/core/types"
)

// fitted is a frame that notes whether its records fit, and applies none.
type fitted struct {
	direct
	fits []bool
}

func (f *fitted) Record() *record.Record { return &f.rec }
func (f *fitted) Add() types.Position {
	f.fits = append(f.fits, f.plane.Fits(&f.rec))
	return types.Position{LSN: 1}
}

// TestLinesOfTwoMonthsFit: usage of the last requests of a month and of the first of the next is in one record. A replay accepts it, in
// whatever order the bytes of the two times are.
func TestLinesOfTwoMonthsFit(t *testing.T) {
	f := &fitted{direct: direct{plane: accounting.New(accounting.Limits{Rows: 1, Streams: 1, Tenants: 1, Lines: 4, Window: window, Grace: grace}, 1)}}
	line := func(price byte, month types.Time) accounting.LineChange {
		return accounting.LineChange{LineKey: accounting.LineKey{Tenant: 1, Price: types.NameHash{price}, Month: month}, Line: accounting.Line{Units: types.MinorUnits(1)}}
	}
	for month := accounting.MonthOf(1_600_000_000_000); month.From < 4_000_000_000_000; month = accounting.MonthOf(month.To) {
		for _, c := range []struct {
			lines []accounting.LineChange
			fits  bool
		}{
			{[]accounting.LineChange{line(1, month.From), line(1, month.To), line(2, month.From)}, true},
			{[]accounting.LineChange{line(1, month.To), line(1, month.From)}, false},
			{[]accounting.LineChange{line(1, month.From), line(1, month.From)}, false},
			{[]accounting.LineChange{line(2, month.From), line(1, month.To)}, false},
		} {
			f.fits = nil
			if f.plane.RecordLines(1, accounting.Digest{1}, c.lines, f); len(f.fits) != 1 || f.fits[0] != c.fits {
				t.Fatalf("lines of %v fit: %v, want %v", c.lines, f.fits, c.fits)
			}
		}
	}
}

// TestOlderLines: a line of an older journal, or of an older snapshot, has the cost that was paid, and the hash that it had there.
func TestOlderLines(t *testing.T) {
	limits := accounting.Limits{Rows: 1, Streams: 1, Tenants: 1, Lines: 4, Window: window, Grace: grace}
	k := accounting.LineKey{Tenant: 7, Price: types.NameHash{9}, Month: accounting.MonthOf(1_700_000_000_000).From}
	entry := append(k.Price[:], make([]byte, 8+2*16)...)
	binary.LittleEndian.PutUint64(entry[16:], uint64(k.Month))
	entry[24], entry[40] = 5, 3 // units and paid
	older := record.Record{Kind: record.PlaneKind(types.PlaneAccounting, 4), Tenant: 7, Payload: append(make([]byte, 32), entry...)}
	want := accounting.Line{Units: types.MinorUnits(5), Paid: types.MinorUnits(3), Cost: types.MinorUnits(3)}

	folded, loaded := accounting.New(limits, 1), accounting.New(limits, 1)
	if !folded.Fits(&older) {
		t.Fatal("the record does not fit")
	}
	folded.Apply(0, types.TxID{}, &older)
	if err := loaded.Load(3, append([]byte{7, 0, 0, 0}, entry...)); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*accounting.Plane{"folded": folded, "loaded": loaded} {
		if l, ok := p.Line(k); !ok || l != want || l.Due() != (types.Amount{}) {
			t.Errorf("%s: %+v, want %+v", name, l, want)
		}
	}
	if h := want.Paid.HashInto(want.Units.HashInto(0)); want.HashInto(0) != h {
		t.Error("it has another hash")
	}
	if want.Cost = types.MinorUnits(4); want.HashInto(0) == want.Paid.HashInto(want.Units.HashInto(0)) || want.Due() != types.MinorUnits(1) {
		t.Error("its cost is not in its hash")
	}
}

// TestMonthOf compares months with the calendar.
func TestMonthOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		year, month := rapid.IntRange(1970, 2400).Draw(t, "year"), time.Month(rapid.IntRange(1, 12).Draw(t, "month"))
		from, to := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).UnixMilli(), time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
		at := rapid.OneOf(rapid.SampledFrom([]int64{from, to - 1}), rapid.Int64Range(from, to-1)).Draw(t, "time")
		if got := accounting.MonthOf(types.Time(at)); got != (accounting.Window{From: types.Time(from), To: types.Time(to)}) {
			t.Fatalf("%d is in %v, want %d to %d", at, got, from, to)
		}
	})
}
