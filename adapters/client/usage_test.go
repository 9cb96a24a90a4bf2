package client_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"macronode/adapters/client"
	"macronode/core/types"
)

// numbered returns n events whose sources have so many bytes.
func numbered(n, size int) (all []client.UsageEvent) {
	for i := range n {
		all = append(all, client.NewUsageEvent(strings.Repeat("s", size), fmt.Sprint(i), "requests", uint64(i), client.Labels{}))
	}
	return all
}

// TestUsageIsSplit: events are sent in order, in requests that the node takes.
func TestUsageIsSplit(t *testing.T) {
	for _, c := range []struct {
		events, size int
		want         string
	}{
		{1024, 1, "[1024]"},
		{1025, 1, "[1024 1]"},
		{2500, 1, "[1024 1024 452]"},
		{1000, 1900, "[522 478]"},
		{2, types.MaxBody, "[1 1]"}, // the node rejects them
	} {
		s := play(t, `202 {"recorded":3,"duplicate":2,"late":1}`)
		k, _ := dial(t, s, client.Options{})
		events := numbered(c.events, c.size)
		got, err := k.RecordUsage(t.Context(), events)
		var sizes []int
		next := 0
		for _, one := range s.asked() {
			body := strings.TrimPrefix(one, "POST /v1/usage-events  ")
			var sent []client.UsageEvent
			if err := json.Unmarshal([]byte(body), &sent); err != nil || len(body) > types.MaxBody && len(sent) > 1 {
				t.Fatalf("%d bytes, %v", len(body), err)
			}
			for _, e := range sent {
				if e.ID != events[next].ID {
					t.Fatalf("event %s is sent in the place of %s", e.ID, events[next].ID)
				}
				next++
			}
			sizes = append(sizes, len(sent))
		}
		n := len(sizes)
		if fmt.Sprint(sizes) != c.want || err != nil || got != (client.UsageRecorded{Recorded: 3 * n, Duplicate: 2 * n, Late: n}) || next != c.events {
			t.Errorf("%d events of %d bytes are sent as %v: %+v %v", c.events, c.size, sizes, got, err)
		}
	}
	s := play(t, "202 {}")
	k, _ := dial(t, s, client.Options{})
	if got, err := k.RecordUsage(t.Context(), nil); err != nil || got != (client.UsageRecorded{}) || len(s.asked()) > 0 {
		t.Errorf("no events: %+v %v, %q", got, err, s.asked())
	}
}

// TestUsageIsRetried: a request whose outcome is unknown is sent again, for each event counts once. If one of several
// requests fails, the result has those before it, and the index is that of all events.
func TestUsageIsRetried(t *testing.T) {
	const ok = `202 {"recorded":1024,"duplicate":0,"late":0}`
	s := play(t, unclear, "cut", busy, ok)
	k, _ := dial(t, s, client.Options{MaxAttempts: 9})
	if got, err := k.RecordUsage(t.Context(), numbered(1, 1)); err != nil || got.Recorded != 1024 || len(s.asked()) != 4 {
		t.Errorf("%+v %v, asked %d times", got, err, len(s.asked()))
	}
	s = play(t, ok, `422 {"code":"event_conflict","detail":"Other content.","retryable":false,"index":7}`)
	k, _ = dial(t, s, client.Options{})
	got, err := k.RecordUsage(t.Context(), numbered(2000, 1))
	var p *client.Problem
	if !errors.Is(err, client.EventConflict) || !errors.As(err, &p) || *p.Index != 1031 || got.Recorded != 1024 || len(s.asked()) != 2 {
		t.Errorf("%+v %v", got, err)
	}
	for _, answer := range []string{unclear, "202 hello"} {
		s = play(t, answer)
		k, _ = dial(t, s, client.Options{})
		if _, err = k.RecordUsage(t.Context(), numbered(1, 1)); !errors.Is(err, client.ErrUnknown) {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

// TestSlicesArePaged: the pages of a list of slices are read with the same conditions.
func TestSlicesArePaged(t *testing.T) {
	s := play(t, `200 {"slices":[{"seq":1},{"seq":2}],"next_cursor":"c"}`, `200 {"slices":[{"seq":3}]}`)
	k, _ := dial(t, s, client.Options{})
	var seqs []int64
	for one, err := range k.UsageSlices(t.Context(), client.UsageQuery{Dimension: "requests"}, client.ListOptions{Page: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, one.Seq)
	}
	const first = "GET /v1/usage-slices?dimension=requests&limit=2"
	if got := s.asked(); fmt.Sprint(seqs) != "[1 2 3]" || len(got) != 2 || strings.TrimSpace(got[0]) != first || !strings.HasPrefix(got[1], first) || !strings.Contains(got[1], "cursor=c") {
		t.Errorf("%v, asked %q", seqs, got)
	}
}
