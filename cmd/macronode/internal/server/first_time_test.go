package server

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"macronode/adapters/journalfile"
	"macronode/adapters/recovery"
	"macronode/core/types"
)

// TestNewJournalNeedsPossibleTime: a clock that was never set, or is far ahead, does not begin a journal. One that exists goes on, also if it is damaged.
func TestNewJournalNeedsPossibleTime(t *testing.T) {
	for _, c := range []struct {
		now    time.Time
		last   types.LSN
		damage error
		want   string
	}{
		{time.Unix(0, 0), 0, nil, "1970-01-01T00:00:00Z: set it"},
		{time.Unix(-1_795_900_000, 0), 0, nil, ": set it"},
		{time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC), 0, nil, ""},
		{time.Date(2100, time.January, 2, 0, 0, 0, 0, time.UTC), 0, nil, "2100-01-02T00:00:00Z: set it"},
		{time.Unix(0, 0), 1, nil, ""},
		{time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC), 0, journalfile.ErrDamaged, ""}, // the header of the first segment
		{time.Unix(0, 0), 0, journalfile.ErrDamaged, ""},
	} {
		var text strings.Builder
		s := &journalStore{log: slog.New(slog.NewTextHandler(&text, nil))}
		err := s.checkFirstTime(&recovery.Result{Found: journalfile.Found{Last: c.last}, Damage: c.damage}, c.now)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v after %d frames, %v: %v", c.now, c.last, c.damage, err)
		}
		if begins := err == nil && c.last == 0 && c.damage == nil; begins != strings.Contains(text.String(), "new journal: its time begins") {
			t.Errorf("%v: %s", c.now, text.String())
		}
	}
}
