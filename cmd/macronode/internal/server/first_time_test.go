package server

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"macronode/core/types"
)

// TestNewJournalNeedsPossibleTime: a clock that was never set, or is far ahead, does not begin a journal. One that exists goes on.
func TestNewJournalNeedsPossibleTime(t *testing.T) {
	for _, c := range []struct {
		now  time.Time
		last types.LSN
		want string
	}{
		{time.Unix(0, 0), 0, "1970-01-01T00:00:00Z: set it"},
		{time.Unix(-1_795_900_000, 0), 0, ": set it"},
		{time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC), 0, ""},
		{time.Date(2100, time.January, 2, 0, 0, 0, 0, time.UTC), 0, "2100-01-02T00:00:00Z: set it"},
		{time.Unix(0, 0), 1, ""},
	} {
		var text strings.Builder
		s := &journalStore{log: slog.New(slog.NewTextHandler(&text, nil))}
		err := s.checkFirstTime(c.last, c.now)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v after %d frames: %v", c.now, c.last, err)
		}
		if begins := err == nil && c.last == 0; begins != strings.Contains(text.String(), "new journal: its time begins") {
			t.Errorf("%v: %s", c.now, text.String())
		}
	}
}
