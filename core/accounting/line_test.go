package accounting_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/accounting"
	"macronode/core/types"
)

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
